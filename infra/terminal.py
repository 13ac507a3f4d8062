"""What people see: tables on stdout, talk on stderr, colours only on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Container, Iterable, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from infra.changes import Change, pending

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
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    console.print(printable(text))


def printable(text: str) -> str:
    """The text with control characters spelled out: what is in a row must not drive a terminal."""
    return "".join(
        sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in text
    )


def document(value: Any) -> None:
    """One JSON document on stdout, for machines."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False, default=_plain)
    sys.stdout.write("\n")


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def changes(found: Sequence[Change]) -> None:
    """Changes as a table; what is as it should be is only counted."""
    shown = [change for change in found if change.action != "same"]
    if shown:
        rows = [
            (change.action, f"{change.kind} {change.name}", _values(change)) for change in shown
        ]
        table(("change", "what", "old -> new, and why"), rows)
    out().print(_count(found))


def _count(found: Sequence[Change]) -> str:
    """How many changes an apply would make; "no changes" only where all is known and ours."""
    count = len(pending(found))
    if count:
        return f"{count} change{'s' if count != 1 else ''}"
    odd = [c for c in found if c.action == "foreign" or (c.action == "unknown" and not c.partial)]
    return f"nothing that an apply could change; {len(odd)} to look at" if odd else "no changes"


def _values(change: Change) -> str:
    """Old and new, field by field, then why, then what it waits for."""
    if change.kind == "object":
        values = ""  # fingerprints say nothing to a reader
    elif change.action == "create":
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


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], whole: Container[str] = ()
) -> None:
    """A table that folds in a narrow terminal. The first column carries the colour.

    Columns named in ``whole`` give way last: what is in them is to be copied.
    """
    console = out()
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        grid.add_column(heading, overflow="fold", no_wrap=heading in whole)
    for first, *rest in rows:
        cells = (Text(printable(cell)) for cell in rest)
        grid.add_row(Text(printable(first), style=STYLES.get(first, "")), *cells)
    console.print(grid)


def fold(value: Any) -> str:
    """A value in one cell: short ones whole, a mapping by field, SQL by its number of lines."""
    if isinstance(value, dict):
        return "\n".join(f"{key}: {text}" for key, text in value.items())
    text = str(value)
    if "\n" in text:
        return f"{len(text.splitlines())} lines of SQL"
    return text if len(text) <= FOLD else text[: FOLD - 3] + "..."


def warnings(found: Iterable[str]) -> None:
    """What works, but not as one might think, on stderr."""
    for text in found:
        talk(f"warning: {text}")
