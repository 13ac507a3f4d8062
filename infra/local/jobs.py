"""The demo's jobs: what its application queues, and what can be seen of them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from infra.db.connect import connect
from infra.errors import InfraError
from infra.local.worker import FINISH, REFUSED

WORKER_ROLE = "demo_worker"
STATES = ("queued", "running", "done", "failed")

_ROLE = "CREATE ROLE demo_worker LOGIN IN ROLE jobwarden_worker"
_QUEUE = """
INSERT INTO jobs (action, payload, created_at)
VALUES (%s, jsonb_build_object('seconds', %s::float), clock_timestamp()) RETURNING id
"""
_COUNTS = "SELECT action, status, count(*) FROM jobs GROUP BY action, status"
_BUSY = "SELECT worker, action FROM jobs WHERE status = 'running' AND worker IS NOT NULL"
_CLOCK = """
SELECT clock_timestamp(), (SELECT max(started_at) FROM jobwarden.run WHERE kind = 'sweep')
"""
_JOB = """
SELECT id, action, status, worker, started_at, completed_at, error FROM jobs WHERE id = %s
"""
# The error of a job carries the start of its sweep; both are committed together.
_SWEEP = """
SELECT to_jsonb(r) FROM jobwarden.run AS r WHERE r.kind = 'sweep' AND r.started_at = %s
"""


@dataclass(frozen=True, slots=True)
class Job:
    """One row of the jobs table."""

    id: UUID
    action: str
    status: str
    worker: str | None
    started_at: datetime | None
    completed_at: datetime | None
    error: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Look:
    """All jobs at one moment: how many by action and state, and who is at what."""

    now: datetime
    last_sweep: datetime | None
    counts: Mapping[tuple[str, str], int]
    busy: Mapping[str, str]

    def total(self, state: str) -> int:
        """How many jobs are in that state."""
        return sum(number for (_, its), number in self.counts.items() if its == state)


class Jobs(ExitStack):
    """The jobs table over one connection. Raises InfraError when the server is gone."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._connection = self.enter_context(connect(url))

    def make_role(self) -> None:
        """Make the role the workers log in as: it has their rights, and no others."""
        self._connection.execute(_ROLE)

    def queue(self, action: str, seconds: float) -> UUID:
        """Queue a job that takes a worker so many seconds."""
        return UUID(str(self._one(_QUEUE.encode(), action, seconds)[0]))

    def look(self) -> Look:
        """See all jobs, by the database's clock."""
        counts = {(row[0], row[1]): row[2] for row in self._connection.execute(_COUNTS)}
        busy = {row[0]: row[1] for row in self._connection.execute(_BUSY)}
        now, last_sweep = self._one(_CLOCK.encode())
        return Look(now, last_sweep, counts, busy)

    def job(self, key: UUID) -> Job:
        """See one job."""
        return Job(*self._one(_JOB.encode(), key))

    def sweep_of(self, job: Job) -> dict[str, Any]:
        """Return the run log's row of the sweep that failed this job."""
        row: dict[str, Any] = self._one(_SWEEP.encode(), (job.error or {})["swept_at"])[0]
        return row

    def _one(self, query: bytes, *values: object) -> tuple[Any, ...]:
        row = self._connection.execute(query, values).fetchone()
        if row is None:
            raise InfraError("the demo's row is not there", hint="jobwarden demo, once more")
        return row


def late_write(url: str, key: UUID) -> str | None:
    """Finish a job in a session of its own, as a worker does; return the refusal, or None."""
    try:
        with connect(url) as connection:
            connection.execute(FINISH, [key])
    except InfraError as error:
        if REFUSED not in error.message:
            raise
        return error.message
    return None
