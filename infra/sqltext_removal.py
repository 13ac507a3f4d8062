"""The statements that take everything of ours away, and nothing else.

Kept: the jobs table and its rows, the roles, pg_cron, and every job that is not in our ledger.
"""

from __future__ import annotations

from infra.observed import RUNNER, Observed
from infra.plan import Plan
from infra.quoting import ident, qualified

# What is not ours and would go with our schema: objects somebody made in it, and views and
# foreign keys elsewhere that look into it.
STRANGERS = """
WITH ours AS (
  SELECT c.oid FROM pg_catalog.pg_class c
  WHERE c.relnamespace = pg_catalog.to_regnamespace('jobwarden')
)
SELECT DISTINCT v.oid::regclass::text AS name
FROM pg_catalog.pg_depend d
JOIN ours ON ours.oid = d.refobjid AND d.refclassid = 'pg_catalog.pg_class'::regclass
JOIN pg_catalog.pg_rewrite w ON w.oid = d.objid AND d.classid = 'pg_catalog.pg_rewrite'::regclass
JOIN pg_catalog.pg_class v ON v.oid = w.ev_class
WHERE v.relnamespace <> pg_catalog.to_regnamespace('jobwarden')
UNION
SELECT DISTINCT k.conrelid::regclass::text
FROM pg_catalog.pg_constraint k JOIN ours ON ours.oid = k.confrelid
WHERE k.contype = 'f' AND k.conrelid NOT IN (SELECT ours.oid FROM ours)
ORDER BY 1
"""


def inside(observed: Observed) -> tuple[str, ...]:
    """Objects in our schema that no apply of ours made."""
    if observed.ledger is None:
        return ()
    return tuple(sorted(set(observed.ledger.actual) - set(observed.ledger.objects)))


def removal(plan: Plan, observed: Observed) -> tuple[str, ...]:
    """What removes ours, for one transaction; empty where nothing of ours is there."""
    return (*_schedules(observed), *_on_the_table(plan, observed), *_schema(observed))


def _schedules(observed: Observed) -> tuple[str, ...]:
    ledger = observed.ledger.schedules.values() if observed.ledger else ()
    jobids = {entry.jobid for entry in ledger if entry.jobid is not None}
    held = [job for job in observed.jobs or () if job.jobid in jobids and job.username == RUNNER]
    if not held:
        return ()
    calls = [f"SELECT cron.unschedule({job.jobid})" for job in held]
    return (f"SET LOCAL ROLE {ident(RUNNER)}", *calls, "RESET ROLE")


def _on_the_table(plan: Plan, observed: Observed) -> tuple[str, ...]:
    if observed.table is None:
        return ()
    name = plan.environment.jobs.table
    table = qualified(name.schema, name.name)
    triggers = [trigger for trigger in observed.table.triggers if trigger.startswith("jobwarden_")]
    indexes = [index for index in plan.rendered.indexes if index in observed.table.indexes]
    return (
        *(f"DROP TRIGGER {ident(trigger)} ON {table}" for trigger in triggers),
        *(f"DROP INDEX {qualified(name.schema, index)}" for index in indexes),
    )


def _schema(observed: Observed) -> tuple[str, ...]:
    return ("DROP SCHEMA jobwarden CASCADE",) if observed.installed else ()
