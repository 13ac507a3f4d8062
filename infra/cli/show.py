"""The answers of the commands: for people as tables, for machines as one JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from infra import changes, cronexpr, terminal
from infra import metrics as openmetrics
from infra.cli import hints

if TYPE_CHECKING:
    from infra.checks import Problem
    from infra.db.apply import Result
    from infra.db.looking import Look
    from infra.db.remove import Removal
    from infra.db.runs import Kind, Ran
    from infra.db.status import Status
    from infra.local.persistent import Status as LocalStatus


def plan(seen: Look, *, json: bool) -> None:
    """The changes, and what stands in their way."""
    problems = (*seen.faults, *seen.problems)
    if json:
        terminal.document(
            {
                "changes": [change.to_json() for change in seen.changes],
                "problems": [_problem(problem) for problem in problems],
                "notes": [_problem(problem) for problem in seen.notes],
                "warnings": list(seen.warnings),
            }
        )
        return
    terminal.changes(seen.changes)
    terminal.warnings(seen.warnings)
    _problems((*problems, *seen.notes))


def applied(result: Result, *, json: bool) -> None:
    """The changes made, and what remains."""
    fires = _next_fires(result)
    if json:
        terminal.document(
            {
                "changes": [change.to_json() for change in result.changes],
                "registered": result.registered,
                "paused": [c.name for c in result.after if c.action == "paused"],
                "next": fires,
                "problems": [_problem(problem) for problem in result.problems],
                "warnings": list(result.warnings),
                "after": [change.to_json() for change in result.after if change.action != "same"],
            }
        )
        return
    terminal.changes(result.changes)
    for change in result.after:
        if change.action in {"paused", "unknown"}:
            text = f"{change.action}: {change.kind} {change.name}: {change.why}"
            terminal.talk(hints.complete(text))
    for name, time in fires.items():
        terminal.talk(f"next {name}: {time}")
    terminal.warnings(result.warnings)
    _problems(result.problems)


def _next_fires(result: Result) -> dict[str, str]:
    """When each schedule that will fire does so next, in UTC."""
    if not result.registered:
        return {}
    zone = result.observed.setting("cron.timezone") or "GMT"
    active = {job.name: job.schedule for job in result.observed.jobs or () if job.active}
    now = datetime.now(tz=UTC)
    return {
        change.name: cronexpr.next_fires(cronexpr.parse(active[change.name]), now, 1, zone)[
            0
        ].isoformat()
        for change in result.after
        if change.kind == "schedule" and change.name in active
    }


def status(found: Status, *, json: bool) -> None:
    """One line a check; what to do is said for those that are not ok."""
    if json:
        terminal.document(
            {
                "healthy": found.healthy,
                "checks": [asdict(check) for check in found.checks],
                "changes": [change.to_json() for change in found.changes],
            }
        )
        return
    rows = [
        (
            check.level,
            check.name,
            check.detail,
            "" if check.level == "ok" else hints.complete(check.hint),
        )
        for check in found.checks
    ]
    terminal.table(("level", "check", "detail", "try"), rows)


def metrics(found: Status) -> str:
    """Everything a dashboard plots."""
    samples = [
        openmetrics.Sample("jobwarden_up", 1.0),
        openmetrics.Sample("jobwarden_healthy", float(found.healthy)),
        openmetrics.Sample("jobwarden_drift", float(len(changes.pending(found.changes)))),
        *(
            openmetrics.Sample("jobwarden_check", 1.0, {"check": check.name, "level": check.level})
            for check in found.checks
        ),
        *(openmetrics.Sample(figure.name, figure.value, figure.labels) for figure in found.figures),
    ]
    return openmetrics.render(samples)


def would_go(kind: Kind, rows: Sequence[dict[str, Any]], limit: int, *, json: bool) -> None:
    """The jobs a run would take, and the limit each is past."""
    if json:
        terminal.document({"kind": kind, "jobs": list(rows), "limit": limit})
        return
    since, over = ("running since", "limit") if kind == "sweep" else ("finished", "retention")
    terminal.table(
        ("job", "action", since, over),
        [(row["id"], row["action"], str(row["since"]), row["limit"]) for row in rows],
        whole={"job"},
    )
    more = " or more" if len(rows) == limit else ""
    verb = "would be failed" if kind == "sweep" else "would be deleted"
    terminal.out().print(f"{len(rows)}{more} job{'s' if len(rows) != 1 else ''} {verb}")


def ran(done: Ran, *, json: bool) -> None:
    """What one run did, from the run log."""
    if json:
        terminal.document({"name": done.name, "command": done.command, "run": done.row})
        return
    if done.row is None:
        terminal.out().print(f"{done.name}: done ({done.command})")
        return
    row = done.row
    terminal.out().print(
        f"{row['kind']}: {row['outcome']}, {row['changed']} changed, {row['skipped']} locked, "
        f"{row['poisoned']} refused" + (f": {row['message']}" if row["message"] else "")
    )


def removed(what: Removal, *, json: bool) -> None:
    """What went, or would go."""
    if json:
        terminal.document({"removed": what.done, "statements": list(what.statements)})
        return
    for text in what.statements:
        terminal.out().print(text, markup=False, soft_wrap=True)
    if not what.statements:
        terminal.talk("nothing of ours is there")
    elif what.done:
        terminal.talk("removed; the jobs table, its rows, the roles and their rights on it stay")
    else:
        terminal.talk("nothing was removed yet: run it again with --yes")


def local(state: LocalStatus, *, json: bool) -> None:
    """Where the private cluster is."""
    if json:
        terminal.document({"url": state.url, "folder": state.folder, "pid": state.pid})
    else:
        terminal.out().print(state.url or "not running", markup=False, soft_wrap=True)


def _problems(found: Iterable[Problem]) -> None:
    """Each with its way out, on stderr."""
    for problem in found:
        terminal.talk(hints.complete(str(problem)))


def _problem(problem: Problem) -> dict[str, str]:
    return {"subject": problem.subject, "message": problem.message, "try": problem.hint}
