"""Several at once: sweeps, workers that finish, cancels, and a server that goes away."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from infra.local.cluster import Cluster
from tests.postgres.conftest import Install
from tests.postgres.jobs import RUNNER, WORKER, Jobs, wait_for

JOBS = 10_000
WORKERS = 3
PIECE = 20


def test_the_first_batch_is_seen_before_the_sweep_ends(jobs: Jobs) -> None:
    stuck = jobs.add_many(25)
    with ThreadPoolExecutor() as beside, jobs.held_up(stuck[20]):
        sweep = beside.submit(jobs.call, "sweep", "10")
        wait_for(jobs.somebody_is_held)
        assert jobs.count("failed") == 20
        assert jobs.runs("sweep") == [("running", 20, 0, 0, None, None)]
    sweep.result()
    assert jobs.runs("sweep") == [("ok", 25, 0, 0, None, None)]


def test_a_cancel_in_the_middle_keeps_what_was_committed(jobs: Jobs) -> None:
    stuck = jobs.add_many(25)
    with ThreadPoolExecutor() as beside, jobs.held_up(stuck[20]):
        sweep = beside.submit(jobs.call, "sweep", "10")
        wait_for(jobs.somebody_is_held)
        jobs.rows("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = %s", RUNNER)
        with pytest.raises(psycopg.errors.QueryCanceled):
            sweep.result()
    assert (jobs.count("failed"), len(jobs.events())) == (20, 20)
    assert jobs.sweep().changed == 5
    assert [run[:2] for run in jobs.runs("sweep")] == [("interrupted", 20), ("ok", 5)]
    assert jobs.health()["interrupted"].level == "warning"


def test_a_run_that_is_cut_off_before_its_first_batch_is_in_the_log(jobs: Jobs) -> None:
    (stuck,) = jobs.add_many(1)
    with ThreadPoolExecutor() as beside, jobs.held_up(stuck):
        sweep = beside.submit(jobs.call, "sweep")
        wait_for(jobs.somebody_is_held)
        jobs.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", RUNNER
        )
        with pytest.raises(psycopg.OperationalError):
            sweep.result()
    assert jobs.sweep().changed == 1
    assert [run.outcome for run in jobs.runs("sweep")] == ["interrupted", "ok"]


def test_the_loser_of_two_sweeps_says_so_and_ends_well(jobs: Jobs) -> None:
    (stuck,) = jobs.add_many(1)
    with ThreadPoolExecutor() as beside, jobs.held_up(stuck):
        first = beside.submit(jobs.call, "sweep")
        wait_for(jobs.somebody_is_held)
        second = jobs.sweep()
        assert second == ("skipped", 0, 0, 0, None, "another run was at work")
    first.result()
    assert jobs.runs("sweep")[0] == ("ok", 1, 0, 0, None, None)


def test_five_sweeps_at_once_leave_the_same_as_one(jobs: Jobs) -> None:
    jobs.add_many(60)
    start = threading.Barrier(5)

    def sweep() -> None:
        with jobs.connect(RUNNER) as runner:
            start.wait()
            runner.execute("CALL jobwarden.sweep(7)")

    with ThreadPoolExecutor(5) as pool:
        for done in [pool.submit(sweep) for _ in range(5)]:
            done.result()
    jobs.sweep()
    assert (jobs.count("failed"), len(jobs.events())) == (60, 60)
    runs = jobs.runs("sweep")
    assert sum(run.changed for run in runs) == 60
    assert {run.outcome for run in runs} <= {"ok", "partial", "skipped"}


@pytest.mark.parametrize("guard", [True, False])
def test_each_of_ten_thousand_finishes_that_meet_a_sweep_wins_or_is_told(
    install: Install, *, guard: bool
) -> None:
    """With the guard the plain write is refused; without, the worker asks for the state it left."""
    jobs = install(jobs={"guard": guard})
    ids = jobs.add_many(JOBS)
    finish = "UPDATE jobs SET status = 'done' WHERE id = %s"
    told: list[int] = []
    won: list[int] = []

    def work(share: list[object]) -> None:
        with jobs.connect(WORKER) as worker:
            for at in range(0, len(share), PIECE):
                lost = _finish(worker, finish, share[at : at + PIECE], guard=guard)
                told.append(lost)
                won.append(len(share[at : at + PIECE]) - lost)

    jobs.rows("ALTER ROLE jobwarden_worker LOGIN")
    with ThreadPoolExecutor(WORKERS) as pool:
        workers = [pool.submit(work, list(ids[n::WORKERS])) for n in range(WORKERS)]
        while not all(worker.done() for worker in workers):
            jobs.call("sweep", "5")
        for worker in workers:
            worker.result()
    jobs.sweep()
    assert jobs.rows(
        "SELECT count(*) FILTER (WHERE status = 'done' AND error IS NULL),"
        " count(*) FILTER (WHERE status = 'failed' AND error ->> 'code' = 'watchdog_timeout')"
        " FROM jobs"
    ) == [(sum(won), sum(told))]
    assert sum(won) + sum(told) == JOBS
    assert min(sum(won), sum(told)) > 0, "there was no race"
    assert jobs.rows(
        "SELECT count(*), count(DISTINCT e.job_id) FROM jobwarden.event AS e"
        " JOIN jobs AS j ON j.id::text = e.job_id AND j.status = 'failed'"
    ) == [(sum(told), sum(told))]
    assert len(jobs.events()) == sum(told)


def _finish(worker: psycopg.Connection, finish: str, share: list[object], *, guard: bool) -> int:
    """Finish each job in a transaction of its own; return how many were lost."""
    if not guard:
        finish += " AND status = 'running'"
    lost = 0
    for job in share:
        try:
            lost += worker.execute(finish.encode(), [job]).rowcount == 0
        except psycopg.Error as refusal:
            if refusal.sqlstate != "JW001":
                raise
            lost += 1
    return lost


SLOW_PICK = """
CREATE OR REPLACE FUNCTION jobwarden.policy_of(p_action text) RETURNS jobwarden.policy
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7);
  RETURN (SELECT p FROM jobwarden.policy AS p);
