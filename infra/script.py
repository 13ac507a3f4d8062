"""A first apply as one script for psql: what would be sent, to read or to run without us."""

from __future__ import annotations

from infra import sqltext
from infra.diff import diff
from infra.observed import Observed, Server
from infra.plan import Plan

_HEADER = """-- Every statement of a first apply. Safe to run again.
-- The second part needs pg_cron preloaded, and this database as cron.database_name.
\\set ON_ERROR_STOP on
"""


def script(plan: Plan) -> str:
    """SQL and policy in one transaction, the schedules in a second one."""
    empty = _nothing()
    changes = diff(plan, empty)
    cron = {"extension", "schedule"}
    first = [change for change in changes if change.kind not in cron]
    second = [change for change in changes if change.kind in cron]
    parts = (sqltext.statements(plan, empty, part).together for part in (first, second))
    return _HEADER + "".join(_transaction(part) for part in parts)


def _transaction(statements: tuple[str, ...]) -> str:
    body = "\n\n".join(f"{text.rstrip().removesuffix(';')};" for text in statements)
    return f"\nBEGIN;\n\n{body}\n\nCOMMIT;\n"


def _nothing() -> Observed:
    """A server that is ready for pg_cron and holds nothing of ours."""
    server = Server(
        version_num=0,
        in_recovery=False,
        database="",
        port=0,
        user="",
        superuser=True,
        createrole=True,
        creates_schemas=True,
        sees_every_cron_job=True,
        launcher=(),
    )
    return Observed(
        server=server,
        settings={},
        cron_default_version="",
        cron_installed_version=None,
        cron_usage=False,
        cron_usage_to_grant=True,
        runner_cron_usage=False,
        roles={},
        table=None,
        schema_exists=True,
        jobs=None,
        orphans=(),
        installed=False,
        ledger=None,
        running=None,
    )
