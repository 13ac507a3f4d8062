"""The picture of a story: who worked on what and when, what died, what was rescued, who was told.

    JOBWARDEN_STORY_KEEP=kept make story
    .venv/bin/python -m tests.story.picture kept/box/story.json > docs/story.svg

Everything in it comes from the record (``tests/story/record.py``); nothing is drawn by hand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any

WIDTH, LEFT, RIGHT = 900, 104, 18
QUEUE_TOP, QUEUE_HEIGHT = 42, 52
LANE, BAR, STRAND = 44, 16, 5
DEATHS = {"postgres": "Postgres is killed", "machine": "the box restarts"}
COLOURS = {"resume_rewrite": "a", "pdf_build": "b", "ai_chat": "c"}
STYLE = """
svg{font:12px system-ui,sans-serif}text{fill:#5b6570}.ink{fill:#1b1f24}.end{text-anchor:end}
.middle{text-anchor:middle}.back{fill:#fff}.line{stroke:#dfe3e8}.a{fill:#4477aa}.b{fill:#ccbb44}
.c{fill:#228833}.queue{fill:#8a8f98;opacity:.45}.lost{stroke:#c0262d;stroke-width:2.5}
.kill{stroke:#c0262d;stroke-width:2.5;fill:none}.rescue{fill:#c0262d}.sweep{fill:#8a8f98}
.page{fill:#aa3377}.away{fill:#c0262d;opacity:.12}.red{fill:#c0262d}
@media(prefers-color-scheme:dark){text{fill:#a2abb5}.ink{fill:#e7eaee}.back{fill:#14171b}
.line{stroke:#363c44}.a{fill:#77aadd}.b{fill:#ddcc66}.c{fill:#55bb77}.queue{fill:#9aa1ab}
.lost,.kill{stroke:#ff7b80}.rescue,.red,.away{fill:#ff7b80}.sweep{fill:#9aa1ab}.page{fill:#dd77bb}}
"""
Place = Callable[[str], float]


def draw(record: dict[str, Any]) -> str:
    """Return the picture of a record as one SVG, readable in light and in dark."""
    workers = record["workers"]
    top = QUEUE_TOP + QUEUE_HEIGHT + 18
    sweeps_at = top + LANE * len(workers)
    height = sweeps_at + 108
    place, length = _scale(record)
    lanes = {name: top + LANE * n for n, name in enumerate(workers)}
    parts = [
        *_outages(record, place, sweeps_at),
        *_queue(record, place),
        *(part for name, top in lanes.items() for part in _worker(record, name, top, place)),
        *_sweeps(record, place, sweeps_at + 14),
        *_pages(record, place, sweeps_at + 42),
        *_axis(length, sweeps_at + 62),
        *_legend(height - 14),
    ]
    name = "A service with workers that are killed, and what became of their jobs"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-label="{name}"><style>{STYLE.strip()}</style>'
        f'<rect class="back" width="{WIDTH}" height="{height}"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _scale(record: dict[str, Any]) -> tuple[Place, timedelta]:
    """Where a moment is drawn, and how long the whole took."""
    first = min(_time(job["created"]) for job in record["jobs"])
    ends = [_time(each["ended"]) for each in (*_told(record), *record["jobs"])]
    length = max(ends) - first + timedelta(seconds=2)

    def place(moment: str) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * ((_time(moment) - first) / length)

    return place, length


def _queue(record: dict[str, Any], place: Place) -> Iterator[str]:
    """How many jobs wait to be claimed, as an area of steps."""
    steps = [(place(job["created"]), 1) for job in record["jobs"]]
    steps += [(place(job["started"]), -1) for job in record["jobs"] if job["started"]]
    waiting, most, heights = 0, 1, []
    for x, change in sorted(steps):
        waiting += change
        most = max(most, waiting)
        heights.append((x, waiting))
    bottom = QUEUE_TOP + QUEUE_HEIGHT
    path = "".join(f"H{x:.1f}V{bottom - n / most * QUEUE_HEIGHT:.1f}" for x, n in heights)
    yield f'<path class="queue" d="M{LEFT} {bottom}{path}V{bottom}Z"/>'
    yield _text(LEFT - 10, QUEUE_TOP + 12, "jobs that wait", "end ink")
    yield _text(LEFT - 10, QUEUE_TOP + 27, f"at most {most}", "end")


def _worker(record: dict[str, Any], name: str, top: float, place: Place) -> Iterator[str]:
    """What it worked on; below, each row it left `running`, from its end to its rescue."""
    yield f'<line class="line" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{top - 5}" y2="{top - 5}"/>'
    yield _text(LEFT - 10, top + 13, name, "end ink")
    jobs = {job["id"]: job for job in record["jobs"] if job["worker"] == name}
    lost = {each["job"]: each for each in record["mishaps"] if each["job"] in jobs}
    for key, job in jobs.items():
        if job["started"] and key not in lost:
            rescued = job["code"] == "watchdog_timeout"
            yield _bar(job, place, top, "rescue" if rescued else COLOURS[job["action"]])
    for n, (key, mishap) in enumerate(lost.items()):
        y = top + BAR + 5 + STRAND * (n % 4)
        x, end = place(mishap["at"]), place(jobs[key]["ended"])
        yield f'<line class="lost" x1="{x:.1f}" x2="{end:.1f}" y1="{y}" y2="{y}"/>'
        yield f'<circle class="rescue" cx="{end:.1f}" cy="{y}" r="3"/>'
        tip = f"{mishap['what']}: {mishap['action']} {key}"
        yield _cross(x, top + BAR / 2, mishap["what"] == "SIGKILL", tip)


def _bar(job: dict[str, Any], place: Place, top: float, colour: str) -> str:
    x, end = place(job["started"]), place(job["ended"])
    return (
        f'<rect class="{colour}" x="{x:.1f}" y="{top}" width="{max(end - x - 0.4, 0.6):.1f}"'
        f' height="{BAR}"/>'
    )


def _cross(x: float, y: float, killed: bool, tip: str) -> str:
    shape = "M-5-5L5 5M-5 5L5-5" if killed else "M-3-6V6M3-6V6"
    title = f"<title>{escape(tip)}</title>"
    return f'<path class="kill" transform="translate({x:.1f} {y:.1f})" d="{shape}">{title}</path>'


def _outages(record: dict[str, Any], place: Place, bottom: float) -> Iterator[str]:
    deaths = [each for each in record["outages"] if each["what"] in DEATHS]
    for n, outage in enumerate(deaths):
        x, end = place(outage["began"]), place(outage["ended"])
        wide, tall = max(end - x, 2), bottom + 60 - QUEUE_TOP
        yield (
            f'<rect class="away" x="{x:.1f}" y="{QUEUE_TOP - 4}" width="{wide:.1f}"'
            f' height="{tall}"/>'
        )
        # On two lines in turn: two deaths may be close to each other.
        yield _text(
            (x + end) / 2, QUEUE_TOP - 10 - 15 * (n % 2), DEATHS[outage["what"]], "middle red"
        )


def _sweeps(record: dict[str, Any], place: Place, y: float) -> Iterator[str]:
    yield _text(LEFT - 10, y + 4, "sweeps", "end ink")
    for run in record["sweeps"]:
        x, some = place(run["ended"]), run["changed"]
        if x < LEFT:
            continue
        kind = "rescue" if some else "sweep"
        yield f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="{6 if some else 3}"/>'
        if some:
            yield _beside(x, y + 4, f"{some} rescued", "red")


def _pages(record: dict[str, Any], place: Place, y: float) -> Iterator[str]:
    yield _text(LEFT - 10, y + 4, "pages sent", "end ink")
    for alert in _told(record):
        x = place(alert["ended"])
        yield f'<path class="page" d="M{x:.1f} {y - 7}l7 7l-7 7l-7-7Z"/>'
        yield _beside(x, y + 4, f"{alert['jobs']} x {alert['code']}", "")


def _beside(x: float, y: float, text: str, kind: str) -> str:
    """A word to the right of a mark, or to its left where the picture ends."""
    if x > WIDTH - 150:
        return _text(x - 11, y, text, f"end {kind}".strip())
    return _text(x + 11, y, text, kind)


def _told(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in record["alerts"] if each["state"] == "delivered"]


def _axis(length: timedelta, y: float) -> Iterator[str]:
    total = length.total_seconds()
    step = next(each for each in (10, 30, 60, 300, 3600) if total / each <= 12)
    yield f'<line class="line" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
    for second in range(0, int(total) + 1, step):
        x = LEFT + (WIDTH - LEFT - RIGHT) * second / total
        yield f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 4}"/>'
        yield _text(x, y + 16, f"{second // 60}:{second % 60:02d}", "middle")


def _legend(y: float) -> Iterator[str]:
    x = float(LEFT)
    for name, colour in COLOURS.items():
        yield f'<rect class="{colour}" x="{x}" y="{y - 10}" width="11" height="11"/>'
        yield _text(x + 16, y, name, "")
        x += 118
    yield _cross(x + 5, y - 5, killed=True, tip="killed")
    yield _text(x + 16, y, "killed", "")
    yield _cross(x + 72, y - 5, killed=False, tip="hangs")
    yield _text(x + 81, y, "hangs", "")
    yield f'<line class="lost" x1="{x + 136}" x2="{x + 156}" y1="{y - 4}" y2="{y - 4}"/>'
    yield f'<circle class="rescue" cx="{x + 156}" cy="{y - 4}" r="3"/>'
    yield _text(x + 166, y, "a row left running, until its rescue", "")


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


if __name__ == "__main__":
    sys.stdout.write(draw(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
