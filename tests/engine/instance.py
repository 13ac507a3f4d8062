"""Real Postgres servers behind the account's instances.

Each order becomes a private cluster whose settings are those of its parameter groups; static ones
come in only when it boots. What differs from RDS: the release is the one installed here when the
ordered one is not; the master is a superuser (a local server has no other way to let it create
pg_cron); a library that is not installed here (``pg_tle``, ``rdsutils``) is a stand-in that does
nothing but show up in ``SHOW shared_preload_libraries``; values that are formulas of the instance's
memory are left out; ``rds.*`` settings are stored and not obeyed.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from psycopg import sql

from infra.errors import InfraError
from infra.local.cluster import Cluster
from infra.local.servers import Server, find_server
from tests.engine.account import facts
from tests.engine.account.plane import Endpoint, Order
from tests.engine.door import HOST, Door, write_certificate
from tests.ports import free_port

_PRELOAD = "shared_preload_libraries"
# RDS puts this one in front of whatever the group says.
_OWN_LIBRARY = "rdsutils"
# A module without an init function: loading it under any name does nothing.
_HARMLESS = "dict_int"
_CONF = "group.conf"


@dataclass(frozen=True, slots=True)
class _Running:
    cluster: Cluster
    door: Door
    database: str


class LocalPlane:
    """Runs one local server for each instance (or Aurora writer) of an account."""

    def __init__(self, folder: Path) -> None:
        self.ca_file = write_certificate(folder)
        self._running: dict[str, _Running] = {}
        self._reserved: dict[str, int] = {}

    def reserve(self, name: str) -> Endpoint:
        return Endpoint(HOST, self._reserved.setdefault(name, free_port()))

    def boot(self, order: Order) -> Endpoint:
        """Start the server, or restart it, with the values of its groups.

        Raises InfraError when it does not start with them.
        """
        known = self._running.get(order.name)
        if known is None:
            known = self._running[order.name] = self._make(order)
        known.cluster.stop()
        self._write(known.cluster, order.values)
        known.cluster.start()
        return Endpoint(HOST, known.door.port)

    def reload(self, name: str, values: Mapping[str, str]) -> None:
        known = self._running[name]
        self._write(known.cluster, values)
        with psycopg.connect(known.cluster.url(known.database), autocommit=True) as back:
            back.execute("SELECT pg_reload_conf()")

    def destroy(self, name: str) -> None:
        if known := self._running.pop(name, None):
            known.door.close()
            known.cluster.destroy()

    def close(self) -> None:
        for name in list(self._running):
            self.destroy(name)

    def url(self, name: str, database: str | None = None) -> str:
        """Return the back door: the superuser ``postgres``, without the network or a password."""
        known = self._running[name]
        return known.cluster.url(database or known.database)

    def cut(self, name: str) -> AbstractContextManager[None]:
        """Make the instance's address unreachable for a while; the server runs on."""
        return self._running[name].door.cut()

    def _make(self, order: Order) -> _Running:
        cluster = Cluster.create(
            _server(order.version), database=order.database, pg_cron=False, durable=False
        )
        with (cluster.data / "postgresql.conf").open("a", encoding="utf-8") as conf:
            conf.write(f"include_if_exists '{_CONF}'\n")
        _ask_for_password(cluster, order.username)
        _make_master(cluster.url(order.database), order)
        port = self._reserved.pop(order.name, 0)
        door = Door(cluster.folder / ".s.PGSQL.5432", self.ca_file, port)
        return _Running(cluster, door, order.database)

    def _write(self, cluster: Cluster, values: Mapping[str, str]) -> None:
        default = facts.PARAMETERS[_PRELOAD].default
        libraries = [_OWN_LIBRARY, *(values.get(_PRELOAD) or str(default)).split(",")]
        stand_ins = _add_stand_ins(cluster, [name.strip() for name in libraries])
        settings = {
            "cron.use_background_workers": "on",
            **{name: value for name, value in values.items() if "{" not in value},
            _PRELOAD: ",".join(libraries),
            "dynamic_library_path": f"$libdir:{stand_ins}",
        }
        lines = (
            f"{name} = '{value.replace(chr(39), chr(39) * 2)}'\n"
            for name, value in settings.items()
        )
        (cluster.data / _CONF).write_text("".join(lines), encoding="utf-8")
        (cluster.data / _CONF).chmod(0o644)


@contextmanager
def local_plane() -> Iterator[LocalPlane]:
    """Yield a data plane; its servers end with it."""
    with TemporaryDirectory(prefix="jobwarden-plane-") as folder:
        plane = LocalPlane(Path(folder))
        try:
            yield plane
        finally:
            plane.close()


def _server(version: str) -> Server:
    try:
        return find_server(int(facts.major(version)), pg_cron=True)
    except InfraError:
        return find_server(pg_cron=True)


def _ask_for_password(cluster: Cluster, master: str) -> None:
    """Let the master in with its password only, as from the network it would be."""
    rules = cluster.data / "pg_hba.conf"
    rules.write_text(f'local all "{master}" scram-sha-256\n' + rules.read_text())


def _make_master(url: str, order: Order) -> None:
    master = sql.Identifier(order.username)
    with psycopg.connect(url, autocommit=True) as back:
        back.execute("CREATE ROLE rds_superuser NOLOGIN")
        back.execute(
            sql.SQL("CREATE ROLE {} LOGIN SUPERUSER PASSWORD {} IN ROLE rds_superuser").format(
                master, sql.Literal(order.password)
            )
        )
        back.execute("SELECT pg_reload_conf()")


def _add_stand_ins(cluster: Cluster, libraries: list[str]) -> Path:
    folder = cluster.folder / "libraries"
    folder.mkdir(mode=0o755, exist_ok=True)
    there = Path(
        subprocess.run(
            [cluster.server.program("pg_config"), "--pkglibdir"],
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout.strip()
    )
    end = next(file.suffix for file in there.glob(f"{_HARMLESS}.*"))
    for name in libraries:
        stand_in = folder / f"{name}{end}"
        # Never written again: a running server has the file mapped, and would crash.
        if not (there / f"{name}{end}").exists() and not stand_in.exists():
            shutil.copyfile(there / f"{_HARMLESS}{end}", stand_in)
    return folder
