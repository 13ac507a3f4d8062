"""What is there against what is wanted: every kind of change, and what a boot leaves alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from infra import sqltext
from infra.changes import COPIES, Change, due, pending
from infra.diff import diff
from infra.diff_schedules import Wishes
from infra.observed import LedgerSchedule, Limits, Observed
from infra.plan import Plan
from infra.schedules import CLEANUP, WATCHDOG
from tests.unit import seen

PLAN = seen.wanted()
HELD = seen.installed(PLAN)
BOOT = Wishes(in_place_only=True)


def _off(plan: Plan, observed: Observed, wishes: Wishes = Wishes()) -> list[Change]:  # noqa: B008
    return [change for change in diff(plan, observed, wishes) if change.action != "same"]


def _one(plan: Plan, observed: Observed, wishes: Wishes = Wishes()) -> Change:  # noqa: B008
    found = _off(plan, observed, wishes)
    assert len(found) == 1, found
    return found[0]


def _with_job(**changed: Any) -> Observed:
    return _jobs(seen.job(PLAN, WATCHDOG, **changed), seen.job(PLAN, CLEANUP))


def _jobs(*jobs: Any) -> Observed:
    return replace(HELD, jobs=jobs)


def _with_ledger(**changed: Any) -> Observed:
    return replace(HELD, ledger=seen.ledger(PLAN, **changed))


class TestNothingToDo:
    def test_an_unchanged_server_gives_same_and_no_statement(self) -> None:
        changes = diff(PLAN, HELD)

        assert [(change.name, change.action) for change in changes] == [
            (WATCHDOG, "same"),
            (CLEANUP, "same"),
        ]
        assert not sqltext.statements(PLAN, HELD, changes)
        assert pending(changes) == due(changes) == ()


class TestFirst:
    def test_an_empty_server_gets_everything_in_the_order_of_an_apply(self) -> None:
        changes = diff(PLAN, seen.empty())

        assert {change.action for change in changes} == {"create"}
        kinds = list(dict.fromkeys(change.kind for change in changes))
        assert kinds == ["index", "sql", "policy", "extension", "schedule"]
        assert [c.name for c in changes if c.kind == "schedule"] == [WATCHDOG, CLEANUP]

    def test_without_pg_cron_the_schedules_wait_and_the_rest_does_not(self) -> None:
        changes = diff(PLAN, seen.empty(cron_default_version=None))

        waiting = {change.name for change in changes if change.waits}
        assert waiting == {WATCHDOG, CLEANUP}
        assert all("waits" in change.to_json() for change in changes if change.waits)
        assert {change.kind for change in due(changes)} == {"index", "sql", "policy"}


class TestSchedules:
    @pytest.mark.parametrize(
        "off",
        [
            {"schedule": "0 * * * *"},
            {"command": "SELECT 1"},
            {"database": "other"},
            {"nodename": "/elsewhere"},
            {"nodeport": 5433},
        ],
        ids=lambda off: next(iter(off)),
    )
    def test_every_column_that_is_off_is_shown_with_both_values(self, off: dict[str, Any]) -> None:
        change = _one(PLAN, _with_job(**off))

        right = {name: getattr(seen.job(PLAN, WATCHDOG), name) for name in off}
        assert (change.action, change.old, change.new) == ("update", off, right)

    def test_a_hand_is_told_from_a_new_environment(self) -> None:
        by_hand = _one(PLAN, _with_job(schedule="0 * * * *"))
        newer = seen.wanted(watchdog={"schedule": "*/2 * * * *"})
        by_file = next(change for change in _off(newer, HELD))

        assert by_hand.why == "somebody changed it by hand"
        assert by_file.why.startswith("the environment")
        assert by_file.new == {"schedule": "*/2 * * * *"}

    def test_one_that_somebody_dropped_is_made_again(self) -> None:
        change = _one(PLAN, _jobs(seen.job(PLAN, CLEANUP)))

        assert (change.name, change.action, change.why) == (
            WATCHDOG,
            "create",
            "somebody dropped it",
        )

    def test_a_paused_schedule_is_reported_and_not_written(self) -> None:
        change = _one(PLAN, _with_job(active=False))

        assert (change.action, change.writes) == ("paused", False)
        assert "--resume" in change.why

    def test_a_paused_schedule_converges_and_stays_paused(self) -> None:
        observed = _with_job(active=False, schedule="0 * * * *")

        change = _one(PLAN, observed)

        assert (change.action, set(change.new)) == ("update", {"schedule"})
        assert change.why.endswith("it stays paused")
        assert "active" not in " ".join(sqltext.statements(PLAN, observed, [change]).together)

    def test_resume_wakes_it(self) -> None:
        change = _one(PLAN, _with_job(active=False), Wishes(resume=True))

        assert (change.action, change.old, change.new) == (
            "update",
            {"active": False},
            {"active": True},
        )

    def test_a_plain_role_leaves_a_paused_row_where_it_is(self) -> None:
        observed = replace(_with_job(active=False, nodeport=5433), server=seen.DEPLOYER)

        change = next(change for change in _off(PLAN, observed) if change.name == WATCHDOG)

        assert change.action == "paused"
        assert (change.old["nodeport"], change.new["nodeport"]) == (5433, 5432)

    def test_background_workers_ignore_host_and_port(self) -> None:
        settings = seen.settings(cron__use_background_workers="on")

        observed = replace(_with_job(nodename="", nodeport=1), settings=settings)

        assert _off(PLAN, observed) == []

    def test_a_host_that_may_not_be_read_is_not_compared(self) -> None:
        settings = seen.settings(cron__host=None, cron__use_background_workers=None)

        assert _off(PLAN, replace(_with_job(nodename="x"), settings=settings)) == []

    def test_a_row_the_ledger_does_not_hold_is_written_down(self) -> None:
        old = HELD.ledger.schedules[WATCHDOG] if HELD.ledger else None
        assert old is not None
        schedules = {
            WATCHDOG: replace(old, jobid=77),
            CLEANUP: seen.ledger(PLAN).schedules[CLEANUP],
        }

        change = _one(PLAN, _with_ledger(schedules=schedules))

        assert (change.old, change.new) == ({"ledger": False}, {"ledger": True})

    def test_one_that_left_the_environment_goes_only_if_the_ledger_holds_it(self) -> None:
        gone = LedgerSchedule("0 0 * * *", "SELECT 1", timedelta(days=1), 9)
        known = dict(seen.ledger(PLAN).schedules) | {"old": gone}
        rows = (*(HELD.jobs or ()), replace(seen.job(PLAN, WATCHDOG), jobid=8, name="mine"))

        change = _one(PLAN, replace(_with_ledger(schedules=known), jobs=rows))

        assert (change.name, change.action, change.old["jobid"]) == ("old", "delete", 9)

    def test_unknown_is_said_where_the_jobs_may_not_be_seen(self) -> None:
        found = _off(PLAN, replace(HELD, jobs=None, server=seen.DEPLOYER))

        assert [(change.name, change.action) for change in found] == [
            (WATCHDOG, "unknown"),
            (CLEANUP, "unknown"),
        ]

    def test_a_plain_role_is_told_that_copies_would_not_show(self) -> None:
        change = _one(PLAN, replace(HELD, server=seen.DEPLOYER))

        assert (change.name, change.action) == (COPIES, "unknown")
        assert "deployer" in change.why


class TestStrangers:
    COPY = seen.job(PLAN, WATCHDOG, jobid=50, username="postgres", command="SELECT mine()")

    def test_a_copy_is_reported_with_what_it_runs_and_never_doubled(self) -> None:
        change = _one(PLAN, _jobs(self.COPY, seen.job(PLAN, CLEANUP)))

        assert (change.name, change.action, change.writes) == (WATCHDOG, "foreign", False)
        assert change.old["username"] == "postgres"
        assert "SELECT mine()" in change.why
        assert "--take-over" in change.why

    def test_a_copy_beside_ours_is_reported_too(self) -> None:
        found = _off(PLAN, _jobs(*(HELD.jobs or ()), self.COPY))

        assert [(change.name, change.action) for change in found] == [(WATCHDOG, "foreign")]

    def test_a_copy_that_runs_in_another_database_doubles_nothing(self) -> None:
        elsewhere = replace(self.COPY, database="other")

        assert _off(PLAN, _jobs(*(HELD.jobs or ()), elsewhere)) == []

    def test_take_over_ends_every_copy_and_then_makes_ours(self) -> None:
        second = replace(self.COPY, jobid=51, username="alice")
        observed = _jobs(self.COPY, second, seen.job(PLAN, CLEANUP))

        changes = _off(PLAN, observed, Wishes(take_over=True))
        told = sqltext.statements(PLAN, observed, changes).together

        assert [change.action for change in changes] == ["delete", "delete", "create"]
        calls = [text for text in told if "cron." in text]
        assert calls[:2] == ["SELECT cron.unschedule(50)", "SELECT cron.unschedule(51)"]
        assert calls[2].startswith("SELECT cron.schedule('jobsStuckWatchdog'")
        assert not any(text.startswith("DELETE FROM jobwarden.schedule") for text in told)


class TestSqlAndPolicy:
    def test_a_changed_file_is_an_update_and_a_lost_one_a_create(self) -> None:
        sources = dict(PLAN.rendered.sources) | {"40_sweep": "old"}
        del sources["50_cleanup"]

        found = _off(PLAN, _with_ledger(sources=sources))

        assert [(change.name, change.action) for change in found] == [
            ("40_sweep", "update"),
            ("50_cleanup", "create"),
        ]

    def test_the_guard_goes_when_the_environment_drops_it(self) -> None:
        plan = seen.wanted(jobs={"guard": False})

        change = next(c for c in _off(plan, seen.installed(PLAN)) if c.kind == "sql")

        assert (change.name, change.action) == ("11_guard", "delete")

    def test_a_hand_in_our_objects_is_seen(self) -> None:
        found = _off(PLAN, _with_ledger(actual={"view job": "other"}))

        assert [(change.kind, change.name, change.action) for change in found] == [
            ("object", "function sweep()", "create"),
            ("object", "view job", "update"),
        ]

    def test_a_strangers_object_in_our_schema_is_no_change(self) -> None:
        actual = dict(seen.ledger(PLAN).objects) | {"view theirs": "x"}

        assert _off(PLAN, _with_ledger(actual=actual)) == []

    def test_a_ledger_that_may_not_be_read_is_unknown(self) -> None:
        found = _off(PLAN, replace(HELD, ledger=None, server=seen.DEPLOYER))

        assert found[0].action == "unknown"
        assert not any(change.kind == "policy" for change in found)

    def test_a_changed_limit_says_how_many_jobs_it_touches(self) -> None:
        plan = seen.wanted(watchdog={"actions": {"a": {"timeout": "1m"}}})
        old = {"*": Limits(timedelta(hours=1), timedelta(days=1)), "gone": Limits(None, None)}
        running = {"a": 1, "b": 2, "c": 3}

        found = _off(plan, replace(HELD, ledger=seen.ledger(plan, policy=old), running=running))

        assert [(c.name, c.action, c.why) for c in found] == [
            ("*", "update", "holds at once for 5 running jobs"),
            ("a", "create", "holds at once for 1 running job"),
            ("gone", "delete", "holds at once for 0 running jobs"),
        ]
        assert found[0].old == {"timeout": "1h", "retention": "1d"}
        assert found[2].old == {"timeout": "never", "retention": "forever"}


class TestIndexes:
    def test_an_invalid_index_is_built_again_beside_the_writers(self) -> None:
        table = seen.table(
            PLAN, indexes={"jobwarden_running_idx": False, "jobwarden_terminal_idx": True}
        )
        observed = replace(HELD, table=table)

        change = _one(PLAN, observed)
        told = sqltext.statements(PLAN, observed, [change])

        assert (change.action, change.old) == ("update", "invalid")
        assert told.together == ()
        assert told.alone[0].startswith("DROP INDEX CONCURRENTLY IF EXISTS")
        assert told.alone[1].startswith("CREATE INDEX CONCURRENTLY IF NOT EXISTS")

    def test_a_table_that_is_not_there_gets_its_indexes_in_the_transaction(self) -> None:
        observed = seen.empty()

        told = sqltext.statements(PLAN, observed, diff(PLAN, observed))

        assert told.alone == ()
        assert sum("jobwarden_running_idx" in text for text in told.together) > 0

    def test_ours_on_an_earlier_table_goes_before_the_name_is_needed(self) -> None:
        observed = replace(
            HELD,
            table=seen.table(PLAN, indexes={"jobwarden_terminal_idx": True}),
            strays=(("old", "jobwarden_running_idx"),),
        )

        changes = _off(PLAN, observed)
        told = sqltext.statements(PLAN, observed, changes).alone

        assert [change.action for change in changes] == ["delete", "create"]
        assert told[0] == 'DROP INDEX CONCURRENTLY IF EXISTS "old"."jobwarden_running_idx"'
        assert "CREATE INDEX" in told[1]


class TestBoot:
    def test_it_prunes_nothing(self) -> None:
        gone = LedgerSchedule("0 0 * * *", "SELECT 1", timedelta(days=1), 9)
        observed = replace(
            _with_ledger(
                schedules=dict(seen.ledger(PLAN).schedules) | {"old": gone},
                policy=dict(PLAN.policy) | {"old": Limits(None, None)},
                sources=dict(PLAN.rendered.sources) | {"99_old": "x"},
            ),
            strays=(("old", "jobwarden_running_idx"),),
        )

        assert _off(PLAN, observed, BOOT) == []
        assert len(_off(PLAN, observed)) == 4

    def test_it_builds_no_index_on_a_table_that_is_there(self) -> None:
        observed = replace(HELD, table=seen.table(PLAN, indexes={}))

        assert _off(PLAN, observed, BOOT) == []
        assert any(c.kind == "index" for c in _off(PLAN, seen.empty(), BOOT))

    def test_it_resumes_nothing(self) -> None:
        assert _one(PLAN, _with_job(active=False), BOOT).action == "paused"

    def test_it_leaves_newer_sql_and_updates_older(self) -> None:
        sources = dict(PLAN.rendered.sources) | {"40_sweep": "other"}
        mine = PLAN.rendered.release

        newer = _with_ledger(sources=sources, release=mine + 1)
        same = _with_ledger(sources=sources, release=mine)

        assert _off(PLAN, newer, BOOT) == []
        assert _one(PLAN, same, BOOT).action == "update"

    def test_it_converges_schedules_and_limits_in_place(self) -> None:
        plan = seen.wanted(watchdog={"schedule": "*/2 * * * *", "timeout": "1m"})

        found = _off(plan, HELD, BOOT)

        assert [(change.kind, change.action) for change in found] == [
            ("policy", "update"),
            ("schedule", "update"),
        ]


def test_a_change_prints_as_one_document() -> None:
    change = _one(PLAN, _with_job(schedule="0 * * * *"))

    assert change.to_json() == {
        "kind": "schedule",
        "name": WATCHDOG,
        "action": "update",
        "old": {"schedule": "0 * * * *"},
        "new": {"schedule": "*/5 * * * *"},
        "why": "somebody changed it by hand",
    }
