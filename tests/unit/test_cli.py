"""The commands themselves: lazy, documented, each with an example."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer
from typer.core import TyperGroup

from infra.cli import app

HEAVY = ("psycopg", "pydantic", "rich", "ruamel", "infra.config", "infra.db")


def _commands(group: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    assert isinstance(group, TyperGroup)
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from _commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


COMMANDS = dict(_commands(typer.main.get_command(app)))


def test_help_imports_nothing_that_is_slow() -> None:
    program = (
        "import sys; sys.argv = ['jobwarden', '--help']; from infra.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stderr.strip() == "[]"
    assert "plan" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_an_example_of_itself(name: str) -> None:
    text = getattr(COMMANDS[name], "help", None) or ""

    assert f"Example: jobwarden {name}" in text
