"""The history of pg_cron: ours is shortened, whatever became of a run; nobody else's is."""

from __future__ import annotations

import pytest

from tests.postgres.jobs import RUNNER, Jobs

HISTORY = """
INSERT INTO cron.job_run_details
  (runid, jobid, username, database, command, status, start_time, end_time)
SELECT n, 1, %s, 'app', 'x', status,
       now() - start_days * interval '1 day', now() - end_days * interval '1 day'
FROM (VALUES (1001, 'succeeded', 20, 20), (1002, 'failed', NULL, NULL), (1003, 'failed', 19, NULL),
             (1004, 'failed', NULL, NULL), (1005, 'running', 10, NULL), (1006, 'failed', 9, NULL),
             (1007, 'succeeded', 8, 8), (1008, 'failed', NULL, NULL), (1009, 'running', 0, NULL),
             (1010, 'succeeded', 1, 1))
  AS t (n, status, start_days, end_days)
"""


def kept(jobs: Jobs) -> list[int]:
    return [run for (run,) in jobs.rows("SELECT runid FROM cron.job_run_details ORDER BY runid")]


@pytest.fixture
def history(cron_jobs: Jobs) -> Jobs:
    """The installed database with ten runs of ours, and no schedule that would add one."""
    cron_jobs.rows("DELETE FROM cron.job; DELETE FROM cron.job_run_details")
    cron_jobs.rows(HISTORY, RUNNER)
    return cron_jobs


def test_old_runs_go_also_those_without_an_end(history: Jobs) -> None:
    assert history.cleanup().outcome == "ok"
    assert kept(history) == [1005, 1008, 1009, 1010]


def test_a_run_that_seems_to_run_goes_in_the_end(history: Jobs) -> None:
    history.rows(
        "UPDATE cron.job_run_details SET end_time = now() - interval '15 days' WHERE runid = 1007"
    )
    history.cleanup()
    assert kept(history) == [1008, 1009, 1010]


@pytest.mark.parametrize("caller", [RUNNER, "postgres"])
def test_the_runs_of_others_stay_whoever_cleans_up(history: Jobs, caller: str) -> None:
    history.rows("UPDATE cron.job_run_details SET username = 'postgres'")
    with history.connect(caller) as connection:
        connection.execute("CALL jobwarden.cleanup()")
    assert len(kept(history)) == 10


def test_a_young_history_stays_whole(history: Jobs) -> None:
    history.rows("UPDATE cron.job_run_details SET end_time = now() WHERE end_time IS NOT NULL")
    history.cleanup()
    assert len(kept(history)) == 10


def test_a_history_that_may_not_be_read_is_told_of_and_stops_no_cleanup(history: Jobs) -> None:
    history.add_many(3, status="done", ago="2 days")
    history.rows("REVOKE ALL ON cron.job_run_details FROM PUBLIC")
    try:
        run = history.cleanup()
    finally:
        history.rows("GRANT SELECT, UPDATE, DELETE ON cron.job_run_details TO PUBLIC")
    assert run[:5] == ("partial", 3, 0, 0, "42501")
