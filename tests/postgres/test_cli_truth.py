"""The command line never says more than is true, and ends in order on odd terminals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.postgres import place

STACK = "config:\n  jobwarden:watchdog: {timeout: 10m}\n"
Jobwarden = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)
    (tmp_path / "Pulumi.lo.yaml").write_text("config:\n  jobwarden:target: local\n")
    return tmp_path


@pytest.fixture
def jobwarden(app: str, folder: Path) -> Jobwarden:
    def run(
        *words: str, url: str = app, redirect: str = "", **env: str
    ) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "infra", *words]
        if redirect:
            command = ["sh", "-c", f'exec "$@" {redirect}', "sh", *command]
        clean = {key: text for key, text in os.environ.items() if not key.startswith("JOBWARDEN_")}
        return subprocess.run(
            command,
            cwd=folder,
            env=clean | {"DATABASE_URL": url, "PYTHONPATH": str(Path.cwd())} | env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_a_stranger_that_stands_in_our_place_is_no_clean_plan(
    jobwarden: Jobwarden, app: str
) -> None:
    jobwarden("apply", "-s", "prod")
    place.run(
        app,
        "SELECT cron.unschedule(jobid) FROM cron.job WHERE jobname = 'jobsStuckWatchdog'",
        "SELECT cron.schedule('jobsStuckWatchdog', '*/5 * * * *', 'SELECT 1')",
    )

    planned = jobwarden("plan", "-s", "prod")
    asked = jobwarden("status", "-s", "prod")

    assert planned.returncode == 1
    assert "no changes" not in planned.stdout
    assert "Try: jobwarden apply -s prod --take-over" in planned.stderr
    assert asked.returncode == 3


def test_a_role_that_sees_nothing_gets_no_clean_plan(jobwarden: Jobwarden, app: str) -> None:
    jobwarden("apply", "-s", "prod")
    place.run(app, "CREATE ROLE blind LOGIN")

    planned = jobwarden("plan", "-s", "prod", url=app.replace("postgres@", "blind@"))

    assert planned.returncode == 1
    assert "no changes" not in planned.stdout
    assert "GRANT jobwarden_readonly TO" in planned.stderr


def test_a_plan_sees_what_keeps_schedules_from_firing(jobwarden: Jobwarden, app: str) -> None:
    jobwarden("apply", "-s", "prod")
    place.run(app, "ALTER ROLE jobwarden_runner NOLOGIN")

    planned = jobwarden("plan", "-s", "prod", "--json")

    assert planned.returncode == 1
    assert "may not log in" in json.loads(planned.stdout)["problems"][0]["message"]


def test_a_plan_says_that_its_role_may_not_apply(jobwarden: Jobwarden, app: str) -> None:
    place.run(app, "CREATE ROLE deployer LOGIN")

    planned = jobwarden("plan", "-s", "prod", url=app.replace("postgres@", "deployer@"))

    assert planned.returncode == 2
    assert 'ALTER ROLE "deployer" CREATEROLE;' in planned.stderr


def test_a_paused_schedule_is_named_and_no_strict_success(jobwarden: Jobwarden, app: str) -> None:
    jobwarden("apply", "-s", "prod")
    jobid = place.jobs(app)["jobsStuckWatchdog"]["jobid"]
    place.run(app, f"SELECT cron.alter_job({jobid}, active := false)")

    applied = jobwarden("apply", "-s", "prod", "--json")
    booted = jobwarden("boot", "-s", "prod", "--strict")

    assert json.loads(applied.stdout)["paused"] == ["jobsStuckWatchdog"]
    assert booted.returncode == 1
    assert "paused by hand" in booted.stderr


def test_strict_in_the_environment_holds_for_a_boot_too(jobwarden: Jobwarden, folder: Path) -> None:
    (folder / "Pulumi.odd.yaml").write_text(
        'config:\n  jobwarden:strict: true\n  jobwarden:watchdog: {schedule: "*/7 * * * *"}\n'
    )

    assert jobwarden("apply", "-s", "odd").returncode == 1
    assert jobwarden("boot", "-s", "odd", "--strict").returncode == 1
    assert jobwarden("boot", "-s", "odd").returncode == 0


@pytest.mark.parametrize("command", ["plan", "apply", "boot"])
def test_target_local_never_touches_another_server(
    jobwarden: Jobwarden, app: str, tmp_path: Path, command: str
) -> None:
    done = jobwarden(command, "-s", "lo", JOBWARDEN_STATE=str(tmp_path / "nothing"))

    assert "jobwarden local up" in done.stderr
    assert done.returncode == (0 if command == "boot" else 1)
    with psycopg.connect(app) as connection:
        assert connection.execute("SELECT to_regnamespace('jobwarden')").fetchone() == (None,)


def test_purge_removes_nothing_of_somebody_elses(jobwarden: Jobwarden, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")

    down = jobwarden("local", "down", "--purge", JOBWARDEN_STATE=str(mine))
    up = jobwarden("local", "up", JOBWARDEN_STATE=str(mine))

    assert down.returncode == 0
    assert up.returncode == 1
    assert "holds something already (thesis.txt)" in up.stderr
    assert (mine / "thesis.txt").read_text() == "years of work"


def test_a_row_cannot_drive_the_terminal(jobwarden: Jobwarden, app: str) -> None:
    jobwarden("apply", "-s", "prod")
    place.run(
        app,
        "INSERT INTO jobs (action, status, started_at) VALUES"
        " (E'evil\\x1b[2J', 'running', '-infinity'), ('old', 'running', '0044-03-15 BC')",
    )

    shown = jobwarden("sweep", "-s", "prod", "--dry-run")
    figures = jobwarden("metrics", "-s", "prod")

    assert shown.returncode == 0, shown.stderr
    assert "2 jobs would be failed" in shown.stdout
    assert "\x1b" not in shown.stdout + figures.stdout


def test_the_answer_to_nowhere_is_an_error_without_a_trace(jobwarden: Jobwarden) -> None:
    full = jobwarden("schema", redirect=">/dev/full")
    closed = jobwarden("schema", redirect=">&-")
    ascii_only = jobwarden("plan", "-s", "prod", PYTHONIOENCODING="ascii")

    assert full.returncode == 1
    assert "the answer could not be written" in full.stderr
    assert closed.returncode == 0
    assert ascii_only.returncode == 2
    assert "Traceback" not in full.stderr + closed.stderr + ascii_only.stderr


def test_ctrl_c_is_told_and_exits_130(app: str, folder: Path, jobwarden: Jobwarden) -> None:
    jobwarden("apply", "-s", "prod")
    place.run(app, "UPDATE jobwarden.source SET body = body || ' '")
    with psycopg.connect(app) as holder:
        holder.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        waiting = subprocess.Popen(
            [sys.executable, "-m", "infra", "apply", "-s", "prod"],
            cwd=folder,
            env=os.environ | {"DATABASE_URL": app, "PYTHONPATH": str(Path.cwd())},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        place.hold_until(lambda: place.waits_for_lock(app), "the apply waits for the table")
        waiting.send_signal(signal.SIGINT)
        _, said = waiting.communicate(timeout=30)

    assert waiting.returncode == 130
    assert said == "interrupted; run it again to finish what was begun\n"
    assert jobwarden("apply", "-s", "prod").returncode == 0


def test_quoting_everything_is_no_drift(jobwarden: Jobwarden) -> None:
    jobwarden("apply", "-s", "prod")

    planned = jobwarden("plan", "-s", "prod", PGOPTIONS="-c quote_all_identifiers=on")

    assert (planned.returncode, planned.stdout) == (0, "no changes\n")


def test_json_of_a_usage_error_is_a_document(jobwarden: Jobwarden) -> None:
    done = jobwarden("plan", "--json", "--bogus")

    assert done.returncode == 64
    assert "--bogus" in json.loads(done.stdout)["error"]["message"]
    assert json.loads(done.stdout)["error"]["try"] == "jobwarden plan --help"


def test_a_dry_run_shows_whole_ids(jobwarden: Jobwarden, app: str) -> None:
    jobwarden("apply", "-s", "prod")
    place.run(
        app,
        "INSERT INTO jobs (action, status, started_at)"
        " VALUES ('pdf_build', 'running', now() - interval '1 hour')",
    )

    shown = jobwarden("sweep", "-s", "prod", "--dry-run", COLUMNS="80")

    assert re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", shown.stdout)
