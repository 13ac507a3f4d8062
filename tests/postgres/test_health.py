from __future__ import annotations

import pytest

from tests.postgres.conftest import Install
from tests.postgres.jobs import Jobs


def say_scheduled(jobs: Jobs) -> None:
    """Enter both schedules in the ledger, as an apply does where pg_cron is."""
    jobs.rows(
        "INSERT INTO jobwarden.schedule (name, schedule, command, every) VALUES"
        " ('jobsStuckWatchdog', '*/5 * * * *', 'CALL jobwarden.sweep()', '5 minutes'),"
        " ('jobsDailyCleanup', '0 2 * * *', 'CALL jobwarden.cleanup()', '1 day')"
        " ON CONFLICT (name) DO NOTHING"
    )


def say_run(jobs: Jobs, kind: str, ago: str, outcome: str = "ok") -> None:
    jobs.rows(
        "INSERT INTO jobwarden.run (kind, started_at, ended_at, outcome)"
        " VALUES (%s, now() - %s::interval, now() - %s::interval, %s)",
        kind,
        ago,
        ago,
        outcome,
    )


def test_a_fresh_database_raises_no_alarm(jobs: Jobs) -> None:
    levels = {level for level, _ in jobs.health().values()}
    assert levels <= {"ok", "unknown"}


def test_each_check_comes_once_with_a_hint(jobs: Jobs) -> None:
    say_scheduled(jobs)
    found = jobs.rows('SELECT "check", hint FROM jobwarden.health()')
    assert sorted(check for check, _ in found) == [
        "clocks",
        "cron",
        "interrupted",
        "last_cleanup",
        "last_sweep",
        "late_writes",
        "overdue",
        "poisoned",
        "undeleted",
    ]
    assert all(hint for _, hint in found)


@pytest.mark.parametrize(
    ("kind", "ago", "level"),
    [
        ("sweep", "10 minutes", "ok"),
        ("sweep", "12 minutes", "critical"),
        ("cleanup", "47 hours", "ok"),
        ("cleanup", "49 hours", "critical"),
    ],
)
def test_a_success_that_is_two_periods_old_is_an_alarm(
    jobs: Jobs, kind: str, ago: str, level: str
) -> None:
    say_scheduled(jobs)
    say_run(jobs, kind, ago)
    say_run(jobs, kind, "1 second", "skipped")
    say_run(jobs, kind, "1 second", "interrupted")
    assert jobs.health()[f"last_{kind}"].level == level


def test_a_part_of_the_work_is_a_success(jobs: Jobs) -> None:
    say_scheduled(jobs)
    say_run(jobs, "cleanup", "1 minute", "partial")
    assert jobs.health()["last_cleanup"].level == "ok"


def test_without_a_success_since_the_start_of_the_server_there_is_grace(jobs: Jobs) -> None:
    say_scheduled(jobs)
    assert jobs.health()["last_sweep"].level == "ok"
    jobs.forward("2 hours")
    assert jobs.health()["last_sweep"].level == "warning"
    say_run(jobs, "sweep", "2 hours", "interrupted")
    assert jobs.health()["last_sweep"].level == "critical"


@pytest.mark.parametrize(
    ("ago", "level"), [("9 minutes", "ok"), ("20 minutes", "ok"), ("22 minutes", "critical")]
)
def test_a_job_that_is_overdue_by_two_sweeps_is_an_alarm(jobs: Jobs, ago: str, level: str) -> None:
    jobs.add(ago=ago)
    assert jobs.health()["overdue"].level == level


def test_what_runs_is_counted_by_action(jobs: Jobs) -> None:
    jobs.add_many(2, "a", ago="2 minutes")
    jobs.add_many(3, "b", ago="3 minutes")
    jobs.add("b", "done")
    found = jobs.rows(
        "SELECT action, jobs, now() - oldest BETWEEN '119 s' AND '200 s' FROM jobwarden.running()"
    )
    assert found == [("a", 2, True), ("b", 3, True)]


def test_an_old_interruption_is_forgotten(jobs: Jobs) -> None:
    say_run(jobs, "sweep", "25 hours", "interrupted")
    assert jobs.health()["interrupted"].level == "ok"
    say_run(jobs, "sweep", "23 hours", "interrupted")
    assert jobs.health()["interrupted"].detail.startswith("1 runs were cut off")


@pytest.mark.parametrize("guard", [True, False])
def test_only_a_rescue_that_was_undone_counts_as_a_late_write(
    install: Install, *, guard: bool
) -> None:
    jobs = install(jobs={"guard": guard})
    jobs.add_many(2)
    jobs.rows("UPDATE jobs SET status = 'failed' WHERE id = (SELECT id FROM jobs LIMIT 1)")
    jobs.sweep()
    jobs.add(status="done")
    assert jobs.health()["late_writes"].level == "ok"


def test_pg_cron_that_carries_the_schedules_is_seen(cron_jobs: Jobs) -> None:
    assert cron_jobs.health()["cron"].level == "ok"
    assert cron_jobs.value("SELECT jobwarden.scheduled()") is True
    cron_jobs.rows("UPDATE cron.job SET active = false WHERE jobname = 'jobsStuckWatchdog'")
    level, detail = cron_jobs.health()["cron"]
    assert level == "critical"
    assert "jobsStuckWatchdog: paused" in detail
    assert cron_jobs.value("SELECT jobwarden.scheduled()") is False


def test_a_schedule_that_is_gone_or_fails_is_an_alarm(cron_jobs: Jobs) -> None:
    cron_jobs.rows(
        "INSERT INTO cron.job_run_details (runid, jobid, username, database, command, status,"
        " return_message, start_time, end_time) SELECT 1000, jobid, username, database, command,"
        " 'failed', 'ERROR: no', now(), now() FROM cron.job WHERE jobname = 'jobsDailyCleanup'"
    )
    level, detail = cron_jobs.health()["cron"]
    assert level == "critical"
    assert "jobsDailyCleanup: failed (ERROR: no)" in detail
    cron_jobs.rows("DELETE FROM cron.job WHERE jobname = 'jobsDailyCleanup'")
    assert "jobsDailyCleanup: gone from cron.job" in cron_jobs.health()["cron"].detail


@pytest.mark.parametrize(
    ("length", "said"),
    [
        ("0", "0 s"),
        ("119.9 s", "119 s"),
        ("2 min 59 s", "2 min"),
        ("119 min", "119 min"),
        ("7 h 30 min", "7 h"),
        ("47 h 59 min", "47 h"),
        ("50 h", "2 d"),
        ("40 days 23 h", "40 d"),
    ],
)
def test_an_age_is_told_as_somebody_would_say_it(jobs: Jobs, length: str, said: str) -> None:
    assert jobs.value("SELECT jobwarden.ago(%s::interval)", length) == said
