from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest

from tests.postgres.conftest import Install
from tests.postgres.jobs import RUNNER, Jobs, wait_for

RETENTION = {
    "retention": "24h",
    "actions": {
        "draft": {"retention": "1h"},
        "report": {"retention": "7d"},
        "invoice": {"retention": "forever"},
    },
}


@pytest.mark.parametrize(
    ("ago", "gone"),
    [
        ("30 minutes", set()),
        ("2 hours", {"draft"}),
        ("25 hours", {"draft", "other"}),
        ("9 years", {"draft", "other", "report"}),
    ],
)
def test_a_finished_job_goes_when_its_actions_retention_is_over(
    install: Install, ago: str, gone: set[str]
) -> None:
    jobs = install(cleanup=RETENTION)
    actions = {"draft", "other", "report", "invoice"}
    for action in actions:
        jobs.add(action, "done", ago=ago)
        jobs.add(action, "failed", ago=ago)
    assert jobs.cleanup() == ("ok", 2 * len(gone), 0, 0, None, None)
    left = jobs.rows("SELECT action, count(*) FROM jobs GROUP BY action")
    assert dict(left) == dict.fromkeys(actions - gone, 2)


@pytest.mark.parametrize("status", ["queued", "running"])
def test_a_job_that_is_not_finished_never_goes(jobs: Jobs, status: str) -> None:
    jobs.add(status=status, ago="9 years")
    jobs.rows("UPDATE jobs SET completed_at = now() - interval '9 years'")
    assert jobs.cleanup().changed == 0
    assert jobs.count(status) == 1


def test_the_time_of_the_end_counts_not_that_of_the_start(jobs: Jobs) -> None:
    jobs.rows(
        "INSERT INTO jobs (action, status, created_at, started_at, completed_at)"
        " VALUES ('a', 'done', now() - interval '9 days', now() - interval '8 days', now())"
    )
    assert jobs.cleanup().changed == 0


@pytest.mark.parametrize("when", ["", " DEFERRABLE INITIALLY DEFERRED"], ids=["", "at the commit"])
def test_a_child_that_restricts_keeps_its_job_and_no_other(jobs: Jobs, when: str) -> None:
    old = jobs.add_many(300, status="done", ago="2 days")
    jobs.rows(f"CREATE TABLE step (job_id uuid REFERENCES jobs{when})")
    jobs.rows("CREATE INDEX ON step (job_id)")
    jobs.rows("INSERT INTO step VALUES (%s), (%s)", old[0], old[200])
    run = jobs.cleanup("100")
    assert run[:5] == ("ok", 298, 0, 2, "23503")
    assert run.message is not None
    assert str(old[0]) in run.message
    assert jobs.count("done") == 2
    level, detail = jobs.health()["undeleted"]
    assert level == "warning"
    assert detail.startswith("2 finished jobs could not be deleted: ")


def test_children_that_cascade_go_with_their_job(jobs: Jobs) -> None:
    (old,) = jobs.add_many(1, status="done", ago="2 days")
    jobs.rows("CREATE TABLE step (job_id uuid REFERENCES jobs ON DELETE CASCADE)")
    jobs.rows("INSERT INTO step VALUES (%s), (%s)", old, old)
    assert jobs.cleanup().changed == 1
    assert jobs.value("SELECT count(*) FROM step") == 0


def test_a_spent_budget_ends_the_run_and_the_next_one_goes_on(jobs: Jobs) -> None:
    jobs.add_many(25, status="done", ago="2 days")
    assert jobs.cleanup("10", "'0 s'") == ("partial", 10, 0, 0, None, None)
    assert jobs.count("done") == 15
    assert jobs.cleanup("10", "NULL") == ("ok", 15, 0, 0, None, None)


def test_the_oldest_go_first_whatever_their_action(jobs: Jobs) -> None:
    jobs.add("b", "done", ago="9 days")
    jobs.add("a", "done", ago="5 days")
    jobs.add("c", "done", ago="7 days")
    assert jobs.cleanup("2", "'0 s'").changed == 2
    assert jobs.rows("SELECT action FROM jobs") == [("a",)]


def test_a_locked_job_stays_until_the_next_cleanup(jobs: Jobs) -> None:
    locked, _ = jobs.add_many(2, status="done", ago="2 days")
    with jobs.connect() as reader, reader.transaction():
        reader.execute("SELECT FROM jobs WHERE id = %s FOR KEY SHARE", [locked])
        assert jobs.cleanup() == ("ok", 1, 1, 0, None, None)
    assert jobs.cleanup() == ("ok", 1, 0, 0, None, None)


