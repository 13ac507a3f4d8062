from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from infra.local.servers import Server, find_server
from infra.local.stage import how_often
from tests.conftest import Missing

ROOT = Path(__file__).parents[2]
ENOUGH_SECONDS = 60
WITH_PG_CRON = (sys.executable, "-m", "infra", "demo")
# The same server, taken for one without pg_cron.
WITHOUT_PG_CRON = """
import dataclasses, sys
from infra import cli
from infra.local import servers
found = servers.find_server
servers.find_server = lambda: dataclasses.replace(found(), has_pg_cron=False)
sys.argv = ["jobwarden", "demo", *sys.argv[1:]]
cli.main()
"""
TAKE_THE_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
IMPATIENT = "from infra.local import scene; scene.PATIENCE_SECONDS = -58"
FALLBACK = (sys.executable, "-c", WITHOUT_PG_CRON)
needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc on this system")


@pytest.fixture(scope="module")
def _server(missing: Missing) -> None:
    try:
        find_server(pg_cron=True)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is the reason
        missing(str(error))


@pytest.fixture
def place(_server: None) -> Iterator[Path]:
    """A folder for all temporary files of one demo, which the server's user may enter."""
    yield from _place()


@pytest.fixture(scope="module")
def told(_server: None) -> Iterator[tuple[dict[str, Any], str]]:
    """The document and the talk of one demo with pg_cron: it waits for a real minute, once."""
    for place in _place():
        done = subprocess.run(
            [*WITH_PG_CRON, "--json", "--seconds", "2"],
            cwd=ROOT,
            env=_environment(place),
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert list(place.iterdir()) == []
        yield json.loads(done.stdout), done.stderr


class TestWithPgCron:
    def test_the_killed_workers_job_is_failed_with_the_reason(self, told: Any) -> None:
        rescued = told[0]["rescued"]

        assert rescued["status"] == "failed"
        assert rescued["error"]["code"] == "watchdog_timeout"
        assert rescued["error"]["message"] == "worker timed out (running >2 s)"
        assert rescued["error"]["worker"] == rescued["worker"]

    def test_pg_cron_itself_swept(self, told: Any) -> None:
        document, _ = told

        assert document["mechanism"] == "pg_cron"
        assert document["sweep"]["kind"] == "sweep"
        assert document["sweep"]["outcome"] == "ok"
        assert document["sweep"]["changed"] >= 1
        assert document["sweep"]["started_at"] == document["rescued"]["error"]["swept_at"]

    def test_both_schedules_are_registered(self, told: Any) -> None:
        schedules = {each["name"]: each for each in told[0]["schedules"]}

        assert set(schedules) == {"jobsStuckWatchdog", "jobsDailyCleanup"}
        assert all(each["registered"] for each in schedules.values())
        assert schedules["jobsStuckWatchdog"]["command"] == "CALL jobwarden.sweep()"

    def test_the_rescue_comes_with_the_next_sweep_after_the_limit(self, told: Any) -> None:
        assert 0 < told[0]["seconds_from_kill_to_rescue"] <= 2 + 60 + 5

    def test_the_late_write_is_refused(self, told: Any) -> None:
        document, talk = told

        assert document["late_write"] == "refused"
        assert "is already failed" in " ".join(talk.split())

    def test_the_cleanup_deletes_finished_jobs(self, told: Any) -> None:
        assert told[0]["cleaned"] > 0

    def test_the_story_goes_to_stderr_without_control_codes(self, told: Any) -> None:
        assert "SIGKILL" in told[1]
        assert "\x1b" not in told[1]


class TestHowOften:
    @pytest.mark.parametrize(
        ("pg_cron", "schedule"),
        [("1.6", "5 seconds"), ("1.5", "5 seconds"), ("1.4-1", "* * * * *"), (None, "3 seconds")],
    )
    def test_it_is_as_often_as_this_pg_cron_or_the_loop_can(
        self, pg_cron: str | None, schedule: str
    ) -> None:
        server = Server(17, Path("bin"), has_pg_cron=bool(pg_cron), pg_cron_version=pg_cron)

        assert how_often(server, 3).text == schedule


class TestWithoutPgCron:
    def test_the_fallback_loop_rescues_and_the_demo_says_so(self, place: Path) -> None:
        done = _run(place, "--json", "--seconds", "1")
        document = json.loads(done.stdout)

        assert document["mechanism"] == "fallback"
        assert document["rescued"]["status"] == "failed"
        assert document["rescued"]["error"]["code"] == "watchdog_timeout"
        assert document["late_write"] == "refused"
        assert document["cleaned"] > 0
        assert document["server"]["pg_cron"] is None
        assert not any(each["registered"] for each in document["schedules"])
        assert "There is no pg_cron" in done.stderr

    def test_in_a_narrow_file_no_line_is_too_wide_and_no_text_is_cut(self, place: Path) -> None:
        done = _run(place, "--seconds", "1", COLUMNS="40")

        assert "\x1b" not in done.stdout + done.stderr
        assert max(map(len, done.stdout.splitlines())) <= 40
        assert '"message":"workertimedout(running>1s)"' in "".join(done.stdout.split())
        assert "jobwarden apply" in done.stdout

    def test_libpq_settings_of_the_user_are_left_out_of_it(self, place: Path) -> None:
        done = _run(place, "--seconds", "1", PGOPTIONS="-c search_path=nowhere", PGSERVICE="none")

        assert "From kill to rescue" in done.stdout

    def test_a_terminal_shows_a_moving_picture_and_gets_its_cursor_back(self, place: Path) -> None:
        code, seen = _on_a_terminal(place, columns=40, ends_at=None)
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)

        assert code == 0
        assert plain.count("sweep in") > 3
        assert max(len(line) for line in re.split(r"[\r\n]+", plain)) <= 40
        assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")


