"""Make the changes of a plan, and prove by a second look that they hold.

Order: look; refuse what must not go on; one apply at a time (a lock that is tried, since waiting
for one deadlocks with an index build); indexes beside the writers; all the rest in one
transaction; look again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from infra import checks, rights, sqltext
from infra.changes import Change, due
from infra.checks import Problem
from infra.db.connect import connect
from infra.db.observe import observe
from infra.db.prove import prove
from infra.diff import diff
from infra.diff_schedules import Wishes
from infra.errors import InfraError
from infra.observed import Observed
from infra.plan import Plan
from infra.shares import EVERYTHING, Share

LOCK_SECONDS = 60.0
BOOT_LOCK_SECONDS = 30.0  # an application that starts waits no longer for another one's apply
POLL_SECONDS = 0.1
_TABLE_LOCK = "SET LOCAL lock_timeout = '5s'"


@dataclass(frozen=True, slots=True)
class Result:
    """What an apply did: ``changes`` made, ``after`` the second look, ``problems`` that remain."""

    changes: tuple[Change, ...]
    after: tuple[Change, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    observed: Observed

    @property
    def registered(self) -> bool:
        """True where every schedule is there and nothing is known that keeps it from firing."""
        return not self.problems


class Refused(InfraError):
    """An apply that was not begun: nothing was changed."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        *before, last = problems
        message = f"{last.subject}: {last.message}"
        super().__init__("\n".join([*map(str, before), message]), hint=last.hint)


def apply(plan: Plan, url: str, wishes: Wishes = Wishes()) -> Result:  # noqa: B008  # frozen
    """Take the database at ``url`` to ``plan``. Raises Refused, or InfraError with the way out."""
    with connect(url) as connection:
        return apply_on(connection, plan, wishes)


def apply_on(
    connection: psycopg.Connection, plan: Plan, wishes: Wishes, share: Share = EVERYTHING
) -> Result:
    """The same on an open connection in autocommit; only a share of it where one is named.

    Raises Refused and psycopg.Error.
    """
    found = share.view(observe(connection, plan.environment))
    _refuse(plan, found)
    if not sqltext.statements(plan, found, share.of(diff(plan, found, wishes))):
        return _result(connection, plan, found, (), wishes, share)
    refuse_without_rights(plan, found)
    with alone(connection, BOOT_LOCK_SECONDS if wishes.in_place_only else LOCK_SECONDS):
        found = share.view(observe(connection, plan.environment))
        _refuse(plan, found)
        changes = share.of(diff(plan, found, wishes))
        run(connection, sqltext.statements(plan, found, changes))
        found = share.view(observe(connection, plan.environment))
        return _result(connection, plan, found, due(changes), wishes, share)


def _refuse(plan: Plan, found: Observed) -> None:
    if problems := checks.faults(plan, found):
        raise Refused(problems)
    if rights.blind(found):
        refuse_without_rights(plan, found)


def refuse_without_rights(plan: Plan, found: Observed) -> None:
    """Raise Refused with the grants that are missing, if any is."""
    if problems := rights.lacking(plan, found):
        raise Refused(problems)


def run(connection: psycopg.Connection, statements: sqltext.Statements) -> None:
    """Carry the statements: those for themselves, then the others in one transaction."""
    for text in statements.alone:
        connection.execute(text.encode())
    if statements.together:
        with connection.transaction():
            connection.execute(_TABLE_LOCK)
            for text in statements.together:
                connection.execute(text.encode())


@contextmanager
def alone(connection: psycopg.Connection, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the lock of an apply: tried until it is free, given back whatever happens."""
    give_up = time.monotonic() + seconds
    while not _try_lock(connection):
        if time.monotonic() > give_up:
            raise InfraError(
                f"another apply has been at work on this database for {seconds:.0f} s",
                hint="wait for it, or end it: SELECT pid FROM pg_locks WHERE locktype = 'advisory'",
            )
        time.sleep(POLL_SECONDS)
    try:
        yield
    finally:
        if not connection.closed and not connection.broken:
            connection.execute(sqltext.UNLOCK)


def _try_lock(connection: psycopg.Connection) -> bool:
    row = connection.execute(sqltext.LOCK).fetchone()
    return bool(row and row[0])


def _result(
    connection: psycopg.Connection,
    plan: Plan,
    found: Observed,
    changes: tuple[Change, ...],
    wishes: Wishes,
    share: Share,
) -> Result:
    after = share.of(diff(plan, found, wishes))
    problems = [*_left(after)]
    warnings = [*checks.warnings(plan, found)]
    if waits := checks.waiting(found):
        problems += [waits] if plan.schedules else []
    elif plan.schedules:
        problems += checks.proof(plan, found)
        if changes or not wishes.in_place_only:
            proved = prove(connection, plan)
            problems += proved.problems
            warnings += proved.warnings
    return Result(changes, after, tuple(problems), tuple(warnings), found)


def _left(after: tuple[Change, ...]) -> Iterator[Problem]:
    for change in after:
        subject = f"{change.kind} {change.name}"
        if change.action == "foreign":
            yield Problem(subject, change.why, "jobwarden apply --take-over")
        elif change.action == "unknown" and not change.partial:
            yield Problem(subject, f"not known: {change.why}", "connect as a role that may see it")
        elif change.writes and change.waits is None:
            text = f"still to be made after the apply ({change.action})"
            yield Problem(subject, text, "jobwarden plan")
