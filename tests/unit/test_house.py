"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCK_FILES = {"uv.lock", "go.sum"}
# Home and work folders of one machine.
MACHINE_PATH = re.compile(r"(?<![\w.$~}/-])/(?:work|root|farm|home|Users)/")


@cache
def project_files() -> tuple[Path, ...]:
    """What git knows or would add."""
    answer = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    names = sorted(set(filter(None, answer.stdout.split("\0"))))
    return tuple(path for path in map(ROOT.joinpath, names) if path.is_file())


def python_files(folder: str) -> tuple[Path, ...]:
    return tuple(
        path
        for path in project_files()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] == folder
    )


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:  # a picture
        return ""


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(text_of(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}:{node.name}", (node.end_lineno or 0) - node.lineno + 1


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", python_files("infra"), ids=named)
def test_a_module_fits_300_lines_and_says_what_it_is(path: Path) -> None:
    text = text_of(path)

    assert len(text.splitlines()) <= 300
    assert ast.get_docstring(ast.parse(text))


def test_functions_are_short() -> None:
    sizes = dict(pair for path in python_files("infra") for pair in functions(path))

    assert {name: size for name, size in sizes.items() if size > 50} == {}
    assert statistics.median(sizes.values()) <= 10


def test_no_file_names_a_path_of_one_machine() -> None:
    found = [
        f"{named(path)}:{number}: {line.strip()}"
        for path in project_files()
        if path.name not in LOCK_FILES
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]

    assert found == []


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("see /" + "work/main", True),
        ("'/" + "home/ann/x'", True),
        ("$HOME/" + "home/x", False),
        ("framework/", False),
        ("the " + "network/ folder", False),
    ],
)
def test_a_path_of_one_machine_is_told_from_others(line: str, is_one: bool) -> None:
    assert bool(MACHINE_PATH.search(line)) == is_one


def test_schedules_are_written_in_one_place() -> None:
    places = [
        named(path)
        for path in project_files()
        if path.suffix in {".py", ".sql"}
        and path.relative_to(ROOT).parts[0] in {"infra", "sql"}
        and re.search(r"\bcron\.schedule(?:_in_database)?\s*\(", text_of(path))
    ]

    assert len(places) == 1, places
