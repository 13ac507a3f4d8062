"""What each role may do, and above all what it may not."""

from __future__ import annotations

import itertools

import psycopg
import pytest

from tests.postgres.jobs import READER, RUNNER, WORKER, Jobs

OURS = ("policy", "run", "event", "outage", "schedule", "source", "object", "job")
WRITES = ("INSERT INTO {} DEFAULT VALUES", "DELETE FROM {}", "TRUNCATE {}")
LATE = "'2100-01-01'"

# Whoever names a type of ours in a schema of theirs must not be run by our functions.
TRAP = """
CREATE FUNCTION pg_temp.trap(pg_catalog.text) RETURNS boolean LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'ran as %', current_user; END $$;
CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (pg_temp.trap(VALUE));
CREATE DOMAIN pg_temp.uuid AS pg_catalog.uuid CHECK (pg_temp.trap(VALUE::pg_catalog.text));
CREATE DOMAIN pg_temp.bigint AS pg_catalog.int8 CHECK (pg_temp.trap(VALUE::pg_catalog.text));
CREATE DOMAIN pg_temp.jsonb AS pg_catalog.jsonb CHECK (pg_temp.trap(VALUE::pg_catalog.text));
CREATE VIEW pg_temp.pg_stat_activity AS SELECT 'nowhere'::pg_catalog.name AS datname,
  'pg_cron scheduler'::pg_catalog.text AS application_name;
"""


