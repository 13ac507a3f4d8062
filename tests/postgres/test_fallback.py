"""The loop that stands in for pg_cron, on a server that has none."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from infra.local.cluster import Cluster

SCRIPT = Path(__file__).parents[2] / "infra" / "files" / "fallback.sh"
ENOUGH_SECONDS = 20
needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc on this system")

# Procedures that commit, as ours do, and that keep a diary.
STAND_IN = """
CREATE SCHEMA jobwarden;
CREATE TABLE jobwarden.setting (scheduled boolean NOT NULL, sweep_seconds float NOT NULL);
INSERT INTO jobwarden.setting VALUES (false, 0);
CREATE TABLE jobwarden.diary (what text, began timestamptz, ended timestamptz);
CREATE FUNCTION jobwarden.scheduled() RETURNS boolean LANGUAGE sql
  AS 'SELECT scheduled FROM jobwarden.setting';
CREATE PROCEDURE jobwarden.note(what text, seconds float) LANGUAGE plpgsql AS $$
DECLARE began timestamptz := clock_timestamp();
BEGIN
  COMMIT;
  PERFORM pg_sleep(seconds);
  INSERT INTO jobwarden.diary VALUES (what, began, clock_timestamp());
  COMMIT;
  RAISE NOTICE '% noted', what;
END $$;
CREATE PROCEDURE jobwarden.sweep() LANGUAGE plpgsql
  AS $$ DECLARE seconds float := (SELECT sweep_seconds FROM jobwarden.setting);
  BEGIN CALL jobwarden.note('sweep', seconds); END $$;
CREATE PROCEDURE jobwarden.cleanup() LANGUAGE plpgsql
  AS $$ BEGIN CALL jobwarden.note('cleanup', 0); END $$;
