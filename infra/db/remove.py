"""Take ours away in one transaction. Never a job, a role, or anything of a stranger's."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

from infra import checks
from infra.db.apply import Refused, alone, refuse_without_rights, run
from infra.db.connect import connect
from infra.db.observe import observe
from infra.errors import InfraError
from infra.plan import Plan
from infra.sqltext import Statements
from infra.sqltext_removal import STRANGERS, inside, removal


@dataclass(frozen=True, slots=True)
class Removal:
    """The statements that take ours away; ``done`` once they ran. Empty: nothing is there."""

    statements: tuple[str, ...]
    done: bool


def remove(plan: Plan, url: str, *, really: bool) -> Removal:
    """Say what goes, and with ``really`` make it go.

    Raises Refused on a standby or without the rights, and InfraError when something of a
    stranger's would go too. Nothing is changed then.
    """
    with connect(url) as connection:
        return remove_on(connection, plan, really=really)


def remove_on(connection: psycopg.Connection, plan: Plan, *, really: bool) -> Removal:
    """The same on an open connection in autocommit. Raises psycopg.Error too."""
    found = observe(connection, plan.environment)
    if found.server.in_recovery:
        raise Refused(checks.faults(plan, found))
    statements = removal(plan, found)
    if not statements or not really:
        return Removal(statements, done=False)
    refuse_without_rights(plan, found)
    if found.ledger and not found.ledger.sources:
        raise InfraError(
            "nothing was removed: a part of the installation is missing, so that nobody can tell"
            " what is ours",
            hint="jobwarden apply, then jobwarden remove",
        )
    with alone(connection):
        foreign = [*inside(found), *(row[0] for row in connection.execute(STRANGERS.encode()))]
        if foreign:
            raise InfraError(
                "nothing was removed: not ours, and would go with schema jobwarden: "
                f"{', '.join(foreign)}",
                hint="move or drop those yourself, then run it again",
            )
        run(connection, Statements((), statements))
    return Removal(statements, done=True)
