"""Three environments, three real tools, one page: what a reviewer sees of one pull request."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.engine.aws_stack import Stack
from tools.boxes import Box
from tools.boxes import missing as lacking

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/data/preview"
STACKS = ("local", "box", "test")
INVENTORY = """
from infra.box.hosts import inventory

boxes = [
    (host, {**ssh, "ssh_known_hosts_file": "KNOWN", "ssh_strict_host_key_checking": "yes"})
    for host, ssh in inventory()
]
"""


class Repository:
    """A copy of a repository with three environments, all of them applied."""

    def __init__(self, stack: Stack, box: Box, state: Path) -> None:
        self.stack, self.box = stack, box
        self.folder = stack.project.folder
        given = stack.project._environment  # noqa: SLF001  # what its own commands run with
        self.environment = {**given, "JOBWARDEN_STATE": str(state)}
        self.local: dict[str, Any] = {"target": "local", "watchdog": {"timeout": "10m"}}
        inventory = INVENTORY.replace("KNOWN", str(box.known_hosts))
        (self.folder / "inventory.py").write_text(inventory)
        (self.folder / "deploy.py").write_text((ROOT / "deploy.py").read_text())
        self.write("local", self.local)
        self.write("box", self.box_keys())
        for words in (("init", "-q", "."), ("add", "Pulumi.*.yaml"), ("commit", "-qm", "one")):
            done = self.run("git", "-c", "user.name=n", "-c", "user.email=e@example.net", *words)
            assert done.returncode == 0, done.stderr

    def box_keys(self) -> dict[str, Any]:
        entry = {
            "host": self.box.host,
            "sshPort": self.box.port,
            "sshUser": "admin",
            "sshKey": str(self.box.key),
            "allowRestart": True,
        }
        service = {"command": "/usr/bin/sleep infinity", "memoryMax": "64M"}
        return {"target": "box", "boxes": [entry], "services": {"api": service}}

    def write(self, name: str, keys: dict[str, Any]) -> None:
        with (self.folder / f"Pulumi.{name}.yaml").open("w") as out:
            YAML().dump({"config": {f"jobwarden:{key}": keys[key] for key in keys}}, out)

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def jobwarden(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "infra", *words, **environment)

    def preview(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        named = [word for name in STACKS for word in ("-s", name)]
        return self.jobwarden("preview", *named, *words, **environment)

    def apply(self) -> None:
        for words in (("local", "up"), ("apply", "-s", "local")):
            done = self.jobwarden(*words)
            assert done.returncode == 0, done.stderr
        self.stack.project.up()
        stack = str(self.folder / "Pulumi.box.yaml")
        done = self.run("pyinfra", "inventory.py", "deploy.py", "-y", JOBWARDEN_STACK=stack)
        assert done.returncode == 0, done.stderr


def short_folder() -> Path:
    """A path for a server of another user, short enough for its socket."""
    return Path(tempfile.gettempdir()) / f"jobwarden-{secrets.token_hex(4)}"


@pytest.fixture
def repository(stack: Stack, missing: Any) -> Iterator[Repository]:
    if reasons := lacking():
        missing(f"boxes cannot be booted here: {'; '.join(reasons)}")
    with Box.boot("bookworm") as box:
        repository = Repository(stack, box, short_folder())
        try:
            repository.apply()
            yield repository
        finally:
            repository.jobwarden("local", "down", "--purge")


def change(repository: Repository) -> None:
    """What the branch changes: a timeout, a unit and a library on the box, a schedule on AWS."""
    keys = repository.box_keys()
    keys["services"]["api"]["memoryMax"] = "128M"
    keys["postgres"] = {"preload": ["auto_explain"]}
    repository.write("box", keys)
    repository.write("local", {**repository.local, "watchdog": {"timeout": "3m"}})
    repository.stack.say("watchdog", {"schedule": "*/2 * * * *"})


def test_a_branch_is_one_page_with_all_that_it_changes(
    repository: Repository, pytestconfig: pytest.Config
) -> None:
    unchanged = repository.preview()
    change(repository)
    begun = time.monotonic()
    changed = repository.preview("--markdown", "page.md", "--json", PYINFRA_YES="1")
    seconds = time.monotonic() - begun
    page = (repository.folder / "page.md").read_text()
    again = repository.preview("--markdown", "again.md")
    against = repository.preview("--base", "HEAD", DATABASE_URL="postgresql://u@nowhere/db")
    away = repository.preview("--timeout", "20s", JOBWARDEN_STATE="/nowhere")

    assert (unchanged.returncode, unchanged.stdout) == (
        0,
        "**No changes** in `local`, `box`, `test`.\n",
    ), unchanged.stdout + unchanged.stderr
    assert changed.returncode == 2, changed.stderr
    assert seconds < 60
    golden(page.replace(repository.box.host, "HOST"), pytestconfig)
    assert (repository.folder / "again.md").read_text() == page
    assert again.returncode == 2
    found = {(row["stack"], row["kind"], row["name"]): row for row in rows(changed)}
    assert found["box", "parameter", "shared_preload_libraries"]["level"] == "restarting"
    assert found["test", "schedule", "jobsStuckWatchdog"]["old"] == {"schedule": "*/5 * * * *"}
    for text in ("`timeout: 10m` | `timeout: 3m`", "*/2 * * * *", "auto_explain", "memoryMax"):
        assert text in against.stdout, against.stdout
    assert (away.returncode, away.stdout.count("**Unreachable:**")) == (1, 1)
    assert "the private cluster of target local is not running" in away.stdout
    assert "*/2 * * * *" in away.stdout

    by_hand(repository)


def by_hand(repository: Repository) -> None:
    """Somebody edits a schedule on AWS: a refresh sees it, and whoever asks the database."""
    stack = repository.stack
    stack.ask("UPDATE cron.job SET schedule = '0 0 1 1 *' WHERE jobname = 'jobsDailyCleanup'")
    words = ("preview", "-s", "test", "--json")
    seen = {
        "state": repository.jobwarden(*words),
        "refresh": repository.jobwarden(*words, "--refresh"),
        "database": repository.jobwarden(*words, DATABASE_URL_TEST=stack.plane.url(stack.name)),
    }
    found = {how: {row["name"]: row for row in rows(done)} for how, done in seen.items()}

    assert set(found["state"]) == {"jobsStuckWatchdog"}
    for how, tool in (("refresh", "pulumi"), ("database", "plan")):
        row = found[how]["jobsDailyCleanup"]
        assert (row["tool"], row["drift"]) == (tool, True), how
        assert row["old"]["schedule"] == "0 0 1 1 *", how
        assert found[how]["jobsStuckWatchdog"]["new"]["schedule"] == "*/2 * * * *", how
    again = repository.jobwarden(*words)  # a refresh of a preview does not write the state
    assert again.stdout == seen["state"].stdout


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.stdout)["changes"]
    return found


def golden(text: str, pytestconfig: pytest.Config) -> None:
    file = DATA / "story.md"
    if pytestconfig.getoption("--write-changes"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
