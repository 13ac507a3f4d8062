"""The scripts for psql that a box is sent: the same statements as everywhere else."""

from __future__ import annotations

from collections.abc import Iterable

from infra import box_conf, box_roles, checks, sqltext, sqltext_schedules
from infra.config import Environment
from infra.observed import RUNNER, Observed
from infra.quoting import ident, literal
from infra.sqltext import Statements
from infra.sqltext_removal import FORGET_JOBS, REFUSE_STRANGERS, ending, ending_as_rows

BUSY = "another apply is at work"
PROBE = "jobwarden probe"
# The scheduler looks for its database once a second, so a look that comes at once misses it.
_AWAIT_SCHEDULER = """\
DO $$ BEGIN
  IF pg_catalog.to_regclass('cron.job') IS NOT NULL AND NOT pg_catalog.pg_is_in_recovery() THEN
    FOR i IN 1..50 LOOP
      EXIT WHEN EXISTS (SELECT FROM pg_catalog.pg_stat_activity AS a
                        WHERE a.application_name = 'pg_cron scheduler');
      PERFORM pg_catalog.pg_sleep(0.1);
      PERFORM pg_catalog.pg_stat_clear_snapshot();
    END LOOP;
  END IF;
END $$;
"""


def server_sql(environment: Environment) -> str:
    """The question to a server, whatever the database; ``boxes`` reads the answer."""
    return sqltext.source("box_server").format(
        names=_array(box_conf.names(environment)),
        roles=_array(box_roles.wanted(environment.services)),
        groups=_array(box_roles.GROUPS),
    )


def _array(names: Iterable[str]) -> str:
    return f"ARRAY[{', '.join(map(literal, names))}]::text[]"


def apply_sql(environment: Environment, statements: Statements) -> str:
    """One apply: alone on this database, then a second look, whose document comes last."""
    together = _transaction(("SET LOCAL lock_timeout = '5s'", *statements.together))
    return (
        f"{sqltext.LOCK} AS locked \\gset\n"
        f"\\if :locked\n\\else\n\\echo {BUSY}\n\\quit\n\\endif\n"
        f"{_lines(statements.alone)}"
        f"{together if statements.together else ''}"
        f"{sqltext.UNLOCK};\n"
        f"{_AWAIT_SCHEDULER}"
        f"{sqltext.observe(environment)}\n"
    )


def removal_sql(statements: Iterable[str]) -> str:
    """What takes ours away, in one transaction, unless something of a stranger's would go too."""
    return _transaction(("SET LOCAL lock_timeout = '5s'", REFUSE_STRANGERS, *statements))


def ending_sql(found: Observed) -> tuple[str, ...]:
    """End our schedules. Without its library pg_cron's functions fail: then the rows go as rows."""
    statements = ending(found)
    if not statements:
        return ()
    if checks.waiting(found) is not None:
        statements = ending_as_rows(found)
    return (*statements, FORGET_JOBS)


def database_sql(name: str) -> str:
    """Make the database that is to hold the jobs."""
    return f"CREATE DATABASE {ident(name)};\n"


def probe_sql(schedule: str) -> str:
    """Register the probe as the runner, and print the id of its job."""
    return (
        f"BEGIN;\nSET LOCAL ROLE {ident(RUNNER)};\n"
        f"{sqltext_schedules.probe(PROBE, schedule)} \\gset\n"
        "COMMIT;\n\\echo :jobid\n"
    )


def _transaction(statements: Iterable[str]) -> str:
    return f"BEGIN;\n{_lines(statements)}COMMIT;\n"


def _lines(statements: Iterable[str]) -> str:
    return "".join(f"{text.rstrip().removesuffix(';')};\n" for text in statements)
