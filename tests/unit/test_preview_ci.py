"""The CI files for users to copy: linted, and their steps run as they stand, against a forge."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
from ruamel.yaml import YAML

from tests.unit.gitforge import BOT, STRANGER, Forge

ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / "examples" / "ci"
GITHUB = sorted((CI / "github").glob("*.yml"))
TOOLS = ROOT / ".tooling" / "go"
LINTER = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"
HOLE = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
# A preview of ours, as the script calls it.
FAKE = """#!/bin/sh
echo "$*" >called
while [ $# -gt 0 ]; do
  case "$1" in --markdown | --comment) echo "$PAGE" >"$2" ;; esac
  shift
done
exit "${CODE:-2}"
"""
VALUES = {
    "vars.PREVIEW_STACKS": "staging production",
    "github.token": "let me in",
    "github.event.pull_request.number": "12",
    "github.event.pull_request.base.sha": "abc123",
    "join(github.event.pull_request.labels.*.name, ',')": "bug,jobwarden approved",
}

Missing = Callable[[str], NoReturn]


def load(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path)


class Runner:
    """Runs the steps of a job one after the other, as the CI would, in a folder of its own."""

    def __init__(self, folder: Path, forge: Forge) -> None:
        self.folder, self.forge = folder, forge
        (folder / "examples").symlink_to(ROOT / "examples")
        fake = folder / "fake"
        fake.write_text(FAKE)
        fake.chmod(0o755)
        self.environment = {
            "PATH": os.environ["PATH"],
            "JOBWARDEN": str(fake),
            "PAGE": "**1 update**",
            "POST_PAUSE": "0",
            "GITHUB_API_URL": forge.url,
            "GITHUB_REPOSITORY": "me/mine",
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            "CI_API_V4_URL": f"{forge.url}/api/v4",
            "CI_PROJECT_ID": "5",
            "CI_MERGE_REQUEST_IID": "12",
            "GITLAB_TOKEN": forge.token,
        }

    def github(self, file: str, job: str, **environment: str) -> dict[str, int]:
        """Exit codes of the steps that are ours, by name, up to the first that failed."""
        found: dict[str, int] = {}
        for step in load(CI / "github" / f"{file}.yml")["jobs"][job]["steps"]:
            if step.get("name") not in {"preview", "comment", "issue", "verdict"}:
                continue
            given = {name: self._filled(text) for name, text in step.get("env", {}).items()}
            found[step["name"]] = self._run(step["run"], given | environment).returncode
            if found[step["name"]]:
                break
        return found

    def gitlab(self, job: str, **environment: str) -> int:
        """The exit code of a job's script."""
        body = load(CI / "gitlab" / ".gitlab-ci.yml")[job]
        ours = {"PREVIEW_STACKS": "production"} if "extends" in body else {}  # none for a fork
        given = {**ours, **body.get("variables", {}), **environment}
        mine = [line for line in body["script"] if not line.startswith("uv ")]
        return self._run("\n".join(mine), given).returncode

    def keys_of_boxes(self, **environment: str) -> int:
        """The exit code of GitLab's step for the boxes, with a home of its own."""
        steps = load(CI / "gitlab" / ".gitlab-ci.yml")[".preview"]["before_script"]
        [script] = [step for step in steps if "known_hosts" in step]
        return self._run(script, {"HOME": str(self.folder), **environment}).returncode

    def stack_files(self, *names: str) -> None:
        """Files of stacks, beside the project's own and an example."""
        for name in ("Pulumi", "Pulumi.rds.example", *(f"Pulumi.{name}" for name in names)):
            (self.folder / f"{name}.yaml").touch()

    def _filled(self, text: str) -> str:
        return HOLE.sub(lambda hole: VALUES.get(hole[1], ""), text)

    def _run(self, script: str, given: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=self.folder,
            env={**self.environment, **given},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        self.err = done.stderr
        return done


@pytest.fixture
def forge() -> Iterator[Forge]:
    with Forge().serving() as forge:
        yield forge


@pytest.fixture
def runner(tmp_path: Path, forge: Forge) -> Runner:
    return Runner(tmp_path, forge)


@pytest.fixture(scope="session")
def actionlint(missing: Missing) -> str:
    found = shutil.which("actionlint", path=os.pathsep.join((str(TOOLS), os.environ["PATH"])))
    if found:
        return found
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        missing("no actionlint, and no Go to build it with")
    made = subprocess.run(
        [go, "install", LINTER],
        env={**os.environ, "GOBIN": str(TOOLS)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if made.returncode:
        missing(f"actionlint could not be built: {made.stderr.strip()[-200:]}")
    return str(TOOLS / "actionlint")


@pytest.mark.parametrize("path", GITHUB, ids=lambda path: path.stem)
def test_a_workflow_pleases_actionlint(path: Path, actionlint: str) -> None:
    done = subprocess.run([actionlint, str(path)], capture_output=True, text=True, check=False)

    assert done.stdout + done.stderr == ""
    assert done.returncode == 0


def test_actionlint_is_able_to_complain(tmp_path: Path, actionlint: str) -> None:
    broken = GITHUB[0].read_text().replace("runs-on:", "runs-onn:")
    (tmp_path / "broken.yml").write_text(broken)

    assert (
        subprocess.run(
            [actionlint, tmp_path / "broken.yml"], check=False, capture_output=True
        ).returncode
        == 1
    )


@pytest.mark.parametrize("path", GITHUB, ids=lambda path: path.stem)
def test_a_workflow_has_few_rights_and_no_expression_in_a_script(path: Path) -> None:
    text, workflow = path.read_text(), load(path)
    scripts = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]

    assert "pull_request_target" not in text
    assert workflow["permissions"] == {"contents": "read"}
    assert not any(HOLE.search(script) for script in scripts)
    assert "PREVIEW_STACKS" in workflow["concurrency"]["group"]


def test_the_job_for_forks_has_no_secret_and_no_right_to_write() -> None:
    job = load(CI / "github" / "preview.yml")["jobs"]["fork"]

    assert "secrets." not in str(job)
    assert "permissions" not in job
    assert "PREVIEW_BASE" in str(job)


def test_a_comment_is_written_once_and_then_edited(runner: Runner, forge: Forge) -> None:
    first = runner.github("preview", "preview")
    second = runner.github("preview", "preview", PAGE="**No changes**")

    assert first == second == {"preview": 0, "comment": 0, "verdict": 0}
    [comment] = forge.comments
    assert comment["body"].startswith("**No changes**\n")
    assert (runner.folder / "summary").read_text() == "**1 update**\n**No changes**\n"
    assert "-s staging -s production --label bug --label jobwarden approved" in (
        (runner.folder / "called").read_text()
    )


def test_a_comment_is_found_on_a_later_page_and_a_strangers_is_left_alone(
    runner: Runner, forge: Forge
) -> None:
    end = "<!-- jobwarden comment preview -->"
    fake = {"id": 1, "user": STRANGER, "body": f"buy this\n\n{end}\n"}
    forge.comments += [fake, *({"id": n, "user": BOT, "body": "x"} for n in range(2, 150))]
    forge.comments.append({"id": 150, "user": BOT, "body": f"old\n\n{end}\n"})
    runner.github("preview", "preview")

    assert len(forge.comments) == 150
    assert forge.comments[-1]["body"] == f"**1 update**\n\n{end}\n"
    assert fake["body"] == f"buy this\n\n{end}\n"


def test_a_check_that_must_fail_fails_after_the_comment(runner: Runner, forge: Forge) -> None:
    done = runner.github("preview", "preview", CODE="1")

    assert done == {"preview": 0, "comment": 0, "verdict": 1}
    assert len(forge.comments) == 1


def test_no_page_at_all_fails_at_once(runner: Runner, forge: Forge) -> None:
    assert runner.github("preview", "preview", JOBWARDEN="false") == {"preview": 1}
    assert forge.comments == []


def test_a_fork_renders_against_its_base_and_posts_nothing(runner: Runner, forge: Forge) -> None:
    done = runner.github("preview", "fork")

    assert done == {"preview": 0, "verdict": 0}
    assert "-s staging -s production --base abc123" in (runner.folder / "called").read_text()
    assert forge.said == []


def test_a_fork_without_our_variables_renders_the_stacks_that_are_there(runner: Runner) -> None:
    runner.stack_files("boxes", "eu.prod")
    steps = runner.github("preview", "fork", PREVIEW_STACKS="")

    assert steps == {"preview": 0, "verdict": 0}
    assert (runner.folder / "called").read_text().endswith("-s boxes -s eu.prod --base abc123\n")


def test_with_no_stack_named_or_there_it_says_what_is_missing(runner: Runner) -> None:
    runner.stack_files()

    assert runner.github("preview", "fork", PREVIEW_STACKS="")["preview"] != 0
    assert "PREVIEW_STACKS: names of the stacks" in runner.err
    assert not (runner.folder / "called").exists()


def test_with_credentials_the_stacks_are_never_guessed(runner: Runner) -> None:
    runner.stack_files("boxes")

    assert runner.github("preview", "preview", PREVIEW_STACKS="")["preview"] != 0
    assert not (runner.folder / "called").exists()


@pytest.mark.parametrize("path", GITHUB, ids=lambda path: path.stem)
def test_pulumi_may_have_a_backend_of_its_own_with_a_passphrase(path: Path) -> None:
    [step] = [
        step
        for name, job in load(path)["jobs"].items()
        for step in job["steps"]
        if name != "fork" and step.get("name") == "preview"
    ]

    for name in ("PULUMI_ACCESS_TOKEN", "PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE"):
        assert step["env"][name] == f"${{{{ secrets.{name} }}}}"


def test_a_busy_forge_is_asked_again(runner: Runner, forge: Forge) -> None:
    forge.busy = 2

    assert runner.github("preview", "preview")["comment"] == 0
    assert len(forge.comments) == 1


def test_a_refusal_says_which_right_is_missing(runner: Runner, forge: Forge) -> None:
    forge.token = "another"  # noqa: S105  # of a server that ends with the test

    assert runner.github("preview", "preview")["comment"] == 1
    assert "HTTP 401" in runner.err
    assert "pull-requests: write" in runner.err
    assert "let me in" not in runner.err


def test_a_page_that_is_too_long_is_cut_and_keeps_its_mark(runner: Runner, forge: Forge) -> None:
    page = "first line\n" + "| a row |\n" * 9000
    runner.github("preview", "preview", PAGE=page)
    runner.github("preview", "preview", PAGE=page)

    [comment] = forge.comments
    assert len(comment["body"]) <= 65_536
    assert comment["body"].startswith("first line\n")
    assert "**This page was cut.**" in comment["body"]


def test_drift_opens_one_issue_edits_it_and_closes_it(runner: Runner, forge: Forge) -> None:
    for page, code, state in (
        ("one", "2", None),
        ("two", "1", None),
        ("none", "0", "closed"),
        ("none", "0", "closed"),
    ):
        assert runner.github("drift", "drift", PAGE=page, CODE=code) == {"preview": 0, "issue": 0}
        [issue] = forge.issues
        assert issue["body"].startswith(f"{page}\n")
        assert issue.get("state") == state
    runner.github("drift", "drift", PAGE="again")

    assert len(forge.issues) == 2
    assert "--refresh" in (runner.folder / "called").read_text()


def test_gitlab_has_one_note_and_one_issue(runner: Runner, forge: Forge) -> None:
    assert [runner.gitlab("preview", PAGE=page) for page in ("one", "two")] == [0, 0]
    assert runner.gitlab("preview", PAGE="bad", CODE="1") == 1
    assert [note["body"].partition("\n")[0] for note in forge.comments] == ["bad"]

    assert [runner.gitlab("drift", PAGE=page) for page in ("one", "two")] == [0, 0]
    assert runner.gitlab("drift", PAGE="none", CODE="0") == 0
    [issue] = forge.issues
    assert (issue["description"].partition("\n")[0], issue["state_event"]) == ("none", "close")


def test_a_gitlab_fork_posts_nothing(runner: Runner, forge: Forge) -> None:
    runner.stack_files("boxes", "live")

    assert runner.gitlab("preview-fork", PREVIEW_BASE="abc123") == 0
    assert "-s boxes -s live --base abc123" in (runner.folder / "called").read_text()
    assert forge.said == []


def test_gitlab_has_the_key_and_the_known_hosts_of_the_boxes(runner: Runner) -> None:
    key = runner.folder / "key"
    key.write_text("BEGIN\nEND")

    assert runner.keys_of_boxes() == 0
    assert not (runner.folder / ".ssh").exists()
    assert runner.keys_of_boxes(BOX_SSH_KEY=str(key), BOX_KNOWN_HOSTS="a.example.net x y") == 0
    made = runner.folder / ".ssh" / "id_ed25519"
    assert made.read_text() == "BEGIN\nEND\n"
    assert [path.stat().st_mode & 0o777 for path in (made.parent, made)] == [0o700, 0o600]
    assert (made.parent / "known_hosts").read_text() == "a.example.net x y\n"