def refused(jobs: Jobs, role: str, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        jobs.as_role(role, statement)


@pytest.mark.parametrize("procedure", ["sweep()", "cleanup()"])
def test_the_runner_may_call_the_two_procedures(jobs: Jobs, procedure: str) -> None:
    jobs.as_role(RUNNER, f"CALL jobwarden.{procedure}")
    assert jobs.value("SELECT outcome FROM jobwarden.run") == "ok"


@pytest.mark.parametrize("role", [RUNNER, READER])
def test_neither_runner_nor_reader_touches_a_job(jobs: Jobs, role: str) -> None:
    jobs.add()
    for table in ("jobs", "jobwarden.job"):
        refused(jobs, role, f"SELECT FROM {table}")
        refused(jobs, role, f"DELETE FROM {table}")
        refused(jobs, role, f"UPDATE {table} SET status = 'failed'")
        refused(jobs, role, f"INSERT INTO {table} (action) VALUES ('a')")
    assert jobs.count("running") == 1


def test_the_runner_reads_nothing_of_ours(jobs: Jobs) -> None:
    for table in OURS:
        refused(jobs, RUNNER, f"SELECT FROM jobwarden.{table}")


@pytest.mark.parametrize("role", [RUNNER, READER, WORKER])
def test_no_role_of_ours_writes_our_tables(jobs: Jobs, role: str) -> None:
    for table, write in itertools.product(OURS, WRITES):
        with pytest.raises(psycopg.Error) as refusal:
            jobs.as_role(role, write.format(f"jobwarden.{table}"))
        # A view is no table to TRUNCATE.
        assert refusal.value.sqlstate in {"42501", "42809"}


@pytest.mark.parametrize("role", [RUNNER, READER, WORKER])
def test_no_role_of_ours_creates_anything(jobs: Jobs, role: str) -> None:
    jobs.rows("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    for schema in ("public", "jobwarden"):
        refused(jobs, role, f"CREATE TABLE {schema}.t (n int)")
        refused(jobs, role, f"CREATE FUNCTION {schema}.f() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    refused(jobs, role, "CREATE SCHEMA theirs")
    refused(jobs, role, "CREATE ROLE theirs")
    refused(jobs, role, "SET ROLE jobwarden_owner")


def test_the_runner_makes_nothing_old_by_naming_a_late_hour(jobs: Jobs) -> None:
    jobs.add(ago="1 minute")
    jobs.add(status="done", ago="1 hour")
    jobs.rows("INSERT INTO jobwarden.event (at, job_id, code) VALUES (now(), 'x', 'y')")
    for call in (
        f"* FROM jobwarden.sweep_batch({LATE}, 100, NULL, NULL)",
        f"* FROM jobwarden.cleanup_batch({LATE}, 100, NULL, NULL)",
        f"jobwarden.prune_log({LATE})",
        f"jobwarden.prune({LATE})",
    ):
        jobs.as_role(RUNNER, f"SELECT {call}")
        assert (jobs.count("running"), jobs.count("done"), len(jobs.events())) == (1, 1, 1)


def test_the_reader_reads_our_tables(jobs: Jobs) -> None:
    assert jobs.as_role(READER, "SELECT action FROM jobwarden.policy") == [("*",)]
    for table in set(OURS) - {"job", "policy"}:
        counted = jobs.value(f"SELECT count(*) FROM jobwarden.{table}")
        assert jobs.as_role(READER, f"SELECT count(*) FROM jobwarden.{table}") == [(counted,)]


def test_the_reader_sees_what_is_due_and_how_things_are(jobs: Jobs) -> None:
    jobs.add()
    jobs.add(status="done", ago="2 days")
    for function in ("stuck", "expired"):
        query = f"SELECT count(*) FROM jobwarden.{function}(jobwarden.now(), 10)"
        assert jobs.as_role(READER, query) == [(1,)]
    assert "overdue" in jobs.health()
    assert jobs.as_role(READER, "SELECT action, jobs FROM jobwarden.running()") == [
        ("pdf_build", 1)
    ]


@pytest.mark.parametrize("role", [READER, WORKER])
def test_neither_reader_nor_worker_runs_anything(jobs: Jobs, role: str) -> None:
    jobs.add()
    for call in (
        "CALL jobwarden.sweep()",
        "CALL jobwarden.cleanup()",
        "SELECT jobwarden.rescue(now(), 1, NULL, NULL)",
        "SELECT jobwarden.discard(now(), 1, NULL, NULL)",
        "SELECT jobwarden.start_clocks()",
        "SELECT jobwarden.begin_run('sweep', now())",
        "SELECT jobwarden.prune_log(now())",
    ):
        refused(jobs, role, call)
    assert (jobs.count("running"), jobs.runs("sweep")) == (1, [])


def test_the_runner_gets_at_jobs_by_the_batch_functions_only(jobs: Jobs) -> None:
    for function in ("rescue", "discard", "stuck", "expired"):
        refused(jobs, RUNNER, f"SELECT jobwarden.{function}(now(), 1, NULL, NULL)")


def test_the_worker_queues_claims_and_finishes_but_deletes_nothing(jobs: Jobs) -> None:
    jobs.as_role(WORKER, "INSERT INTO jobs (action) VALUES ('a')")
    jobs.as_role(WORKER, "UPDATE jobs SET status = 'running'")
    jobs.as_role(WORKER, "UPDATE jobs SET status = 'failed', error = '{\"code\": \"oops\"}'")
    assert jobs.as_role(WORKER, "SELECT status FROM jobs") == [("failed",)]
    assert [code for _, code in jobs.events()] == ["oops"]
    refused(jobs, WORKER, "DELETE FROM jobs")
    refused(jobs, WORKER, "TRUNCATE jobs")


@pytest.fixture
def stranger(jobs: Jobs) -> str:
    """A role of theirs that may only change the table, as their workers may."""
    jobs.rows("CREATE ROLE stranger; GRANT SELECT, UPDATE ON jobs TO stranger")
    return "stranger"


def test_a_worker_of_theirs_needs_no_right_of_ours(jobs: Jobs, stranger: str) -> None:
    job = jobs.add(status="queued")
    jobs.as_role(stranger, "UPDATE jobs SET status = 'running'")
    jobs.as_role(stranger, "UPDATE jobs SET status = 'failed'")
    assert jobs.job(job).started_at is not None
    assert len(jobs.events()) == 1
    with pytest.raises(psycopg.Error, match="is already failed"):
        jobs.as_role(stranger, "UPDATE jobs SET status = 'done'")


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        ("stranger", "UPDATE public.jobs SET status = 'failed'"),
        (RUNNER, "SELECT * FROM jobwarden.sweep_batch(pg_catalog.now(), 9, NULL, NULL)"),
        (READER, "SELECT * FROM jobwarden.health()"),
        (READER, "SELECT jobwarden.launcher()"),
    ],
)
def test_types_planted_by_the_caller_are_not_ours(
    jobs: Jobs, stranger: str, role: str, statement: str
) -> None:
    assert stranger == "stranger"
    jobs.add()
    with jobs.connect() as connection:
        connection.execute(f"SET SESSION AUTHORIZATION {role}".encode())
        connection.execute(TRAP.encode())
        found = connection.execute(statement.encode())
        assert found.description is None or ("nowhere",) not in found.fetchall()


def test_our_schema_is_closed_to_everybody_else(jobs: Jobs, stranger: str) -> None:
    refused(jobs, stranger, "SELECT jobwarden.now()")
    granted = jobs.rows(
        "SELECT p.proname FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS a"
        " WHERE p.pronamespace = 'jobwarden'::regnamespace AND a.grantee = 0"
    )
    assert granted == []


def test_rights_granted_by_hand_are_taken_back_by_the_next_apply(jobs: Jobs) -> None:
    rights = (
        "SELECT relname, (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(relacl) AS a)"
        " FROM pg_class WHERE relnamespace = 'jobwarden'::regnamespace UNION ALL"
        " SELECT proname, (SELECT array_agg(a::text ORDER BY a::text) FROM unnest(proacl) AS a)"
        " FROM pg_proc WHERE pronamespace = 'jobwarden'::regnamespace ORDER BY 1, 2"
    )
    before = jobs.rows(rights)
    for grant in (
        "SELECT ON jobwarden.event TO jobwarden_runner",
        "UPDATE ON jobwarden.policy TO jobwarden_readonly",
        "SELECT ON jobwarden.run TO PUBLIC",
        "EXECUTE ON PROCEDURE jobwarden.sweep(int) TO jobwarden_worker",
    ):
        jobs.rows(f"GRANT {grant}")
        assert jobs.rows(rights) != before
        jobs.install({})
        assert jobs.rows(rights) == before


def test_row_security_of_theirs_hides_no_job_from_the_cleanup(jobs: Jobs) -> None:
    jobs.add(status="done", ago="2 days")
    jobs.rows("ALTER TABLE jobs ENABLE ROW LEVEL SECURITY")
    assert jobs.cleanup().changed == 1