END
$$
"""


@pytest.mark.parametrize(
    ("procedure", "status", "changes"),
    [
        ("sweep", "running", ["status = 'queued'", "status = 'running'"]),
        ("sweep", "running", ["status = 'done'"]),
        ("cleanup", "failed", ["status = 'queued'"]),
        ("cleanup", "failed", ["completed_at = now()"]),
    ],
    ids=["claimed again", "finished", "put back", "ended anew"],
)
def test_a_job_that_changed_after_it_was_picked_is_left_alone(
    install: Install, procedure: str, status: str, changes: list[str]
) -> None:
    jobs = install(jobs={"guard": False})
    job = jobs.add(status=status, ago="2 days")
    jobs.rows(SLOW_PICK)
    with ThreadPoolExecutor() as beside:
        with jobs.connect() as gate:
            gate.execute("SELECT pg_advisory_lock(7)")
            run = beside.submit(jobs.call, procedure)
            wait_for(jobs.somebody_is_held)
            for change in changes:
                jobs.rows(f"UPDATE jobs SET {change}")
            now = jobs.job(job)
        run.result()
    assert jobs.last_run(procedure)[:2] == ("ok", 0)
    assert jobs.job(job) == now


def test_a_server_killed_in_the_middle_of_a_sweep_leaves_no_half_row(
    jobs: Jobs, cluster: Cluster
) -> None:
    stuck = jobs.add_many(25)
    with ThreadPoolExecutor() as beside, jobs.held_up(stuck[20]):
        sweep = beside.submit(jobs.call, "sweep", "10")
        wait_for(jobs.somebody_is_held)
        jobs.rows("CHECKPOINT")
        cluster.kill()
        with pytest.raises(psycopg.OperationalError):
            sweep.result()
    jobs.close()
    cluster.start()
    jobs.connection = jobs.connect()
    assert (
        jobs.value(
            "SELECT count(*) FROM jobs WHERE (status = 'failed')"
            " IS DISTINCT FROM (error IS NOT NULL AND completed_at IS NOT NULL)"
        )
        == 0
    )
    failed = jobs.count("failed")
    assert failed == len(jobs.events())
    assert jobs.health()["last_sweep"].level != "critical"
    jobs.rows("DELETE FROM jobwarden.outage")
    assert jobs.sweep().changed == 25 - failed
    assert jobs.runs("sweep")[0].outcome == "interrupted"
    level, detail = jobs.health()["interrupted"]
    assert level == "warning"
    assert detail.startswith("1 runs were cut off in the last day")


def test_a_restart_is_noted_as_an_outage_and_lengthens_the_limit(
    jobs: Jobs, cluster: Cluster
) -> None:
    jobs.sweep()
    jobs.rows(
        "UPDATE jobwarden.run SET started_at = now() - interval '9 minutes',"
        " ended_at = now() - interval '9 minutes'"
    )
    jobs.add(ago="12 minutes")
    jobs.close()
    cluster.restart()
    jobs.connection = jobs.connect()
    assert jobs.sweep() == ("ok", 0, 0, 0, None, None)
    assert jobs.rows(
        "SELECT ended_at = pg_postmaster_start_time(),"
        " ended_at - started_at BETWEEN interval '9 minutes' AND interval '10 minutes'"
        " FROM jobwarden.outage"
    ) == [(True, True)]
    jobs.forward("8 minutes")
    assert jobs.sweep().changed == 1
    assert jobs.value("SELECT count(*) FROM jobwarden.outage") == 1
