"""The statements that take everything of ours away, and nothing else.

Kept: the jobs table and its rows, the roles, pg_cron, and every job that is not in our ledger.
"""

from __future__ import annotations

from infra.observed import RUNNER, Observed
from infra.plan import Plan
from infra.quoting import ident, literal, qualified

# What is not ours and would go with our schema: views, foreign keys, functions, defaults, triggers
# and publications elsewhere that need something in it.
STRANGERS = r"""
WITH ours AS (
  SELECT 'pg_catalog.pg_class'::pg_catalog.regclass AS classid, c.oid AS objid
  FROM pg_catalog.pg_class c WHERE c.relnamespace = pg_catalog.to_regnamespace('jobwarden')
  UNION ALL
  SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid
  FROM pg_catalog.pg_proc p WHERE p.pronamespace = pg_catalog.to_regnamespace('jobwarden')
  UNION ALL
  SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid
  FROM pg_catalog.pg_type t WHERE t.typnamespace = pg_catalog.to_regnamespace('jobwarden')
)
SELECT DISTINCT who.type || ' ' || who.identity AS name
FROM pg_catalog.pg_depend d
JOIN ours ON ours.classid = d.refclassid AND ours.objid = d.refobjid
CROSS JOIN LATERAL pg_catalog.pg_identify_object(d.classid, d.objid, d.objsubid) AS who
CROSS JOIN LATERAL pg_catalog.pg_identify_object_as_address(d.classid, d.objid, 0) AS place
WHERE d.deptype IN ('n', 'a') AND (
  who.type = 'publication relation'
  OR COALESCE(who.schema, place.object_names[1]) IS DISTINCT FROM 'jobwarden'
) AND NOT (who.type = 'trigger' AND place.object_names[3] LIKE 'jobwarden\_%')
ORDER BY 1
"""


def inside(observed: Observed) -> tuple[str, ...]:
    """Objects in our schema that no apply of ours made."""
    if observed.ledger is None:
        return ()
    return tuple(sorted(set(observed.ledger.actual) - set(observed.ledger.objects)))


def removal(plan: Plan, observed: Observed) -> tuple[str, ...]:
    """What removes ours, for one transaction; empty where nothing of ours is there."""
    return (*ending(observed), *_on_the_table(plan, observed), *_schema(observed))


def ending(observed: Observed) -> tuple[str, ...]:
    """What ends our schedules and nothing else; empty where pg_cron holds none."""
    ledger = observed.ledger.schedules if observed.ledger else {}
    jobids = {entry.jobid for entry in ledger.values()}
    held = [
        job
        for job in observed.jobs or ()
        if job.username == RUNNER and (job.jobid in jobids or job.name in ledger)
    ]
    if not held:
        return ()
    calls = [f"SELECT cron.unschedule({job.jobid})" for job in held]
    return (f"SET LOCAL ROLE {ident(RUNNER)}", *calls, "RESET ROLE")


def _on_the_table(plan: Plan, observed: Observed) -> tuple[str, ...]:
    strays = (f"DROP INDEX {qualified(*stray)}" for stray in observed.strays)
    if observed.table is None:
        return tuple(strays)
    name = plan.environment.jobs.table
    table = qualified(name.schema, name.name)
    triggers = [trigger for trigger in observed.table.triggers if trigger.startswith("jobwarden_")]
    indexes = [index for index in plan.rendered.indexes if index in observed.table.indexes]
    return (
        *(f"DROP TRIGGER {ident(trigger)} ON {table}" for trigger in triggers),
        *(f"DROP INDEX {qualified(name.schema, index)}" for index in indexes),
        *strays,
    )


def _schema(observed: Observed) -> tuple[str, ...]:
    return ("DROP SCHEMA jobwarden CASCADE",) if observed.installed else ()


# For psql, where no second question can be asked before the statements go.
REFUSE_STRANGERS = f"""DO $$
DECLARE v_names text := (SELECT pg_catalog.string_agg(s.name, ', ') FROM ({STRANGERS}) AS s);
BEGIN
  IF v_names IS NOT NULL THEN
    RAISE EXCEPTION 'not ours, and would go with schema jobwarden: %', v_names;
  END IF;
END $$"""

# The ledger no longer names jobs of pg_cron: something else does the work.
FORGET_JOBS = "UPDATE jobwarden.schedule SET jobid = NULL"


def ending_as_rows(observed: Observed) -> tuple[str, ...]:
    """The same where pg_cron's library is not loaded, so that its functions and trigger fail."""
    ledger = observed.ledger.schedules.values() if observed.ledger else ()
    jobids = [str(entry.jobid) for entry in ledger if entry.jobid is not None]
    ended = ", ".join(jobids) or "NULL"
    return (
        "SET LOCAL session_replication_role = replica",
        f"DELETE FROM cron.job WHERE username = {literal(RUNNER)} AND jobid IN ({ended})",
        "SET LOCAL session_replication_role = origin",
    )
