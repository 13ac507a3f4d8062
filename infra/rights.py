"""What the connecting role may not do or see, and the statements that let it."""

from __future__ import annotations

from collections.abc import Iterator

from infra.checks import Problem, quoted_table
from infra.observed import RUNNER, Observed
from infra.plan import Plan
from infra.quoting import ident

OUR_ROLES = (
    "jobwarden_owner",
    RUNNER,
    "jobwarden_worker",
    "jobwarden_readonly",
    "jobwarden_alerts",
)


def lacking(plan: Plan, observed: Observed) -> tuple[Problem, ...]:
    """What the connecting role lacks for an apply, as SQL for somebody who has it."""
    server = observed.server
    if server.superuser:
        return ()
    needs = [*_role_needs(observed), *_place_needs(plan, observed), *_table_needs(plan, observed)]
    if needs:
        message = f"role {server.user} lacks rights for this; nothing was changed"
        return (Problem("rights", message, _way_out(observed) + "\n".join(needs)),)
    return tuple(filter(None, [blind(observed)]))


def _way_out(observed: Observed) -> str:
    if observed.installed:
        return "connect as the role that made the first apply, or have a superuser run:\n"
    return "have a superuser run:\n"


def _role_needs(observed: Observed) -> Iterator[str]:
    server, user = observed.server, ident(observed.server.user)
    if not server.createrole and len(observed.roles) < len(OUR_ROLES):
        yield f"ALTER ROLE {user} CREATEROLE;"
    joins_by_itself = server.createrole and not observed.installed
    for role in ("jobwarden_owner", RUNNER):
        known = observed.roles.get(role)
        if known and not known.ours_to_set and not joins_by_itself:
            yield f"GRANT {role} TO {user};"


def _place_needs(plan: Plan, observed: Observed) -> Iterator[str]:
    """Where a first apply puts the schema, and the table with its indexes."""
    server, user = observed.server, ident(observed.server.user)
    if observed.installed:
        return
    if not server.creates_schemas:
        yield f"GRANT CREATE ON DATABASE {ident(server.database)} TO {user};"
    if not observed.creates_in_schema:
        yield f"GRANT CREATE ON SCHEMA {ident(plan.environment.jobs.table.schema)} TO {user};"


def _table_needs(plan: Plan, observed: Observed) -> Iterator[str]:
    """Only a table's owner gives it triggers and indexes. Nobody joins a superuser for that."""
    table, user = observed.table, ident(observed.server.user)
    if table is None or table.owned:
        return
    if table.owner_superuser:
        yield f"ALTER TABLE {quoted_table(plan)} OWNER TO {user};"
    else:
        yield f"GRANT {ident(table.owner)} TO {user};"


def blind(observed: Observed) -> Problem | None:
    """Whether the connecting role may not read what is installed; None where it may."""
    if not observed.installed or observed.ledger is not None:
        return None
    user = observed.server.user
    return Problem(
        "rights",
        f"role {user} may not read schema jobwarden, so it cannot tell what is missing",
        "connect as the role that made the first apply; to look only, have a superuser run:\n"
        f"GRANT jobwarden_readonly TO {ident(user)};",
    )
