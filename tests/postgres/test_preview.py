"""A preview against a real database, as the read-only role: values, row counts, and no write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres.jobs import READER, Jobs

Preview = Callable[..., subprocess.CompletedProcess[str]]
FILE = """\
config:
  jobwarden:watchdog: {{schedule: "{schedule}", timeout: {timeout}}}
  jobwarden:cleanup: {{retention: {retention}, actions: {{pdf_build: {{retention: {pdf}}}}}}}
  jobwarden:schedules: [{schedules}]
"""
USUAL = {
    "schedule": "*/5 * * * *",
    "timeout": "10m",
    "retention": "24h",
    "pdf": "7d",
    "schedules": '{name: report, schedule: "0 6 * * 1", command: "SELECT 1"}',
}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., None]:
    def write(**values: str) -> None:
        (tmp_path / "Pulumi.prod.yaml").write_text(FILE.format(**{**USUAL, **values}))

    return write


@pytest.fixture
def jobwarden(app: str, tmp_path: Path, write: Callable[..., None]) -> Preview:
    """Run a command in a folder with one stack, ``prod``, on an empty database with pg_cron."""
    write()

    def run(*words: str, url: str = app, **env: str) -> subprocess.CompletedProcess[str]:
        clean = {
            key: text
            for key, text in os.environ.items()
            if not key.startswith(("JOBWARDEN_", "DATABASE_URL"))
        }
        return subprocess.run(
            [sys.executable, "-m", "infra", *words, "-s", "prod"],
            cwd=tmp_path,
            env=clean | {"DATABASE_URL": url, "PYTHONPATH": str(Path.cwd())} | env,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


@pytest.fixture
def reader(app: str) -> Iterator[str]:
    """The URL of a role that may only look."""
    with psycopg.connect(app, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS preview_ci")
        connection.execute("CREATE ROLE preview_ci LOGIN")
        yield app.replace("postgres@", "preview_ci@", 1)
        connection.execute("DROP OWNED BY preview_ci")
        connection.execute("DROP ROLE preview_ci")


@pytest.fixture
def applied(app: str, jobwarden: Preview, reader: str) -> Iterator[Any]:  # noqa: ARG001  # its role
    """The database after an apply, with jobs in it; the reader may look."""
    done = jobwarden("apply")
    assert done.returncode == 0, done.stderr
    with psycopg.connect(app, autocommit=True) as connection:
        connection.execute(f"GRANT {READER} TO preview_ci".encode())
        connection.execute(
            "INSERT INTO jobs (action, status, started_at)"
            " SELECT 'ai_chat', 'running', now() - make_interval(mins => n, secs => -30)"
            " FROM generate_series(1, 9) AS n"
        )
        connection.execute(
            "INSERT INTO jobs (action, status, started_at, completed_at)"
            " SELECT a, 'done', now() - interval '50 h', now() - make_interval(hours => h)"
            " FROM (VALUES ('pdf_build', 20), ('pdf_build', 40), ('other', 20), ('other', 40))"
            " AS v (a, h)"
        )
        yield connection


def rows(done: subprocess.CompletedProcess[str]) -> dict[tuple[str, str], dict[str, Any]]:
    found = json.loads(done.stdout)["changes"]
    return {(row["kind"], row["name"]): row for row in found}


@pytest.mark.usefixtures("applied")
def test_an_unchanged_environment_is_one_line_for_the_reader(
    jobwarden: Preview, reader: str
) -> None:
    done = jobwarden("preview", url=reader)

    assert (done.returncode, done.stdout) == (0, "**No changes** in `prod`.\n"), done.stderr


@pytest.mark.usefixtures("applied")
def test_the_reader_sees_old_and_new_and_what_the_next_runs_take(
    jobwarden: Preview, reader: str, write: Callable[..., None]
) -> None:
    write(schedule="*/2 * * * *", timeout="5m", retention="10h", pdf="30h", schedules="")
    done = jobwarden("preview", "--json", url=reader)
    found = rows(done)

    assert done.returncode == 2
    assert found["schedule", "jobsStuckWatchdog"]["old"] == {"schedule": "*/5 * * * *"}
    assert found["schedule", "jobsStuckWatchdog"]["new"] == {"schedule": "*/2 * * * *"}
    assert found["schedule", "report"]["level"] == "destructive"
    assert found["policy", "*"]["note"] == (
        "the next sweep fails: 4 (as it is: 0) jobs; the next cleanup deletes: 2 (as it is: 1) jobs"
    )
    assert found["policy", "pdf_build"]["note"] == (
        "the next sweep fails: 0 (as it is: 0) jobs; the next cleanup deletes: 1 (as it is: 0) jobs"
    )


def test_the_counts_are_what_the_next_runs_really_take(
    applied: psycopg.Connection, jobwarden: Preview, write: Callable[..., None]
) -> None:
    write(schedule="0 0 1 1 *", timeout="5m", retention="10h", pdf="30h")
    jobwarden("apply")
    swept = json.loads(jobwarden("sweep", "--json").stdout)["run"]["changed"]
    applied.execute("DELETE FROM jobs WHERE status = 'failed'")
    cleaned = json.loads(jobwarden("cleanup", "--json").stdout)["run"]["changed"]

    assert (swept, cleaned) == (4, 2 + 1)


def test_a_preview_writes_nothing_and_two_are_the_same(
    applied: psycopg.Connection, jobwarden: Preview, write: Callable[..., None], tmp_path: Path
) -> None:
    write(schedule="* * * * *", timeout="5m")
    before = applied.execute("SELECT pg_current_xact_id_if_assigned(), count(*) FROM cron.job")
    told = [jobwarden("preview", "--markdown", f"{name}.md").stdout for name in ("a", "b")]
    after = applied.execute("SELECT pg_current_xact_id_if_assigned(), count(*) FROM cron.job")

    assert before.fetchall() == after.fetchall()
    assert told[0] == told[1]
    assert told[0].startswith("**0 create, 3 update, 0 delete; 0 drift, 0 restart, 0 unreachable**")
    assert (tmp_path / "a.md").read_bytes() == (tmp_path / "b.md").read_bytes()


def test_what_somebody_changed_by_hand_is_drift(
    applied: psycopg.Connection, jobwarden: Preview, reader: str
) -> None:
    applied.execute("UPDATE cron.job SET schedule = '0 0 1 1 *' WHERE jobname = 'report'")
    applied.execute("UPDATE cron.job SET active = false WHERE jobname = 'jobsStuckWatchdog'")
    applied.execute("GRANT EXECUTE ON FUNCTION jobwarden.health() TO PUBLIC")
    done = jobwarden("preview", "--json", url=reader)
    found = {key for key, row in rows(done).items() if row["drift"]}

    assert done.returncode == 2
    assert found >= {("schedule", "report"), ("schedule", "jobsStuckWatchdog")}
    assert ("object", "function health()") in found


def test_a_role_that_may_not_look_is_said_with_the_grant(jobwarden: Preview, reader: str) -> None:
    jobwarden("apply")
    done = jobwarden("preview", url=reader)

    assert done.returncode == 1
    assert done.stdout.startswith("**0 create, 0 update, 0 delete; 0 drift, 0 restart, 1 unreach")
    assert "GRANT jobwarden_readonly TO" in done.stdout


@pytest.mark.usefixtures("applied")
def test_a_policy_of_the_file_fails_the_check_and_a_label_lets_it_pass(
    jobwarden: Preview, write: Callable[..., None], tmp_path: Path
) -> None:
    write(schedules="")
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(file.read_text() + "  jobwarden:preview: {needLabel: destructive, label: ok}\n")

    asked = jobwarden("preview")
    assert (asked.returncode, "needs the label ok" in asked.stdout) == (1, True)
    assert jobwarden("preview", "--label", "ok").returncode == 2
    assert jobwarden("preview", "--label", "ok", "--fail-on", "destructive").returncode == 1
    assert jobwarden("preview", "--label", "ok", "--fail-on", "never").returncode == 2


def test_a_server_that_is_away_is_a_page_and_exit_1(jobwarden: Preview) -> None:
    done = jobwarden("preview", "--json", url="postgresql://u:hunter2@127.0.0.1:1/db")
    document = json.loads(done.stdout)

    assert done.returncode == 1
    assert document["counts"]["unreachable"] == 1
    assert "check that the server is up" in document["unreachable"][0]["reason"]
    assert "hunter2" not in done.stdout + done.stderr


def test_before_the_first_apply_everything_is_made_and_sql_is_folded(jobwarden: Preview) -> None:
    done = jobwarden("preview")

    assert done.returncode == 2
    assert "### SQL\n" in done.stdout
    assert "<details><summary>sql 40_sweep</summary>" in done.stdout
    assert "| create | `jobsStuckWatchdog` |" in done.stdout


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--fail-on", "sometimes"], "--fail-on: no such severity"),
        (["--timeout", "soon"], "--timeout: this is not a duration"),
        (["--timeout", "0s"], "--timeout: no tool answers in no time"),
    ],
)
def test_wrong_usage_exits_64(jobwarden: Preview, words: list[str], text: str) -> None:
    done = jobwarden("preview", *words)

    assert done.returncode == 64
    assert text in done.stderr


def test_counting_asks_for_no_more_than_its_cap_and_heeds_no_limit(jobs: Jobs) -> None:
    for _ in range(5):
        jobs.add(ago="1 hour")
    policy = json.dumps({"*": {"timeout": "1 minute", "retention": None}})
    call = "SELECT kind, jobs FROM jobwarden.would_take('{}', {})"

    assert jobs.rows(call.format(policy, 3)) == [("sweep", 3)]
    assert jobs.rows(call.format(policy, 10)) == [("sweep", 5)]
    never = json.dumps({"*": {"timeout": None, "retention": None}})
    assert jobs.rows(call.format(never, 10)) == [("sweep", 0)]
    assert jobs.rows(call.format("{}", 10)) == [("sweep", 0)]


def test_counting_says_what_the_sweep_itself_says_after_an_outage(jobs: Jobs) -> None:
    jobs.add(ago="11 minutes")
    jobs.rows(
        "INSERT INTO jobwarden.outage (ended_at, started_at)"
        " VALUES (now() - interval '1 minute', now() - interval '9 minutes')"
    )
    policy = json.dumps({"*": {"timeout": "10 minutes", "retention": "1 day"}})
    counted = jobs.value(f"SELECT jobs FROM jobwarden.would_take('{policy}')")

    assert counted == len(jobs.rows("SELECT FROM jobwarden.stuck(now(), 10)")) == 0
    jobs.rows("TRUNCATE jobwarden.outage")
    assert jobs.value(f"SELECT jobs FROM jobwarden.would_take('{policy}')") == 1
