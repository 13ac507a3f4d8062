"""One event and one notification for each failure, in the transaction that fails the job."""

from __future__ import annotations

import json

import psycopg
import pytest

from tests.postgres.jobs import Jobs

FAIL = 'UPDATE jobs SET status = \'failed\', error = \'{"code": "bad_input", "n": 1}\''


@pytest.fixture
def listener(jobs: Jobs) -> psycopg.Connection:
    """A connection that hears our channel."""
    connection = jobs.connection
    connection.execute("LISTEN jobwarden_event")
    return connection


def heard(connection: psycopg.Connection) -> list[dict[str, object]]:
    return [json.loads(each.payload) for each in connection.notifies(timeout=0.1)]


def test_a_rescue_makes_one_event_and_one_notification_each(
    jobs: Jobs, listener: psycopg.Connection
) -> None:
    stuck = jobs.add_many(3)
    jobs.sweep()
    assert sorted(jobs.events()) == sorted((str(job), "watchdog_timeout") for job in stuck)
    ids = [event for (event,) in jobs.rows("SELECT id FROM jobwarden.event ORDER BY id")]
    assert heard(listener) == [{"id": event, "code": "watchdog_timeout"} for event in ids]


def test_a_plain_update_to_failed_makes_one_with_its_error(
    jobs: Jobs, listener: psycopg.Connection
) -> None:
    job = jobs.add("mail")
    jobs.rows(FAIL)
    assert jobs.rows("SELECT job_id, action, code, error FROM jobwarden.event") == [
        (str(job), "mail", "bad_input", {"code": "bad_input", "n": 1})
    ]
    assert [each["code"] for each in heard(listener)] == ["bad_input"]


def test_a_failure_without_a_code_is_unknown(jobs: Jobs) -> None:
    shapes = ["NULL", "'\"text\"'", "'[]'", "'{\"code\": null}'", "'3'"]
    for error in shapes:
        job = jobs.add()
        jobs.rows(f"UPDATE jobs SET status = 'failed', error = {error} WHERE id = %s", job)
    assert [code for _, code in jobs.events()] == ["unknown"] * len(shapes)


def test_the_longest_code_does_not_keep_a_job_from_failing(
    jobs: Jobs, listener: psycopg.Connection
) -> None:
    jobs.add()
    jobs.rows(
        "UPDATE jobs SET status = 'failed',"
        " error = jsonb_build_object('code', repeat('\U0001f480', 9999))"
    )
    assert jobs.count("failed") == 1
    assert [each["code"] for each in heard(listener)] == ["\U0001f480" * 200]


def test_nothing_else_makes_one(jobs: Jobs, listener: psycopg.Connection) -> None:
    jobs.add()
    for statement in (
        "UPDATE jobs SET payload = '[]', error = '{\"code\": \"soon\"}', worker = 'me'",
        "UPDATE jobs SET status = 'queued'",
        "UPDATE jobs SET status = 'done'",
        "INSERT INTO jobs (action, status) SELECT 'a', 'failed' FROM generate_series(1, 100)",
        "DELETE FROM jobs",
    ):
        assert jobs.connection.execute(statement.encode()).rowcount > 0
    assert jobs.events() == []
    assert heard(listener) == []


def test_a_job_that_has_failed_makes_no_second_one(jobs: Jobs) -> None:
    jobs.add()
    jobs.rows(FAIL)
    jobs.rows("UPDATE jobs SET status = 'failed', payload = '[]'")
    assert len(jobs.events()) == 1


def test_a_failure_that_is_taken_back_leaves_neither(
    jobs: Jobs, listener: psycopg.Connection
) -> None:
    jobs.add()
    with jobs.connection.transaction(force_rollback=True):
        jobs.rows(FAIL)
        assert len(jobs.events()) == 1
    assert jobs.events() == []
    assert heard(listener) == []


def test_an_event_outlives_its_job(jobs: Jobs) -> None:
    job = jobs.add(ago="2 days")
    jobs.sweep()
    jobs.forward("25 hours")
    assert jobs.cleanup().changed == 1
    assert jobs.events() == [(str(job), "watchdog_timeout")]
    assert jobs.health()["late_writes"].level == "ok"
