"""What stands around the plots: tiles, tables, legends. All text is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from infra.report.plots import Series, shortened

_LONGEST_WORD = 18  # a longer one is broken where its column is narrow; two of these fit a phone


def tile(name: str, value: str, level: str = "") -> str:
    """One number to see first."""
    return f'<div class="tile {level}"><b>{escape(value)}</b><span>{escape(name)}</span></div>'


def card(title: str, body: str, note: str = "", width: str = "") -> str:
    """One box of the page; ``width`` is two (columns, on a wide screen), wide (all) or nothing."""
    small = f'<p class="note">{escape(note)}</p>' if note else ""
    return f'<section class="card {width}"><h2>{escape(title)}</h2>{body}{small}</section>'


def legend(series: Iterable[Series]) -> str:
    """Which colour is what."""
    items = (
        f'<li><i class="c{each.colour}"></i><span>{escape(shortened(each.name, 40))}'
        f" <b>{sum(each.values):.0f}</b></span></li>"
        for each in series
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], empty: str) -> str:
    """Rows of text; numbers stand right.

    On a phone a last column of text goes below its row. The roles keep it a table there for a
    screen reader.
    """
    found = list(rows)
    if not found:
        return nothing(empty)
    numbers = [text.isdecimal() for text in found[0]]
    head = "".join(
        f'<th role="columnheader"{_class("number" if right else "")}>{escape(text)}</th>'
        for text, right in zip(heads, numbers, strict=True)
    )
    body = "".join(f'<tr role="row">{_cells(heads, row, numbers)}</tr>' for row in found)
    return (
        f'<div class="scroll"><table role="table"{_class("" if numbers[-1] else "told")}>'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )


def nothing(text: str) -> str:
    """Said in the place of an empty plot or table."""
    return f'<p class="nothing">{escape(text)}</p>'


def _cells(heads: Sequence[str], row: Sequence[str], numbers: Sequence[bool]) -> str:
    return "".join(
        f'<td role="cell"{_class(*_looks(text, right=right))} data-head="{escape(head)}">'
        f"{escape(text)}</td>"
        for head, text, right in zip(heads, row, numbers, strict=True)
    )


def _looks(text: str, *, right: bool) -> Iterator[str]:
    if right:
        yield "number"
    if text in {"critical", "dead"}:
        yield "bad"
    if any(len(word) > _LONGEST_WORD for word in text.split()):
        yield "long"


def _class(*names: str) -> str:
    return f' class="{" ".join(names)}"' if any(names) else ""
