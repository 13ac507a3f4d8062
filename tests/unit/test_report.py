"""The page of the report: whole without a network, and safe whatever a job wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from infra.report import page, plots
from infra.report.plots import Series

VOID = {"meta"}
EVIL = '<script>alert("1")</script>&\''


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    level: str
    detail: str


def document(**other: Any) -> dict[str, Any]:
    empty = {"slice": 0, "started": 0, "left_running": 0, "done": 0, "failed": 0}
    return {
        "now": "2026-05-04T12:00:00+00:00",
        "start": "2026-05-03T12:00:00+00:00",
        "hours": 24,
        "database": "app",
        "jobs": {"queued": 0, "running": 0, "done": 0, "failed": 0},
        "slices": [{**empty, "slice": n} for n in range(page.SLICES)],
        "failures": [],
        "runs": [],
        "ages": [],
        "alerts": [],
        "dead": [],
        **other,
    }


def full() -> dict[str, Any]:
    run = {
        "kind": "sweep",
        "started_at": "2026-05-04T11:00:00+00:00",
        "outcome": "ok",
        "changed": 3,
        "message": EVIL,
        "seconds": 0.02,
    }
    return document(
        database=EVIL,
        failures=[{"code": EVIL, "action": EVIL, "slice": n, "jobs": n} for n in range(48)],
        runs=[run, {**run, "seconds": None, "outcome": "running"}, {**run, "kind": "cleanup"}],
        ages=[{"action": EVIL, "jobs": 2, "timeout": 5.0, "seconds": [1, 9]}],
        alerts=[{"route": "page", "state": "dead", "alerts": 1}],
        dead=[{"route": "page", "code": EVIL, "ended_at": run["started_at"], "reason": EVIL}],
    )


class Tags(HTMLParser):
    """Holds that tags nest, and collects them and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize("shown", [document(), full()], ids=["empty", "full"])
def test_the_page_is_whole_and_fetches_nothing(shown: dict[str, Any]) -> None:
    text = page.render(shown, [Check("cron", "ok", "fine")], "production")
    tags = Tags(text)

    assert tags.seen.isdisjoint({"script", "link", "img", "iframe", "object"})
    assert tags.attributes.isdisjoint({"src", "href", "onclick", "onload"})
    assert "url(" not in text
    assert "http://" not in text.replace("http-equiv", "")
    assert "prefers-color-scheme:dark" in text


def test_nothing_that_a_job_wrote_is_read_as_html() -> None:
    text = page.render(full(), [Check(EVIL, "critical", EVIL)], EVIL)

    assert "script" not in Tags(text).seen
    assert "&lt;script&gt;" in text


def test_each_plot_is_well_formed() -> None:
    found = re.findall(r"<svg.*?</svg>", page.render(full(), [], ""), re.DOTALL)

    assert len(found) == 6
    for each in found:
        assert ET.fromstring(each).get("role") == "img"  # noqa: S314 - it is ours


def test_a_critical_check_is_the_first_thing_seen() -> None:
    well = page.render(document(), [Check("cron", "warning", "")], "")
    ill = page.render(document(), [Check("cron", "critical", "")], "")

    assert '<div class="tile good"><b>ok</b>' in well
    assert '<div class="tile bad"><b>critical</b>' in ill


def test_what_ran_is_reckoned_back_from_now() -> None:
    shown = document(jobs={"queued": 0, "running": 2, "done": 5, "failed": 0})
    shown["slices"][47] |= {"started": 1, "left_running": 4}
    plot = page.render(shown, [], "").partition('aria-label="Jobs running"')[2]
    (path,) = re.findall(r' d="([^"]+)"', plot.partition("</svg>")[0])

    assert path.count(f"V{plots._y(5, 5):.1f}") == 47  # noqa: SLF001
    assert f"V{plots._y(2, 5):.1f}H352.0" in path  # noqa: SLF001


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (0.0123, "12.3 ms"),
        (3.4, "3.4 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7200, "2 h"),
        (200000, "2.31 d"),
    ],
)
def test_lengths_of_time_are_short(value: float, text: str) -> None:
    assert plots.seconds(value) == text


@pytest.mark.parametrize(
    ("top", "nice"), [(0, 1), (-1, 1), (0.02, 0.02), (0.021, 0.05), (5, 5), (6, 10), (101, 200)]
)
def test_an_axis_ends_at_a_round_number(top: float, nice: float) -> None:
    assert plots.nice(top) == pytest.approx(nice)


def test_bars_of_nothing_are_an_empty_plot() -> None:
    assert "<rect" not in plots.bars("t", [Series("a", [0, 0], 0)], ("a", "b"))
