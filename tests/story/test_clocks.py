"""A worker whose clock is an hour off: the database's clock counts, whatever the worker writes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.story.service import Service, wait_for

LIMIT = timedelta(minutes=10)  # the default
SLOW = '{"message": "hello there", "seconds": 600}'
# A worker that sends the times itself, as many do: by its own clock.
OWN_TIMES = """
from datetime import UTC, datetime
from jobservice import worker
now = datetime.now(tz=UTC).isoformat()
worker.START = worker.START.replace("SET ", f"SET started_at = '{now}', ")
worker.DONE = worker.DONE.replace("SET ", f"SET completed_at = '{now}', ")
worker.main()
"""
WORKERS = {"plain": ["-m", "jobservice.worker"], "own-times": ["-c", OWN_TIMES]}

# The monotonic clock is shifted along: without that, faketime 0.9.10 breaks Python's sleep.
FAKE = ("LD_PRELOAD", "FAKETIME")

shifted = pytest.mark.parametrize("hours", [1, -1], ids=["fast", "slow"])
either = pytest.mark.parametrize("kind", WORKERS)
Start = Callable[[str, int], None]


@pytest.fixture
def start(service: Service, tool: Callable[[str], str]) -> Start:
    """Starts a worker in a process whose clock is so many hours off."""

    def start(kind: str, hours: int) -> None:
        argv = [tool("faketime"), "-f", f"{hours:+}h", "env"]
        told = subprocess.run(argv, capture_output=True, text=True, check=True)
        ours = dict(line.split("=", 1) for line in told.stdout.splitlines() if "=" in line)
        # Without the program itself, which would stand between us and the worker we kill.
        fake = {name: ours[name] for name in FAKE}
        service.start("worker-1", [sys.executable, *WORKERS[kind], "worker-1"], **fake)

    return start


def off(service: Service) -> timedelta:
    """How far the clock of the worker is off, as its log says."""
    wait_for(lambda: " running " in service.log("worker-1"), 20)
    (line,) = [line for line in service.log("worker-1").splitlines() if " running " in line]
    said = datetime.strptime(line[:19], "%Y-%m-%d %H:%M:%S").astimezone()
    return said - datetime.now(tz=UTC)


def sweep(service: Service, at: datetime) -> None:
    """Sweep when the database's clock, as our SQL reads it, shows this time."""
    service.rows(
        "CREATE OR REPLACE FUNCTION jobwarden.now() RETURNS timestamptz LANGUAGE sql VOLATILE"
        f" AS $$ SELECT '{at.isoformat()}'::timestamptz $$"
    )
    service.rows("CALL jobwarden.sweep()")


def now(service: Service) -> datetime:
    """What the database's own clock shows."""
    found: datetime = service.value("SELECT clock_timestamp()")
    return found


@shifted
@either
def test_the_times_of_a_job_are_the_databases(
    service: Service, start: Start, kind: str, hours: int
) -> None:
    service.queue("ai_chat", '{"message": "x", "seconds": 0.2}')
    begin = now(service)
    start(kind, hours)
    wait_for(lambda: service.value("SELECT status FROM jobs") == "done", 20)
    end = now(service)
    ((started, completed),) = service.rows("SELECT started_at, completed_at FROM jobs")

    assert abs(off(service) - timedelta(hours=hours)) < timedelta(minutes=2)
    assert begin < started < completed < end
    assert completed - started >= timedelta(seconds=0.2)


@shifted
@either
def test_a_job_is_rescued_at_its_limit_and_not_before(
    service: Service, start: Start, kind: str, hours: int
) -> None:
    job = service.queue("ai_chat", SLOW)
    before = now(service)
    start(kind, hours)
    assert abs(off(service) - timedelta(hours=hours)) < timedelta(minutes=2)
    after = now(service)

    sweep(service, before + LIMIT)
    assert service.status(job) == "running"
    sweep(service, after + LIMIT)
    assert service.status(job) == "failed"
    assert service.value("SELECT error ->> 'code' FROM jobs") == "watchdog_timeout"
    assert service.value("SELECT completed_at FROM jobs") == after + LIMIT
