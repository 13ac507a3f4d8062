"""What people see: tables on stdout, talk on stderr, colours only on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from infra.changes import Change, pending
from infra.checks import Problem

FOLD = 72
STYLES = {
    "create": "green",
    "update": "yellow",
    "delete": "red",
    "same": "dim",
    "paused": "magenta",
    "foreign": "magenta",
    "unknown": "cyan",
    "ok": "green",
    "warning": "yellow",
    "critical": "bold red",
}


def out() -> Console:
    """The console for answers. Rich leaves colours out where stdout is no terminal."""
    return Console(highlight=False, soft_wrap=False)


def talk(text: str) -> None:
    """Say something that is no answer."""
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(text)


def document(value: Any) -> None:
    """One JSON document on stdout, for machines."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False, default=str)
    sys.stdout.write("\n")


def changes(found: Sequence[Change]) -> None:
    """Changes as a table; what is as it should be is only counted."""
    shown = [change for change in found if change.action != "same"]
    if shown:
        rows = [
            (change.action, f"{change.kind} {change.name}", _values(change)) for change in shown
        ]
        table(("change", "what", "old -> new, and why"), rows)
    count = len(pending(found))
    out().print("no changes" if not count else f"{count} change{'s' if count != 1 else ''}")


def _values(change: Change) -> str:
    """Old and new, field by field, then why, then what it waits for."""
    if change.action == "create":
        values = fold(change.new)
    elif change.action == "delete":
        values = fold(change.old)
    elif isinstance(change.old, dict) and isinstance(change.new, dict):
        values = "\n".join(
            f"{key}: {change.old.get(key, '-')} -> {value}"
            for key, value in change.new.items()
            if change.old.get(key, "-") != value
        )
    else:
        values = " -> ".join(fold(value) for value in (change.old, change.new) if value is not None)
    lines = (values, change.why, f"waits: {change.waits}" if change.waits else "")
    return "\n".join(line for line in lines if line)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table that folds in a narrow terminal. The first column carries the colour."""
    console = out()
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        grid.add_column(heading, overflow="fold")
    for first, *rest in rows:
        grid.add_row(Text(first, style=STYLES.get(first, "")), *(Text(cell) for cell in rest))
    console.print(grid)


def fold(value: Any) -> str:
    """A value in one cell: short ones whole, a mapping by field, SQL by its number of lines."""
    if isinstance(value, dict):
        return "\n".join(f"{key}: {text}" for key, text in value.items())
    text = str(value)
    if "\n" in text:
        return f"{len(text.splitlines())} lines of SQL"
    return text if len(text) <= FOLD else text[: FOLD - 3] + "..."


def problems(found: Iterable[Problem]) -> None:
    """Problems, each with its way out, on stderr."""
    for problem in found:
        talk(str(problem))


def warnings(found: Iterable[str]) -> None:
    """What works, but not as one might think, on stderr."""
    for text in found:
        talk(f"warning: {text}")
