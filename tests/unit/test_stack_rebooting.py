"""The reboot as a resource: what it reports, when it reboots, what the server has to say."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("pulumi", reason="the group `managed` is not installed")

from infra.aws.calls import AwsError  # behind the skip
from infra.aws.reboot import PENDING, Database, Member
from infra.db.connect import NoConnection
from infra.stack.provider import StackError
from infra.stack.rebooting import RebootProvider

PRELOAD = "shared_preload_libraries"
LIBRARIES = "pg_stat_statements,pg_cron"


class World:
    """A database of one or two instances, and the list its server shows."""

    def __init__(self) -> None:
        self.members: list[Member] = [member("jobs")]
        self.shown: str | None = f"rdsutils,{LIBRARIES}"
        self.rebooted: list[str] = []

    def reboot(self) -> tuple[str, ...]:
        done = tuple(it.name for it in self.members if it.pending)
        self.rebooted += done
        self.members = [member(it.name, writer=it.writer) for it in self.members]
        return done


def member(name: str, *groups: str, writer: bool = True, source: str | None = None) -> Member:
    return Member(name, writer, "available", groups or ("in-sync",), source)


@pytest.fixture(autouse=True)
def tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give back what a failing provider turns off in its process."""
    monkeypatch.setattr(sys, "tracebacklimit", 1000, raising=False)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()

    class Row:
        def execute(self, query: str) -> Row:
            assert query == f"SHOW {PRELOAD}"
            return self

        def fetchone(self) -> tuple[str | None]:
            return (world.shown,)

    @contextmanager
    def reach(_database: str, _password: str | None, _secret: str) -> Iterator[Row]:
        if world.shown is None:
            raise NoConnection("no connection to it")
        yield Row()

    monkeypatch.setattr("infra.stack.reach.reach", reach)
    monkeypatch.setattr(Database, "members", lambda _: tuple(world.members))
    monkeypatch.setattr(Database, "reboot", lambda _: world.reboot())
    return world


def news(**changed: Any) -> dict[str, Any]:
    return {
        "kind": "instance",
        "identifier": "jobs",
        "waitsFor": {"cron.database_name": "app", PRELOAD: LIBRARIES},
        "database": "postgresql://master@jobs.example.net/app",
        "passwordSecret": "arn:secret",
        "rebootWhenPending": False,
        **changed,
    }


def made(**changed: Any) -> dict[str, Any]:
    provider: Any = RebootProvider()
    found: dict[str, Any] = provider.create(news(**changed)).outs
    return found


def updated(olds: dict[str, Any], **changed: Any) -> dict[str, Any]:
    provider: Any = RebootProvider()
    found: dict[str, Any] = provider.update("jobs", olds, news(**changed)).outs
    return found


def changes(olds: dict[str, Any], **changed: Any) -> bool:
    provider: Any = RebootProvider()
    return bool(provider.diff("jobs", olds, news(**changed)).changes)


def test_a_database_in_sync_waits_for_nothing(world: World) -> None:
    outs = made()

    assert (outs["requiresReboot"], outs["reason"], outs["command"]) == (False, "", "")
    assert outs["inForce"] == world.shown
    assert changes(outs) is False


def test_what_is_pending_is_named_with_its_value_and_the_command(world: World) -> None:
    world.members = [member("jobs", PENDING)]
    outs = made()

    assert outs["requiresReboot"] is True
    assert (
        f"jobs must be rebooted before this is in force: cron.database_name = app, {PRELOAD}"
        in (outs["reason"])
    )
    assert outs["command"].startswith("aws rds reboot-db-instance --db-instance-identifier jobs")
    assert world.rebooted == []


def test_while_something_is_pending_each_up_looks_again(world: World) -> None:
    world.members = [member("jobs", PENDING)]
    pending = made()
    world.members = [member("jobs")]
    after = updated(pending)

    assert changes(pending) is True
    assert after["requiresReboot"] is False
    assert changes(after) is False


def test_only_what_is_new_is_said_to_wait(world: World) -> None:
    before = made()
    world.members = [member("jobs", PENDING)]
    longer = {"waitsFor": {"cron.database_name": "app", PRELOAD: f"{LIBRARIES},pgaudit"}}
    outs = updated(before, **longer)
    again = updated(outs, **longer)

    assert f"in force: {PRELOAD} = {LIBRARIES},pgaudit." in outs["reason"]
    assert again["reason"] == outs["reason"]


def test_it_reboots_only_where_that_is_wanted(world: World) -> None:
    world.members = [
        member("reader", PENDING, writer=False),
        member("writer", "in-sync", PENDING),
    ]
    outs = made(kind="cluster", rebootWhenPending=True)

    assert world.rebooted == ["reader", "writer"]
    assert outs["requiresReboot"] is False


