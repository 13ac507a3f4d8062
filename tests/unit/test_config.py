"""Environments: what is read, what is refused, and what the message must name."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from infra import config, schedules
from infra.config import Environment, TableName
from infra.errors import ConfigError, Fault

DATA = Path(__file__).parents[1] / "data"
CASES: list[dict[str, Any]] = YAML(typ="safe", pure=True).load(DATA / "cases" / "config.yaml")

# These cases are about keys that are not there yet: each names the key, in full.
NOT_YET = {
    "threshold_below_three_heartbeats": "watchdog.heartbeat",
    "retry_without_an_attempt_column": "watchdog.actions.a.onTimeout",
}
NOW = [case for case in CASES if case["name"] not in NOT_YET]
LATER = [case for case in CASES if case["name"] in NOT_YET]


def _refused(mapping: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        config.parse(mapping)
    return caught.value


def _only_fault(mapping: object) -> Fault:
    faults = _refused(mapping).faults
    assert len(faults) == 1, faults
    return faults[0]


def _own(**entry: object) -> dict[str, object]:
    return {"schedules": [{"name": "a", "schedule": "@daily", "command": "SELECT 1"} | entry]}


@pytest.mark.parametrize("case", NOW, ids=[case["name"] for case in NOW])
def test_a_faulty_environment_is_refused_with_exactly_its_paths(case: dict[str, Any]) -> None:
    error = _refused(case["config"])

    assert sorted(fault.path for fault in error.faults) == sorted(case["paths"])
    for fault in error.faults:
        assert f"{fault.path}: {fault.problem} (got {fault.got}; allowed: {fault.allowed})" in str(
            error
        )
        assert fault.hint


@pytest.mark.parametrize("case", [case for case in NOW if "suggests" in case], ids=str)
def test_a_misspelt_key_gets_the_right_one(case: dict[str, Any]) -> None:
    assert f"did you mean {case['suggests']}?" in str(_refused(case["config"]))


@pytest.mark.parametrize("case", [case for case in NOW if "hides" in case], ids=str)
def test_a_secret_is_in_no_part_of_the_message(case: dict[str, Any]) -> None:
    error = _refused(case["config"])

    assert case["hides"] not in str(error) + repr(error) + repr(error.faults)


@pytest.mark.parametrize("case", LATER, ids=[case["name"] for case in LATER])
def test_a_key_of_a_later_version_is_refused_as_such(case: dict[str, Any]) -> None:
    faults = {fault.path: fault.problem for fault in _refused(case["config"]).faults}

    assert faults[NOT_YET[case["name"]]] == "not supported by this version"


def test_no_case_is_put_off_without_need() -> None:
    assert set(NOT_YET) <= {case["name"] for case in CASES}
    assert len(NOW) + len(NOT_YET) == len(CASES)
    for case in LATER:
        paths = {fault.path for fault in _refused(case["config"]).faults}
        assert paths != set(case["paths"]), f"{case['name']} can be tested now"


def test_the_empty_environment_is_all_defaults() -> None:
    environment = config.parse({})

    assert environment.target == "existing"
    assert environment.database_url is None
    assert environment.jobs.table == TableName("public", "jobs")
    assert environment.jobs.columns.completed_at == "completed_at"
    assert environment.jobs.states.running == "running"
    assert environment.jobs.guard is True
    assert environment.watchdog.timeout == timedelta(minutes=10)
    assert environment.cleanup.retention == timedelta(hours=24)
    assert environment.schedules == ()
    assert environment.strict is False


def test_our_schedules_are_declared_once() -> None:
    environment = config.parse({})

    ours = (environment.watchdog.schedule, environment.cleanup.schedule)
    assert ours == tuple(schedule.schedule for schedule in schedules.OURS)


def test_all_that_is_said_is_read() -> None:
    environment = config.parse(
        {
            "target": "local",
            "databaseUrl": "postgresql://u@h/db",
            "postgres": {"version": "16", "cron": {"database": "app", "timezone": "Asia/Tokyo"}},
            "jobs": {"table": 'App."Task Queue"', "columns": {"id": "TaskId"}, "guard": False},
            "watchdog": {"timeout": "1h30m", "actions": {"import": {"timeout": "never"}}},
            "cleanup": {"retention": "forever", "actions": {"a": {"retention": "7d"}}},
            "schedules": [{"name": "n", "schedule": "@hourly", "command": " SELECT 1 "}],
            "strict": True,
        }
    )

    assert environment.target == "local"
    assert environment.database_url == "postgresql://u@h/db"
    assert environment.postgres.version == "16"
    assert environment.postgres.cron.timezone == "Asia/Tokyo"
    assert environment.jobs.table == TableName("app", "Task Queue")
    assert environment.jobs.columns.id == "taskid"
    assert environment.jobs.guard is False
    assert environment.watchdog.timeout == timedelta(hours=1, minutes=30)
    assert environment.watchdog.actions["import"].timeout is None
    assert environment.cleanup.retention is None
    assert environment.cleanup.actions["a"].retention == timedelta(days=7)
    assert [(s.name, s.schedule, s.command) for s in environment.schedules] == [
        ("n", "@hourly", "SELECT 1")
    ]
    assert environment.strict is True


def test_an_environment_never_changes() -> None:
    environment = config.parse({})

    with pytest.raises(ValueError, match="frozen"):
        environment.strict = True  # type: ignore[misc]


def test_a_number_is_a_version_since_pulumi_writes_one() -> None:
    assert config.parse({"postgres": {"version": 16}}).postgres.version == "16"


@pytest.mark.parametrize("version", ["12", "19", 19, "16.4", "sixteen", "", True, 16.0])
def test_a_version_we_do_not_know_is_refused(version: object) -> None:
    assert _only_fault({"postgres": {"version": version}}).path == "postgres.version"


@pytest.mark.parametrize(
    ("mapping", "path", "says"),
    [
        ({"watchdog": {"timeout": 600}}, "watchdog.timeout", '"600s"'),
        ({"watchdog": {"timeout": "366d"}}, "watchdog.timeout", "365d"),
        ({"watchdog": {"timeout": "never"}}, "watchdog.timeout", "10m"),
        ({"watchdog": {"actions": {"a": {}}}}, "watchdog.actions.a.timeout", "missing"),
        ({"watchdog": {"actions": {"*": {"timeout": "1m"}}}}, "watchdog.actions.*", "timeout"),
        ({"watchdog": {"actions": {"": {"timeout": "1m"}}}}, "watchdog.actions.", "empty"),
        ({"watchdog": None}, "watchdog", "a mapping"),
        ({"cleanup": {"retention": "0d"}}, "cleanup.retention", "forever"),
        ({"cleanup": {"retention": "never"}}, "cleanup.retention", "forever"),
        ({"cleanup": {"actions": {"a": {"retention": "x"}}}}, "cleanup.actions.a.retention", "10m"),
        ({"target": "aurora"}, "postgres.version", "the version is missing"),
        ({"target": "locl"}, "target", "did you mean local?"),
        ({"target": None}, "target", "local, existing"),
        ({"jobs": {"create": False}}, "jobs.create", "adopting an existing table is not there yet"),
        ({"jobs": {"create": "yes"}}, "jobs.create", "true or false"),
        ({"jobs": {"guard": "true"}}, "jobs.guard", "without quotes"),
        ({"jobs": {"table": 5}}, "jobs.table", "schema.name"),
        ({"jobs": {"columns": {"started_at": "completed_at"}}}, "jobs.columns", "the same column"),
        ({"jobs": {"columns": {"id": "STATUS"}}}, "jobs.columns", "the same column"),
        ({"jobs": {"columns": {"startedAt": "x"}}}, "jobs.columns.startedAt", "started_at"),
        ({"jobs": {"columns": {"id": "a.b"}}}, "jobs.columns.id", "without a dot"),
        ({"jobs": {"states": {"done": "failed"}}}, "jobs.states", "the same state"),
        ({"jobs": {"states": {"done": ""}}}, "jobs.states.done", "empty"),
        ({"jobs": {"states": {"done": "a\0"}}}, "jobs.states.done", "NUL"),
        ({"database_url": "postgresql://h/db"}, "database_url", "did you mean databaseUrl?"),
        ({"postgres": {"cron": {"timezone": "Mars/X"}}}, "postgres.cron.timezone", "IANA"),
        ({"postgres": {"cron": {"timezone": "../x"}}}, "postgres.cron.timezone", "IANA"),
        ({"postgres": {"database": ""}}, "postgres.database", "empty"),
        ({"schedules": {}}, "schedules", "a list"),
        ({"schedules": [5]}, "schedules.0", "a mapping"),
        (_own(name="jobsDailyCleanup@app"), "schedules.0.name", "one of ours"),
        (_own(name="x" * 64), "schedules.0.name", "64 bytes"),
        (_own(nam="b"), "schedules.0.nam", "did you mean name?"),
        (_own(schedule="61 * * * *"), "schedules.0.schedule", "59"),
        ({1: 2}, "1", "key"),
        (None, "(top)", "a mapping"),
        ("target: local", "(top)", "a mapping"),
    ],
)
def test_each_fault_names_its_path_and_the_way_out(mapping: object, path: str, says: str) -> None:
    fault = _only_fault(mapping)

    assert fault.path == path
    assert says in str(fault)


def test_faults_between_keys_come_with_all_the_others() -> None:
    error = _refused(
        {
            "strict": "yes",
            "jobs": {
                "columns": {"id": "x", "status": "x", "oops": "y"},
                "states": {"queued": "w", "running": "w", "done": 1},
            },
            "schedules": [
                {"name": "a", "schedule": "@daily", "command": "SELECT 1"},
                {"name": "a"},
            ],
        }
    )

    assert sorted(fault.path for fault in error.faults) == [
        "jobs.columns",
        "jobs.columns.oops",
        "jobs.states",
        "jobs.states.done",
        "schedules.1.command",
        "schedules.1.name",
        "schedules.1.schedule",
        "strict",
    ]
    assert str(error).startswith("environment: 8 faults\n")


def test_the_message_names_the_file() -> None:
    with pytest.raises(ConfigError, match=r"^Pulumi\.dev\.yaml: 1 fault\n"):
        config.parse({"targt": "local"}, source="Pulumi.dev.yaml")


@pytest.mark.parametrize(
    "mapping",
    [
        {"databseUrl": "postgresql://u:hunter2@h/db"},
        {"target": "postgresql://u:hunter2@h/db"},
        {"databaseUrl": "host=h password=hunter2"},
        {"databaseUrl": ["postgresql://u:hunter2@h/db"]},
        {"postgres": {"database": "postgresql://u:hunter2@h/" + "d" * 60}},
        {"jobs": {"table": "postgresql://u:hunter2@h/db"}},
    ],
)
def test_a_password_in_the_wrong_place_is_hidden_too(mapping: object) -> None:
    error = _refused(mapping)

    assert "hunter2" not in str(error) + repr(error.faults)


def test_a_fault_can_be_printed_whatever_the_text_is() -> None:
    error = _refused({"jobs": {"states": {"done": 1}, "table": "\ud800" * 200}, "\ud800": 1})

    assert str(error).encode()
    assert max(map(len, str(error).splitlines())) < 400


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([*config.json_schema()["$defs"]["Jobs"]["properties"], "jobs", "x"])
                | st.sampled_from(
                    ["watchdog", "cleanup", "actions", "schedules", "name", "postgres"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_value_is_either_read_or_refused_with_paths(value: object) -> None:
    read = _parsed(value)

    if isinstance(read, ConfigError):
        assert read.faults
        assert all(fault.path and fault.hint for fault in read.faults)
    else:
        assert config.parse(read.model_dump(mode="json", by_alias=True)) == read


def _parsed(value: object) -> Environment | ConfigError:
    try:
        return config.parse(value)
    except ConfigError as error:
        return error
