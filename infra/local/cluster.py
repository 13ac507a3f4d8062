"""One private cluster: a folder, a Unix socket in it, no port on the network.

The folder is closed to other users, so the socket asks for no password. A throw-away cluster dies
with this process, however that ends; see :mod:`infra.local.leash`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import quote

from infra.errors import InfraError
from infra.local.folder import PORT, prepare_folder, tail, unused_folder
from infra.local.leash import Leash
from infra.local.owner import Owner
from infra.local.servers import Server
from infra.local.settings import conf_text

SUPERUSER = "postgres"
_POLL_SECONDS = 0.05
_START_SECONDS = 60.0
_KILL_SECONDS = 10.0
_LEAVE_SECONDS = 2.0
_LOG_LINES = 15

StopMode = Literal["smart", "fast", "immediate"]


class Cluster:
    """A private Postgres cluster; use it as a context manager, or call :meth:`destroy`."""

    def __init__(self, server: Server, folder: Path, owner: Owner, *, keep: bool = False) -> None:
        """Take a prepared folder. :meth:`create` is the usual way in."""
        self.server = server
        self.folder = folder
        self.owner = owner
        self.keep = keep
        self.data = folder / "data"
        self.log = folder / "log"
        self._leash = None if keep else Leash(folder)
        self._process: subprocess.Popen[bytes] | None = None
        if not keep:
            atexit.register(self.destroy)

    @classmethod
    def create(
        cls,
        server: Server,
        *,
        folder: Path | None = None,
        database: str = "app",
        pg_cron: bool = True,
        settings: Mapping[str, str] | None = None,
        durable: bool = True,
        keep: bool = False,
    ) -> Self:
        """Make a cluster, start it and create the database. It holds no extension and no object.

        With ``pg_cron`` the library is preloaded and its launcher works in ``database``. Without
        ``durable`` nothing is flushed to disk: quick, for tests. ``keep`` leaves the server and
        its folder behind when this process ends; a kept folder that holds a cluster is reused,
        with its database. A folder given without ``keep`` must be empty, and goes at the end.
        Raises InfraError: no pg_cron, a path too long for a socket, a server that does not start.
        """
        if pg_cron and not server.has_pg_cron:
            raise InfraError(
                f"this server has no pg_cron ({server} in {server.bindir})",
                hint=f"install pg_cron for Postgres {server.version}, or do without it",
            )
        owner = Owner.current()
        ours = folder is None and not keep
        # Ours is on the leash before it is there, so that no signal can come in between.
        folder = unused_folder(owner) if ours else prepare_folder(folder, owner, keep=keep)
        cluster = cls(server, folder, owner, keep=keep)
        try:
            if ours:
                prepare_folder(folder, owner, keep=keep)
            cluster._init(database)
            cluster._configure(
                conf_text(
                    cluster.folder,
                    cron_database=database if pg_cron else None,
                    durable=durable,
                    extra=settings or {},
                )
            )
            cluster.start()
        except BaseException:
            cluster.abandon()
            raise
        return cluster

    def url(self, database: str = "app", user: str = SUPERUSER) -> str:
        """Return a connection URL over the private socket. It needs no password."""
        place = quote(str(self.folder), safe="")
        return (
            f"postgresql://{quote(user, safe='')}@/{quote(database, safe='')}"
            f"?host={place}&port={PORT}"
        )

    def start(self) -> None:
        """Start the server and wait until it takes connections.

        Raises InfraError with the last lines of its log when it does not within a minute.
        """
        if self.running():
            return
        deadline = time.monotonic() + _START_SECONDS
        while not self._start_once(deadline):
            # Backends of a killed server need a moment to notice before their memory is free.
            if "pre-existing shared memory block" in self.log_tail(5):
                time.sleep(4 * _POLL_SECONDS)
                continue
            raise self._failure("did not start")

    def stop(self, mode: StopMode = "fast", *, timeout: int = 60) -> None:
        """Stop the server; a stopped one stays stopped. ``timeout`` in seconds.

        Raises InfraError when it is still there after that time.
        """
        if not self.running():
            return
        argv = [self._program("pg_ctl"), "stop", "-w", "-s", "-D", str(self.data)]
        argv += ["-m", mode, "-t", str(timeout)]
        done = self.owner.run(argv, folder=self.folder, timeout=timeout + 10)
        # pg_ctl also fails on a server that is just leaving: its pid file goes before its process.
        if done.returncode != 0 and not self._gone_within(_LEAVE_SECONDS):
            raise self._failure(f"did not stop in {timeout} s ({mode})")
        self._reap()

    def restart(self) -> None:
        """Stop the server in an orderly way and start it again."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """End the server with SIGKILL, as the kernel does when memory runs out."""
        if pid := self.pid():
            os.kill(pid, signal.SIGKILL)
            self._reap()
            self._gone_within(_KILL_SECONDS)

    def running(self) -> bool:
        """Tell whether the server's process is there."""
        return self.pid() is not None

    def answers(self) -> bool:
        """Tell whether the server takes connections."""
        argv = [self._program("pg_isready"), "-q", "-h", str(self.folder), "-p", str(PORT)]
        return self.owner.run([*argv, "-d", "postgres"], folder=self.folder).returncode == 0

    def pid(self) -> int | None:
        """Return the server's process id; None when it is not running."""
        if self._process is not None:
            return self._process.pid if self._process.poll() is None else None
        if not self.keep:
            return None
        status = [self._program("pg_ctl"), "status", "-D", str(self.data)]
        if self.owner.run(status, folder=self.folder).returncode != 0:
            return None
        return int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])

    def log_tail(self, lines: int = _LOG_LINES) -> str:
        """Return the last lines of the server's log."""
        return tail(self.log, lines)

    def destroy(self) -> None:
        """Stop the server at once and remove the folder. Safe to call again."""
        atexit.unregister(self.destroy)
        if self._leash is None:
            self.stop("immediate")
        else:
            self._leash.pull()
            self._reap()
        shutil.rmtree(self.folder, ignore_errors=True)

    def abandon(self) -> None:
        """Clear up after a failure: a throw-away cluster goes, a kept one is only stopped."""
        if self.keep:
            self.stop()
        else:
            self.destroy()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.keep:
            self.destroy()

    def _program(self, name: str) -> str:
        return self.server.program(name)

    def _init(self, database: str) -> None:
        if self.data.exists():
            return
        # Under another name first, so that a folder called data is always a whole one.
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        argv = [self._program("initdb"), "-D", str(fresh), "-U", SUPERUSER, "--auth=trust"]
        argv += ["--no-locale", "--encoding=UTF8", *([] if self.keep else ["--no-sync"])]
        self._prepare_step(argv)
        if database != SUPERUSER:
            # Before the first start, since pg_cron's launcher wants its database at once.
            argv = [self._program("postgres"), "--single", "-D", str(fresh)]
            argv += ["-c", "exit_on_error=on", *([] if self.keep else ["-F"]), "postgres"]
            name = database.replace('"', '""')
            self._prepare_step(argv, say=f'CREATE DATABASE "{name}"\n')
        with (fresh / "postgresql.conf").open("a", encoding="utf-8") as conf:
            conf.write("include 'jobwarden.conf'\n")
        fresh.rename(self.data)

    def _prepare_step(self, argv: list[str], say: str = "") -> None:
        group = self._leash.group if self._leash else None
        done = self.owner.run(argv, folder=self.folder, group=group, say=say)
        if done.returncode != 0:
            raise InfraError(
                f"{Path(argv[0]).name} failed in {self.folder}:\n{done.stdout.strip()}",
                hint="free some space, or choose another folder or database name",
            )

    def _configure(self, text: str) -> None:
        conf = self.data / "jobwarden.conf"
        conf.write_text(text, encoding="utf-8")
        conf.chmod(0o644)

    def _start_once(self, deadline: float) -> bool:
        if self._leash is None:
            return self._start_detached()
        argv = [self._program("postgres"), "-D", str(self.data)]
        self._process = self.owner.popen(
            argv, folder=self.folder, log=self.log, group=self._leash.group
        )
        while self._process.poll() is None:
            if self.answers():
                return True
            if time.monotonic() > deadline:
                raise self._failure(f"takes no connections after {_START_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)
        return False

    def _start_detached(self) -> bool:
        argv = [self._program("pg_ctl"), "start", "-w", "-s", "-D", str(self.data)]
        argv += ["-l", str(self.log), "-t", f"{_START_SECONDS:.0f}"]
        return self.owner.run(argv, folder=self.folder).returncode == 0

    def _gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.running():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait()
            self._process = None

    def _failure(self, what: str) -> InfraError:
        return InfraError(
            f"the Postgres server in {self.folder} {what}; its log ends:\n{self.log_tail()}",
            hint="mend what the log names, or try another installed version",
        )
