from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from tests.postgres.conftest import Install
from tests.postgres.jobs import Jobs

LIMITS = {
    "timeout": "10m",
    "actions": {
        "quick": {"timeout": "3m"},
        "chat": {"timeout": "30m"},
        "import": {"timeout": "never"},
    },
}


def test_the_defaults_are_the_posts(jobs: Jobs) -> None:
    schedules = {name: wanted.schedule for name, wanted in jobs.plan.schedules.items()}
    assert schedules == {"jobsStuckWatchdog": "*/5 * * * *", "jobsDailyCleanup": "0 2 * * *"}
    policy = jobs.rows("SELECT action, timeout, retention FROM jobwarden.policy")
    assert policy == [("*", timedelta(minutes=10), timedelta(hours=24))]


def test_a_stuck_job_fails_with_the_words_of_the_post(jobs: Jobs) -> None:
    stuck = jobs.add(ago="11 minutes")
    assert jobs.sweep() == ("ok", 1, 0, 0, None, None)
    status, _, completed_at, error = jobs.job(stuck)
    assert status == "failed"
    assert completed_at is not None
    assert error is not None
    assert error["code"] == "watchdog_timeout"
    assert error["message"] == "worker timed out (running >10 min)"


def test_the_error_holds_the_evidence_with_its_times_in_utc(jobs: Jobs) -> None:
    jobs.rows("ALTER DATABASE " + jobs.connection.info.dbname + " SET timezone = 'Asia/Tokyo'")
    stuck = jobs.add(ago="1 day")
    jobs.rows("UPDATE jobs SET worker = 'host-7/42'")
    started = jobs.value("SELECT to_json(started_at AT TIME ZONE 'UTC') #>> '{}' FROM jobs")
    jobs.sweep()
    error = jobs.job(stuck).error
    assert error is not None
    assert error.pop("swept_at").endswith("+00:00")
    assert error == {
        "code": "watchdog_timeout",
        "message": "worker timed out (running >10 min)",
        "action": "pdf_build",
        "worker": "host-7/42",
        "started_at": f"{started}+00:00",
        "limit": "10 min",
    }


def test_a_job_that_does_not_run_is_left_alone(jobs: Jobs) -> None:
    ids = [jobs.add(status=status, ago="1 year") for status in ("queued", "done", "failed")]
    jobs.rows("UPDATE jobs SET started_at = now() - interval '1 year' WHERE status = 'queued'")
    before = [jobs.job(job) for job in ids]
    assert jobs.sweep().changed == 0
    assert [jobs.job(job) for job in ids] == before


@pytest.mark.parametrize(
    ("ago", "failed"),
    [
        ("2 minutes", {}),
        ("4 minutes", {"quick": "3 min"}),
        ("11 minutes", {"quick": "3 min", "other": "10 min"}),
        ("1 year", {"quick": "3 min", "other": "10 min", "chat": "30 min"}),
    ],
)
def test_an_action_has_its_own_limit_or_none(
    install: Install, ago: str, failed: dict[str, str]
) -> None:
    jobs = install(watchdog=LIMITS)
    for action in ("quick", "other", "chat", "import"):
        jobs.add(action, ago=ago)
    jobs.sweep()
    found = jobs.rows("SELECT action, error ->> 'message' FROM jobs WHERE status = 'failed'")
    assert dict(found) == {
        action: f"worker timed out (running >{limit})" for action, limit in failed.items()
    }


def test_ten_thousand_jobs_without_a_limit_do_not_hide_an_orphan(install: Install) -> None:
    jobs = install(watchdog=LIMITS)
    jobs.add_many(10_000, "import", ago="1 year")
    orphan = jobs.add("other", ago="11 minutes")
    assert jobs.rows("SELECT id FROM jobwarden.stuck(jobwarden.now(), 1)") == [(orphan,)]
    assert jobs.sweep().changed == 1
    assert jobs.job(orphan).status == "failed"


def test_a_changed_limit_holds_at_once_for_jobs_that_run(jobs: Jobs) -> None:
    job = jobs.add(ago="6 minutes")
    assert jobs.sweep().changed == 0
    jobs.install({"watchdog": {"timeout": "5m"}})
    assert jobs.sweep().changed == 1
    error = jobs.job(job).error
    assert error is not None
    assert error["message"] == "worker timed out (running >5 min)"


def test_without_any_policy_nothing_is_rescued(jobs: Jobs) -> None:
    jobs.add(ago="1 year")
    jobs.rows("DELETE FROM jobwarden.policy")
    assert jobs.sweep() == ("ok", 0, 0, 0, None, None)


