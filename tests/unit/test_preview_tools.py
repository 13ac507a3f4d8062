"""The tools as a preview runs them: together, each with a limit, and never in each other's way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from infra import page
from infra.changes import Change
from infra.errors import UsageError
from infra.page import Page
from infra.preview import needs, running, tools
from infra.preview.preview import Wish, preview
from infra.preview.running import NoAnswer, run
from infra.rows import Part

NOWHERE = "postgresql://u@127.0.0.1:1/db"
RDS = "{instanceClass: db.t4g.micro, identifier: jobs, username: master, allocatedStorage: 20}"
STACKS = {
    "cloud": f"target: rds\n  jobwarden:postgres: {{version: '15'}}\n  jobwarden:rds: {RDS}",
    "box": "target: box\n  jobwarden:boxes: [{host: a.example.net}, {host: b.example.net}]",
    "there": "target: existing",
}
STEPS = '{"steps": []}'
LINE = (
    '{"host": "x", "stage": "s", "kind": "unit", "name": "api.service", "action": "update",'
    ' "old": "active (running)", "new": "active", "why": "its files changed"}'
)
# Writes a change to the file that `--data changes=` names, unless something keeps it from that.
PYINFRA = f"""
set -eu
[ -z "${{PYINFRA_YES:-}}" ] || exit 9
case "$*" in *"--dry --json"*) ;; *) exit 8 ;; esac
for word in "$@"; do
  case "$word" in changes=*) printf '%s\\n' '{LINE}' >"${{word#changes=}}" ;; esac