class TestNothingStays:
    @needs_proc
    def test_a_rescue_that_does_not_come_ends_in_an_error_with_the_log(self, place: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-c", IMPATIENT + WITHOUT_PG_CRON, "--json", "--seconds", "60"],
            cwd=ROOT,
            env=_environment(place),
            capture_output=True,
            text=True,
            timeout=ENOUGH_SECONDS,
            check=False,
        )
        message = json.loads(done.stdout)["error"]["message"]

        assert done.returncode == 1
        assert "waited 2 s in vain until the rescue" in message
        assert "database system is ready to accept connections" in message
        assert "Try: " in done.stderr
        assert _processes(place) == []
        assert list(place.iterdir()) == []

    @needs_proc
    @pytest.mark.parametrize(
        ("how", "code"),
        [
            (signal.SIGINT, 130),
            (signal.SIGTERM, 143),
            (signal.SIGHUP, 129),
            (signal.SIGKILL, -signal.SIGKILL),
        ],
    )
    @pytest.mark.parametrize("at", ["Start a private", "is killed"])
    def test_a_signal_leaves_no_process_and_no_folder(
        self, place: Path, how: signal.Signals, code: int, at: str
    ) -> None:
        with _started(place, "--seconds", "600") as playing:
            _read_until(playing, at)
            assert _processes(place) != []
            playing.send_signal(how)
            rest, talk = playing.communicate(timeout=ENOUGH_SECONDS)

        assert playing.returncode == code
        assert "Traceback" not in rest + talk
        assert len(talk.splitlines()) == (0 if how == signal.SIGKILL else 1)
        _wait_until_gone(place)

    @needs_proc
    def test_ctrl_c_on_a_terminal_gives_the_cursor_back(self, place: Path) -> None:
        code, seen = _on_a_terminal(place, columns=80, ends_at="sweep in")

        assert code == 130
        assert "interrupted: the private Postgres and its workers are gone" in seen
        assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")
        _wait_until_gone(place)

    @needs_proc
    def test_a_reader_that_goes_away_ends_it(self, place: Path) -> None:
        with _started(place, "--seconds", "600") as playing:
            assert playing.stdout is not None
            playing.stdout.readline()
            playing.stdout.close()
            playing.wait(ENOUGH_SECONDS)

        _wait_until_gone(place)

    @needs_proc
    def test_a_demo_that_ends_well_leaves_nothing(self, place: Path) -> None:
        _run(place, "--seconds", "1")

        assert _processes(place) == []
        assert list(place.iterdir()) == []


def _place() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="demo-", dir="/tmp"))  # short: it holds a socket
    place.chmod(0o1777)
    yield place
    shutil.rmtree(place)


def _environment(place: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, "TMPDIR": str(place), "TERM": "xterm", "COLUMNS": "80", **more}


def _run(place: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*FALLBACK, *arguments],
        cwd=ROOT,
        env=_environment(place, **more),
        capture_output=True,
        text=True,
        timeout=ENOUGH_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@contextmanager
def _started(place: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [*FALLBACK, *arguments],
        cwd=ROOT,
        env=_environment(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as playing:
        try:
            yield playing
        finally:
            playing.kill()


def _read_until(playing: subprocess.Popen[str], text: str) -> None:
    assert playing.stdout is not None
    for line in playing.stdout:
        if text in line:
            return
    pytest.fail(f"the demo ended without saying {text!r}")


def _on_a_terminal(place: Path, *, columns: int, ends_at: str | None) -> tuple[int, str]:
    """Run on a terminal of that width; with ``ends_at`` press Ctrl-C once that was shown."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = _environment(place)
    del environment["COLUMNS"]
    arguments: Sequence[str] = ("--seconds", "600" if ends_at else "1")
    playing = subprocess.Popen(
        [sys.executable, "-c", TAKE_THE_TERMINAL + WITHOUT_PG_CRON, *arguments],
        cwd=ROOT,
        env=environment,
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)
    seen = b""
    # The end of a terminal whose programs are gone is an error on Linux, not an empty read.
    with suppress(OSError):
        while piece := os.read(ours, 65536):
            seen += piece
            if ends_at and ends_at.encode() in seen:
                os.write(ours, b"\x03")
                ends_at = None
    os.close(ours)
    return playing.wait(ENOUGH_SECONDS), seen.decode()


def _processes(place: Path) -> list[str]:
    """Every process that was started with this folder, or is at work in it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            traces = [
                (entry / "environ").read_bytes(),
                (entry / "cmdline").read_bytes(),
                os.fsencode((entry / "cwd").readlink()),
            ]
        except OSError:  # it has ended, or is somebody else's
            continue
        if any(os.fsencode(place) in trace for trace in traces):
            found.append(f"{entry.name}: {traces[1].decode(errors='replace')}")
    return found


def _wait_until_gone(place: Path) -> None:
    deadline = time.monotonic() + 15
    while left := [*_processes(place), *map(str, place.iterdir())]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