def test_a_job_without_a_start_gets_its_clock_at_first_sight(jobs: Jobs) -> None:
    job = jobs.add_without_start()
    assert jobs.health()["clocks"] == (
        "warning",
        "0 running jobs start in the future, 1 have no start",
    )
    assert jobs.sweep().changed == 0
    assert jobs.job(job).started_at is not None
    assert jobs.health()["clocks"].level == "ok"
    jobs.forward("11 minutes")
    assert jobs.sweep().changed == 1


def test_a_job_that_may_get_no_clock_keeps_no_other_from_its_rescue(jobs: Jobs) -> None:
    jobs.add_without_start()
    jobs.add()
    jobs.rows("ALTER TABLE jobs ADD CHECK (status <> 'running' OR started_at IS NULL) NOT VALID")
    outcome, changed, skipped, poisoned, sqlstate, _ = jobs.sweep()
    assert (outcome, changed, skipped, poisoned, sqlstate) == ("ok", 1, 0, 1, "23514")


def test_a_start_in_the_future_is_flagged_and_not_swept(jobs: Jobs) -> None:
    jobs.add(ago="-30 minutes")
    jobs.add(ago="-infinity" if jobs.connection.info.server_version >= 170000 else "-9999 years")
    assert jobs.sweep().changed == 0
    assert jobs.health()["clocks"] == (
        "warning",
        "2 running jobs start in the future, 0 have no start",
    )


def test_starts_at_the_ends_of_time_are_judged_and_break_no_report(jobs: Jobs) -> None:
    jobs.add_many(2)
    jobs.rows("UPDATE jobs SET started_at = '-infinity'")
    jobs.rows("UPDATE jobs SET started_at = 'infinity' WHERE id = (SELECT id FROM jobs LIMIT 1)")
    assert jobs.health()["overdue"].level == "critical"
    assert jobs.rows("SELECT jobs FROM jobwarden.running()") == [(2,)]
    assert jobs.rows("SELECT name FROM jobwarden.figures() WHERE name LIKE '%running%'")
    assert jobs.sweep().changed == 1


def test_a_locked_job_is_passed_over_without_waiting_and_taken_next_time(jobs: Jobs) -> None:
    locked, other = jobs.add(), jobs.add()
    with jobs.connect() as worker, worker.transaction():
        worker.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [locked])
        assert jobs.sweep() == ("ok", 1, 1, 0, None, None)
        assert jobs.job(other).status == "failed"
    assert jobs.sweep() == ("ok", 1, 0, 0, None, None)
    assert jobs.job(locked).status == "failed"


def test_a_sweep_does_not_wait_for_who_inserts_children(jobs: Jobs) -> None:
    job = jobs.add()
    jobs.rows("CREATE TABLE step (job_id uuid REFERENCES jobs)")
    with jobs.connect() as worker, worker.transaction():
        worker.execute("INSERT INTO step VALUES (%s)", [job])
        assert jobs.sweep() == ("ok", 1, 0, 0, None, None)


def test_row_security_does_not_blind_the_sweep(jobs: Jobs) -> None:
    jobs.add()
    jobs.rows("ALTER TABLE jobs ENABLE ROW LEVEL SECURITY")
    jobs.rows("CREATE POLICY nobody ON jobs USING (false)")
    assert jobs.sweep().changed == 1


@pytest.mark.parametrize("procedure", ["sweep", "cleanup"])
def test_a_batch_that_would_never_end_is_refused(jobs: Jobs, procedure: str) -> None:
    for batch in ("0", "-1", "NULL"):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="at least 1 is allowed"):
            jobs.call(procedure, batch)


@pytest.mark.parametrize(
    ("ran", "away", "since", "due"),
    [
        ("15 minutes", "8 minutes", "5 minutes", False),
        ("19 minutes", "8 minutes", "5 minutes", True),
        ("19 minutes", "3 hours", "5 minutes", False),
        ("21 minutes", "3 hours", "5 minutes", True),
        ("11 minutes", "3 hours", "12 minutes", True),
    ],
)
def test_an_outage_lengthens_the_limit_of_what_ran_then_at_most_by_itself(
    jobs: Jobs, ran: str, away: str, since: str, *, due: bool
) -> None:
    jobs.add(ago=ran)
    jobs.rows(
        "INSERT INTO jobwarden.outage (ended_at, started_at)"
        " VALUES (now() - %s::interval, now() - %s::interval - %s::interval)",
        since,
        since,
        away,
    )
    assert jobs.sweep().changed == int(due)