done
echo '{{"plan": [], "results": null}}'
"""


class Place:
    """A project with three stacks, and programs of our making."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.programs = folder, folder / "bin"
        self.programs.mkdir()
        monkeypatch.chdir(folder)
        path = os.pathsep.join((str(self.programs), "/usr/bin", "/bin"))
        monkeypatch.setattr(running, "search_path", lambda: path)
        for name in [name for name in os.environ if name.startswith(("DATABASE_URL", "PG"))]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("DATABASE_URL", NOWHERE)
        for name in ("Pulumi.yaml", "inventory.py", "deploy.py"):
            (folder / name).write_text("name: p\n" if name == "Pulumi.yaml" else "")
        for name, text in STACKS.items():
            (folder / f"Pulumi.{name}.yaml").write_text(f"config:\n  jobwarden:{text}\n")

    def program(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def preview(self, *stacks: str, seconds: int = 20) -> Page:
        return preview(Wish(stacks, limit=timedelta(seconds=seconds)))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def reasons(found: Page) -> dict[tuple[str, str, str], str]:
    return {(it.stack, it.tool, it.place): it.reason for it in found.parts if it.reason}


def test_each_target_asks_its_own_tools(place: Place) -> None:
    place.program("pulumi", f"echo '{STEPS}'")
    place.program("pyinfra", PYINFRA)
    found = place.preview("cloud", "box", "there")

    assert [(part.stack, part.tool, part.place) for part in found.parts] == [
        ("cloud", "pulumi", ""),
        ("box", "pyinfra", "a.example.net"),
        ("box", "pyinfra", "b.example.net"),
        ("there", "plan", ""),
    ]
    assert "no connection to postgresql://u@127.0.0.1:1/db" in reasons(found)["there", "plan", ""]
    assert [row.part.place for row in found.rows] == ["a.example.net", "b.example.net"]


def test_a_yes_in_the_environment_does_not_empty_the_dry_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYINFRA_YES", "1")
    place.program("pyinfra", PYINFRA)
    found = place.preview("box")

    assert reasons(found) == {}
    assert [row.change.name for row in found.rows] == ["api.service"] * 2


def test_a_tool_that_is_not_there_is_said_with_the_way_out(place: Place) -> None:
    found = reasons(place.preview("cloud", "box"))

    assert found["cloud", "pulumi", ""].startswith("pulumi is not installed. Try: tools/install")
    assert found["box", "pyinfra", "a.example.net"].startswith("pyinfra is not installed. Try: uv")


def test_a_tool_that_never_ends_is_ended_and_takes_nothing_from_others(place: Place) -> None:
    marker = place.folder / "child"
    place.program("pulumi", f"(sleep 3; touch {marker}) & sleep 60")
    place.program("pyinfra", PYINFRA)
    begun = time.monotonic()
    found = place.preview("cloud", "box", seconds=1)

    assert time.monotonic() - begun < 3
    assert reasons(found) == {
        ("cloud", "pulumi", ""): "pulumi did not answer in 1 s. Try: --timeout 10m"
    }
    assert len(found.rows) == 2
    time.sleep(max(0.0, 3.2 - (time.monotonic() - begun)))
    assert not marker.exists()


def test_three_environments_take_as_long_as_the_slowest(place: Place) -> None:
    place.program("pulumi", f"sleep 2; echo '{STEPS}'")
    place.program("pyinfra", f"sleep 2\n{PYINFRA}")
    begun = time.monotonic()
    found = place.preview("cloud", "box", "there")

    assert time.monotonic() - begun < 2 + 2
    assert set(reasons(found)) == {("there", "plan", "")}


def test_what_pulumi_calls_an_error_is_the_reason(place: Place) -> None:
    said = '{"steps": [], "diagnostics": [{"severity": "error", "message": "error: no\\n  state"}]}'
    place.program("pulumi", f"cat <<'EOF'\n{said}\nEOF\nexit 255")

    assert reasons(place.preview("cloud")) == {("cloud", "pulumi", ""): "no state"}


@pytest.mark.parametrize("reason", [None, "cron: there is a fault", "no connection"])
def test_no_change_of_the_database_is_on_the_page_twice(
    place: Place, monkeypatch: pytest.MonkeyPatch, reason: str | None
) -> None:
    made = Change("schedule", "report", "create", None, {"schedule": "0 6 * * 1"})
    group = Change("resource", "rds/parameterGroup jobs", "create")
    known = () if reason == "no connection" else (made,)
    asked = Part("cloud", "plan", changes=known, reason=reason)
    monkeypatch.setenv("DATABASE_URL_CLOUD", NOWHERE)
    monkeypatch.setattr(
        tools, "pulumi", lambda *_, **__: Part("cloud", "pulumi", "", (made, group))
    )
    monkeypatch.setattr(tools, "plan", lambda *_: asked)
    found = place.preview("cloud")

    voice = "plan" if known else "pulumi"
    assert sorted((row.change.name, row.part.tool) for row in found.rows) == [
        ("rds/parameterGroup jobs", "pulumi"),
        ("report", voice),
    ]
    assert found.counts.create == 2
    assert [part.reason for part in found.parts if part.tool == "plan"] == [reason]


def test_pulumi_that_prints_something_else_is_said(place: Place) -> None:
    place.program("pulumi", "echo '{\"steps\": [{}]}'")

    assert "pulumi said something else" in reasons(place.preview("cloud"))["cloud", "pulumi", ""]


def test_a_host_that_is_away_says_why_in_pyinfras_words(place: Place) -> None:
    log = (
        "    [a.example.net] Could not connect (Unable to connect to port 22)\\n"
        "--> pyinfra error: No hosts"
    )
    place.program("pyinfra", f"printf '{log}' >&2; exit 1")
    found = reasons(place.preview("box"))

    assert found["box", "pyinfra", "a.example.net"] == (
        "Could not connect (Unable to connect to port 22)"
    )
    assert found["box", "pyinfra", "b.example.net"] == "No hosts"


def test_a_broken_stack_file_is_a_part_of_the_page(place: Place) -> None:
    (place.folder / "Pulumi.bad.yaml").write_text("config:\n  jobwarden:watchdg: {}\n")
    (place.folder / "Pulumi.worse.yaml").write_text("config: [\n")
    place.program("pyinfra", PYINFRA)
    found = place.preview("bad", "worse", "nowhere", "box")

    assert set(reasons(found)) == {(name, "plan", "") for name in ("bad", "worse", "nowhere")}
    assert "watchdg" in reasons(found)["bad", "plan", ""]
    assert len(found.rows) == 2
    assert page.render(found).startswith("**0 create, 2 update, 0 delete; 0 drift, 2 restart, 3 un")


def test_a_project_without_the_deploy_is_said(place: Place) -> None:
    (place.folder / "inventory.py").unlink()

    assert "inventory.py not found" in str(reasons(place.preview("box")))


@pytest.mark.parametrize(
    ("stack", "variables", "url"),
    [
        ("there", {}, NOWHERE),
        ("there", {"DATABASE_URL_THERE": "postgresql://r@h/d"}, "postgresql://r@h/d"),
        ("cloud", {}, None),
        ("cloud", {"DATABASE_URL_CLOUD": "postgresql://r@h/d"}, "postgresql://r@h/d"),
        ("box", {}, None),
    ],
)
@pytest.mark.usefixtures("place")
def test_each_stack_has_its_own_database(
    stack: str, variables: dict[str, str], url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert needs.need(stack).url == url


def test_a_secret_of_the_environment_is_not_on_the_page(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "open sesame")
    place.program("pulumi", 'echo "bad passphrase $PULUMI_CONFIG_PASSPHRASE" >&2; exit 1')

    assert page.render(place.preview("cloud")).splitlines()[-1] == (
        "- **Unreachable:** pulumi: bad passphrase &#42;&#42;&#42;"
    )


def test_a_program_that_ends_in_time_gives_its_answer(tmp_path: Path) -> None:
    code = "import sys; print('out'); print('\\x1b[31merr', file=sys.stderr); sys.exit(3)"
    answer = run([sys.executable, "-c", code], seconds=20, folder=tmp_path, environment=os.environ)

    assert (answer.code, answer.out, answer.err) == (3, "out\n", "err\n")
    with pytest.raises(NoAnswer, match="sleep did not answer in 1 s"):
        run(["/bin/sleep", "60"], seconds=1, folder=tmp_path, environment=os.environ)


def test_an_interrupt_ends_the_tools_at_once(place: Place) -> None:
    place.program("pulumi", "exec sleep 30")
    code = (
        "from infra.preview import running, preview\n"
        f"running.search_path = lambda: {str(place.programs)!r} + ':/usr/bin:/bin'\n"
        "print('ready', flush=True)\n"
        "preview.preview(preview.Wish(('cloud',)))"
    )
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=place.folder,
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)

    assert "KeyboardInterrupt" in err
    assert time.monotonic() - begun < 5


def test_two_files_of_one_name_are_refused(place: Place) -> None:
    other = place.folder / "other"
    other.mkdir()
    (other / "Pulumi.there.yaml").write_text("config: {}\n")

    with pytest.raises(UsageError, match=r"two files are called Pulumi\.there\.yaml"):
        place.preview("there", str(other / "Pulumi.there.yaml"))
