"""What each resource declares, the plan of its share, and what is there of it. Values only.

The inputs of a resource are what the environment says of it and nothing else, so that a preview
shows one changed value as one changed resource. The provider makes its plan from them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from infra import config, cronexpr, durations, shares, sqltext
from infra.changes import Change
from infra.config import Environment
from infra.observed import RUNNER, CronJob, Limits, Observed
from infra.plan import Declared, Plan, Rendered, build, limits_json
from infra.shares import Share

Values = Mapping[str, Any]

# Stands for a URL that the environment of the process holds: it may have a password in it.
FROM_ENVIRONMENT: Final = "DATABASE_URL"
PRIVATE: Final = "the private cluster"
PULUMI: Final = "pulumi"

_NOTHING: Final = Rendered(0, {}, {})
_HAND: Final = "changedByHand"


class Part(Protocol):
    """One kind of resource."""

    def plan(self, inputs: Values) -> Plan:
        """The plan of this resource alone."""

    def share(self, inputs: Values) -> Share:
        """Which changes are its own."""

    def seen(
        self, inputs: Values, observed: Observed, changes: tuple[Change, ...]
    ) -> Values | None:
        """Its values as they are on the database; None where it is not there."""


def common(environment: Environment) -> dict[str, Any]:
    """What every resource says: which database, and who registers."""
    private = environment.target == "local"
    name = environment.postgres.database
    return {
        "database": environment.database_url or (PRIVATE if private else FROM_ENVIRONMENT),
        **({"databaseName": name} if name else {}),
        "registerFrom": environment.register_from,
    }


def sql_inputs(plan: Plan) -> dict[str, Any]:
    """The jobs table by its names, and each file of SQL by its digest."""
    return {
        "release": plan.rendered.release,
        "jobs": plan.environment.jobs.model_dump(mode="json", by_alias=True),
        "files": _digests(plan.rendered.sources),
        "indexes": dict(plan.rendered.indexes),
        _HAND: [],
    }


def policy_inputs(plan: Plan) -> dict[str, Any]:
    """The limits of each action, as the environment file spells them."""
    return {"actions": {action: limits_json(limits) for action, limits in plan.policy.items()}}


def schedule_inputs(name: str, wanted: Declared) -> dict[str, Any]:
    """One schedule."""
    return {"name": name, "schedule": wanted.schedule, "command": wanted.command, _HAND: []}


@dataclass(frozen=True, slots=True)
class Sql:
    """The schema, its functions, the guard and the indexes."""

    def plan(self, inputs: Values) -> Plan:
        environment = _environment(inputs, jobs=inputs["jobs"])
        return replace(build(environment, sqltext.render(environment)), policy={}, schedules={})

    def share(self, inputs: Values) -> Share:  # noqa: ARG002  # the same for all
        return shares.SQL

    def seen(
        self, inputs: Values, observed: Observed, changes: tuple[Change, ...]
    ) -> Values | None:
        if not observed.installed:
            return None
        if observed.ledger is None:
            return {}
        valid = observed.table.indexes if observed.table else {}
        return {
            "release": observed.ledger.release,
            "files": _digests(observed.ledger.sources),
            "indexes": {name: ddl for name, ddl in inputs["indexes"].items() if valid.get(name)},
            _HAND: [f"{it.name}: {it.why}" for it in changes if it.kind == "object"],
            "server": {"version": observed.server.major, "database": observed.server.database},
        }


@dataclass(frozen=True, slots=True)
class Policy:
    """The limits of all actions."""

    def plan(self, inputs: Values) -> Plan:
        policy = {action: _limits(row) for action, row in inputs["actions"].items()}
        return Plan(_environment(inputs), _NOTHING, {}, policy, {})

    def share(self, inputs: Values) -> Share:  # noqa: ARG002  # the same for all
        return shares.POLICY

    def seen(
        self,
        inputs: Values,  # noqa: ARG002
        observed: Observed,
        changes: tuple[Change, ...],  # noqa: ARG002
    ) -> Values | None:
        if not observed.installed:
            return None
        if observed.ledger is None:
            return {}
        found = observed.ledger.policy
        return {"actions": {action: limits_json(found[action]) for action in sorted(found)}}


@dataclass(frozen=True, slots=True)
class Schedule:
    """One schedule. Paused by hand it stays paused, which is no change to make."""

    def plan(self, inputs: Values) -> Plan:
        text = inputs["schedule"]
        every = cronexpr.longest_gap(cronexpr.parse(text))
        wanted = Declared(text, inputs["command"], every, "declared in the environment file")
        return Plan(_environment(inputs), _NOTHING, {}, {}, {inputs["name"]: wanted})

    def share(self, inputs: Values) -> Share:
        return shares.of_schedule(inputs["name"])

    def seen(
        self, inputs: Values, observed: Observed, changes: tuple[Change, ...]
    ) -> Values | None:
        name = inputs["name"]
        change = next((it for it in changes if it.kind == "schedule" and it.name == name), None)
        job = _held(observed, name)
        if job is None:
            gone = change is None or (change.action == "create" and change.waits is None)
            return None if gone else {}
        return {
            "schedule": job.schedule,
            "command": job.command,
            _HAND: _other_columns(change),
            "jobid": job.jobid,
            "active": job.active,
            "next": _next_run(job, observed.setting("cron.timezone") or "GMT"),
        }


def without_schedules(plan: Plan) -> Plan:
    """The plan that ends what ``plan`` registers."""
    return replace(plan, schedules={})


def _held(observed: Observed, name: str) -> CronJob | None:
    jobs = observed.jobs or ()
    return next((job for job in jobs if job.name == name and job.username == RUNNER), None)


def _next_run(job: CronJob, timezone: str) -> str | None:
    """When it fires next, in UTC, as of this look; None while it is paused."""
    if not job.active:
        return None
    moment = datetime.now(tz=UTC)
    return cronexpr.next_fires(cronexpr.parse(job.schedule), moment, 1, timezone)[0].isoformat()


def _other_columns(change: Change | None) -> list[str]:
    """What is wrong besides the schedule and the command, which are values of their own."""
    if change is None or change.action != "update":
        return []
    return [
        f"{key}: {old}, ours is {change.new[key]}"
        for key, old in change.old.items()
        if key not in {"schedule", "command"}
    ]


def _environment(inputs: Values, **more: Any) -> Environment:
    name = inputs.get("databaseName")
    return config.parse({"postgres": {"database": name} if name else {}, **more})


def _limits(row: Mapping[str, str]) -> Limits:
    timeout, retention = row["timeout"], row["retention"]
    return Limits(
        None if timeout == "never" else durations.parse(timeout),
        None if retention == "forever" else durations.parse(retention),
    )


def _digests(sources: Mapping[str, str]) -> dict[str, str]:
    return {
        name: hashlib.sha256(text.encode()).hexdigest()[:16]
        for name, text in sorted(sources.items())
    }
