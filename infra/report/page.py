"""The whole page, from the document of ``jobwarden.report()`` and the checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any, Protocol

from infra.report import parts, plots
from infra.report.plots import Dot, Series
from infra.report.style import STYLE

Document = Mapping[str, Any]
SLICES = 48
TOP_CODES = 4
_OUTCOMES = {"ok": 0, "partial": 2, "skipped": 5, "running": 5}


class Check(Protocol):
    """One check of ``status``."""

    @property
    def name(self) -> str: ...
    @property
    def level(self) -> str: ...
    @property
    def detail(self) -> str: ...


def render(document: Document, checks: Sequence[Check], title: str) -> str:
    """One self-contained page of HTML."""
    healthy = all(check.level != "critical" for check in checks)
    cards = (
        _ended(document),
        _running(document),
        _failures(document),
        _by_action(document),
        _durations(document, "sweep"),
        _durations(document, "cleanup"),
        _ages(document),
        _alerts(document),
        _checks(checks),
        _history(document),
    )
    head = f"Jobs of {document['database']}"
    when = f"{_moment(document['now'])} UTC, the last {document['hours']} h"
    name = escape(f"{head}, {title}" if title else head)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<meta http-equiv="Content-Security-Policy"'
        " content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{name}</title><style>{STYLE}</style></head><body>"
        f"<header><h1>{name}</h1><p>{escape(when)}</p></header>"
        f'<div class="tiles">{_tiles(document, healthy=healthy)}</div>'
        f"<main>{''.join(cards)}</main></body></html>\n"
    )


def _tiles(document: Document, *, healthy: bool) -> str:
    jobs = document["jobs"]
    found = [
        parts.tile("health", "ok", "good") if healthy else parts.tile("health", "critical", "bad")
    ]
    found += [parts.tile(name, plots.number(jobs[name])) for name in ("queued", "running", "done")]
    failed = jobs["failed"]
    return "".join([*found, parts.tile("failed", plots.number(failed), "bad" if failed else "")])


def _ended(document: Document) -> str:
    slices = document["slices"]
    series = [
        Series("done", [each["done"] for each in slices], 0),
        Series("failed", [each["failed"] for each in slices], 1),
    ]
    title = "Jobs that ended"
    body = plots.bars(title, series, _ends(document)) + parts.legend(series)
    return parts.card(title, body, _per_slice(document))


def _running(document: Document) -> str:
    """From how many run now, back through what started and ended."""
    values = [float(document["jobs"]["running"])]
    for each in reversed(document["slices"][1:]):
        values.append(max(values[-1] - each["started"] + each["left_running"], 0))
    title = "Jobs running"
    plot = plots.steps(title, Series("running", values[::-1], 3), _ends(document))
    return parts.card(title, plot, "At the end of each slice. Deleted jobs are not counted.")


def _failures(document: Document) -> str:
    totals: Counter[str] = Counter()
    for each in document["failures"]:
        totals[each["code"]] += each["jobs"]
    named = [code for code, _ in totals.most_common(TOP_CODES)]
    title = "Failures by code"
    if not named:
        return parts.card(title, parts.nothing("nothing failed"))
    values = {code: [0.0] * SLICES for code in [*named, "others"]}
    for each in document["failures"]:
        code = each["code"] if each["code"] in named else "others"
        values[code][each["slice"]] += each["jobs"]
    series = [
        Series(code, numbers, n + 1)
        for n, (code, numbers) in enumerate(values.items())
        if any(numbers)
    ]
    body = plots.bars(title, series, _ends(document)) + parts.legend(series)
    return parts.card(title, body, _per_slice(document))


def _by_action(document: Document) -> str:
    totals: Counter[tuple[str, str]] = Counter()
    for each in document["failures"]:
        totals[each["code"], each["action"]] += each["jobs"]
    rows = [
        (plots.shortened(code, 40), plots.shortened(action, 40), str(count))
        for (code, action), count in totals.most_common(12)
    ]
    body = parts.table(("code", "action", "jobs"), rows, "nothing failed")
    return parts.card("Failures by code and action", body)


def _durations(document: Document, kind: str) -> str:
    runs = [
        each for each in document["runs"] if each["kind"] == kind and each["seconds"] is not None
    ]
    title = f"How long each {kind} took"
    if not runs:
        return parts.card(title, parts.nothing(f"no {kind} in these hours"))
    found = [
        Dot(_share(document, run), run["seconds"], _OUTCOMES.get(run["outcome"], 1), _told(run))
        for run in runs
    ]
    changed = sum(run["changed"] for run in runs)
    verb = "rescued" if kind == "sweep" else "deleted"
    note = f"{len(runs)} run{'s' if len(runs) != 1 else ''}, {changed} jobs {verb}"
    return parts.card(title, plots.dots(title, found, _ends(document), "s"), note)


def _told(run: Mapping[str, Any]) -> str:
    took = plots.seconds(run["seconds"])
    return f"{_moment(run['started_at'])}: {run['outcome']}, {took}, {run['changed']} changed"


def _ages(document: Document) -> str:
    title = "Age of running jobs"
    rows = [
        (f"{plots.shortened(each['action'], 34)}: {each['jobs']}", each["seconds"], each["timeout"])
        for each in document["ages"][:12]
    ]
    if not rows:
        return parts.card(title, parts.nothing("nothing runs"))
    return parts.card(title, plots.strips(title, rows), "A dot is a job, a bar its action's limit.")


def _alerts(document: Document) -> str:
    rows = [(each["route"], each["state"], str(each["alerts"])) for each in document["alerts"]]
    body = parts.table(("route", "state", "alerts"), rows, "no alert in these hours")
    dead = [
        (_moment(each["ended_at"]), each["route"], each["code"], each["reason"] or "")
        for each in document["dead"]
    ]
    if dead:
        body += "<h3>Never delivered</h3>"
        body += parts.table(("when", "route", "code", "why"), dead, "")
    return parts.card("Alerts", body, width="two")


def _checks(checks: Sequence[Check]) -> str:
    rows = [(check.level, check.name, check.detail) for check in checks]
    body = parts.table(("level", "check", "detail"), rows, "no checks")
    return parts.card("Checks", body, width="wide")


def _history(document: Document) -> str:
    rows = [
        (
            _moment(run["started_at"]),
            run["kind"],
            run["outcome"],
            "" if run["seconds"] is None else plots.seconds(run["seconds"]),
            str(run["changed"]),
            plots.shortened(run["message"] or "", 120),
        )
        for run in reversed(document["runs"][-25:])
    ]
    heads = ("when", "run", "outcome", "took", "jobs", "message")
    return parts.card("The latest runs", parts.table(heads, rows, "no run yet"), width="wide")


def _share(document: Document, run: Mapping[str, Any]) -> float:
    start, now, at = (
        datetime.fromisoformat(text)
        for text in (document["start"], document["now"], run["started_at"])
    )
    return min(max((at - start) / (now - start), 0), 1)


def _ends(document: Document) -> tuple[str, str]:
    return _moment(document["start"])[5:16], _moment(document["now"])[5:16]


def _per_slice(document: Document) -> str:
    return f"Each bar is {plots.seconds(document['hours'] * 3600 / SLICES)}."


def _moment(text: str) -> str:
    return datetime.fromisoformat(text).isoformat(" ", "seconds").partition("+")[0]
