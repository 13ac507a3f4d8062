"""A worker: plain SQL on the jobs table, no library.

    DATABASE_URL=postgresql://worker@/app python -m jobservice.worker worker-1

Each worker needs a name of its own. SIGTERM puts back the job it holds. When the database goes
away, the worker waits for it and then writes what it could not.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from jobservice.actions import ACTIONS, JobFailed

CLAIM = """
SELECT id, action, payload FROM jobs WHERE status = 'queued'
ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED
"""
START = "UPDATE jobs SET status = 'running', worker = %s WHERE id = %s"
# By name too: a job that was put back and is somebody else's by now is not ours to end.
DONE = "UPDATE jobs SET status = 'done', result = %s WHERE id = %s AND worker = %s"
FAILED = "UPDATE jobs SET status = 'failed', error = %s WHERE id = %s AND worker = %s"
PUT_BACK = """
UPDATE jobs SET status = 'queued', worker = NULL, started_at = NULL
WHERE id = %s AND worker = %s AND status = 'running'
"""
FINAL = "JW001"  # the guard's SQLSTATE: the job is final already, such as after a rescue
IDLE_SECONDS = 0.25
RETRY_SECONDS = 0.5

T = TypeVar("T")
Job = tuple[UUID, str, dict[str, Any]]
log = logging.getLogger("jobservice.worker")


class Stopped(Exception):
    """SIGTERM came while a job was at work."""


class Worker:
    """Takes one job after the other until it is told to stop."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self.name = name
        self.stopping = False
        self._at_work = False
        self._connection: psycopg.Connection | None = None

    def stop(self, *_: object) -> None:
        """Take no further job, and break off the one at work. A write is never broken off."""
        self.stopping = True
        if self._at_work:
            raise Stopped

    def run(self) -> None:
        """Work until told to stop."""
        while not self.stopping:
            job = self._kept_trying(self._claim)
            if job is None:
                time.sleep(IDLE_SECONDS)
            else:
                self._do(job)

    def _claim(self, connection: psycopg.Connection) -> Job | None:
        with connection.transaction():
            row = connection.execute(CLAIM).fetchone()
            if row is None:
                return None
            connection.execute(START, [self.name, row[0]])
        log.info("running %s %s", row[1], row[0])
        return row[0], row[1], row[2]

    def _do(self, job: Job) -> None:
        key, action, payload = job
        try:
            try:
                self._at_work = True
                if self.stopping:
                    raise Stopped
                query, document = DONE, ACTIONS[action](payload)
            finally:
                self._at_work = False
        except Stopped:
            self._write(key, PUT_BACK, [key, self.name])
            return
        except JobFailed as error:
            query, document = FAILED, error.error
        except Exception as error:
            log.exception("%s %s", action, key)
            message = f"{type(error).__name__}: {error}"
            query, document = FAILED, {"code": "internal_error", "message": message}
        self._write(key, query, [Jsonb(document), key, self.name])

    def _write(self, key: UUID, query: str, values: list[object]) -> None:
        """End a job. Writing the same end twice does no harm; a later one than a rescue is lost."""

        def write(connection: psycopg.Connection) -> None:
            try:
                count = connection.execute(query.encode(), values).rowcount
            except psycopg.Error as error:
                if error.sqlstate != FINAL:
                    raise
                log.warning("too late for %s: %s", key, error.diag.message_primary)
            else:
                log.info("%s %s", "ended" if count else "no longer ours:", key)

        self._kept_trying(write)

    def _kept_trying(self, do: Callable[[psycopg.Connection], T]) -> T:
        """Do it on a living connection, however long that takes.

        A connection from before a restart of the database says nothing of today: also who is told
        to stop tries a new one.
        """
        while True:
            is_old = self._connection is not None
            try:
                return do(self._connected())
            except psycopg.OperationalError as error:
                log.warning("the database is away: %s", " ".join(str(error).split()))
                self._connection = None
                if self.stopping and not is_old:
                    raise
                time.sleep(RETRY_SECONDS)

    def _connected(self) -> psycopg.Connection:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self.url, autocommit=True, connect_timeout=5)
        return self._connection


def main() -> None:
    """Run the worker that the argument names."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    worker = Worker(os.environ.get("DATABASE_URL", ""), sys.argv[1])
    signal.signal(signal.SIGTERM, worker.stop)
    try:
        worker.run()
    except psycopg.OperationalError:
        sys.exit("stopped while the database was away; the watchdog takes what was held")


if __name__ == "__main__":
    main()
