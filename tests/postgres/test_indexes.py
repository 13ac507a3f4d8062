"""The cost of a run goes with what it finds, not with the table; each job is met by an index."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from tests.postgres.jobs import Jobs, wait_for

SMALL = 2_000
LARGE = 200_000
TABLE = "SELECT coalesce(seq_scan, 0) FROM pg_stat_user_tables WHERE relname = 'jobs'"
INDEX = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = %s"
SETTINGS = {
    "log_min_duration": "0",
    "log_nested_statements": "on",
    "log_format": "json",
    "log_level": "notice",
}
WHOLE_TABLE = ("Seq Scan", "jobs")
RUNNING, TERMINAL = "jobwarden_running_idx", "jobwarden_terminal_idx"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a plan."""

    kind: str
    relation: str | None
    index: str | None


def fill(jobs: Jobs, count: int) -> None:
    """Jobs that finished just now; only the indexes that were there before are kept up."""
    jobs.rows("ALTER TABLE jobs DISABLE TRIGGER USER")
    jobs.rows(
        "INSERT INTO jobs (action, status, started_at, completed_at)"
        " SELECT 'a' || mod(n, 5), 'done', now(), now() FROM generate_series(1, %s) AS n",
        count,
    )
    jobs.rows("ALTER TABLE jobs ENABLE TRIGGER USER")


def plans(jobs: Jobs, statement: str) -> list[dict[str, Any]]:
    """Run it; return the plans of all statements it ran, those inside functions too."""
    told: list[str] = []
    with jobs.connect() as connection:
        connection.execute("LOAD 'auto_explain'")
        # So low that a plan which may be compiled is.
        connection.execute("SET jit_above_cost = 10")
        for name, value in SETTINGS.items():
            connection.execute(f"SET auto_explain.{name} = {value}".encode())
        connection.add_notice_handler(lambda said: told.append(said.message_primary or ""))
        connection.execute(statement.encode())
    return [json.loads(text[text.index("{") :]) for text in told]


def nodes(documents: list[dict[str, Any]]) -> list[Node]:
    return [node for document in documents for node in _nodes(document["Plan"])]


def _nodes(plan: dict[str, Any]) -> list[Node]:
    here = Node(plan["Node Type"], plan.get("Relation Name"), plan.get("Index Name"))
    return [here, *(node for child in plan.get("Plans", ()) for node in _nodes(child))]


@pytest.fixture
def large(jobs: Jobs) -> Jobs:
    """200,000 finished jobs, a few stuck and a few expired."""
    fill(jobs, LARGE)
    jobs.rows("ANALYZE jobs")
    jobs.add_many(20)
    jobs.add_many(20, status="done", ago="2 days")
    return jobs


def test_on_200_000_rows_every_job_is_met_by_an_index(large: Jobs) -> None:
    for statement, index in (
        ("CALL jobwarden.sweep(7)", RUNNING),
        ("SELECT * FROM jobwarden.health()", RUNNING),
        ("SELECT * FROM jobwarden.stuck(jobwarden.now(), 100)", RUNNING),
        ("CALL jobwarden.cleanup(7)", TERMINAL),
        ("SELECT * FROM jobwarden.expired(jobwarden.now(), 100)", TERMINAL),
    ):
        found = plans(large, statement)
        assert index in {node.index for node in nodes(found)}, statement
        assert not [node for node in nodes(found) if (node.kind, node.relation) == WHOLE_TABLE]
        compiled = nodes([plan for plan in found if "JIT" in plan])
        assert "jobs" not in {node.relation for node in compiled}, statement
    # The rescued ended just now, so the cleanup left them.
    assert (large.count("failed"), large.count("done")) == (20, LARGE)
    _the_servers_own_counters_say_the_same(large)


def _the_servers_own_counters_say_the_same(large: Jobs) -> None:
    def counters() -> tuple[int, int, int]:
        return large.value(TABLE), large.value(INDEX, RUNNING), large.value(INDEX, TERMINAL)

    large.add_many(20)
    large.add_many(20, status="done", ago="2 days")
    scans, running, terminal = counters()
    assert large.sweep().changed == 20
    assert large.cleanup().changed == 20
    wait_for(lambda: counters()[1] > running and counters()[2] > terminal)
    assert counters()[0] == scans


def test_a_plan_that_knows_nothing_of_the_table_still_goes_by_the_key(jobs: Jobs) -> None:
    jobs.rows("ALTER TABLE jobs SET (autovacuum_enabled = off)")
    jobs.rows("INSERT INTO jobs (action) SELECT 'a' FROM generate_series(1, 5000)")
    jobs.rows("ANALYZE jobs")
    fill(jobs, 30_000)
    jobs.add_many(20, status="done", ago="2 days")
    found = nodes(plans(jobs, "CALL jobwarden.cleanup(10)"))
    indexes = {node.index for node in found if node.index}
    assert {TERMINAL, "jobs_pkey"} <= indexes
    assert not [
        node
        for node in found
        if node.kind.startswith(("Seq", "Bitmap")) and node.relation == "jobs"
    ]


def test_an_idle_run_reads_as_much_of_a_large_table_as_of_a_small_one(jobs: Jobs) -> None:
    fill(jobs, SMALL)
    jobs.rows("VACUUM ANALYZE jobs")
    small = {name: _buffers(jobs, name) for name in ("sweep", "cleanup")}
    fill(jobs, LARGE - SMALL)
    jobs.rows("VACUUM ANALYZE jobs")
    for name, few in small.items():
        assert _buffers(jobs, name) < 3 * few


def _buffers(jobs: Jobs, name: str) -> int:
    """The blocks of one batch, found or read, after one that warmed the caches of the session."""
    query = f"SELECT * FROM jobwarden.{name}_batch(jobwarden.now(), 500, NULL, NULL)"
    with jobs.connect() as connection:
        connection.execute(query.encode())
        cursor = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT json) {query}".encode())
        ((((document,),),),) = (cursor.fetchall(),)
    plan = document["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


def test_a_job_that_restricts_does_not_slow_its_batch_to_a_crawl(jobs: Jobs) -> None:
    old = jobs.add_many(2000, status="done", ago="2 days")
    jobs.rows("CREATE TABLE step (job_id uuid PRIMARY KEY REFERENCES jobs)")
    jobs.rows("INSERT INTO step VALUES (%s)", old[1000])
    told: list[psycopg.errors.Diagnostic] = []
    with jobs.connect() as connection:
        connection.add_notice_handler(told.append)
        connection.execute(
            "CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE NOTICE 'a try'; RETURN NULL; END $$;"
            "CREATE TRIGGER tell BEFORE DELETE ON jobs EXECUTE FUNCTION tell()"
        )
        connection.execute("CALL jobwarden.cleanup(2000)")
    assert jobs.last_run("cleanup")[:4] == ("ok", 1999, 0, 1)
    assert len(told) < 50