"""


@pytest.fixture
def url(plain_app: str) -> str:
    """A database with stand-ins for our procedures."""
    _ask(plain_app, STAND_IN)
    return plain_app


class TestWork:
    def test_it_sweeps_every_round_and_cleans_up_once(
        self, url: str, plain_cluster: Cluster
    ) -> None:
        with _loop(plain_cluster, "1") as loop:
            _wait_until(lambda: _count(url, "sweep") >= 3)
            assert _count(url, "cleanup") == 1
            log = _end(loop)

        assert "sweep every 1 s, cleanup every 86400 s" in log
        assert log.count("sweep done") >= 3
        assert "sweep: NOTICE:  sweep noted" in log

    def test_it_cleans_up_at_the_interval_given(self, url: str, plain_cluster: Cluster) -> None:
        with _loop(plain_cluster, "1", "2"):
            _wait_until(lambda: _count(url, "cleanup") >= 3)

        assert _count(url, "sweep") > _count(url, "cleanup")

    def test_the_environment_gives_the_intervals_too(
        self, url: str, plain_cluster: Cluster
    ) -> None:
        with _loop(
            plain_cluster, JOBWARDEN_SWEEP_SECONDS="600", JOBWARDEN_CLEANUP_SECONDS="700"
        ) as loop:
            _wait_until(lambda: _count(url, "cleanup") == 1)
            log = _end(loop)

        assert "sweep every 600 s, cleanup every 700 s" in log

    def test_a_round_longer_than_the_interval_does_not_overlap_the_next(
        self, url: str, plain_cluster: Cluster
    ) -> None:
        _ask(url, "UPDATE jobwarden.setting SET sweep_seconds = 1.5")

        with _loop(plain_cluster, "1"):
            _wait_until(lambda: _count(url, "sweep") >= 2)

        overlaps = """
            SELECT count(*) FROM jobwarden.diary AS a JOIN jobwarden.diary AS b
            ON a.began < b.began AND b.began < a.ended
        """
        assert _ask(url, overlaps) == 0

    def test_a_failing_sweep_does_not_keep_the_cleanup_from_running(
        self, url: str, plain_cluster: Cluster
    ) -> None:
        _ask(url, "DROP PROCEDURE jobwarden.sweep()")

        with _loop(plain_cluster, "1") as loop:
            _wait_until(lambda: _count(url, "cleanup") == 1)
            log = _end(loop)

        assert "sweep failed: ERROR:  procedure jobwarden.sweep() does not exist" in log


class TestNeverBothAtOnce:
    def test_it_does_nothing_while_pg_cron_carries_our_schedules(
        self, url: str, plain_cluster: Cluster
    ) -> None:
        _ask(url, "UPDATE jobwarden.setting SET scheduled = true")

        with _loop(plain_cluster, "1") as loop:
            log, _ = loop.communicate(timeout=ENOUGH_SECONDS)

        assert loop.returncode == 0
        assert "pg_cron runs our schedules on this server" in log
        assert _ask(url, "SELECT count(*) FROM jobwarden.diary") == 0

    def test_it_ends_when_pg_cron_takes_over(self, url: str, plain_cluster: Cluster) -> None:
        with _loop(plain_cluster, "1") as loop:
            _wait_until(lambda: _count(url, "sweep") >= 1)
            _ask(url, "UPDATE jobwarden.setting SET scheduled = true")
            log, _ = loop.communicate(timeout=ENOUGH_SECONDS)

        assert loop.returncode == 0
        assert log.rstrip().endswith("so there is nothing to do here")


class TestFaults:
    def test_it_goes_on_after_a_restart_of_the_database(
        self, url: str, plain_cluster: Cluster
    ) -> None:
        with _loop(plain_cluster, "1") as loop:
            _wait_until(lambda: _count(url, "sweep") >= 1)
            plain_cluster.stop()
            _wait_for_line(loop, "sweep failed")
            plain_cluster.start()
            before = _count(url, "sweep")
            _wait_until(lambda: _count(url, "sweep") > before)

    def test_a_restart_in_the_middle_of_a_sweep_is_survived(
        self, url: str, plain_cluster: Cluster
    ) -> None:
        _ask(url, "UPDATE jobwarden.setting SET sweep_seconds = 60")

        with _loop(plain_cluster, "1"):
            _wait_until(lambda: _sessions(url) == 1)
            plain_cluster.restart()
            _ask(url, "UPDATE jobwarden.setting SET sweep_seconds = 0")
            _wait_until(lambda: _count(url, "sweep") >= 1)

    @pytest.mark.parametrize(
        "arguments", [("0",), ("ten",), ("-5",), ("1.5",), ("5", "1h"), ("1", "2", "3")]
    )
    def test_a_wrong_argument_is_refused_with_the_way_out(
        self, plain_cluster: Cluster, arguments: tuple[str, ...]
    ) -> None:
        with _loop(plain_cluster, *arguments) as loop:
            log, _ = loop.communicate(timeout=ENOUGH_SECONDS)

        assert loop.returncode == 64
        assert "got" in log
        assert "Try: fallback.sh 300 86400" in log

    def test_a_missing_psql_is_named(self, plain_cluster: Cluster, tmp_path: Path) -> None:
        for name in ("date", "mktemp", "sleep", "rm", "grep"):
            (tmp_path / name).symlink_to(str(shutil.which(name)))

        with _loop(plain_cluster, "1", PATH=str(tmp_path)) as loop:
            log, _ = loop.communicate(timeout=ENOUGH_SECONDS)

        assert loop.returncode == 1
        assert log == "psql is not on the PATH\nTry: install the PostgreSQL client\n"


class TestEnd:
    @pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_a_signal_ends_the_pause_at_once(
        self, url: str, plain_cluster: Cluster, end: signal.Signals
    ) -> None:
        with _loop(plain_cluster, "600") as loop:
            _wait_until(lambda: _count(url, "cleanup") == 1)
            time.sleep(0.3)
            began = time.monotonic()
            log = _end(loop, end)

        assert time.monotonic() - began < 2
        assert loop.returncode == 0
        assert log.rstrip().endswith("stopped")

    def test_a_sweep_in_progress_is_cancelled_in_the_server(
        self, url: str, plain_cluster: Cluster
    ) -> None:
        _ask(url, "UPDATE jobwarden.setting SET sweep_seconds = 60")

        with _loop(plain_cluster, "1") as loop:
            _wait_until(lambda: _sessions(url) == 1)
            began = time.monotonic()
            _end(loop)

        assert time.monotonic() - began < 3
        assert loop.returncode == 0
        _wait_until(lambda: _sessions(url) == 0)
        assert _count(url, "sweep") == 0

    @needs_proc
    def test_no_process_and_no_file_stays_behind(
        self, url: str, plain_cluster: Cluster, tmp_path: Path
    ) -> None:
        with _loop(plain_cluster, "600", TMPDIR=str(tmp_path)) as loop:
            _wait_until(lambda: _count(url, "cleanup") == 1)
            assert len(list(tmp_path.iterdir())) == 1
            _end(loop)

        assert list(tmp_path.iterdir()) == []
        assert _members(loop.pid) == []


@needs_proc
def test_the_password_shows_in_no_command_line(url: str, plain_cluster: Cluster) -> None:
    _ask(url, "UPDATE jobwarden.setting SET sweep_seconds = 60")

    with _loop(plain_cluster, "1", PGPASSWORD="open-sesame") as loop:
        _wait_until(lambda: _sessions(url) == 1)
        lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in _members(loop.pid)]

    assert any(b"psql" in line for line in lines)
    assert not any(b"sesame" in line for line in lines)


@contextmanager
def _loop(cluster: Cluster, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run the loop against the cluster, in its own process group; it ends with the block."""
    libpq = {"PGHOST": str(cluster.folder), "PGUSER": "postgres", "PGDATABASE": "app"}
    path = f"{cluster.server.bindir}:{os.environ['PATH']}"
    loop = subprocess.Popen(
        ["/bin/sh", SCRIPT, *arguments],
        env={"PATH": path, **libpq, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )
    with loop:
        try:
            yield loop
        finally:
            if loop.poll() is None:
                loop.terminate()
                loop.wait(ENOUGH_SECONDS)


def _end(loop: subprocess.Popen[str], how: signal.Signals = signal.SIGTERM) -> str:
    loop.send_signal(how)
    return loop.communicate(timeout=ENOUGH_SECONDS)[0]


def _wait_for_line(loop: subprocess.Popen[str], text: str) -> None:
    assert loop.stdout is not None
    for line in loop.stdout:
        if text in line:
            return
    pytest.fail(f"the loop ended without saying {text!r}")


def _members(group: int) -> list[int]:
    """The processes of a group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state_parent_group = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(state_parent_group[2]) == group and state_parent_group[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def _sessions(url: str) -> object:
    return _ask(
        url,
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name = 'jobwarden-fallback' AND query LIKE 'CALL%'",
    )


def _count(url: str, what: str) -> int:
    count = _ask(url, f"SELECT count(*) FROM jobwarden.diary WHERE what = '{what}'")
    assert isinstance(count, int)
    return count


def _ask(url: str, query: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def _wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + ENOUGH_SECONDS
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
