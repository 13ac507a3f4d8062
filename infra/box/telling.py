"""The changes of a run: said in the log, and written as JSON lines to a file that can be named.

pyinfra's own ``--json`` says which stages change something, and not what. ``--data changes=FILE``
or JOBWARDEN_CHANGES names the file.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyinfra.api import Host, State

from infra.changes import Change

VARIABLE = "JOBWARDEN_CHANGES"
_LONGEST = 100
_MOST_LINES = 12
_SIGNS = {"create": "+", "update": "~", "delete": "-", "unknown": "?", "foreign": "!"}
_WRITTEN: dict[Path, tuple[Any, list[str]]] = {}


def tell(state: State, host: Host, stage: str, changes: Iterable[Change]) -> None:
    """Say each change, and add it to the file. The run starts the file that the plan wrote anew."""
    lines = [
        json.dumps({"host": host.name, "stage": stage, **change.to_json()}, ensure_ascii=False)
        for change in changes
        if change.action != "same"
    ]
    for change in changes:
        if change.action != "same":
            host.log(line(change))
        for changed in lines_of(change):
            host.log(f"      {changed}")
    named = host.data.get("changes") or os.environ.get(VARIABLE)
    if named:
        path = Path(str(named))
        phase, before = _WRITTEN.get(path, (state.current_stage, []))
        before = before if phase is state.current_stage else []
        _WRITTEN[path] = (state.current_stage, [*before, *lines])
        path.write_text("".join(f"{text}\n" for text in _WRITTEN[path][1]), encoding="utf-8")


def line(change: Change) -> str:
    """One change in one line, long texts left out."""
    why = f" ({change.why})" if change.why else ""
    waits = f" [waits: {change.waits}]" if change.waits else ""
    return (
        f"{_SIGNS.get(change.action, '=')} {change.kind} {change.name}{_values(change)}{why}{waits}"
    )


def lines_of(change: Change) -> list[str]:
    """What differs between two texts that are too long for a line, and no context."""
    if change.action != "update" or not isinstance(change.old, str):
        return []
    if not isinstance(change.new, str) or "\n" not in change.new:
        return []
    found = difflib.unified_diff(change.old.splitlines(), change.new.splitlines(), n=0, lineterm="")
    lines = [each for each in found if not each.startswith(("---", "+++", "@@"))]
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], f"... and {more} lines"] if more > 1 else lines


def _values(change: Change) -> str:
    old, new = _shown(change.old), _shown(change.new)
    if change.action == "create":
        return f": {new}" if change.new is not None and new else ""
    if change.action == "update":
        if change.old is None:
            return f": {new}"
        return f": {old} -> {new}" if old and new else ""
    return ""


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else ""
