"""From a plan to the inputs of a resource and back, and what is there of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from infra.changes import Change
from infra.config import Environment
from infra.diff import diff
from infra.observed import Observed
from infra.plan import Plan
from infra.schedules import CLEANUP, WATCHDOG
from infra.shares import end_of_schedule
from infra.stack import parts
from infra.stack.parts import Policy, Schedule, Sql, Values
from tests.unit.seen import empty, installed, job, ledger, wanted

ENVIRONMENT = {
    "databaseUrl": "postgresql://deployer@db.example.net/app",
    "postgres": {"database": "app"},
    "jobs": {"table": 'app."Task Queue"', "columns": {"status": '"State"'}, "guard": False},
    "watchdog": {"timeout": "15m", "actions": {"import": {"timeout": "never"}}},
    "cleanup": {"actions": {"pdf": {"retention": "forever"}}},
    "schedules": [{"name": "report", "schedule": "@daily", "command": "SELECT 1"}],
}


def through_a_state(values: Values) -> Values:
    """What Pulumi gives back: plain JSON."""
    read: Values = json.loads(json.dumps(values))
    return read


def sql(plan: Plan) -> Values:
    return through_a_state(parts.common(plan.environment) | parts.sql_inputs(plan))


def policy(plan: Plan) -> Values:
    return through_a_state(parts.common(plan.environment) | parts.policy_inputs(plan))


def schedule(plan: Plan, name: str = WATCHDOG) -> Values:
    inputs = parts.schedule_inputs(name, plan.schedules[name])
    return through_a_state(parts.common(plan.environment) | inputs)


def changes(part: parts.Part, inputs: Values, observed: Observed) -> tuple[Change, ...]:
    share, plan = part.share(inputs), part.plan(inputs)
    return share.of(diff(plan, share.view(observed)))


def seen(part: parts.Part, inputs: Values, observed: Observed) -> Values | None:
    return part.seen(inputs, observed, changes(part, inputs, observed))


def test_the_parts_make_the_plan_again() -> None:
    plan = wanted(**ENVIRONMENT)

    again = Sql().plan(sql(plan))

    assert again.rendered == plan.rendered
    assert again.columns == plan.columns
    assert again.environment.jobs == plan.environment.jobs
    assert Policy().plan(policy(plan)).policy == plan.policy
    for name, declared in plan.schedules.items():
        found = Schedule().plan(schedule(plan, name)).schedules
        assert found == {name: replace(declared, why=found[name].why)}


def test_each_part_checks_that_it_is_the_right_database() -> None:
    plan = wanted(**ENVIRONMENT)

    for part, inputs in (
        (Sql(), sql(plan)),
        (Policy(), policy(plan)),
        (Schedule(), schedule(plan)),
    ):
        assert part.plan(inputs).environment.postgres.database == "app"


@pytest.mark.parametrize(
    ("environment", "label"),
    [
        ({"databaseUrl": "postgresql://u@h/db"}, "postgresql://u@h/db"),
        ({}, parts.FROM_ENVIRONMENT),
        ({"target": "local"}, parts.PRIVATE),
    ],
)
def test_a_url_of_the_environment_is_named_and_not_written_down(
    environment: dict[str, str], label: str
) -> None:
    assert parts.common(Environment.model_validate(environment))["database"] == label


def test_what_holds_is_seen_as_it_is_declared() -> None:
    plan = wanted(**ENVIRONMENT)
    observed = installed(plan)

    for part, inputs in (
        (Sql(), sql(plan)),
        (Policy(), policy(plan)),
        (Schedule(), schedule(plan)),
    ):
        found = seen(part, inputs, observed)

        assert found is not None
        assert {key: found[key] for key in found if key in inputs} == {
            key: inputs[key] for key in inputs if key in found
        }
        assert all(change.action == "same" for change in changes(part, inputs, observed))


def test_nothing_is_seen_where_nothing_is() -> None:
    plan = wanted()

    assert seen(Sql(), sql(plan), empty()) is None
    assert seen(Policy(), policy(plan), empty()) is None


def test_one_changed_key_changes_one_set_of_inputs() -> None:
    before, after = wanted(), wanted(cleanup={"schedule": "0 4 * * *"})

    assert sql(before) == sql(after)
    assert policy(before) == policy(after)
    assert schedule(before) == schedule(after)
    assert schedule(before, CLEANUP) != schedule(after, CLEANUP)


def test_a_schedule_that_was_edited_is_seen_with_its_new_values() -> None:
    plan = wanted()
    edited = job(plan, WATCHDOG, schedule="0 0 * * *", nodeport=5433)

    found = seen(Schedule(), schedule(plan), installed(plan, jobs=(edited,)))

    assert found is not None
    assert found["schedule"] == "0 0 * * *"
    assert found["changedByHand"] == ["nodeport: 5433, ours is 5432"]


def test_a_schedule_that_was_dropped_is_gone() -> None:
    plan = wanted()

    assert seen(Schedule(), schedule(plan), installed(plan, jobs=())) is None


def test_a_schedule_of_a_stranger_is_not_ours() -> None:
    plan = wanted()
    theirs = job(plan, WATCHDOG, username="app")

    assert seen(Schedule(), schedule(plan), installed(plan, jobs=(theirs,))) == {}


def test_a_paused_schedule_is_seen_and_is_no_change() -> None:
    plan = wanted()
    observed = installed(plan, jobs=(job(plan, WATCHDOG, active=False),))

    found = seen(Schedule(), schedule(plan), observed)

    assert found is not None
    assert (found["active"], found["next"]) == (False, None)
    assert found["changedByHand"] == []
    assert [it.action for it in changes(Schedule(), schedule(plan), observed)] == ["paused"]


def test_a_schedule_that_waits_for_pg_cron_is_not_gone() -> None:
    plan = wanted()
    waits = installed(plan, jobs=None, cron_default_version=None, cron_installed_version=None)

    assert seen(Schedule(), schedule(plan), waits) == {}


def test_a_changed_function_is_named() -> None:
    plan = wanted()
    of = ledger(plan)
    observed = installed(plan, ledger=replace(of, actual={**of.objects, "view job": "xx"}))

    found = seen(Sql(), sql(plan), observed)

    assert found is not None
    assert found["changedByHand"] == ["view job: somebody changed it, or its rights, by hand"]


def test_the_end_of_a_schedule_ends_no_other() -> None:
    plan = wanted()

    ending = parts.without_schedules(Schedule().plan(schedule(plan)))
    ends = end_of_schedule(WATCHDOG).of(diff(ending, installed(plan)))

    assert [(it.name, it.action) for it in ends] == [(WATCHDOG, "delete")]
