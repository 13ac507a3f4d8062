"""What goes wrong in the story: workers that are killed or hang, and what they were at."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.story.service import Service, wait_for

HELD = """
SELECT id::text, action, clock_timestamp() FROM jobs
WHERE status = 'running' AND worker = %s AND started_at < clock_timestamp() - interval '20 ms'
  AND id::text <> ALL (%s)
ORDER BY started_at DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Mishap:
    """One that happened while ``job`` was `running`; the time is the database's."""

    what: str
    worker: str
    job: str
    action: str
    at: datetime


class Mishaps:
    """Stops a worker, looks what it is at, and only then ends it: so the phase is known."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.log: list[Mishap] = []

    def kill(self, worker: str) -> None:
        """End a worker with SIGKILL while its job is running."""
        self._freeze("SIGKILL", worker)
        self._service.kill(worker)

    def hang(self, worker: str) -> None:
        """Let a worker hang while its job is running."""
        self._freeze("hangs", worker)

    def wake(self, worker: str) -> None:
        """Let it go on, as if nothing had happened."""
        self._service.members[worker].send_signal(signal.SIGCONT)

    def _freeze(self, what: str, worker: str) -> None:
        found: list[tuple[Any, ...]] = []
        # What it held before an earlier death still runs under its name.
        lost = [each.job for each in self.log]

        def frozen() -> bool:
            if not self._service.rows(HELD, worker, lost):
                return False
            self._service.members[worker].send_signal(signal.SIGSTOP)
            time.sleep(0.1)  # what it sent before it stopped has its effect
            found[:] = self._service.rows(HELD, worker, lost)
            if not found:
                self.wake(worker)
            return bool(found)

        wait_for(frozen, 30)
        ((job, action, at),) = found
        self.log.append(Mishap(what, worker, job, action, at))
