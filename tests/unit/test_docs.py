"""What the documents name exists, and what exists is in the documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.cli import app
from infra.cronexpr import parse
from infra.schedules import OURS
from tests.unit.test_house import ROOT, named, project_files
from tools import docs

README = ROOT / "README.md"
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
FOLDERS = {path.relative_to(ROOT).parts[0] for path in project_files()}
COMMANDS = {" ".join(words) for words in docs.commands(app)}
TARGETS = set(re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))


def pages() -> list[Path]:
    return [path for path in project_files() if path.suffix == ".md"]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def codes(page: Path) -> set[str]:
    return set(CODE.findall(prose(page)))


def anchors(page: Path) -> set[str]:
    """The names GitHub gives to the headings of a page."""
    titles = re.findall(r"^#+ +(.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def named_paths(page: Path) -> set[str]:
    """Code in a page that is a path in this repository: it starts with a name found there."""
    words = {code.rstrip("/") for code in codes(page) if re.fullmatch(r"[\w./-]+", code)}
    return {word for word in words if word.split("/")[0] in FOLDERS}


def test_the_page_of_commands_says_what_the_commands_say() -> None:
    assert docs.difference(docs.CLI_PAGE, docs.cli_page(app)) == ""


@pytest.mark.parametrize("words", docs.commands(app), ids=" ".join)
def test_each_command_is_on_its_page_with_help(words: tuple[str, ...]) -> None:
    page = docs.CLI_PAGE.read_text(encoding="utf-8")

    assert f"## {' '.join(('jobwarden', *words))}\n" in page
    assert len(docs.help_text(app, words).splitlines()) > 3


def test_the_readme_says_where_things_are() -> None:
    section = README.read_text(encoding="utf-8").partition("Where do I find")[2]
    rows = re.findall(r"^\|.*`.*\|$", section.split("\n## ")[0], re.MULTILINE)

    assert len(rows) >= 5
    assert all(any((ROOT / code).exists() for code in CODE.findall(row)) for row in rows), rows


@pytest.mark.parametrize("page", pages(), ids=named)
def test_each_path_a_page_names_exists(page: Path) -> None:
    assert [path for path in named_paths(page) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", pages(), ids=named)
def test_each_make_target_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wanted = set(re.findall(r"(?:`|^\$ |^)make ([a-z]+)", text, re.MULTILINE))

    assert wanted <= TARGETS


@pytest.mark.parametrize("page", pages(), ids=named)
def test_each_command_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    wanted = set(re.findall(r"(?:`|^\$ )jobwarden ([a-z]+)", text, re.MULTILINE))

    assert wanted <= {command.split(" ")[0] for command in COMMANDS}


@pytest.mark.parametrize("page", pages(), ids=named)
def test_each_schedule_a_page_names_is_one(page: Path) -> None:
    declared = {schedule.name for schedule in OURS}
    examples = "".join(
        path.read_text() for path in project_files() if path.suffix in {".yaml", ".yml"}
    )
    names = {code for code in codes(page) if re.fullmatch(r"jobs[A-Z]\w+", code)}

    assert [name for name in names - declared if name not in examples] == []
    for code in codes(page):
        if re.fullmatch(r"(?:[\d*/,$-]+ ){4}[\d*/,$-]+", code):
            assert parse(code).text == code


@pytest.mark.parametrize("page", pages(), ids=named)
def test_each_internal_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.exists(), target
        if anchor and goal.suffix == ".md":
            assert anchor in anchors(goal), target


def test_the_readme_names_both_of_our_schedules() -> None:
    text = README.read_text(encoding="utf-8")

    assert [schedule.name for schedule in OURS if schedule.name not in text] == []


def test_make_help_lists_each_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))

    assert targets == TARGETS
