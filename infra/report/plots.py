"""Plots as SVG texts. A plot is 360 wide, so that its letters are readable on a phone.

Colours are classes (c0, c1, ...): the page's style sheet has each for light and for dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 360, 170
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 8, 22  # left of it fits "33.3 min"


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers under one name; ``colour`` is the number of a class of the style sheet."""

    name: str
    values: Sequence[float]
    colour: int


@dataclass(frozen=True, slots=True)
class Dot:
    """A point at a share (0 to 1) of the width, with the text a pointer shows."""

    at: float
    value: float
    colour: int
    text: str


def bars(title: str, series: Sequence[Series], ends: tuple[str, str]) -> str:
    """Stacked bars, the first series at the bottom."""
    count = max((len(each.values) for each in series), default=0) or 1
    totals = [sum(each.values[n] for each in series) for n in range(count)] if series else [0]
    top = nice(max(totals))
    wide = _inner() / count
    shapes = []
    for n in range(count):
        low = 0.0
        for each in series:
            value = each.values[n]
            if value:
                y, tall = _y(low + value, top), _y(low, top) - _y(low + value, top)
                tip = f"{each.name}: {number(value)}"
                shapes.append(
                    f'<rect class="c{each.colour}" x="{LEFT + n * wide + 0.5:.1f}" y="{y:.1f}"'
                    f' width="{max(wide - 1, 0.5):.1f}" height="{max(tall, 1):.1f}">'
                    f"<title>{escape(tip)}</title></rect>"
                )
            low += value
    return _framed(title, shapes, _axis(top), ends)


def steps(title: str, series: Series, ends: tuple[str, str]) -> str:
    """A filled line of steps."""
    top = nice(max(series.values, default=0))
    wide = _inner() / (len(series.values) or 1)
    points = [f"M{LEFT} {_y(0, top):.1f}"]
    for n, value in enumerate(series.values):
        points.append(f"V{_y(value, top):.1f}H{LEFT + (n + 1) * wide:.1f}")
    path = f'<path class="c{series.colour} area" d="{"".join(points)}V{_y(0, top):.1f}Z"/>'
    return _framed(title, [path], _axis(top), ends)


def dots(title: str, found: Sequence[Dot], ends: tuple[str, str], unit: str) -> str:
    """Points over time."""
    top = nice(max((dot.value for dot in found), default=0))
    shapes = [
        f'<circle class="c{dot.colour}" cx="{LEFT + dot.at * _inner():.1f}"'
        f' cy="{_y(dot.value, top):.1f}" r="2.5"><title>{escape(dot.text)}</title></circle>'
        for dot in found
    ]
    return _framed(title, shapes, _axis(top, unit), ends)


def strips(title: str, rows: Sequence[tuple[str, Sequence[float], float | None]]) -> str:
    """One line a row: a mark for each age, and a bar at the limit. Ages in seconds."""
    most = nice(max([*(age for _, ages, _ in rows for age in ages), *(r[2] or 0 for r in rows)]))
    tall = 34
    shapes = []
    for n, (name, ages, limit) in enumerate(rows):
        y = TOP + n * tall
        shapes.append(
            f'<text class="label" x="4" y="{y + 10}">{escape(shortened(name, 40))}</text>'
        )
        shapes.append(
            f'<line class="grid" x1="4" x2="{WIDTH - RIGHT}" y1="{y + 22}" y2="{y + 22}"/>'
        )
        shapes += [_mark(age, most, y, late=limit is not None and age > limit) for age in ages]
        if limit is not None:
            x = _across(limit, most)
            shapes.append(
                f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="{y + 14}" y2="{y + 30}">'
                f"<title>limit {seconds(limit)}</title></line>"
            )
    height = TOP + len(rows) * tall + 16
    shapes.append(f'<text x="4" y="{height - 4}">0</text>')
    shapes.append(f'<text class="end" x="{WIDTH - RIGHT}" y="{height - 4}">{seconds(most)}</text>')
    return _svg(title, shapes, height)


def _mark(age: float, most: float, y: float, *, late: bool) -> str:
    return (
        f'<circle class="c{1 if late else 0} mark" cx="{_across(age, most):.1f}" cy="{y + 22}"'
        f' r="4"><title>{seconds(age)}</title></circle>'
    )


def _across(value: float, most: float) -> float:
    return 4 + value / most * (WIDTH - RIGHT - 4)


def nice(top: float) -> float:
    """The next of 1, 2, 5, 10, 20, ... that is not less; 1 for nothing."""
    if not top > 0:
        return 1
    size = 10.0 ** math.floor(math.log10(top))
    return next(step * size for step in (1, 2, 5, 10) if step * size >= top * (1 - 1e-9))


def number(value: float) -> str:
    """A number as short as it can be: 950, 12k, 3.4M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def seconds(value: float) -> str:
    """A length of time for a reader: 12 ms, 3.4 s, 5 min, 2 h, 3 d."""
    if value < 1:
        return f"{value * 1000:.3g} ms" if value else "0 s"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if value >= 2 * size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} s"


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _axis(top: float, unit: str = "") -> list[tuple[float, str]]:
    return [
        (_y(share * top, top), seconds(share * top) if unit == "s" else number(share * top))
        for share in (0, 0.5, 1)
    ]


def _y(value: float, top: float) -> float:
    return TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM)


def _inner() -> float:
    return WIDTH - LEFT - RIGHT


def _framed(
    title: str, shapes: Iterable[str], axis: Iterable[tuple[float, str]], ends: tuple[str, str]
) -> str:
    frame = []
    for y, text in axis:
        frame.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        frame.append(f'<text class="end" x="{LEFT - 4}" y="{y + 4:.1f}">{escape(text)}</text>')
    frame.append(f'<text x="{LEFT}" y="{HEIGHT - 5}">{escape(ends[0])}</text>')
    frame.append(f'<text class="end" x="{WIDTH - RIGHT}" y="{HEIGHT - 5}">{escape(ends[1])}</text>')
    return _svg(title, [*frame, *shapes], HEIGHT)


def _svg(title: str, shapes: Iterable[str], height: float) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"{''.join(shapes)}</svg>"
    )
