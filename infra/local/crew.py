"""The demo's processes beside the server: three workers, and the fallback loop where it is needed.

They share one leash: however the demo ends, they end with it, and so does the folder of their log.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from infra.local.cluster import Cluster
from infra.local.folder import PORT, tail
from infra.local.leash import Leash
from infra.local.owner import clean_environment
from infra.observed import RUNNER

_PACKAGE = Path(__file__).parents[1]
_FALLBACK = _PACKAGE / "files" / "fallback.sh"
_LOOP = "fallback"
_LEAVE_SECONDS = 5.0
_LOG_LINES = 15


class Crew:
    """Starts processes by name, ends one the hard way, and sends the others home."""

    def __init__(self) -> None:
        # On the leash before it is there, so that no signal can come in between.
        self.folder = Path(tempfile.gettempdir()) / f"jobwarden-crew-{secrets.token_hex(8)}"
        self._leash = Leash(self.folder)
        self.folder.mkdir(mode=0o700)
        self._log = self.folder / "log"
        self._members: dict[str, subprocess.Popen[bytes]] = {}

    def hire(self, name: str, url: str) -> None:
        """Start a worker that takes jobs at ``url``."""
        places = (str(_PACKAGE.parent), os.environ.get("PYTHONPATH", ""))
        self._start(
            name,
            [sys.executable, "-m", "infra.local.worker", url, name],
            {"PYTHONPATH": os.pathsep.join(filter(None, places))},
        )

    def start_fallback(self, cluster: Cluster, database: str, sweep_seconds: int) -> None:
        """Start the loop that stands in for pg_cron, as the role the schedules would have."""
        libpq = {"PGHOST": str(cluster.folder), "PGPORT": str(PORT), "PGDATABASE": database}
        path = os.pathsep.join((str(cluster.server.bindir), os.environ.get("PATH", os.defpath)))
        self._start(
            _LOOP,
            ["/bin/sh", str(_FALLBACK), str(sweep_seconds)],
            {**libpq, "PGUSER": RUNNER, "PATH": path},
        )

    def kill(self, name: str) -> int:
        """End one with SIGKILL, as the kernel does when memory runs out; return its process id."""
        process = self._members.pop(name)
        process.kill()
        process.wait()
        return process.pid

    def dismiss(self) -> None:
        """Let everybody end what they are at, for some seconds."""
        self._send_home(self._members.values())

    def lost(self) -> tuple[str, ...]:
        """Return who ended without being told to."""
        return tuple(name for name, process in self._members.items() if process.poll() is not None)

    def log_tail(self) -> str:
        """Return the last lines that they wrote."""
        return tail(self._log, _LOG_LINES)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The leash ends the rest at once, but a shell's background programs do not heed its signal.
        self._send_home(process for name, process in self._members.items() if name == _LOOP)
        self._leash.pull()
        for process in self._members.values():
            process.wait()

    @staticmethod
    def _send_home(processes: Iterable[subprocess.Popen[bytes]]) -> None:
        leaving = tuple(processes)
        for process in leaving:
            process.terminate()
        for process in leaving:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LEAVE_SECONDS)

    def _start(self, name: str, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        kept = clean_environment(self.folder)
        with self._log.open("ab") as sink:
            self._members[name] = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**kept, "TMPDIR": str(self.folder), **environment},
                process_group=self._leash.group,
            )
