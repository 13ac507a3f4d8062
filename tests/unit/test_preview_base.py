"""Against the base branch: two files, two plans, and nobody asked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra import page, since_base, sqltext
from infra.changes import Change
from infra.preview import revision
from infra.preview.needs import need
from infra.preview.preview import Wish, preview
from tests.unit import seen

Git = Callable[..., str]
FILE = """\
config:
  jobwarden:watchdog: {{schedule: "{schedule}", timeout: {timeout}}}
  jobwarden:postgres: {{preload: [{preload}], settings: {{work_mem: 8MB}}}}
  jobwarden:target: box
  jobwarden:boxes: [{{host: db1.example.net}}]
  jobwarden:services: {{api: {{command: /usr/bin/api, memoryMax: {memory}}}}}
"""
OLD = {"schedule": "*/5 * * * *", "timeout": "10m", "preload": "", "memory": "64M"}
NEW = {"schedule": "*/2 * * * *", "timeout": "3m", "preload": "auto_explain", "memory": "128M"}


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """A repository with one stack, committed."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("DATABASE_URL", "PG", "AWS_"))]:
        monkeypatch.delenv(name)

    def run(*words: str) -> str:
        who = ("-c", "user.name=n", "-c", "user.email=e@example.net")
        done = subprocess.run(["git", *who, *words], check=True, capture_output=True, text=True)
        return done.stdout

    run("init", "-q", "-b", "main", ".")
    write("prod", **OLD)
    run("add", ".")
    run("commit", "-qm", "one")
    return run


def write(name: str, **values: str) -> None:
    Path(f"Pulumi.{name}.yaml").write_text(FILE.format(**values), encoding="utf-8")


def changes(**sections: Any) -> dict[tuple[str, str], Change]:
    found = since_base.between(seen.wanted(), seen.wanted(**sections))
    return {(change.kind, change.name): change for change in found}


def test_one_page_shows_a_schedule_a_timeout_a_library_and_a_unit(git: Git) -> None:
    write("prod", **NEW)
    found = preview(Wish(("prod",), base="main"))

    rows = {(row.kind, row.change.name, row.level): row.change for row in found.rows}

    assert {key: (change.old, change.new) for key, change in rows.items()} == {
        ("schedule", "jobsStuckWatchdog", "harmless"): (
            {"schedule": "*/5 * * * *", "command": "CALL jobwarden.sweep()"},
            {"schedule": "*/2 * * * *", "command": "CALL jobwarden.sweep()"},
        ),
        ("policy", "*", "destructive"): (
            {"timeout": "10m", "retention": "1d"},
            {"timeout": "3m", "retention": "1d"},
        ),
        ("library", "shared_preload_libraries", "restarting"): ("pg_cron", "auto_explain,pg_cron"),
        ("unit", "api", "restarting"): (
            found.rows[-1].change.old,
            {**found.rows[-1].change.old, "memoryMax": "128M"},
        ),
    }  # fmt: skip
    assert found.counts.unreachable == 0
    assert git("status", "--short") == " M Pulumi.prod.yaml\n"


def test_an_unchanged_file_is_one_line(git: Git) -> None:
    git("branch", "base")

    assert page.render(preview(Wish(("prod",), base="base"))) == (
        "**No changes** in `prod` against `base`.\n"
    )


@pytest.mark.usefixtures("git")
def test_a_stack_that_is_new_is_made_whole() -> None:
    write("new", **NEW)
    found = preview(Wish(("new",), base="main"))

    assert {row.change.action for row in found.rows} == {"create"}
    assert {row.kind for row in found.rows} >= {"schedule", "policy", "sql", "library", "unit"}


@pytest.mark.usefixtures("git")
def test_a_ref_that_is_not_there_is_said() -> None:
    found = preview(Wish(("prod",), base="origin/nowhere"))

    assert found.counts.unreachable == 1
    assert "git knows no commit 'origin/nowhere'" in str(found.parts[0].reason)
    assert "fetch-depth: 0" in str(found.parts[0].reason)


def test_a_file_that_is_broken_on_the_base_is_said_by_its_ref(git: Git) -> None:
    Path("Pulumi.prod.yaml").write_text("config:\n  jobwarden:watchdog: {timeout: soon}\n")
    git("commit", "-qam", "two")
    write("prod", **NEW)
    [part] = preview(Wish(("prod",), base="main")).parts

    assert "main:Pulumi.prod.yaml: 1 fault" in str(part.reason)
    assert "watchdog.timeout" in str(part.reason)


def test_a_folder_without_git_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    write("prod", **NEW)
    [part] = preview(Wish(("prod",), base="main")).parts

    assert "not a git repository" in str(part.reason)


def test_an_option_is_no_ref(git: Git) -> None:
    [part] = preview(Wish(("prod",), base="--output=/tmp/x")).parts

    assert "git knows no commit" in str(part.reason)
    assert git("status", "--short") == ""


def test_sql_of_the_base_is_read_where_the_repository_holds_it(
    git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path("sql").absolute()
    home.mkdir()
    for file in sqltext.folder().glob("[0-9]*.sql"):
        text = file.read_text(encoding="utf-8")
        changed = text + "-- more\n" if file.stem == "40_sweep" else text
        (home / file.name).write_text(changed, encoding="utf-8")
    git("add", ".")
    git("commit", "-qm", "sql")
    monkeypatch.setattr(sqltext, "folder", lambda: home)
    found = preview(Wish(("prod",), base="main"))

    [row] = found.rows
    assert (row.kind, row.change.name) == ("sql", "40_sweep")
    assert "-+-- more" not in page.render(found)
    assert "\n--- more\n" in page.render(found)


def test_what_else_changed_in_the_file_is_said_by_its_path() -> None:
    found = changes(jobs={"guard": False}, cleanup={"retention": "1h"}, strict=True)

    assert found["setting", "jobs.guard"].new is False
    assert found["setting", "strict"].new is True
    assert found["sql", "11_guard"].action == "delete"
    assert found["policy", "*"].new == {"timeout": "10m", "retention": "1h"}


def test_a_parameter_says_whether_it_needs_a_restart() -> None:
    settings = {"cron.max_running_jobs": "9", "work_mem": "8MB"}
    found = changes(postgres={"settings": settings})

    assert found["parameter", "cron.max_running_jobs"].why == "needs a restart"
    assert found["parameter", "work_mem"].why == ""


def test_how_previews_are_judged_is_no_infrastructure() -> None:
    assert changes(preview={"failOn": "destructive"}) == {}


def test_the_plan_of_the_base_needs_nothing_but_git(git: Git) -> None:
    write("prod", **NEW)
    before = revision.plan_at(need("prod").path, git("rev-parse", "main").strip())

    assert before is not None
    assert before.environment.watchdog.schedule == "*/5 * * * *"
