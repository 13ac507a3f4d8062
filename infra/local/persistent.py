"""The cluster that stays between commands: ``jobwarden local up``, ``down`` and ``psql``."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.errors import InfraError
from infra.local.cluster import Cluster
from infra.local.folder import PORT
from infra.local.owner import Owner
from infra.local.servers import Server, find_server

DATABASE = "app"
_SYSTEM_STATE = Path("/var/lib/jobwarden/local")
# All that a cluster of ours puts into its folder.
_OURS = ("data", "data.new", "log", "lock", f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock")


@dataclass(frozen=True, slots=True)
class Status:
    """What is there: the folder, the server's process, the URL while it runs."""

    folder: Path
    exists: bool
    pid: int | None
    url: str | None
    server: Server | None


def state_folder(environ: Mapping[str, str] = os.environ, *, root: bool | None = None) -> Path:
    """Return where the kept cluster lives: JOBWARDEN_STATE, or the usual place for this user."""
    if chosen := environ.get("JOBWARDEN_STATE"):
        return Path(chosen).absolute()
    if os.geteuid() == 0 if root is None else root:
        return _SYSTEM_STATE
    state = environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(state) / "jobwarden" / "local"


def up(server: Server | None = None, *, folder: Path | None = None) -> Cluster:
    """Start the kept cluster, making it the first time. Nothing happens when it already runs.

    Raises InfraError when no fitting server is installed or it does not start.
    """
    folder = folder or state_folder()
    with _one_at_a_time(folder):
        cluster = _open(folder)
        if cluster is not None and cluster.running():
            return cluster
        if cluster is None:
            _refuse_strangers(folder)
        chosen = cluster.server if cluster is not None else server or find_server()
        return Cluster.create(
            chosen, folder=folder, database=DATABASE, pg_cron=chosen.has_pg_cron, keep=True
        )


def down(*, folder: Path | None = None, purge: bool = False) -> bool:
    """Stop the kept cluster and tell whether it ran. ``purge`` removes its data as well."""
    folder = folder or state_folder()
    if not folder.exists():
        return False
    with _one_at_a_time(folder):
        cluster = _open(folder)
        ran = cluster is not None and cluster.running()
        if cluster is not None:
            cluster.stop()
        if purge and cluster is not None:
            _purge(folder)
    return ran


def _purge(folder: Path) -> None:
    """Remove what a cluster of ours is made of, and the folder if nothing else is in it."""
    for name in _OURS:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def status(*, folder: Path | None = None) -> Status:
    """Look at the kept cluster without touching it."""
    folder = folder or state_folder()
    cluster = _open(folder)
    if cluster is None:
        return Status(folder, exists=False, pid=None, url=None, server=None)
    pid = cluster.pid()
    return Status(folder, True, pid, cluster.url(DATABASE) if pid else None, cluster.server)  # noqa: FBT003


def _refuse_strangers(folder: Path) -> None:
    """A folder that holds something of somebody's is not made ours."""
    found = sorted(path.name for path in folder.iterdir() if path.name not in _OURS)
    if found:
        raise InfraError(
            f"{folder} holds something already ({', '.join(found[:3])}), and no cluster of ours",
            hint="set JOBWARDEN_STATE to a folder that is empty or does not exist yet",
        )


def _open(folder: Path) -> Cluster | None:
    """Return the cluster in the folder, with the installed server of its own version."""
    version = folder / "data" / "PG_VERSION"
    if not version.is_file():
        return None
    server = find_server(int(version.read_text(encoding="ascii")))
    return Cluster(server, folder, Owner.current(), keep=True)


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Keep two commands from making or stopping the cluster at the same moment."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InfraError(
            f"the folder for the local cluster cannot be used: {error}",
            hint="set JOBWARDEN_STATE to a folder of yours",
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
