"""Statements as texts: what is sent, in which order, and what never is."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from infra import sqlscan, sqltext
from infra.changes import Change
from infra.diff import diff
from infra.diff_schedules import Wishes
from infra.observed import RUNNER
from infra.plan import ADAPTER, GRANTS, GUARD
from infra.schedules import CLEANUP, WATCHDOG
from infra.sqltext_removal import inside, removal
from tests.unit import seen

PLAN = seen.wanted()
HELD = seen.installed(PLAN)


def _together(observed: object = HELD, *changes: Change) -> tuple[str, ...]:
    assert isinstance(observed, type(HELD))
    return sqltext.statements(PLAN, observed, changes).together


def _texts_of(told: tuple[str, ...]) -> list[str]:
    """The names of the files among the statements, in order."""
    names = {text: name for name, text in PLAN.rendered.sources.items()}
    return [names[text] for text in told if text in names]


class TestRendering:
    def test_no_hole_and_no_doubled_brace_is_left_in_any_file(self) -> None:
        holes = re.compile(r"\{[a-z_]+\}|\{\{")

        for name, text in PLAN.rendered.sources.items():
            assert not holes.search(text), name
        assert not holes.search(sqltext.observe(PLAN.environment))

    def test_files_come_in_the_order_of_their_numbers_and_grants_last(self) -> None:
        names = list(PLAN.rendered.sources)

        assert names == sorted(names)
        assert names[-1] == GRANTS

    @pytest.mark.parametrize("odd", ["a$$b", "a$make$b", 'q"$$"', "back\\$$slash", "'$$", "{x}%s"])
    def test_no_name_ends_the_body_it_stands_in(self, odd: str) -> None:
        plain = seen.wanted(jobs={"states": {"done": "D"}})
        quoted = '"' + odd.replace('"', '""') + '"'
        plan = seen.wanted(
            jobs={"table": quoted, "columns": {"status": quoted}, "states": {"done": odd}}
        )

        for name in (ADAPTER, GUARD):
            told = sqlscan.statements(plan.rendered.sources[name])
            usual = sqlscan.statements(plain.rendered.sources[name])
            assert [len(statement) for statement in told] == [len(each) for each in usual]

    def test_the_index_of_the_queue_keeps_its_name_within_63_bytes(self) -> None:
        plan = seen.wanted(jobs={"table": '"' + "ä" * 31 + '"'})

        name = re.search(r'CREATE INDEX IF NOT EXISTS "(.*)" ON', plan.rendered.sources[ADAPTER])

        assert name is not None
        assert len(name[1].encode()) <= 63
        assert name[1].endswith("_queued_idx")


class TestSources:
    def test_a_changed_file_is_run_with_the_grants_and_without_the_table(self) -> None:
        told = _together(HELD, Change("sql", "40_sweep", "update", "a", "b"))

        assert _texts_of(told) == ["40_sweep", GRANTS]

    def test_the_two_files_that_lock_the_table_go_together(self) -> None:
        told = _together(HELD, Change("sql", GUARD, "update", "a", "b"))

        assert _texts_of(told) == [ADAPTER, GUARD, GRANTS]

    def test_the_guard_is_dropped_by_the_adapter(self) -> None:
        told = _together(HELD, Change("sql", GUARD, "delete", "a", None))

        assert _texts_of(told) == [ADAPTER, GUARD, GRANTS]

    def test_somebodys_hand_runs_all_of_them(self) -> None:
        told = _together(HELD, Change("object", "view job", "update", "a", "b"))

        assert _texts_of(told) == list(PLAN.rendered.sources)

    def test_what_was_applied_is_written_down_last(self) -> None:
        told = _together(HELD, Change("sql", "40_sweep", "update", "a", "b"))

        assert told[-1].startswith("INSERT INTO jobwarden.object")
        assert told[-2] == "SET LOCAL search_path = pg_catalog"
        assert told[-3] == "DELETE FROM jobwarden.object"
        assert sum(text.startswith("INSERT INTO jobwarden.source") for text in told) == len(
            PLAN.rendered.sources
        )

    def test_a_policy_change_runs_no_file(self) -> None:
        told = _together(HELD, Change("policy", "*", "update"))

        assert len(told) == 1
        assert "interval '600 seconds', interval '86400 seconds'" in told[0]

    def test_a_limit_that_left_is_deleted(self) -> None:
        told = _together(HELD, Change("policy", "it's", "delete"))

        assert told == ("DELETE FROM jobwarden.policy WHERE action = 'it''s'",)


class TestSchedules:
    def test_every_call_to_pg_cron_is_made_as_the_runner(self) -> None:
        told = sqltext.statements(PLAN, seen.empty(), diff(PLAN, seen.empty())).together

        role = None
        calls = 0
        for text in told:
            if text.startswith("SET LOCAL ROLE"):
                role = text.removeprefix("SET LOCAL ROLE ")
            elif text == "RESET ROLE":
                role = None
            elif "cron.schedule(" in text and not text.startswith("--"):
                calls += 1
                assert role == f'"{RUNNER}"'
        assert calls == 2

    def test_the_username_argument_is_never_given(self) -> None:
        told = sqltext.statements(PLAN, seen.empty(), diff(PLAN, seen.empty())).together

        assert not any("schedule_in_database" in text or "username :=" in text for text in told)

    def test_rights_of_the_runner_are_granted_only_where_they_lack(self) -> None:
        change = Change("schedule", WATCHDOG, "create", None, {})
        lacking = replace(HELD, runner_cron_usage=False, runner_connects=False)

        assert [text for text in _together(HELD, change) if text.startswith("GRANT")] == []
        assert [text for text in _together(lacking, change) if text.startswith("GRANT")] == [
            f'GRANT USAGE ON SCHEMA cron TO "{RUNNER}"',
            f'GRANT CONNECT ON DATABASE "app" TO "{RUNNER}"',
        ]

    def test_a_row_in_the_wrong_place_is_made_anew(self) -> None:
        rows = (seen.job(PLAN, WATCHDOG, nodeport=5433), seen.job(PLAN, CLEANUP))
        observed = replace(HELD, jobs=rows)

        told = sqltext.statements(PLAN, observed, diff(PLAN, observed)).together

        calls = [text.partition("(")[0] for text in told if "cron." in text and "jsonb" not in text]
        assert calls == ["SELECT cron.unschedule", "SELECT cron.schedule"]

    def test_a_paused_row_in_the_wrong_place_is_paused_again_in_the_same_transaction(self) -> None:
        rows = (seen.job(PLAN, WATCHDOG, nodeport=5433, active=False), seen.job(PLAN, CLEANUP))
        observed = replace(HELD, jobs=rows)

        told = sqltext.statements(PLAN, observed, diff(PLAN, observed)).together

        assert any("alter_job" in text and "active := false" in text for text in told)

    def test_a_plain_role_resumes_without_alter_job(self) -> None:
        rows = (seen.job(PLAN, WATCHDOG, active=False), seen.job(PLAN, CLEANUP))
        observed = replace(HELD, jobs=rows, server=seen.DEPLOYER)

        told = sqltext.statements(
            PLAN, observed, diff(PLAN, observed, Wishes(resume=True))
        ).together

        assert not any("alter_job" in text for text in told)
        assert any("cron.schedule(" in text for text in told)

    def test_one_that_waits_is_written_down_and_keeps_its_job(self) -> None:
        plan = seen.wanted(watchdog={"schedule": "*/2 * * * *"})
        observed = replace(seen.installed(PLAN), cron_default_version=None)

        told = sqltext.statements(plan, observed, diff(plan, observed)).together

        assert len(told) == 1
        assert "'*/2 * * * *'" in told[0]
        assert "jobid = excluded" not in told[0]

    def test_one_that_waits_and_is_written_down_sends_nothing(self) -> None:
        observed = replace(HELD, cron_default_version=None)

        assert not sqltext.statements(PLAN, observed, diff(PLAN, observed))


class TestRemoval:
    def test_nothing_of_ours_means_no_statement(self) -> None:
        assert removal(PLAN, seen.empty()) == ()

    def test_it_ends_our_jobs_only(self) -> None:
        theirs = seen.job(PLAN, WATCHDOG, jobid=90, username="postgres")
        observed = replace(HELD, jobs=(*(HELD.jobs or ()), theirs))

        calls = [text for text in removal(PLAN, observed) if "cron." in text]

        assert calls == ["SELECT cron.unschedule(1)", "SELECT cron.unschedule(2)"]

    def test_one_of_ours_under_a_new_number_goes_too(self) -> None:
        rows = (seen.job(PLAN, WATCHDOG, jobid=70),)

        told = removal(PLAN, replace(HELD, jobs=rows))

        assert "SELECT cron.unschedule(70)" in told

    def test_it_drops_only_our_triggers_and_indexes_from_the_table(self) -> None:
        table = seen.table(
            PLAN,
            triggers=("audit", "jobwarden_event"),
            indexes={"jobs_pkey": True, "jobwarden_running_idx": True},
        )

        told = removal(
            PLAN, replace(HELD, table=table, strays=(("old", "jobwarden_terminal_idx"),))
        )

        assert [text for text in told if text.startswith(("DROP TRIGGER", "DROP INDEX"))] == [
            'DROP TRIGGER "jobwarden_event" ON "public"."jobs"',
            'DROP INDEX "public"."jobwarden_running_idx"',
            'DROP INDEX "old"."jobwarden_terminal_idx"',
        ]
        assert not any("DROP TABLE" in text or "DROP ROLE" in text for text in told)

    def test_what_no_apply_made_is_found_in_our_schema(self) -> None:
        ledger = seen.ledger(PLAN)
        actual = dict(ledger.objects) | {"view theirs": "x"}

        assert inside(replace(HELD, ledger=replace(ledger, actual=actual))) == ("view theirs",)
        assert inside(HELD) == ()
