"""The page of a preview: counts first, then one table for each environment and kind.

The same parts make the same bytes: nothing here knows the time, and everything is sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from infra import cells, severity
from infra.rows import LEVELS, Part, Row

TITLES: Final = {
    "schedule": "Schedules",
    "policy": "Limits",
    "sql": "SQL",
    "object": "SQL objects",
    "index": "Indexes",
    "extension": "Extension",
    "library": "Preloaded libraries",
    "parameter": "Parameters",
    "restart": "Restarts",
    "unit": "Units",
    "file": "Files",
    "package": "Packages",
    "cluster": "Clusters",
    "database": "Databases",
    "user": "Users",
    "role": "Logins of services",
    "resource": "Cloud resources",
    "setting": "Other keys",
    "stage": "Not known before a deploy",
}
_KINDS: Final = tuple(TITLES)
# GitHub takes a comment of 65,536 characters and a job's summary of a mebibyte.
COMMENT: Final = 60_000
SUMMARY: Final = 900_000


@dataclass(frozen=True, slots=True)
class Page:
    """All that was found. ``base``: the git ref it was compared with, None for what is deployed."""

    stacks: tuple[str, ...]
    parts: tuple[Part, ...]
    rows: tuple[Row, ...]
    blocks: tuple[str, ...] = ()
    base: str | None = None

    @property
    def counts(self) -> severity.Counts:
        """What the first line says."""
        return severity.count(self.parts, self.rows)

    def to_json(self) -> dict[str, Any]:
        """The page for machines."""
        return {
            "base": self.base,
            "counts": self.counts.to_json(),
            "severity": severity.worst(self.rows),
            "blocked": list(self.blocks),
            "unreachable": [_refusal(part) for part in self.parts if part.reason],
            "changes": [row.to_json() for row in self.rows],
            "notes": [f"{part.stack}: {note}" for part in self.parts for note in part.notes],
        }


def _refusal(part: Part) -> dict[str, str | None]:
    return {
        "stack": part.stack,
        "tool": part.tool,
        "place": part.place,
        "reason": part.reason,
    }


def build(
    stacks: Sequence[str],
    parts: Iterable[Part],
    *,
    policies: Iterable[severity.Policy] = (),
    labels: Iterable[str] = (),
    secrets: Iterable[str] = (),
    base: str | None = None,
) -> Page:
    """Judge what was found, in a fixed order, and take out what is secret."""
    known = tuple(secrets)
    order = {name: number for number, name in enumerate(stacks)}
    listed = tuple(
        sorted(parts, key=lambda part: (order.get(part.stack, 0), part.tool, part.place))
    )
    rows = tuple(
        sorted(
            (row for part in listed for row in severity.rows(part)),
            key=lambda row: _key(row, order),
        )
    )
    blocked = severity.blocks(policies, rows, labels)
    return Page(
        tuple(stacks),
        tuple(_safe_part(part, known) for part in listed),
        tuple(_safe_row(row, known) for row in rows),
        tuple(blocked),
        base,
    )


def _key(row: Row, order: dict[str, int]) -> tuple[Any, ...]:
    kind = _KINDS.index(row.kind) if row.kind in _KINDS else len(_KINDS)
    where = (order.get(row.part.stack, 0), kind, row.kind, row.part.place)
    return (*where, row.change.name, row.change.action, row.part.tool)


def _safe_part(part: Part, known: tuple[str, ...]) -> Part:
    reason = None if part.reason is None else cells.mask(part.reason, known)
    return replace(part, reason=reason, notes=tuple(cells.mask(list(part.notes), known)))


def _safe_row(row: Row, known: tuple[str, ...]) -> Row:
    change = row.change
    safe = replace(
        change,
        name=cells.mask(change.name, known),
        old=cells.mask(change.old, known),
        new=cells.mask(change.new, known),
        why=cells.mask(change.why, known),
        waits=None if change.waits is None else cells.mask(change.waits, known),
    )
    return replace(row, change=safe, note=cells.mask(row.note, known))


def render(page: Page, limit: int = SUMMARY) -> str:
    """The page as Markdown, of at most ``limit`` characters: first the folded texts go."""
    text = _render(page, folds=True)
    if len(text) <= limit:
        return text
    lines = _render(page, folds=False).splitlines(keepends=True)
    note = "\n**This page was cut.** The job's summary, or `--json`, has all of it.\n"
    kept, size = [], len(note)
    for line in lines:
        size += len(line)
        if size > limit:
            break
        kept.append(line)
    return "".join(kept) + note


def _render(page: Page, *, folds: bool) -> str:
    blocks = [_first(page)]
    if page.blocks:
        blocks.append("\n".join(f"> - **Blocked:** {cells.prose(text)}" for text in page.blocks))
    for stack in page.stacks:
        blocks += _stack(page, stack, folds=folds)
    return "\n\n".join(blocks) + "\n"


def _first(page: Page) -> str:
    counts = page.counts
    against = f" against {cells.code(page.base)}" if page.base else ""
    named = ", ".join(cells.code(name) for name in page.stacks)
    if not counts.changes and not counts.unreachable:
        return f"**No changes** in {named}{against}."
    worst = severity.worst(page.rows)
    level = f" Worst: **{worst}**." if worst and worst != LEVELS[0] else ""
    unknown = f", {counts.unknown} unknown" if counts.unknown else ""
    return (
        f"**{counts.create} create, {counts.update} update, {counts.delete} delete; {counts.drift}"
        f" drift, {counts.restart} restart, {counts.unreachable} unreachable{unknown}**"
        f" in {named}{against}.{level}"
    )


def _stack(page: Page, stack: str, *, folds: bool) -> Iterator[str]:
    parts = [part for part in page.parts if part.stack == stack]
    rows = [row for row in page.rows if row.part.stack == stack]
    told = [_unreachable(part) for part in parts if part.reason]
    if not rows and not told:
        if page.counts.changes or page.counts.unreachable:
            yield f"## {cells.prose(stack)}\n\nNo changes."
        return
    notes = dict.fromkeys(note for part in parts for note in part.notes)
    told += [f"- {cells.prose(note)}" for note in notes]
    yield f"## {cells.prose(stack)}"
    if told:
        yield "\n".join(told)
    several = len({row.part.place for row in rows}) > 1
    for kind in dict.fromkeys(row.kind for row in rows):
        yield from _table(kind, [row for row in rows if row.kind == kind], several, folds=folds)


def _unreachable(part: Part) -> str:
    place = f" of {cells.code(part.place)}" if part.place else ""
    return f"- **Unreachable:** {part.tool}{place}: {cells.prose(part.reason or '')}"


def _table(kind: str, rows: list[Row], several: bool, *, folds: bool) -> Iterator[str]:  # noqa: FBT001  # one of the table's columns
    where = ["where"] if several else []
    heads = ["change", *where, "name", "old", "new", "severity", "why"]
    lines = [f"### {TITLES.get(kind, kind)}", "", _line(heads), _line(["---"] * len(heads))]
    lines += [_line(_cells(row, several)) for row in rows]
    yield "\n".join(lines)
    if folds:
        yield from (
            _fold(row, several)
            for row in rows
            if any(cells.is_long(value) for value in cells.differing(row.change))
        )


def _line(columns: Iterable[str]) -> str:
    return "| " + " | ".join(columns) + " |"


def _cells(row: Row, several: bool) -> list[str]:  # noqa: FBT001  # as above
    change = row.change
    old, new = cells.differing(change)
    level = f"**{row.level}**" if row.level != LEVELS[0] else row.level
    restarts = f"restarts {cells.code(row.restarts)}" if row.restarts else ""
    told = [cells.prose(text) for text in (change.why, row.note) if text]
    waits = f"waits: {cells.prose(change.waits)}" if change.waits else ""
    return [
        f"{change.action}, drift" if row.drift else change.action,
        *([cells.code(row.part.place)] if several else []),
        cells.code(change.name),
        cells.cell(old),
        cells.cell(new),
        level,
        "; ".join(text for text in (restarts, *told, waits) if text),
    ]


def _fold(row: Row, several: bool) -> str:  # noqa: FBT001  # as above
    old, new = cells.differing(row.change)
    place = f" on {row.part.place}" if several else ""
    return cells.folded(f"{row.kind} {row.change.name}{place}", old, new)
