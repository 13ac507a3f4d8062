"""How bad a change is: destructive, restarting, or harmless; and what a policy says to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any, Final

from infra import durations, preload
from infra.changes import Change
from infra.rows import LEVELS, LIBRARIES, Figures, Level, Part, Row

# What ends something that ran, or takes data away. A dropped file or index comes back with the next
# apply; a dropped server does not.
_ENDED: Final = frozenset({"schedule", "unit", "cluster", "database", "package", "resource"})
# RDS restarts a server for these (AWS, "Modifying an Amazon RDS DB instance").
_DOWNTIME: Final = frozenset(
    {"dbInstanceParameterGroupName", "dbParameterGroupName", "engineVersion"}
    | {"instanceClass", "parameterGroupName"}
)
_SHOWN: Final = frozenset({"create", "update", "delete", "paused", "foreign", "unknown"})
_POSTGRES: Final = "PostgreSQL"
_BOUNDLESS: Final = frozenset({"never", "forever"})


def rows(part: Part) -> tuple[Row, ...]:
    """The changes of a part, judged. What is as it should be, and a probe, is no row."""
    return tuple(
        _row(part, change)
        for change in part.changes
        if change.action in _SHOWN and change.kind != "probe" and not change.partial
    )


def _row(part: Part, change: Change) -> Row:
    row = Row(part, change, drift=_by_hand(change), restarts=_restarts(change))
    if row.restarts:
        row = replace(row, level="restarting")
    if change.kind == "policy":
        row = _limits(row)
    if _ends(change) or _dropped(change):
        row = replace(row, level="destructive")
    return row


def _by_hand(change: Change) -> bool:
    return (
        change.kind == "object"
        or change.action in {"paused", "foreign"}
        or change.why.startswith("somebody")
    )


def _ends(change: Change) -> bool:
    return change.action == "delete" and change.kind in _ENDED


def _dropped(change: Change) -> tuple[str, ...]:
    """Libraries that are in the old list and not in the new one."""
    if change.name != LIBRARIES or not change.old:
        return ()
    new = str(change.new or "")
    return tuple(lib for lib in preload.parse(str(change.old)) if not preload.contains(new, lib))


def _restarts(change: Change) -> str:
    """What restarts for a change."""
    if change.kind == "restart":
        return _POSTGRES
    if change.kind in {"parameter", "library"} and change.action in {"create", "update", "delete"}:
        waits = any(word in change.why for word in ("restart", "reboot"))
        return _POSTGRES if waits or change.name == LIBRARIES else ""
    if change.kind == "unit" and change.action == "update" and "not running" not in change.why:
        return change.name
    if change.kind == "resource" and change.action == "update" and "rds/" in change.name:
        changed = set(change.new) if isinstance(change.new, dict) else set()
        return _POSTGRES if changed & _DOWNTIME else ""
    return ""


def _limits(row: Row) -> Row:
    """A shortened limit, and how many jobs the next run takes for it.

    What could not be counted, or not to its end, may be any number: it is destructive.
    """
    old, new = _before(row), _after(row)
    kept = _shorter(old, new, "retention")
    ended = _shorter(old, new, "timeout")
    figures = row.part.figures
    notes = [
        *([_told("the next sweep fails", figures, "sweep", row)] if ended else []),
        *([_told("the next cleanup deletes", figures, "cleanup", row)] if kept else []),
    ]
    taken = (figures.sweep or {}).get(row.change.name)
    worse = ended and (taken is None or taken.more or taken.then > taken.now)
    level: Level = "destructive" if kept or worse else row.level
    return replace(row, level=level, note="; ".join(notes))


def _told(what: str, figures: Figures, run: str, row: Row) -> str:
    counts = figures.sweep if run == "sweep" else figures.cleanup
    if counts is None:
        return f"{what}: not known ({figures.why})"
    taken = counts.get(row.change.name)
    return f"{what}: {taken} jobs" if taken else f"{what}: not known (no count of these jobs)"


def _before(row: Row) -> Mapping[str, str]:
    """The limits in force. An action without a row has those of the row ``*``."""
    return row.change.old or _everyone(row, "old")


def _after(row: Row) -> Mapping[str, str]:
    return row.change.new or _everyone(row, "new")


def _everyone(row: Row, side: str) -> Mapping[str, str]:
    for change in row.part.changes:
        if change.kind == "policy" and change.name == "*":
            return getattr(change, side) or {}
    return row.part.default


def _shorter(old: Mapping[str, str], new: Mapping[str, str], key: str) -> bool:
    if key not in old or key not in new:
        return False
    return _length(new[key]) < _length(old[key])


def _length(text: str) -> timedelta:
    return timedelta.max if text in _BOUNDLESS else durations.parse(text)


@dataclass(frozen=True, slots=True)
class Counts:
    """What the first line of a page says. ``drift`` and ``restart`` count rows counted before."""

    create: int
    update: int
    delete: int
    drift: int
    restart: int
    unreachable: int
    unknown: int = 0

    @property
    def changes(self) -> int:
        """How much a reviewer has to look at: zero for nothing."""
        return self.create + self.update + self.delete + self.drift + self.unknown

    def to_json(self) -> dict[str, int]:
        """The counts by name."""
        return asdict(self)


def count(parts: Iterable[Part], found: Iterable[Row]) -> Counts:
    """Count a page. A restart is of one thing in one place, whatever asks for it."""
    all_rows = tuple(found)
    actions = [row.change.action for row in all_rows]
    restarting = {(row.part.stack, row.part.place, row.restarts) for row in all_rows}
    return Counts(
        actions.count("create"),
        actions.count("update"),
        actions.count("delete"),
        sum(row.drift for row in all_rows),
        len([key for key in restarting if key[2]]),
        sum(part.reason is not None for part in parts),
        actions.count("unknown"),
    )


def worst(found: Iterable[Row]) -> Level | None:
    """The worst level of all rows; None without one that writes."""
    levels = [LEVELS.index(row.level) for row in found if row.change.writes]
    return LEVELS[max(levels)] if levels else None


@dataclass(frozen=True, slots=True)
class Policy:
    """What one stack's environment file says of its previews."""

    stack: str
    fail_on: str = "never"
    need_label: str = "never"
    label: str = ""


def blocks(policies: Iterable[Policy], found: Iterable[Row], labels: Iterable[str]) -> list[str]:
    """Why the check fails, one line for each stack that has a reason."""
    given = set(labels)
    all_rows = tuple(found)
    return [text for policy in policies for text in _blocked(policy, all_rows, given)]


def _blocked(policy: Policy, found: tuple[Row, ...], labels: set[str]) -> Iterator[str]:
    level = worst(row for row in found if row.part.stack == policy.stack)
    if _reaches(level, policy.fail_on):
        yield f"{policy.stack}: a {level} change (failOn: {policy.fail_on})"
    elif _reaches(level, policy.need_label) and policy.label not in labels:
        yield f"{policy.stack}: a {level} change needs the label {policy.label}"


def _reaches(level: Level | None, threshold: Any) -> bool:
    if level is None or threshold not in LEVELS:
        return False
    return LEVELS.index(level) >= LEVELS.index(threshold)
