"""Names and states of theirs, however odd, work from the first apply to the last cleanup."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import sql

from infra import identifiers
from infra.changes import due
from infra.db.observe import observe
from infra.diff import diff
from infra.diff_schedules import Wishes
from tests.postgres.conftest import Install
from tests.postgres.jobs import Jobs

RENAMED = {
    "table": "app.tasks",
    "columns": {
        "id": "task_id",
        "status": "state",
        "action": "kind",
        "started_at": "began",
        "completed_at": "ended",
        "error": "problem",
    },
    "states": {"queued": "waiting", "running": "busy", "done": "finished", "failed": "broken"},
}
ODD = {
    "table": '"it\'s {odd} %s"."my ""Task"" $$ %(x)s"',
    "columns": {
        "id": '"the id"',
        "status": '"sta""tus"',
        "action": '"{action}"',
        "started_at": '"start %s"',
        "completed_at": '"$$end$$"',
        "error": '"er\'r\\or"',
    },
    "states": {
        "queued": 'in the "queue"',
        "running": "it's {running} %s",
        "done": "do$$ne \\",
        "failed": "fáiled; --",
    },
}
WORDS = {
    "table": '"select"."table"',
    "columns": {
        "id": '"user"',
        "status": '"case"',
        "action": '"order"',
        "started_at": '"from"',
        "completed_at": '"to"',
        "error": '"v_code"',
    },
    "states": {"queued": "new", "running": "NULL", "done": "true", "failed": "*"},
}
ALL = pytest.mark.parametrize("names", [RENAMED, ODD, WORDS], ids=["renamed", "odd", "words"])


class Theirs:
    """A database whose jobs have names of their own; statements are written with ours."""

    def __init__(self, install: Install, names: dict[str, Any]) -> None:
        self.jobs = self._install(install, names)
        there = self.jobs.plan.environment.jobs
        self.names = {
            "jobs": sql.Identifier(there.table.schema, there.table.name),
            **{key: sql.Identifier(name) for key, name in dict(there.columns).items()},
            **{key: sql.Literal(text) for key, text in dict(there.states).items()},
        }

    @staticmethod
    def _install(install: Install, names: dict[str, Any]) -> Jobs:
        jobs = install()
        schema = identifiers.parse_table(names["table"]).schema
        jobs.connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        jobs.install({"jobs": names})
        return jobs

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """Run a statement of ours with the names of theirs."""
        composed = sql.SQL(text).format(**self.names)
        cursor = self.jobs.connection.execute(composed)
        return cursor.fetchall() if cursor.description else []

    def add(self, state: str, ago: str, action: str = "a") -> None:
        """Put in one job that started and ended so long ago."""
        self.rows(
            "INSERT INTO {jobs} ({action}, {status}, {started_at}, {completed_at})"
            f" VALUES ('{action}', {{{state}}}, now() - interval '{ago}', now() - interval '{ago}')"
        )


@ALL
def test_a_job_is_rescued_and_cleaned_up_under_any_names(
    install: Install, names: dict[str, Any]
) -> None:
    theirs = Theirs(install, names)
    for state in ("queued", "running", "done", "failed"):
        theirs.add(state, "2 days")
    assert theirs.jobs.sweep() == ("ok", 1, 0, 0, None, None)
    assert [code for _, code in theirs.jobs.events()] == ["watchdog_timeout"]
    assert theirs.jobs.cleanup() == ("ok", 2, 0, 0, None, None)
    left = theirs.rows(
        "SELECT {status} = {failed}, {error} ->> 'message' FROM {jobs} ORDER BY {started_at}, 1"
    )
    assert sorted(left) == [(False, None), (True, "worker timed out (running >10 min)")]


@ALL
def test_stamp_and_guard_hold_under_any_names(install: Install, names: dict[str, Any]) -> None:
    theirs = Theirs(install, names)
    theirs.rows("INSERT INTO {jobs} ({action}) VALUES ('a')")
    theirs.rows("UPDATE {jobs} SET {status} = {running}, {started_at} = NULL")
    assert theirs.rows("SELECT {started_at} IS NOT NULL FROM {jobs}") == [(True,)]
    theirs.rows("UPDATE {jobs} SET {status} = {done}")
    ((job, done),) = theirs.rows("SELECT {id}, {done} FROM {jobs} WHERE {completed_at} IS NOT NULL")
    with pytest.raises(psycopg.Error) as refusal:
        theirs.rows("UPDATE {jobs} SET {status} = {running}")
    assert refusal.value.diag.message_primary == f"job {job} is already {done}"


@ALL
def test_a_state_is_one_of_theirs(install: Install, names: dict[str, Any]) -> None:
    theirs = Theirs(install, names)
    with pytest.raises(psycopg.errors.CheckViolation):
        theirs.rows("INSERT INTO {jobs} ({action}, {status}) VALUES ('a', 'another')")


@ALL
def test_a_second_apply_changes_nothing(install: Install, names: dict[str, Any]) -> None:
    jobs = Theirs(install, names).jobs
    before = jobs.rows("SELECT oid, xmin FROM pg_class UNION ALL SELECT oid, xmin FROM pg_trigger")
    found = observe(jobs.connection, jobs.plan.environment)
    assert due(diff(jobs.plan, found, Wishes())) == ()
    jobs.install({"jobs": names})
    after = jobs.rows("SELECT oid, xmin FROM pg_class UNION ALL SELECT oid, xmin FROM pg_trigger")
    assert sorted(after) == sorted(before)


@ALL
def test_the_partial_indexes_fit_any_names(install: Install, names: dict[str, Any]) -> None:
    jobs = Theirs(install, names).jobs
    jobs.rows("SET enable_seqscan = off")
    for states, index in (("is_running", "running"), ("is_terminal", "terminal")):
        plan = jobs.rows(f"EXPLAIN SELECT FROM jobwarden.job WHERE {states} AND action = 'a'")
        assert f"jobwarden_{index}_idx" in str(plan)


def test_an_action_may_have_any_name(install: Install) -> None:
    odd = 'it\'s {a} "job" %s $$'
    jobs = install(watchdog={"actions": {odd: {"timeout": "1m"}}})
    jobs.add(odd, ago="2 minutes")
    jobs.add("other", ago="2 minutes")
    assert jobs.sweep().changed == 1
    assert jobs.rows("SELECT action FROM jobwarden.event") == [(odd,)]
