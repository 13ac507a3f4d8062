"""A share makes its own changes and no others."""

from __future__ import annotations

from infra import shares
from infra.changes import Change
from infra.diff import diff
from infra.schedules import CLEANUP, WATCHDOG
from tests.unit.seen import empty, installed, table, wanted

CHANGES = (
    Change("sql", "00_schema", "create"),
    Change("index", "jobwarden_running_idx", "create"),
    Change("policy", "*", "create"),
    Change("extension", "pg_cron", "create"),
    Change("schedule", WATCHDOG, "create"),
    Change("schedule", CLEANUP, "create"),
)


def test_everything_is_every_change() -> None:
    assert shares.EVERYTHING.of(CHANGES) == CHANGES


def test_the_shares_of_a_stack_are_all_changes_and_only_the_extension_is_in_two() -> None:
    parts = (shares.SQL, shares.POLICY, *map(shares.of_schedule, (WATCHDOG, CLEANUP)))

    held = [change for part in parts for change in part.of(CHANGES)]

    assert set(held) == set(CHANGES)
    assert len(held) == len(CHANGES) + 1


def test_the_end_of_a_schedule_makes_no_extension() -> None:
    assert shares.end_of_schedule(WATCHDOG).of(CHANGES) == (CHANGES[4],)


def test_a_first_apply_has_something_to_do_for_each_share() -> None:
    changes = diff(wanted(), empty())

    assert shares.SQL.of(changes)
    assert shares.POLICY.of(changes)
    assert [it.kind for it in shares.of_schedule(CLEANUP).of(changes)] == ["extension", "schedule"]


def test_only_the_sql_looks_at_the_jobs_table() -> None:
    plan = wanted()
    observed = installed(plan, table=table(plan, owned=False))

    assert shares.SQL.view(observed) is observed
    assert shares.POLICY.view(observed).table is None
    assert shares.of_schedule(WATCHDOG).view(observed).table is None
