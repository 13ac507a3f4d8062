"""The plan of an environment: what is wanted on its database. Values only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from infra import cronexpr, durations
from infra.config import Environment
from infra.observed import Limits
from infra.schedules import CLEANUP, OURS, WATCHDOG, Schedule

ADAPTER = "10_adapter"
GUARD = "11_guard"
GRANTS = "90_grants"
EVERY_ACTION = "*"


@dataclass(frozen=True, slots=True)
class Rendered:
    """The SQL of one environment, as ``sqltext.render`` makes it.

    ``release`` counts up whenever the files change for users. ``sources``: text by file name, in
    the order of application. ``indexes``: what follows CREATE INDEX and the name, by name.
    """

    release: int
    sources: Mapping[str, str]
    indexes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Declared:
    """A schedule that is wanted; ``every`` is the longest time between two of its runs."""

    schedule: str
    command: str
    every: timedelta
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is wanted on one database."""

    environment: Environment
    rendered: Rendered
    columns: Mapping[str, str]
    policy: Mapping[str, Limits]
    schedules: Mapping[str, Declared]

    def to_json(self) -> dict[str, Any]:
        """The plan without its SQL texts: what a golden file holds."""
        return {
            "table": str(self.environment.jobs.table),
            "columns": dict(self.columns),
            "sources": list(self.rendered.sources),
            "indexes": dict(self.rendered.indexes),
            "policy": {action: limits_json(limits) for action, limits in self.policy.items()},
            "schedules": {
                name: {"schedule": wanted.schedule, "command": wanted.command, "why": wanted.why}
                for name, wanted in self.schedules.items()
            },
        }


def build(environment: Environment, rendered: Rendered) -> Plan:
    """What ``environment`` wants of its database."""
    return Plan(
        environment=environment,
        rendered=rendered,
        columns=_columns(environment),
        policy=_policy(environment),
        schedules={wanted.name: _declare(wanted) for wanted in _wanted(environment)},
    )


def _columns(environment: Environment) -> dict[str, str]:
    names = environment.jobs.columns
    return {
        names.id: "uuid",
        names.action: "text",
        names.status: "text",
        names.error: "jsonb",
        "worker": "text",
        names.started_at: "timestamp with time zone",
        names.completed_at: "timestamp with time zone",
    }


def _policy(environment: Environment) -> dict[str, Limits]:
    """Both limits for each action that has one of its own, and for all the others."""
    watchdog, cleanup = environment.watchdog, environment.cleanup
    rows = {EVERY_ACTION: Limits(watchdog.timeout, cleanup.retention)}
    for action in sorted(set(watchdog.actions) | set(cleanup.actions)):
        limit, keep = watchdog.actions.get(action), cleanup.actions.get(action)
        rows[action] = Limits(
            limit.timeout if limit else watchdog.timeout,
            keep.retention if keep else cleanup.retention,
        )
    return rows


def _wanted(environment: Environment) -> Iterator[Schedule]:
    times = {WATCHDOG: environment.watchdog.schedule, CLEANUP: environment.cleanup.schedule}
    for ours in OURS:
        yield Schedule(ours.name, times[ours.name], ours.command, ours.why)
    yield from environment.schedules


def _declare(wanted: Schedule) -> Declared:
    every = cronexpr.longest_gap(cronexpr.parse(wanted.schedule))
    return Declared(wanted.schedule, wanted.command, every, wanted.why)


def limits_json(limits: Limits) -> dict[str, str]:
    """Limits as the environment file spells them."""
    return {
        "timeout": durations.render(limits.timeout) if limits.timeout else "never",
        "retention": durations.render(limits.retention) if limits.retention else "forever",
    }
