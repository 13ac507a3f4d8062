"""How it is going: ``jobwarden.health()``, the drift, and what waits for a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import psycopg
from psycopg.rows import class_row

from infra import checks, queries, rights
from infra.changes import Change
from infra.db.connect import connect
from infra.db.observe import observe
from infra.diff import diff
from infra.errors import InfraError
from infra.observed import Observed
from infra.plan import Plan

Level = Literal["ok", "warning", "critical", "unknown"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check: ``hint`` says what to do when ``level`` is not ok."""

    name: str
    level: Level
    detail: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One sample for a dashboard, named and measured as OpenMetrics has it."""

    name: str
    labels: dict[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Status:
    """All checks, the changes a plan would show, the figures, and what was seen."""

    checks: tuple[Check, ...]
    changes: tuple[Change, ...]
    figures: tuple[Figure, ...]
    observed: Observed

    @property
    def healthy(self) -> bool:
        """False when any check is critical."""
        return all(check.level != "critical" for check in self.checks)


def status(plan: Plan, url: str) -> Status:
    """Ask, read-only. Raises InfraError when the server cannot be reached or a role may not ask."""
    with connect(url) as connection:
        found = observe(connection, plan.environment)
        if blind := rights.blind(found):
            raise InfraError(blind.message, hint=blind.hint)
        changes = diff(plan, found)
        asked = (
            *_server(plan, found),
            *_health(connection, found),
            _drift(changes),
            _restart(found),
        )
        return Status(asked, changes, _figures(connection, found), found)


def _server(plan: Plan, found: Observed) -> Iterator[Check]:
    """What keeps the schedules from firing, each as a check of its own."""
    stops = checks.faults(plan, found)
    waits = checks.waiting(found)
    problems = (*stops, *((waits,) if waits else checks.proof(plan, found)))
    for problem in problems:
        yield Check(problem.subject, "critical", problem.message, problem.hint)
    if not problems and found.installed:
        yield Check("schedules", "ok", "nothing known keeps them from firing")
    for text in checks.warnings(plan, found):
        yield Check("warning", "warning", text)


def _health(connection: psycopg.Connection, found: Observed) -> tuple[Check, ...]:
    if not found.installed:
        return (Check("installed", "critical", "schema jobwarden is not there", "jobwarden apply"),)
    with connection.cursor(row_factory=class_row(Check)) as cursor:
        return tuple(cursor.execute(queries.HEALTH))


def _figures(connection: psycopg.Connection, found: Observed) -> tuple[Figure, ...]:
    if not found.installed:
        return ()
    with connection.cursor(row_factory=class_row(Figure)) as cursor:
        return tuple(cursor.execute(queries.FIGURES))


def _drift(changes: tuple[Change, ...]) -> Check:
    """Whether the database is as the environment has it. A paused schedule does not run at all."""
    off = [change for change in changes if change.writes]
    paused = [change.name for change in changes if change.action == "paused"]
    foreign = [change.name for change in changes if change.action == "foreign"]
    if foreign:
        names = ", ".join(foreign)
        text = f"another role's schedule stands in the place of ours: {names}"
        return Check("drift", "critical", text, "jobwarden apply --take-over")
    if paused:
        return Check(
            "drift", "critical", f"paused: {', '.join(paused)}", "jobwarden apply --resume"
        )
    if off:
        first = ", ".join(f"{change.kind} {change.name} ({change.action})" for change in off[:4])
        names = first + (f" and {len(off) - 4} more" if len(off) > 4 else "")
        return Check("drift", "warning", names, "jobwarden plan, then jobwarden apply")
    return Check("drift", "ok", "as the environment has it")


def _restart(found: Observed) -> Check:
    names = sorted(name for name, setting in found.settings.items() if setting.pending_restart)
    if names:
        hint = "restart Postgres when it suits you; nothing here does it for you"
        return Check(
            "pending_restart",
            "warning",
            f"changed, and waiting for a restart: {', '.join(names)}",
            hint,
        )
    return Check("pending_restart", "ok", "no setting waits for a restart")
