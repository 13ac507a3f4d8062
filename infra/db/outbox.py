"""The alerts that the database keeps: file new events, claim what is due, settle it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

import psycopg
from psycopg.rows import class_row

from infra import queries
from infra.alerting import Event, Message, Verdict
from infra.config.alert_models import Choice
from infra.db.connect import connect

Groups = Mapping[tuple[Choice, str], list[int]]
BATCH = 1000


class Outbox:
    """Over one connection. Raises psycopg.Error, which :func:`opened` turns into InfraError."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        connection.execute(queries.LISTEN)

    def begin(self) -> None:
        """Put aside what is too old to wake anybody for; forget alerts of last season."""
        self._connection.execute(queries.BEGIN_ALERTS)

    def file(self, grouped: Callable[[Iterable[Event]], Groups]) -> int:
        """File up to a batch of new events as ``grouped`` says; return how many there were."""
        with self._connection.transaction():
            with self._connection.cursor(row_factory=class_row(Event)) as cursor:
                events = cursor.execute(queries.NEW_EVENTS, [BATCH]).fetchall()
            for (route, code), ids in grouped(events).items():
                self._connection.execute(queries.FILE_EVENTS, [route, code, ids])
        return len(events)

    def claim(self, lease: timedelta) -> Message | None:
        """Take the next alert that is due; it is nobody else's for as long as ``lease``."""
        with self._connection.cursor(row_factory=class_row(Message)) as cursor:
            return cursor.execute(queries.CLAIM_ALERT, [lease]).fetchone()

    def settle(self, message: Message, verdict: Verdict) -> bool:
        """Write down how an attempt ended; False when another one has begun meanwhile."""
        values = [message.key, message.attempt, verdict.state, verdict.reason, verdict.again]
        row = self._connection.execute(queries.SETTLE_ALERT, values).fetchone()
        return bool(row and row[0])

    def wait(self, most: float) -> None:
        """Wait until a job fails or an alert is due, ``most`` seconds at most."""
        row = self._connection.execute(queries.NEXT_ALERT).fetchone()
        due = row[0] if row and row[0] is not None else most
        for _ in self._connection.notifies(timeout=min(max(due, 0), most), stop_after=1):
            pass


@contextmanager
def opened(url: str) -> Iterator[Outbox]:
    """Open the outbox at ``url``. Raises InfraError, also for what fails inside."""
    with connect(url) as connection:
        yield Outbox(connection)
