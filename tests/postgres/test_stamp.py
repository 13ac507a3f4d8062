"""One clock: what a worker's own clock says is replaced at a claim and at an end."""

from __future__ import annotations

import pytest

from tests.postgres.jobs import Jobs

AGE = "SELECT extract(epoch FROM clock_timestamp() - {}) FROM jobs"
WRONG = "now() - interval '30 minutes'"
SUPPLIED = (WRONG, "now() + interval '30 minutes'", "NULL")


def test_a_claim_starts_by_the_databases_clock(jobs: Jobs) -> None:
    for supplied in SUPPLIED:
        jobs.rows("UPDATE jobs SET status = 'done'; INSERT INTO jobs (action) VALUES ('a')")
        jobs.rows(
            f"UPDATE jobs SET status = 'running', started_at = {supplied}, completed_at = now()"
            " WHERE status = 'queued'"
        )
        now = f"{AGE.format('started_at')} WHERE status = 'running' AND completed_at IS NULL"
        assert 0 <= jobs.value(now) < 10


@pytest.mark.parametrize("status", ["done", "failed"])
def test_an_end_is_when_the_database_sees_it(jobs: Jobs, status: str) -> None:
    for supplied in SUPPLIED:
        job = jobs.add(ago="5 minutes")
        started = jobs.job(job).started_at
        change = f"UPDATE jobs SET status = '{status}', completed_at = {supplied} WHERE id = %s"
        jobs.rows(change, job)
        assert 0 <= jobs.value(f"{AGE.format('completed_at')} WHERE id = %s", job) < 10
        assert jobs.job(job).started_at == started


def test_a_second_claim_starts_the_limit_anew(jobs: Jobs) -> None:
    jobs.add(ago="1 hour")
    jobs.rows("UPDATE jobs SET status = 'queued'")
    jobs.rows("UPDATE jobs SET status = 'running'")
    assert jobs.sweep().changed == 0


def test_times_given_at_an_insert_are_kept(jobs: Jobs) -> None:
    jobs.rows(
        "INSERT INTO jobs (action, status, started_at, completed_at)"
        f" VALUES ('a', 'running', {WRONG}, NULL), ('a', 'done', NULL, {WRONG})"
    )
    ages = jobs.rows(AGE.format("coalesce(started_at, completed_at)"))
    assert [round(float(age), -1) for (age,) in ages] == [1800, 1800]


@pytest.mark.parametrize(
    ("status", "stamped"), [("running", "started_at"), ("done", "completed_at")]
)
def test_an_insert_without_a_time_gets_one(jobs: Jobs, status: str, stamped: str) -> None:
    jobs.rows("INSERT INTO jobs (action, status) VALUES ('a', %s)", status)
    assert 0 <= jobs.value(AGE.format(stamped)) < 10


def test_a_write_that_leaves_the_state_alone_stamps_nothing(jobs: Jobs) -> None:
    job = jobs.add(ago="5 minutes")
    before = jobs.job(job)
    jobs.rows("UPDATE jobs SET status = 'running', payload = '[1]'")
    assert jobs.job(job) == before
