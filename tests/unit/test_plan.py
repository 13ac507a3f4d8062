"""Plans: one golden file an example environment, and what holds between their parts."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from infra import config, plan, sqltext
from infra.observed import Limits
from infra.plan import EVERY_ACTION, Plan
from tests.unit import seen

DATA = Path(__file__).parents[1] / "data"
ENVIRONMENTS = sorted((DATA / "environments").glob("*.yaml"))


def _plan_of(path: Path) -> Plan:
    keys = YAML(typ="safe", pure=True).load(path)["config"]
    found = {
        name.removeprefix("jobwarden:"): value
        for name, value in keys.items()
        if name.startswith("jobwarden:")
    }
    environment = config.parse(found)
    return plan.build(environment, sqltext.render(environment))


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_an_environment_gives_the_plan_of_its_golden_file(
    path: Path, pytestconfig: pytest.Config
) -> None:
    golden = DATA / "plans" / f"{path.stem}.json"
    text = json.dumps(_plan_of(path).to_json(), indent=2, ensure_ascii=False) + "\n"
    if pytestconfig.getoption("--write-changes"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")

    assert golden.read_text(encoding="utf-8") == text


def test_every_golden_file_has_its_environment() -> None:
    assert [path.stem for path in sorted((DATA / "plans").glob("*"))] == [
        path.stem for path in ENVIRONMENTS
    ]


def test_an_action_with_one_limit_of_its_own_takes_the_other_from_the_default() -> None:
    made = seen.wanted(
        watchdog={"timeout": "5m", "actions": {"a": {"timeout": "never"}}},
        cleanup={"retention": "forever", "actions": {"b": {"retention": "1h"}}},
    )

    assert made.policy == {
        EVERY_ACTION: Limits(timedelta(minutes=5), None),
        "a": Limits(None, None),
        "b": Limits(timedelta(minutes=5), timedelta(hours=1)),
    }


def test_ours_come_first_and_know_their_longest_gap() -> None:
    mine = {"name": "mine", "schedule": "0 6 * * 1", "command": "SELECT 1"}

    made = seen.wanted(schedules=[mine]).schedules

    assert list(made) == ["jobsStuckWatchdog", "jobsDailyCleanup", "mine"]
    assert [one.every for one in made.values()] == [
        timedelta(minutes=5),
        timedelta(days=1),
        timedelta(days=7),
    ]


def test_without_the_guard_its_file_is_not_wanted() -> None:
    with_guard, without = seen.wanted(), seen.wanted(jobs={"guard": False})

    assert set(with_guard.rendered.sources) - set(without.rendered.sources) == {plan.GUARD}


def test_all_names_of_the_user_are_in_the_adapter_and_the_guard_alone() -> None:
    mine = seen.wanted(jobs={"table": '"Odd Table"', "columns": {"status": '"Odd State"'}})

    touched = {name for name, text in mine.rendered.sources.items() if "Odd" in text}

    assert touched == {plan.ADAPTER, plan.GUARD}
    assert all('"Odd Table"' in ddl for ddl in mine.rendered.indexes.values())
