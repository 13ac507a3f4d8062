"""What is sent to a box as a script, and what is made of its answer."""

from __future__ import annotations

import base64
import subprocess

import pytest

pytest.importorskip("pyinfra")

from infra.box.carrier import answer, failure, script, text_of
from infra.box.telling import line, lines_of
from infra.changes import Change

SCRIPTS = (
    "apply",
    "configure",
    "install",
    "look",
    "prove",
    "restart",
    "timers",
    "units",
)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_read_to_its_end_before_anything_runs(name: str) -> None:
    text = script(name, {"A": "it's\n$x"})

    assert text.startswith("{\nA='it'\"'\"'s\n$x'\n")
    assert text.endswith("exit 0\n}\n")
    done = subprocess.run(["sh", "-n"], input=text, text=True, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_values_reach_a_script_as_they_are() -> None:
    odd = "a'b\"c\\d $e `f` $(g) \n\t|ü"
    text = script("common", {"ODD": odd}).replace("exit 0\n}", 'printf "%s" "$ODD"\nexit 0\n}')
    done = subprocess.run(["sh", "-s"], input=text, text=True, check=True, capture_output=True)

    assert done.stdout == odd


def test_the_last_answer_counts_and_other_lines_are_passed_over() -> None:
    lines = ["Welcome!", f"answer {base64.b64encode(b'one').decode()}", ""]

    assert answer(lines) == "one"
    assert answer([]) == ""


def test_a_script_s_own_words_become_the_error_and_its_way_out() -> None:
    error = failure("db1: step", ["noise", "jobwarden-error: it broke: why", "jobwarden-try: mend"])

    assert str(error) == "db1: step: it broke: why\nTry: mend"


def test_an_end_without_a_word_is_told_as_such() -> None:
    assert "the connection ended before the script did" in str(failure("db1: step", []))
    assert "sh: not found" in str(failure("db1: step", ["sh: not found"]))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Change("package", "p", "create", None, "installed"), '+ package p: "installed"'),
        (Change("policy", "*", "update", 1, 2, "w"), "~ policy *: 1 -> 2 (w)"),
        (Change("sql", "x", "update", "a" * 200, "b" * 200), "~ sql x"),
        (Change("restart", "r", "update", None, "n", "", "no"), '~ restart r: "n" [waits: no]'),
        (Change("stage", "s", "unknown", why="until"), "? stage s (until)"),
        (Change("file", "f", "delete", "text", None), "- file f"),
        (Change("schedule", "s", "paused", {}, {}, "by hand"), "= schedule s (by hand)"),
    ],
)  # fmt: skip
def test_a_change_is_one_line(change: Change, text: str) -> None:
    assert line(change) == text


def test_the_timers_script_runs_nothing_while_pg_cron_does() -> None:
    text = text_of("fallback-once")

    assert text.index("jobwarden.scheduled()") < text.index("\\quit") < text.index("\\i :statement")


def test_a_unit_that_changes_is_told_by_the_lines_that_differ() -> None:
    old = "[Service]\nExecStart=/srv/api\nUser=app\n"
    new = old.replace("/srv/api", "/srv/api --fast")
    long = Change("file", "api.service", "update", old, "\n".join(map(str, range(40))))

    assert lines_of(Change("file", "api.service", "update", old, new)) == [
        "-ExecStart=/srv/api",
        "+ExecStart=/srv/api --fast",
    ]
    assert lines_of(long)[-1] == "... and 31 lines"
    assert lines_of(Change("file", "api.service", "create", None, new)) == []
    assert lines_of(Change("parameter", "work_mem", "update", "4MB", "8MB")) == []
