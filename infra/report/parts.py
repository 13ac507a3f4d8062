"""What stands around the plots: tiles, tables, legends. All text is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from infra.report.plots import Series


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
        f'<li><i class="c{each.colour}"></i>{escape(each.name)} <b>{sum(each.values):.0f}</b></li>'
        for each in series
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], empty: str) -> str:
    """Rows of text; numbers stand right."""
    found = list(rows)
    if not found:
        return nothing(empty)
    head = "".join(_cell(text, "th", found[0][n]) for n, text in enumerate(heads))
    body = "".join(f"<tr>{''.join(_cell(text, 'td', text) for text in row)}</tr>" for row in found)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
        "</table></div>"
    )


def nothing(text: str) -> str:
    """Said in the place of an empty plot or table."""
    return f'<p class="nothing">{escape(text)}</p>'


def _cell(text: str, tag: str, sample: str) -> str:
    right = ' class="number"' if sample.isdecimal() else ""
    return f"<{tag}{right}>{escape(text)}</{tag}>"
