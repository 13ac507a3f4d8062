"""The page of `jobwarden report --html` in a real browser: phone and desktop, light and dark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.local.cluster import Cluster
from tests.story.browser import Scheme, Tab, browser
from tests.story.conftest import fresh_database
from tests.story.service import ROOT, Service

# A busy day, with names and reasons as long as they may be.
DAY = """
INSERT INTO jobs (action, status, started_at, completed_at)
SELECT (ARRAY['pdf_build', 'ai_chat', 'resume_rewrite'])[1 + n % 3], 'done',
       now() - n * interval '1 minute', now() - n * interval '1 minute' + interval '20 seconds'
FROM generate_series(1, 1200) AS n;
INSERT INTO jobs (action, status, started_at)
SELECT (ARRAY['pdf_build', 'ai_chat', repeat('import_of_customer_', 6)])[1 + n % 3],
       'running', now() - n * interval '40 seconds' FROM generate_series(1, 60) AS n;
CALL jobwarden.sweep();
UPDATE jobs SET status = 'failed', error = jsonb_build_object('message', repeat('wide', 50), 'code',
    (ARRAY['out_of_paper', 'validation_failed', 'model_overloaded', repeat('code_without_end_', 9)])
    [1 + (random() * 3.4)::int % 4])
WHERE status = 'running';
UPDATE jobwarden.event SET at = now() - random() * interval '24 hours';
INSERT INTO jobs (action, status, started_at)
SELECT (ARRAY['pdf_build', repeat('import_of_customer_', 6)])[1 + n % 2],
       'running', now() - n * interval '45 seconds' FROM generate_series(1, 24) AS n;
INSERT INTO jobs (action) SELECT 'ai_chat' FROM generate_series(1, 17);
INSERT INTO jobwarden.run (kind, started_at, ended_at, outcome, changed, message)
SELECT k, now() - n * interval '5 minutes',
       now() - n * interval '5 minutes' + random() * interval '90 ms',
       CASE WHEN n % 9 = 0 THEN 'partial' ELSE 'ok' END, n % 3,
       CASE WHEN n % 9 = 0 THEN repeat('refused_by_a_trigger_', 12) END
FROM generate_series(1, 280) AS n, unnest(ARRAY['sweep', 'cleanup']) AS k
WHERE k = 'sweep' OR n % 90 = 0 ORDER BY n DESC;
INSERT INTO jobwarden.alert (route, code, made_at, state, next_at, ended_at, reason)
SELECT (ARRAY['page', 'notify'])[1 + n % 2], 'watchdog_timeout', now(), s, now(), now(),
       'HTTP 404: refused, and trying again would not help'
FROM generate_series(1, 6) AS n, unnest(ARRAY['delivered', 'dead']) AS s
"""
# The text of the page whose contrast with what lies behind it is too low (WCAG 2.2, 1.4.3).
FAINT = """
(() => {
  const channels = text => text.match(/[\\d.]+/g).map(Number);
  const light = colour => {
    const [r, g, b] = colour.slice(0, 3).map(c => c / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = node => {
    for (let e = node; e; e = e.parentElement) {
      const colour = channels(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const seen = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    const shown = parent.checkVisibility() && parent.getBoundingClientRect().width > 0;
    if (!text || !shown || parent.closest('title, style')) continue;
    const style = getComputedStyle(parent);
    const svg = parent instanceof SVGElement;
    const ends = [channels(svg ? style.fill : style.color), behind(parent)].map(light);
    seen.push([text, (Math.max(...ends) + 0.05) / (Math.min(...ends) + 0.05)]);
  }
  return {seen: seen.length, faint: seen.filter(([, ratio]) => ratio < 4.5)};
})()
"""
WIDE = """
[...document.querySelectorAll('body *')]
  .filter(e => !e.closest('.scroll table')
    && e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
  .map(e => e.outerHTML.slice(0, 80))
"""
SIDES = ("scroll", "client")  # less the bar to scroll with, where there is one
# Text of a plot that is cut off at its edge.
CUT = """
[...document.querySelectorAll('svg text')].filter(text => {
  const box = text.getBBox(), whole = text.ownerSVGElement.viewBox.baseVal;
  return box.x < 0 || box.y < 0 || box.x + box.width > whole.width
    || box.y + box.height > whole.height;
}).map(text => text.textContent)
"""
HIDDEN = """
[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth)
  .map(e => e.textContent.slice(0, 80))
"""


@pytest.fixture(scope="module")
def tab(tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tool("chromium"), tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture(scope="module")
def page(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a busy day."""
    folder = tmp_path_factory.mktemp("page")
    with Service(fresh_database(cluster), folder, {}) as service:
        for statement in DAY.split(";\n"):
            service.rows(statement)
        stack = folder / "Pulumi.production.yaml"
        stack.write_text("config: {}\n")
        argv = [sys.executable, "-m", "infra", "report", "-s", str(stack), "--html", "page.html"]
        subprocess.run(
            [*argv, "--database-url", service.url],
            cwd=folder,
            env={"PYTHONPATH": str(ROOT)},
            check=True,
        )
    return folder / "page.html"


@pytest.fixture(params=[390, 1280], ids=["phone", "desktop"])
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=["light", "dark"])
def shown(request: pytest.FixtureRequest, tab: Tab, page: Path, width: int) -> Tab:
    """The browser with the page open."""
    scheme: Scheme = request.param
    tab.open(page.as_uri(), width, scheme)
    assert tab.value(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
    return tab


def test_nothing_is_wider_than_the_screen(shown: Tab, width: int) -> None:
    assert shown.value("innerWidth") == width
    wide, room = (shown.value(f"document.scrollingElement.{each}Width") for each in SIDES)
    assert wide <= room <= width
    assert shown.value(WIDE) == []


def test_no_text_is_cut_off_or_out_of_sight(shown: Tab) -> None:
    assert shown.value(CUT) == []
    assert shown.value(HIDDEN) == []


def test_it_asks_nobody_for_anything_and_the_browser_has_no_complaint(
    shown: Tab, page: Path
) -> None:
    shown.value("1")  # all that was told before this answer is in
    requests = [each["request"]["url"] for each in shown.told("Network.requestWillBeSent")]
    entries = [each["entry"] for each in shown.told("Log.entryAdded")]

    assert requests == [page.as_uri()]
    assert [each for each in entries if each["level"] in {"error", "warning"}] == []
    assert shown.told("Runtime.consoleAPICalled") == []
    assert shown.told("Runtime.exceptionThrown") == []


def test_all_text_stands_out_from_what_is_behind_it(shown: Tab) -> None:
    found = shown.value(FAINT)

    assert found["seen"] > 200
    assert found["faint"] == []


def test_a_screen_reader_hears_what_each_plot_is(shown: Tab) -> None:
    nodes = shown.call("Accessibility.getFullAXTree")["nodes"]
    images = [node for node in nodes if node.get("role", {}).get("value") == "image"]
    names = [node["name"]["value"] for node in images]

    assert len(names) == shown.value("document.querySelectorAll('svg').length") == 6
    assert all(names)
    assert len(set(names)) == len(names)


def test_light_and_dark_are_two_looks(tab: Tab, page: Path) -> None:
    looks = []
    for scheme in ("light", "dark"):
        tab.open(page.as_uri(), 1280, scheme)
        looks.append(tab.value("getComputedStyle(document.body).backgroundColor"))

    assert looks[0] != looks[1]
