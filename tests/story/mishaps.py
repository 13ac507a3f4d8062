"""What goes wrong in the story: workers that are killed or hang, and what they were at."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.story.place import Place
from tests.story.service import wait_for

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


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which something was not there."""

    what: str
    began: datetime
    ended: datetime


class Mishaps:
    """Stops a worker, looks what it is at, and only then ends it: so the phase is known."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.log: list[Mishap] = []
        self.outages: list[Outage] = []
        self.spared: list[str] = []
        """Jobs that no mishap meets."""

    def kill(self, worker: str) -> None:
        """End a worker with SIGKILL while its job is running."""
        self._freeze("SIGKILL", worker)
        self._place.kill(worker)

    def hang(self, worker: str) -> None:
        """Let a worker hang while its job is running."""
        self._freeze("hangs", worker)

    def lost(self) -> list[str]:
        """The jobs whose worker was taken from them."""
        return [each.job for each in self.log]

    @contextmanager
    def outage(self, what: str) -> Iterator[None]:
        """Note how long something is away. The kernel's clock is Postgres' clock, too."""
        began = datetime.now(UTC)
        yield
        self.outages.append(Outage(what, began, datetime.now(UTC)))

    def _freeze(self, what: str, worker: str) -> None:
        found: list[tuple[Any, ...]] = []
        # What it held before an earlier death still runs under its name.
        others = [*self.lost(), *self.spared]

        def frozen() -> bool:
            if not self._place.rows(HELD, worker, others):
                return False
            self._place.freeze(worker)
            time.sleep(0.1)  # what it sent before it stopped has its effect
            found[:] = self._place.rows(HELD, worker, others)
            if not found:
                self._place.wake(worker)
            return bool(found)

        wait_for(frozen, 60)
        ((job, action, at),) = found
        self.log.append(Mishap(what, worker, job, action, at))
