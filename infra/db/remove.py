"""Take ours away in one transaction. Never a job, a role, or anything of a stranger's."""

from __future__ import annotations

from dataclasses import dataclass

from infra import checks
from infra.db.apply import Refused, refuse_without_rights
from infra.db.connect import connect
from infra.db.observe import observe
from infra.errors import InfraError
from infra.plan import Plan
from infra.sqltext_removal import STRANGERS, inside, removal


@dataclass(frozen=True, slots=True)
class Removal:
    """The statements that take ours away; ``done`` once they ran. Empty: nothing of ours is there."""

    statements: tuple[str, ...]
    done: bool


def remove(plan: Plan, url: str, *, really: bool) -> Removal:
    """Say what goes, and with ``really`` make it go.

    Raises Refused on a standby or without the rights, and InfraError when something of a
    stranger's would go too. Nothing is changed then.
    """
    with connect(url) as connection:
        found = observe(connection, plan.environment)
        if found.server.in_recovery:
            raise Refused(checks.faults(plan, found))
        statements = removal(plan, found)
        if not statements or not really:
            return Removal(statements, done=False)
        refuse_without_rights(found)
        foreign = [*inside(found), *(row[0] for row in connection.execute(STRANGERS.encode()))]
        if foreign:
            raise InfraError(
                "nothing was removed: not ours, and would go with schema jobwarden: "
                f"{', '.join(foreign)}",
                hint="move or drop those yourself, then run it again",
            )
        with connection.transaction():
            for text in statements:
                connection.execute(text.encode())
        return Removal(statements, done=True)
