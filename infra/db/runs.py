"""Run a schedule's work now, or look at what it would do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import psycopg
from psycopg.rows import dict_row

from infra import queries
from infra.db.connect import connect
from infra.observed import RUNNER
from infra.plan import Plan
from infra.quoting import ident
from infra.schedules import CLEANUP, WATCHDOG

Kind = Literal["sweep", "cleanup"]

KINDS: dict[str, Kind] = {
    "sweep": "sweep",
    "cleanup": "cleanup",
    WATCHDOG: "sweep",
    CLEANUP: "cleanup",
}


@dataclass(frozen=True, slots=True)
class Ran:
    """``row`` of the run log for a sweep or cleanup, None for a schedule of the user's own."""

    name: str
    command: str
    row: dict[str, Any] | None


def would_go(kind: Kind, url: str, limit: int) -> list[dict[str, Any]]:
    """The jobs the next run would take, oldest first, ``limit`` at most. Read-only."""
    with connect(url) as connection, connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(
            queries.STUCK if kind == "sweep" else queries.EXPIRED, [limit]
        ).fetchall()


def run(plan: Plan, name: str, url: str) -> Ran:
    """Run the work of one schedule as its role, if this one may act for it.

    Raises KeyError for a name the plan does not hold, InfraError when the statement fails.
    """
    kind = KINDS.get(name)
    command = f"CALL jobwarden.{kind}()" if kind else plan.schedules[name].command
    with connect(url) as connection:
        if not _is_runner(connection):
            connection.execute(f"SET ROLE {ident(RUNNER)}".encode())
        connection.execute(command.encode())
        connection.execute(b"RESET ROLE")
        if kind is None:
            return Ran(name, command, None)
        with connection.cursor(row_factory=dict_row) as cursor:
            return Ran(name, command, cursor.execute(queries.LAST_RUN, [kind]).fetchone())


def _is_runner(connection: psycopg.Connection) -> bool:
    return connection.info.user == RUNNER
