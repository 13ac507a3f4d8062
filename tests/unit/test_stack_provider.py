"""What Pulumi is told, and when a database is asked at all."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import pytest

pytest.importorskip("pulumi.dynamic", reason="the group `managed` is not installed")

from pulumi import dynamic  # behind the skip

from infra.db.connect import NoConnection
from infra.stack import reach
from infra.stack.parts import FROM_ENVIRONMENT, PRIVATE
from infra.stack.provider import (
    PolicyProvider,
    Provider,
    ScheduleProvider,
    SqlProvider,
    StackError,
)

NEWS = {
    "database": FROM_ENVIRONMENT,
    "registerFrom": "pulumi",
    "name": "report",
    "schedule": "@daily",
    "command": "SELECT 1",
    "changedByHand": [],
    "pausedByHand": False,
}
OLDS = {**NEWS, "registered": True, "reached": True, "reason": "", "jobid": 7, "active": True}


@pytest.fixture(autouse=True)
def traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider makes traces short in its own process; here there are others."""
    monkeypatch.setattr(sys, "tracebacklimit", 1000, raising=False)


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> NoReturn:
        raise NoConnection("no connection to postgresql://h/db: refused", hint="check the host")

    monkeypatch.setattr(reach, "connect", none)
    monkeypatch.setattr(reach, "_unreached", {})


def configured(provider: Provider, **config: str) -> Provider:
    raw = {f"jobwarden:{key}": value for key, value in config.items()}
    provider.configure(dynamic.ConfigureRequest(dynamic.Config(raw, "jobwarden")))
    return provider


def outs(result: Any) -> dict[str, Any]:
    """What a provider answered, which is never nothing."""
    assert result.outs is not None
    return dict(result.outs)


@pytest.mark.parametrize(
    ("olds", "news", "changes"),
    [
        ({}, {}, False),
        ({}, {"schedule": "@hourly"}, True),
        ({}, {"command": "SELECT 2"}, True),
        ({}, {"database": "postgresql://other/db"}, True),
        ({}, {"registerFrom": "boot"}, True),
        ({"registered": False}, {}, True),
        ({"registered": False, "registerFrom": "boot"}, {"registerFrom": "boot"}, False),
        ({"changedByHand": ["nodeport: 5433, ours is 5432"]}, {}, True),
        ({"pausedByHand": True}, {}, True),
        ({"active": False, "jobid": 8, "next": "2026-01-01"}, {}, False),
        ({"databaseName": "app"}, {}, True),
    ],
)
def test_a_diff_compares_what_is_declared(
    olds: dict[str, Any], news: dict[str, Any], changes: bool
) -> None:
    found = ScheduleProvider().diff("report", {**OLDS, **olds}, {**NEWS, **news})

    assert found.changes is changes


def test_a_pause_that_a_refresh_saw_is_no_change_for_the_program() -> None:
    declared = {key: value for key, value in NEWS.items() if key != "pausedByHand"}

    first = ScheduleProvider().check({}, declared)
    later = ScheduleProvider().check({**NEWS, "pausedByHand": True}, declared)

    assert first.inputs["pausedByHand"] is False
    assert later.inputs["pausedByHand"] is True
    assert (
        ScheduleProvider().diff("a", {**OLDS, "pausedByHand": True}, later.inputs).changes is False
    )


@pytest.mark.usefixtures("nowhere")
def test_without_a_database_a_resource_is_made_and_says_why_it_is_not_registered() -> None:
    made = outs(configured(ScheduleProvider()).create(NEWS))

    assert made["registered"] is False
    assert made["reached"] is False
    assert made["reason"].endswith("refused. Try: check the host")
    assert made["schedule"] == "@daily"


@pytest.mark.usefixtures("nowhere")
def test_strict_makes_an_error_of_it() -> None:
    with pytest.raises(StackError, match="no connection"):
        configured(ScheduleProvider(), strict="true").create(NEWS)


