"""Short words for tests that plan, apply and look."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import psycopg

from infra import config, plan, sqltext
from infra.changes import Change
from infra.db import apply as applying
from infra.db.apply import Result
from infra.db.connect import connect
from infra.db.observe import observe
from infra.diff import diff
from infra.diff_schedules import Wishes
from infra.observed import Observed
from infra.plan import Plan

OWN = {"name": "mine", "schedule": "0 6 * * 1", "command": "SELECT 1"}
_OURS = ("policy", "source", "object", "schedule", "run", "event", "outage")
_CATALOGS = (
    *("pg_class", "pg_proc", "pg_trigger", "pg_index", "pg_attribute", "pg_constraint"),
    *("pg_namespace", "pg_authid", "pg_auth_members", "pg_db_role_setting", "pg_extension"),
    *("pg_type", "pg_rewrite", "pg_depend", "pg_shdepend", "pg_database", "pg_description"),
)


def wanted(**environment: object) -> Plan:
    """The plan of an environment with nothing but these keys."""
    read = config.parse(environment)
    return plan.build(read, sqltext.render(read))


def apply(url: str, wishes: Wishes = Wishes(), /, **environment: object) -> Result:  # noqa: B008  # frozen
    return applying.apply(wanted(**environment), url, wishes)


def look(url: str, /, **environment: object) -> Observed:
    with connect(url) as connection:
        return observe(connection, wanted(**environment).environment)


def drift(url: str, /, **environment: object) -> list[Change]:
    """What a plan would show, but for what is as it should be."""
    made = wanted(**environment)
    return [change for change in diff(made, look(url, **environment)) if change.action != "same"]


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def rows(url: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def one(url: str, query: str) -> Any:
    return rows(url, query)[0][0]


def jobs(url: str) -> dict[str, dict[str, Any]]:
    """Rows of ``cron.job`` by name; two of a name would fail here."""
    found = [row[0] for row in rows(url, "SELECT to_jsonb(j) FROM cron.job j ORDER BY jobid")]
    assert len({job["jobname"] for job in found}) == len(found)
    return {job["jobname"]: job for job in found}


def stand(url: str) -> Mapping[str, object]:
    """Every row version of ours, of pg_cron's jobs and of the catalogs: equal if nobody wrote."""
    tables = [f"jobwarden.{name}" for name in _OURS] + ["cron.job", *_CATALOGS]
    query = "SELECT coalesce(array_agg(ctid::text || xmin::text ORDER BY ctid), '{{}}') FROM {}"
    found: dict[str, object] = {}
    with psycopg.connect(url, autocommit=True) as connection:
        for name in tables:
            if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() != (None,):
                found[name] = connection.execute(query.format(name).encode()).fetchall()
    return found


def hold_until(true: Callable[[], object], what: str, seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.02)


def waits_for_lock(url: str) -> bool:
    """Whether a session of ours waits for somebody."""
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'jobwarden'"
        " AND wait_event_type = 'Lock'"
    )
    return bool(one(url, query))
