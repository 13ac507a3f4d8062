"""The resources as the engine is told of them: types, names, inputs, parents."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pulumi", reason="the group `managed` is not installed")

import pulumi  # behind the skip

from infra.schedules import CLEANUP, WATCHDOG
from infra.stack.resources import FinalStep, FinalStepArgs
from tests.unit.seen import wanted

STEP = "jobwarden:stack:FinalStep"
KIND = "pulumi-python:dynamic/jobwarden:"


class Engine(pulumi.runtime.Mocks):
    """Takes each resource down."""

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}

    def new_resource(self, args: Any) -> tuple[str, dict[str, Any]]:
        self.made[args.name] = args
        return f"{args.name}-id", {**args.inputs, "registered": True}

    def call(self, args: Any) -> Any:  # noqa: ARG002  # nothing is asked
        return {}


def declare(**environment: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what was made by name, and the URN of each resource."""
    engine = Engine()
    urns: dict[str, str] = {}
    pulumi.runtime.set_mocks(engine, project="jobwarden", stack="test")

    def program() -> Any:
        step = FinalStep("jobwarden", FinalStepArgs(wanted(**environment)))
        found = {name: it.urn for name, it in step.schedules.items()}
        every = {"sql": step.sql.urn, "policy": step.policy.urn, **found}
        return pulumi.Output.all(**every).apply(urns.update)

    until_done: Any = pulumi.runtime.test
    until_done(program)()
    return engine.made, urns


def test_there_is_one_resource_for_the_sql_one_for_the_policy_and_one_a_schedule() -> None:
    report = {"name": "report", "schedule": "@daily", "command": "SELECT 1"}

    made, _ = declare(schedules=[report])

    assert {name: args.typ for name, args in made.items()} == {
        "jobwarden": STEP,
        "sql": f"{KIND}Sql",
        "policy": f"{KIND}Policy",
        WATCHDOG: f"{KIND}Schedule",
        CLEANUP: f"{KIND}Schedule",
        "report": f"{KIND}Schedule",
    }


def test_each_is_a_child_of_the_final_step() -> None:
    _, urns = declare()

    assert set(urns) == {"sql", "policy", WATCHDOG, CLEANUP}
    for name, urn in urns.items():
        assert urn.endswith(f"::{name}")
        assert f"::{STEP}$" in urn


def test_a_schedule_is_told_as_it_is_declared() -> None:
    made, _ = declare(
        databaseUrl="postgresql://u@h/db", watchdog={"schedule": "*/2 * * * *", "timeout": "3m"}
    )

    told = {key: made[WATCHDOG].inputs[key] for key in ("name", "schedule", "command", "database")}
    assert told == {
        "name": WATCHDOG,
        "schedule": "*/2 * * * *",
        "command": "CALL jobwarden.sweep()",
        "database": "postgresql://u@h/db",
    }
    assert made["policy"].inputs["actions"] == {"*": {"timeout": "3m", "retention": "1d"}}


def test_the_state_keeps_a_provider_by_its_name_and_nothing_else() -> None:
    first, _ = declare()
    second, _ = declare(watchdog={"timeout": "1m"})

    for name in ("sql", "policy", WATCHDOG):
        assert first[name].inputs["__provider"] == second[name].inputs["__provider"]
        assert len(first[name].inputs["__provider"]) < 400
