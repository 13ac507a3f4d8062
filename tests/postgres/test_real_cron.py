"""The one test of this tier that waits for the real clock."""

from __future__ import annotations

from infra.observed import RUNNER
from infra.schedules import WATCHDOG
from tests.postgres import place

UP_TO_A_MINUTE = 75


def test_pg_cron_itself_fails_a_stuck_job_within_a_minute_as_the_runner(app: str) -> None:
    assert place.apply(app, watchdog={"schedule": "* * * * *", "timeout": "1s"}).registered
    place.run(
        app,
        "INSERT INTO jobs (action, status, started_at)"
        " VALUES ('stuck', 'running', now() - interval '1 hour'), ('queued', 'queued', NULL)",
    )

    place.hold_until(
        lambda: place.rows(app, "SELECT FROM jobwarden.run WHERE outcome = 'ok' AND changed = 1"),
        "a sweep by pg_cron",
        UP_TO_A_MINUTE,
    )

    found = place.rows(app, "SELECT action, status, error ->> 'code' FROM jobs ORDER BY action")
    assert found == [("queued", "queued", None), ("stuck", "failed", "watchdog_timeout")]
    jobid = place.jobs(app)[WATCHDOG]["jobid"]
    detail = f"SELECT status, command, username FROM cron.job_run_details WHERE jobid = {jobid}"
    place.hold_until(lambda: place.rows(app, detail)[0][0] == "succeeded", "its history")
    assert place.rows(app, detail) == [("succeeded", "CALL jobwarden.sweep()", RUNNER)]
    event = "SELECT code, action FROM jobwarden.event"
    assert place.rows(app, event) == [("watchdog_timeout", "stuck")]