def at(monkeypatch: pytest.MonkeyPatch, hour: int, minute: int = 0) -> None:
    """Move the clock of the machine that runs the `up`."""
    now = datetime(2026, 2, 28, hour, minute, tzinfo=UTC)
    monkeypatch.setattr(RebootProvider, "clock", staticmethod(lambda: now))


def test_outside_its_window_it_says_when_that_opens_and_inside_it_reboots(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.members = [member("jobs", PENDING)]
    at(monkeypatch, 1, 59)
    early = made(rebootWindow="02:00-04:00")
    at(monkeypatch, 4)
    late = updated(early, rebootWindow="02:00-04:00")
    before = list(world.rebooted)
    at(monkeypatch, 3, 59)
    inside = updated(late, rebootWindow="02:00-04:00")

    assert f"{PRELOAD} = {LIBRARIES}. The window 02:00-04:00 UTC is closed" in early["reason"]
    assert "it opens next at 2026-02-28 02:00 UTC. Try: pulumi up while" in early["reason"]
    assert "it opens next at 2026-03-01 02:00 UTC." in late["reason"]
    assert f"or {late['command']}; then pulumi up" in late["reason"]
    assert "rebootWhenPending" not in late["reason"]
    assert (before, world.rebooted) == ([], ["jobs"])
    assert changes(late, rebootWindow="02:00-04:00") is True
    assert (inside["requiresReboot"], inside["reason"]) == (False, "")
    assert changes(inside, rebootWindow="02:00-04:00") is False


@pytest.mark.parametrize(("hour", "reboots"), [(22, 0), (23, 1), (0, 1), (1, 0)])
def test_a_window_may_pass_midnight(
    world: World, monkeypatch: pytest.MonkeyPatch, hour: int, reboots: int
) -> None:
    world.members = [member("jobs", PENDING)]
    at(monkeypatch, hour)
    made(rebootWindow="23:00-01:00")

    assert len(world.rebooted) == reboots


def test_an_up_outside_the_window_goes_on_where_somebody_rebooted_by_hand(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.members = [member("jobs", PENDING)]
    at(monkeypatch, 12)
    pending = made(rebootWindow="02:00-04:00")
    world.members = [member("jobs")]

    assert pending["requiresReboot"] is True
    assert updated(pending, rebootWindow="02:00-04:00")["requiresReboot"] is False
    assert world.rebooted == []


def test_a_look_inside_the_window_never_reboots_and_says_that_it_is_open(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.members = [member("jobs", PENDING)]
    at(monkeypatch, 12)
    outs = made(rebootWindow="02:00-04:00")
    at(monkeypatch, 2)
    provider: Any = RebootProvider()
    seen = provider.read("jobs", outs).outs

    assert "The window 02:00-04:00 UTC is open. Try: pulumi up, which reboots" in seen["reason"]
    assert (seen["rebootWindow"], world.rebooted) == ("02:00-04:00", [])


def test_the_clock_is_in_utc() -> None:
    assert RebootProvider.clock().tzinfo is UTC


def test_a_server_without_the_library_is_not_believed_to_be_in_sync(world: World) -> None:
    world.shown = "rdsutils,pg_stat_statements"
    outs = made()

    assert outs["requiresReboot"] is True
    assert "jobs runs without pg_cron" in outs["reason"]
    assert "though AWS says that nothing is pending" in outs["reason"]
    assert changes(outs) is True


def test_a_name_within_another_is_not_the_library(world: World) -> None:
    world.shown = "pg_stat_statements,pg_cron_extra"

    assert "runs without pg_cron" in made()["reason"]


def test_upper_case_is_the_same_library_on_rds(world: World) -> None:
    world.shown = "PG_STAT_STATEMENTS,PG_CRON"

    assert made()["requiresReboot"] is False


def test_a_server_that_cannot_be_reached_is_not_known_to_lack_anything(world: World) -> None:
    world.shown = None
    outs = made()

    assert (outs["inForce"], outs["requiresReboot"]) == (None, False)


def test_a_replica_is_refused_and_its_source_named(world: World) -> None:
    world.members = [member("copy", source="jobs")]

    with pytest.raises(StackError, match="copy is a replica of jobs"):
        made(identifier="copy")


def test_what_aws_refuses_ends_the_up_with_the_way_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Database) -> tuple[Member, ...]:
        raise AwsError("asking: ExpiredToken", hint="sign in again", code="ExpiredToken")

    monkeypatch.setattr(Database, "members", refuse)

    with pytest.raises(StackError, match="ExpiredToken\nTry: sign in again"):
        made()
    assert world.rebooted == []


def test_a_change_of_what_it_waits_for_is_a_change(world: World) -> None:
    outs = made()

    assert changes(outs, waitsFor={"cron.database_name": "other"}) is True
    assert changes(outs, rebootWhenPending=True) is True
    assert changes(outs, rebootWindow="02:00-04:00") is True
    assert changes(outs, rebootWindow=None) is False  # as a state that knows no window
    assert world.rebooted == []