@pytest.mark.parametrize(
    ("found", "stops"),
    [
        ({"registered": True, "reason": "", "warnings": []}, False),
        ({"registered": True, "reason": "report is paused by hand", "warnings": []}, False),
        ({"registered": True, "reason": "", "warnings": ["never fires"]}, True),
        ({"registered": False, "reason": "no pg_cron", "warnings": []}, True),
    ],
)
def test_strict_is_as_strict_as_the_command_line(
    monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], stops: bool
) -> None:
    monkeypatch.setattr(Provider, "_apply", lambda *_: found)
    provider = configured(ScheduleProvider(), strict="true")

    if stops:
        with pytest.raises(StackError, match=r"^strict: "):
            provider.create(NEWS)
    else:
        assert outs(provider.create(NEWS)) == found


@pytest.mark.usefixtures("nowhere")
def test_an_update_without_a_database_keeps_what_was_known() -> None:
    changed = {**NEWS, "schedule": "@hourly"}

    made = outs(configured(ScheduleProvider()).update("report", OLDS, changed))

    assert made["registered"] is False
    assert (made["reached"], made["jobid"], made["schedule"]) == (True, 7, "@hourly")


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("provider", [SqlProvider, PolicyProvider, ScheduleProvider])
def test_who_else_registers_is_never_interfered_with(provider: type[Provider]) -> None:
    news = {**NEWS, "registerFrom": "boot"}

    made = outs(provider().create(news))
    provider().delete("a", {**OLDS, **made})
    read = provider().read("a", {**OLDS, **made})

    assert made["registered"] is False
    assert "registerFrom: boot" in made["reason"]
    assert read.id == "a"


@pytest.mark.usefixtures("nowhere")
def test_a_delete_without_a_database_fails_with_the_way_out() -> None:
    with pytest.raises(StackError, match="abandonOnDestroy true") as failed:
        configured(ScheduleProvider()).delete("report", OLDS)

    assert "report was not removed: no connection" in str(failed.value)


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    ("config", "known"),
    [({"abandonOnDestroy": "true"}, {}), ({}, {"reached": False, "registered": False})],
    ids=["when it is told to", "when nothing was ever registered"],
)
def test_a_delete_without_a_database_goes_on(
    config: dict[str, str], known: dict[str, bool], capfd: pytest.CaptureFixture[str]
) -> None:
    configured(ScheduleProvider(), **config).delete("report", {**OLDS, **known})

    assert "report was left where it is" in capfd.readouterr().err


@pytest.mark.usefixtures("nowhere")
def test_a_refresh_without_a_database_fails_and_does_not_say_all_is_well() -> None:
    with pytest.raises(StackError, match="no connection"):
        configured(ScheduleProvider()).read("report", OLDS)


@pytest.mark.usefixtures("nowhere")
def test_a_refresh_leaves_what_never_reached_a_database() -> None:
    olds = {**OLDS, "reached": False, "registered": False}

    read = configured(ScheduleProvider()).read("report", olds)

    assert (read.id, outs(read)["registered"]) == ("report", False)


def test_the_password_of_the_stack_goes_to_the_connection_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[str | None] = []

    def spy(_: str, *, password: str | None) -> NoReturn:
        used.append(password)
        raise NoConnection("no connection")

    monkeypatch.setattr(reach, "connect", spy)
    monkeypatch.setattr(reach, "_unreached", {})

    made = configured(ScheduleProvider(), databasePassword="hunter2").create(NEWS)

    assert used == ["hunter2"]
    assert "hunter2" not in repr(made.outs)


def test_resources_of_one_run_wait_for_one_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def slow(url: str, **_: object) -> NoReturn:
        tried.append(url)
        raise NoConnection("no connection: timeout expired")

    monkeypatch.setattr(reach, "connect", slow)
    monkeypatch.setattr(reach, "_unreached", {})
    monkeypatch.setenv("DATABASE_URL", "postgresql://h/db")

    for provider in (SqlProvider(), ScheduleProvider()):
        provider.create({**NEWS, "jobs": {}})

    assert tried == ["postgresql://h/db"]


def test_the_private_cluster_is_never_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOBWARDEN_LOCAL_URL", raising=False)
    monkeypatch.setenv("DATABASE_URL", "postgresql://app@production.example.net/app")
    monkeypatch.setattr(reach, "_unreached", {})

    made = outs(configured(ScheduleProvider()).create({**NEWS, "database": PRIVATE}))

    assert "Try: make up" in made["reason"]