def test_a_job_that_was_put_back_while_it_was_picked_stays(install: Install) -> None:
    jobs = install(jobs={"guard": False})
    jobs.add_many(2, status="failed", ago="2 days")
    with jobs.connect() as operator, operator.transaction():
        operator.execute("UPDATE jobs SET status = 'queued'")
        assert jobs.cleanup() == ("ok", 0, 2, 0, None, None)
    assert jobs.cleanup() == ("ok", 0, 0, 0, None, None)
    assert jobs.count("queued") == 2


def test_a_second_cleanup_at_the_same_time_ends_as_skipped(jobs: Jobs) -> None:
    (old,) = jobs.add_many(1, status="done", ago="2 days")
    with ThreadPoolExecutor() as beside, jobs.held_up(old):
        first = beside.submit(jobs.call, "cleanup")
        wait_for(jobs.somebody_is_held)
        assert jobs.cleanup().outcome == "skipped"
    first.result()
    assert jobs.runs("cleanup")[0] == ("ok", 1, 0, 0, None, None)
    assert jobs.count("done") == 0


def test_our_own_logs_are_shortened(jobs: Jobs) -> None:
    jobs.rows(
        "INSERT INTO jobwarden.run (kind, started_at, outcome)"
        " SELECT 'sweep', now() - d * interval '1 day', 'ok' FROM unnest('{29,31}'::int[]) AS d"
    )
    jobs.rows(
        "INSERT INTO jobwarden.event (at, job_id, code)"
        " SELECT now() - d * interval '1 day', 'x', d::text FROM unnest('{89,91}'::int[]) AS d"
    )
    jobs.rows(
        "INSERT INTO jobwarden.outage SELECT now() - d * interval '1 day',"
        " now() - d * interval '1 day' - interval '1 hour' FROM unnest('{89,91}'::int[]) AS d"
    )
    jobs.cleanup()
    age = "SELECT extract(day FROM now() - {}) FROM jobwarden.{} ORDER BY 1 DESC LIMIT 1"
    assert jobs.value(age.format("started_at", "run")) == 29
    assert jobs.value("SELECT code FROM jobwarden.event") == "89"
    assert jobs.value(age.format("ended_at", "outage")) == 89


def test_logs_that_cannot_be_shortened_cost_no_job_its_deletion(jobs: Jobs) -> None:
    jobs.add_many(3, status="done", ago="2 days")
    jobs.rows(
        "INSERT INTO jobwarden.event (at, job_id, code)"
        " VALUES (now() - interval '1 year', 'x', 'y')"
    )
    jobs.rows(
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'events are kept'; END $$;"
        "CREATE TRIGGER keep BEFORE DELETE ON jobwarden.event EXECUTE FUNCTION keep()"
    )
    run = jobs.cleanup()
    assert run == ("partial", 3, 0, 0, "P0001", "the logs were not shortened: events are kept")
    assert jobs.count("done") == 0
    assert jobs.health()["undeleted"].level == "warning"


def test_a_cancel_in_the_middle_keeps_what_was_committed(jobs: Jobs) -> None:
    jobs.add_many(25, status="done", ago="2 days")
    jobs.rows(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN IF (SELECT count(*) FROM public.jobs) < 15 THEN"
        " PERFORM pg_sleep(10); END IF; RETURN OLD; END $$;"
        "CREATE TRIGGER slow BEFORE DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION slow();"
        "GRANT SELECT ON jobs TO jobwarden_owner"
    )
    with jobs.connect(RUNNER) as runner:
        runner.execute("SET statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            runner.execute("CALL jobwarden.cleanup(10)")
    assert jobs.count("done") == 15
    assert jobs.last_run("cleanup")[:2] == ("running", 10)
    jobs.rows("DROP TRIGGER slow ON jobs")
    assert jobs.cleanup().changed == 15
    assert jobs.runs("cleanup")[0][:2] == ("interrupted", 10)


def test_a_dry_run_says_what_goes_and_why(install: Install) -> None:
    jobs = install(cleanup=RETENTION)
    jobs.add("draft", "done", ago="2 hours")
    jobs.add("report", "done", ago="2 hours")
    found = jobs.rows("SELECT action, retention FROM jobwarden.expired(jobwarden.now(), 10)")
    assert found == [("draft", timedelta(hours=1))]
    assert jobs.count("done") == 2
