"""A database with our SQL in it, in few words: put jobs in, move the clock, run, look."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from psycopg.conninfo import make_conninfo

from infra import config, plan, sqltext
from infra.db.apply import apply

RUNNER = "jobwarden_runner"
READER = "jobwarden_readonly"
WORKER = "jobwarden_worker"
FINISHED = ("done", "failed")


class Run(NamedTuple):
    """A row of the run log."""

    outcome: str
    changed: int
    skipped: int
    poisoned: int
    sqlstate: str | None
    message: str | None


class Check(NamedTuple):
    """A row of health()."""

    level: str
    detail: str


class Job(NamedTuple):
    """What a row of the jobs table says of itself."""

    status: str
    started_at: Any
    completed_at: Any
    error: dict[str, Any] | None


class Jobs:
    """The jobs of one database. Acts as a superuser, but for the runs: those are the runner's."""

    def __init__(self, url: str, environment: dict[str, Any] | None = None) -> None:
        """Install at ``url`` what ``environment`` wants, and open a connection."""
        self.url = url
        self.install(environment or {})
        self.connection = psycopg.connect(url, autocommit=True)

    def install(self, environment: dict[str, Any]) -> None:
        """Apply ``environment``; its target need not be said."""
        parsed = config.parse({"target": "local", **environment})
        self.plan = plan.build(parsed, sqltext.render(parsed))
        self.result = apply(self.plan, self.url)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows, if it has any."""
        cursor = self.connection.execute(query.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def value(self, query: str, *values: object) -> Any:
        """Return the one value a query gives."""
        ((only,),) = self.rows(query, *values)
        return only

    def add(
        self, action: str = "pdf_build", status: str = "running", *, ago: str = "1 hour"
    ) -> UUID:
        """Put in one job that started, or finished, so long ago."""
        (job,) = self.add_many(1, action, status, ago=ago)
        return job

    def add_many(
        self, count: int, action: str = "pdf_build", status: str = "running", *, ago: str = "1 hour"
    ) -> list[UUID]:
        """Put in ``count`` jobs, each a moment younger than the one before."""
        finished = status in FINISHED
        started, completed = (None, ago) if finished else (ago, None)
        found = self.rows(
            "INSERT INTO jobs (action, status, started_at, completed_at)"
            " SELECT %s, %s, statement_timestamp() - %s::interval + n * interval '1 us',"
            " statement_timestamp() - %s::interval + n * interval '1 us'"
            " FROM generate_series(1, %s) AS n RETURNING id",
            action,
            status,
            None if status == "queued" else started,
            completed,
            count,
        )
        return [job for (job,) in found]

    def add_without_start(self, action: str = "pdf_build") -> UUID:
        """Put in a running job as a table has it that knew no stamp."""
        self.rows("ALTER TABLE jobs DISABLE TRIGGER USER")
        job: UUID = self.value(
            "INSERT INTO jobs (action, status) VALUES (%s, 'running') RETURNING id", action
        )
        self.rows("ALTER TABLE jobs ENABLE TRIGGER USER")
        return job

    def job(self, job: UUID) -> Job:
        """Read one job."""
        (row,) = self.rows(
            "SELECT status, started_at, completed_at, error FROM jobs WHERE id = %s", job
        )
        return Job(*row)

    def count(self, status: str) -> int:
        """Count the jobs in one state."""
        return int(self.value("SELECT count(*) FROM jobs WHERE status = %s", status))

    def forward(self, length: str) -> None:
        """Set our clock so far ahead of the server's."""
        self.rows(
            "CREATE OR REPLACE FUNCTION jobwarden.now() RETURNS timestamptz LANGUAGE sql VOLATILE"
            f" AS $$ SELECT pg_catalog.clock_timestamp() + interval '{length}' $$"
        )

    def connect(self, role: str = "postgres") -> psycopg.Connection:
        """Open a connection as ``role``."""
        return psycopg.connect(make_conninfo(self.url, user=role), autocommit=True)

    def as_role(self, role: str, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement as ``role``, who needs no right to log in."""
        with self.connect() as connection:
            connection.execute(f'SET SESSION AUTHORIZATION "{role}"'.encode())
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def sweep(self, *arguments: str) -> Run:
        """Sweep as the schedule does; return what the log says of it."""
        self.call("sweep", *arguments)
        return self.last_run("sweep")

    def cleanup(self, *arguments: str) -> Run:
        """Clean up as the schedule does; return what the log says of it."""
        self.call("cleanup", *arguments)
        return self.last_run("cleanup")

    def call(self, procedure: str, *arguments: str) -> None:
        """Call a procedure of ours as the runner."""
        with self.connect(RUNNER) as connection:
            connection.execute(f"CALL jobwarden.{procedure}({', '.join(arguments)})".encode())

    def runs(self, kind: str) -> list[Run]:
        """Read the run log, oldest first."""
        found = self.rows(
            "SELECT outcome, changed, skipped, poisoned, sqlstate, message"
            " FROM jobwarden.run WHERE kind = %s ORDER BY id",
            kind,
        )
        return [Run(*row) for row in found]

    def last_run(self, kind: str) -> Run:
        """Read the newest row of the run log."""
        return self.runs(kind)[-1]

    def events(self) -> list[tuple[str, str]]:
        """Read the events: job and code, oldest first."""
        return self.rows("SELECT job_id, code FROM jobwarden.event ORDER BY id")

    def health(self) -> dict[str, Check]:
        """Ask for our health as the reader."""
        found = self.as_role(READER, "SELECT * FROM jobwarden.health()")
        return {check: Check(level, detail) for check, level, detail, _ in found}

    @contextmanager
    def held_up(self, job: UUID) -> Iterator[None]:
        """Make whoever changes ``job`` wait in its statement, until the block ends."""
        self.rows(
            "CREATE OR REPLACE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END $$"
        )
        self.rows(
            "CREATE TRIGGER hold_up AFTER UPDATE OR DELETE ON jobs FOR EACH ROW"
            f" WHEN (OLD.id = '{job}') EXECUTE FUNCTION hold_up()"
        )
        with self.connect() as gate:
            gate.execute("SELECT pg_advisory_lock(7)")
            yield

    def somebody_is_held(self) -> bool:
        """Tell whether anybody waits for the end of such a block."""
        return bool(self.rows("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def wait_for(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Ask until ``condition`` holds. Fails when it does not in that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)
