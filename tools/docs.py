"""Writes ``docs/cli.md`` from the commands' own help; ``--check`` only says whether it is true.

The help is what a user sees in a terminal 80 columns wide, without colours.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import typer
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parent.parent
CLI_PAGE = ROOT / "docs" / "cli.md"
HEAD = """\
# Commands

Written by `make docs` from the commands' own help; change the help, not this page.
"""
# What could change the look of the help from one terminal to the next.
TERMINAL = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1", "FORCE_COLOR": None}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def commands(app: typer.Typer) -> tuple[tuple[str, ...], ...]:
    """Every command as its words, groups before their members: ``()``, ``("local",)``, ..."""

    def walk(command: object, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield words
        if isinstance(command, TyperGroup):
            for name, member in command.commands.items():
                if not member.hidden:
                    yield from walk(member, (*words, name))

    return tuple(walk(get_command(app), ()))


def help_text(app: typer.Typer, words: tuple[str, ...]) -> str:
    """The help of one command. Raises SystemExit when the command cannot print it."""
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="jobwarden", env=TERMINAL)
    if result.exit_code != 0:
        sys.exit(f"jobwarden {' '.join(words)} --help failed: {result.output}{result.exception}")
    lines = COLOUR.sub("", result.stdout).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def cli_page(app: typer.Typer) -> str:
    """The whole page."""
    sections = [HEAD]
    for words in commands(app):
        title = " ".join(("jobwarden", *words))
        sections.append(f"## {title}\n\n```text\n$ {title} --help\n{help_text(app, words)}\n```\n")
    return "\n".join(sections)


def difference(page: Path, wanted: str) -> str:
    """A unified diff from the page to what it should say; empty when they agree."""
    current = page.read_text(encoding="utf-8") if page.exists() else ""
    lines = difflib.unified_diff(
        current.splitlines(keepends=True), wanted.splitlines(keepends=True), str(page), "make docs"
    )
    return "".join(lines)


def main() -> int:
    """Exit code 1 when ``--check`` finds a difference."""
    parser = argparse.ArgumentParser(description="write docs/cli.md from the commands' own help")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if it is old")
    only_check = parser.parse_args().check

    from infra.cli import app  # noqa: PLC0415 # so that --help works while cli.py does not

    wanted = cli_page(app)
    changed = difference(CLI_PAGE, wanted)
    if changed and only_check:
        sys.stderr.write(changed)
        print("docs/cli.md is not what the commands say. Try: make docs", file=sys.stderr)
        return 1
    if changed:
        CLI_PAGE.parent.mkdir(exist_ok=True)
        CLI_PAGE.write_text(wanted, encoding="utf-8")
    print("docs/cli.md: " + ("written" if changed else "true"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
