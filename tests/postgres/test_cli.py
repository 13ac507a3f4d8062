"""The command line as a user runs it: exit codes, JSON on stdout, talk on stderr."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

Jobwarden = Callable[..., subprocess.CompletedProcess[str]]

STACK = """\
config:
  aws:region: eu-central-1
  jobwarden:watchdog: {schedule: "*/5 * * * *", timeout: 10m, actions: {pdf_build: {timeout: 3m}}}
"""
CONTROL = re.compile(r"\x1b\[")


@pytest.fixture
def jobwarden(app: str, tmp_path: Path) -> Jobwarden:
    """Run a command in a folder with one stack, ``prod``, on an empty database with pg_cron."""
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)

    def run(*words: str, url: str = app, **env: str) -> subprocess.CompletedProcess[str]:
        clean = {key: text for key, text in os.environ.items() if not key.startswith("JOBWARDEN_")}
        return subprocess.run(
            [sys.executable, "-m", "infra", *words],
            cwd=tmp_path,
            env=clean | {"DATABASE_URL": url, "PYTHONPATH": str(Path.cwd())} | env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def _document(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


def test_plan_apply_plan_is_two_zero_zero(jobwarden: Jobwarden) -> None:
    before = jobwarden("plan", "-s", "prod")
    assert before.returncode == 2
    assert "schedule jobsStuckWatchdog" in before.stdout

    made = jobwarden("apply", "-s", "prod")
    assert made.returncode == 0, made.stderr
    assert "next jobsStuckWatchdog: 20" in made.stderr

    after = jobwarden("plan", "-s", "prod")
    assert (after.returncode, after.stdout) == (0, "no changes\n")


def test_a_second_apply_says_no_changes(jobwarden: Jobwarden) -> None:
    jobwarden("apply", "-s", "prod")

    second = jobwarden("apply", "-s", "prod", "--json")

    assert second.returncode == 0
    assert _document(second)["changes"] == []
    assert _document(second)["registered"] is True
    assert set(_document(second)["next"]) == {"jobsStuckWatchdog", "jobsDailyCleanup"}


def test_a_change_has_the_same_shape_everywhere(jobwarden: Jobwarden) -> None:
    planned = _document(jobwarden("plan", "-s", "prod", "--json"))["changes"]
    applied = _document(jobwarden("apply", "-s", "prod", "--json"))["changes"]

    for change in [*planned, *applied]:
        assert {"kind", "name", "action", "old", "new", "why"} <= set(change)
    assert [(c["kind"], c["name"]) for c in planned] == [(c["kind"], c["name"]) for c in applied]


def test_status_is_unhealthy_before_and_ok_after_an_apply(jobwarden: Jobwarden) -> None:
    assert jobwarden("status", "-s", "prod").returncode == 3

    jobwarden("apply", "-s", "prod")
    found = jobwarden("status", "-s", "prod", "--json")

    assert found.returncode == 0, found.stdout
    assert _document(found)["healthy"] is True


def test_a_dry_run_shows_the_stuck_job_and_changes_nothing(jobwarden: Jobwarden, app: str) -> None:
    jobwarden("apply", "-s", "prod")
    with psycopg.connect(app, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO jobs (action, status, started_at) VALUES"
            " ('pdf_build', 'running', now() - interval '4 minutes'),"
            " ('ai_chat', 'running', now() - interval '4 minutes')"
        )
        dry = _document(jobwarden("sweep", "-s", "prod", "--dry-run", "--json"))
        states = connection.execute("SELECT DISTINCT status FROM jobs").fetchall()

        swept = jobwarden("sweep", "-s", "prod", "--json")
        failed = connection.execute(
            "SELECT action, error FROM jobs WHERE status = 'failed'"
        ).fetchall()

    assert [(job["action"], job["limit"]) for job in dry["jobs"]] == [("pdf_build", "3 min")]
    assert states == [("running",)]
    assert _document(swept)["run"]["changed"] == 1
    assert [action for action, _ in failed] == ["pdf_build"]
    assert failed[0][1]["message"] == "worker timed out (running >3 min)"


def test_metrics_are_openmetrics_text(jobwarden: Jobwarden) -> None:
    jobwarden("apply", "-s", "prod")

    done = jobwarden("metrics", "-s", "prod")

    assert done.returncode == 0
    assert done.stdout.endswith("# EOF\n")
    assert "\njobwarden_healthy 1\n" in done.stdout


def test_sql_can_be_piped_into_psql_twice(jobwarden: Jobwarden, app: str) -> None:
    script = jobwarden("sql", "-s", "prod").stdout
    for _ in range(2):
        done = subprocess.run(
            ["psql", "-XqAt", app], input=script, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    assert jobwarden("plan", "-s", "prod").returncode == 0


def test_remove_asks_first(jobwarden: Jobwarden, app: str) -> None:
    jobwarden("apply", "-s", "prod")

    asked = jobwarden("remove", "-s", "prod")
    assert "run it again with --yes" in asked.stderr
    assert jobwarden("plan", "-s", "prod").returncode == 0

    assert jobwarden("remove", "-s", "prod", "--yes").returncode == 0
    assert "nothing of ours is there" in jobwarden("remove", "-s", "prod", "--yes").stderr
    with psycopg.connect(app) as connection:
        assert connection.execute("SELECT count(*) FROM jobs").fetchone() == (0,)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["bogus"], "No such command 'bogus'"),
        (["plan", "--bogus"], "--bogus"),
        (["plan"], "no stack was named"),
        (["run", "nothing", "-s", "prod"], "no schedule is called 'nothing'"),
        (["sweep", "-s", "prod", "--dry-run", "--limit", "0"], "--limit"),
    ],
)
def test_wrong_usage_exits_64(jobwarden: Jobwarden, words: list[str], text: str) -> None:
    done = jobwarden(*words)

    assert done.returncode == 64
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_a_password_on_the_command_line_is_refused_and_not_shown(jobwarden: Jobwarden) -> None:
    done = jobwarden("plan", "-s", "prod", "--database-url", "postgresql://u:hunter2@h/db")

    assert done.returncode == 1
    assert "has a password" in done.stderr
    assert "hunter2" not in done.stdout + done.stderr


def test_an_error_is_a_document_where_json_was_asked_for(jobwarden: Jobwarden) -> None:
    done = jobwarden("plan", "-s", "prod", "--json", url="postgresql://u@127.0.0.1:1/db")

    assert done.returncode == 1
    assert "no connection to postgresql://u@127.0.0.1:1/db" in _document(done)["error"]["message"]
    assert _document(done)["error"]["try"]


def test_all_faults_of_a_stack_come_at_once(jobwarden: Jobwarden, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.bad.yaml").write_text(
        "config:\n  jobwarden:watchdg: {}\n  jobwarden:cleanup: {retention: soon}\n"
    )

    done = jobwarden("plan", "-s", "bad")

    assert done.returncode == 1
    assert "watchdg" in done.stderr
    assert "cleanup.retention" in done.stderr
    assert "Try: " in done.stderr


def test_a_boot_never_stops_the_application(jobwarden: Jobwarden) -> None:
    down = "postgresql://u@127.0.0.1:1/db"

    lenient = jobwarden("boot", "-s", "prod", url=down)
    assert lenient.returncode == 0
    assert len(lenient.stderr.splitlines()) == 1

    assert jobwarden("boot", "-s", "prod", "--strict", url=down).returncode == 1
    assert jobwarden("boot", "-s", "nowhere").returncode == 0


def test_without_a_terminal_there_are_no_control_codes(jobwarden: Jobwarden) -> None:
    for words in (["plan", "-s", "prod"], ["apply", "-s", "prod"], ["status", "-s", "prod"]):
        done = jobwarden(*words)
        assert not CONTROL.search(done.stdout + done.stderr), words


def test_a_narrow_terminal_loses_no_word(jobwarden: Jobwarden) -> None:
    wide = jobwarden("plan", "-s", "prod", COLUMNS="200").stdout
    narrow = jobwarden("plan", "-s", "prod", COLUMNS="30").stdout

    assert max(len(line) for line in narrow.splitlines()) <= 30
    letters = re.compile(r"[a-zA-Z]")
    assert sorted(letters.findall(narrow)) == sorted(letters.findall(wide))
