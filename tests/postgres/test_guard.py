"""Finished is final where the guard is on; where it is off, the late write wins and is counted."""

from __future__ import annotations

import psycopg
import pytest

from tests.postgres.conftest import Install
from tests.postgres.jobs import Jobs

LATE = "UPDATE jobs SET status = 'done', result = '{}'"


def test_a_late_finish_is_refused_and_told_why(jobs: Jobs) -> None:
    job = jobs.add()
    jobs.sweep()
    before = jobs.job(job)
    with pytest.raises(psycopg.Error) as refusal:
        jobs.rows(LATE)
    assert refusal.value.sqlstate == "JW001"
    said = refusal.value.diag
    assert said.message_primary == f"job {job} is already failed (watchdog_timeout)"
    assert said.message_detail is not None
    assert "final" in said.message_detail
    assert said.message_hint == "Drop this result, or queue a new job."
    assert jobs.job(job) == before


@pytest.mark.parametrize("status", ["done", "failed"])
def test_state_error_and_times_of_a_finished_job_are_final(jobs: Jobs, status: str) -> None:
    job = jobs.add(status=status)
    jobs.rows(
        """ALTER TABLE jobs DISABLE TRIGGER USER; UPDATE jobs SET error = '"any shape"';
           ALTER TABLE jobs ENABLE TRIGGER USER"""
    )
    before = jobs.job(job)
    for change in (
        "status = 'queued'",
        "status = 'running'",
        "error = NULL",
        "started_at = now()",
        "completed_at = NULL",
    ):
        with pytest.raises(psycopg.Error, match=f"is already {status}\n"):
            jobs.rows(f"UPDATE jobs SET {change}")
    assert jobs.job(job) == before


def test_everything_else_of_a_finished_job_may_change(jobs: Jobs) -> None:
    jobs.add(status="done")
    for statement in (
        "UPDATE jobs SET payload = '{\"seen\": true}'",
        "UPDATE jobs SET result = '{}', worker = 'me'",
        "UPDATE jobs SET status = status, error = error",
        "DELETE FROM jobs",
    ):
        assert jobs.connection.execute(statement.encode()).rowcount == 1


def test_a_job_that_is_not_finished_is_free(jobs: Jobs) -> None:
    job = jobs.add(status="queued")
    for status in ("running", "queued", "running", "done"):
        jobs.rows("UPDATE jobs SET status = %s", status)
    assert jobs.job(job).status == "done"


def test_without_the_guard_the_late_finish_wins_and_health_counts_it(install: Install) -> None:
    jobs = install(jobs={"guard": False})
    jobs.add_many(2)
    jobs.sweep()
    assert jobs.health()["late_writes"].level == "ok"
    jobs.rows(f"{LATE} WHERE id = (SELECT id FROM jobs LIMIT 1)")
    assert jobs.count("done") == 1
    level, detail = jobs.health()["late_writes"]
    assert level == "warning"
    assert detail.startswith("1 rescued jobs")


def test_the_guard_comes_and_goes_with_the_environment(install: Install) -> None:
    jobs = install(jobs={"guard": False})
    jobs.add_many(3, status="done")
    jobs.install({})
    with pytest.raises(psycopg.Error, match="is already done"):
        jobs.rows("UPDATE jobs SET status = 'queued'")
    jobs.install({"jobs": {"guard": False}})
    jobs.rows("UPDATE jobs SET status = 'queued'")
    assert jobs.count("queued") == 3
