"""Apply on a real server: first, again, after a hand's work, without pg_cron, on what is there."""

from __future__ import annotations

import psycopg
import pytest

from infra.db.apply import Refused
from infra.diff_schedules import Wishes
from infra.observed import RUNNER
from infra.schedules import CLEANUP, WATCHDOG
from tests.postgres import place

NOW = """
CREATE OR REPLACE FUNCTION jobwarden.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'
"""
TABLE = """
CREATE TABLE {name} (
  id uuid PRIMARY KEY, action text NOT NULL, status text NOT NULL, error jsonb, worker text,
  started_at timestamptz, completed_at timestamptz, tenant int)
"""


class TestTwice:
    def test_a_first_apply_on_an_empty_database_registers_both(self, bare_app: str) -> None:
        result = place.apply(bare_app)

        assert result.registered, result.problems
        assert result.warnings == ()
        assert {change.action for change in result.after} == {"same"}
        held = place.jobs(bare_app)
        assert {name: (job["schedule"], job["command"]) for name, job in held.items()} == {
            WATCHDOG: ("*/5 * * * *", "CALL jobwarden.sweep()"),
            CLEANUP: ("0 2 * * *", "CALL jobwarden.cleanup()"),
        }
        assert {job["username"] for job in held.values()} == {RUNNER}

    def test_a_second_apply_writes_nothing(self, app: str) -> None:
        own = {"schedules": [place.OWN]}
        place.apply(app, **own)
        before = place.stand(app)
        transaction = place.one(app, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text")

        result = place.apply(app, **own)

        assert result.changes == ()
        assert result.registered, result.problems
        assert place.one(app, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text") == transaction
        assert place.stand(app) == before

    def test_pg_cron_is_not_lost_with_schema_public(self, bare_app: str) -> None:
        place.run(bare_app, "CREATE SCHEMA work")
        jobs = {"table": "work.jobs"}
        place.apply(bare_app, jobs=jobs)

        place.run(bare_app, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
        place.run(bare_app, "ALTER SCHEMA public OWNER TO pg_database_owner")
        place.run(bare_app, "GRANT USAGE ON SCHEMA public TO PUBLIC")

        assert set(place.jobs(bare_app)) == {WATCHDOG, CLEANUP}
        assert place.drift(bare_app, jobs=jobs) == []

    def test_names_with_every_sign_work_and_stay_the_same(self, app: str) -> None:
        for odd in ("a$$b", "a$observe$b", "q'\\$$x{y}%s", 'Task "Q"'):
            quoted = '"' + odd.replace('"', '""') + '"'
            place.run(app, f"CREATE SCHEMA {quoted}")
            environment = {
                "jobs": {
                    "table": f"{quoted}.{quoted}",
                    "columns": {"status": quoted},
                    "states": {"running": odd},
                },
                "schedules": [place.OWN | {"name": odd, "command": f"SELECT {quoted} FROM pg_am"}],
            }

            place.apply(app, **environment)

            assert place.drift(app, **environment) == []
            assert odd in place.jobs(app)

    def test_names_are_sent_as_they_are_whatever_the_clients_encoding(
        self, app: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
        own = place.OWN | {"name": "täglich", "command": "SELECT 'größer'"}

        place.apply(app, schedules=[own])

        assert place.drift(app, schedules=[own]) == []
        monkeypatch.delenv("PGCLIENTENCODING")
        assert place.jobs(app)["täglich"]["command"] == "SELECT 'größer'"


class TestDrift:
    def test_a_search_path_is_no_drift(self, app: str) -> None:
        place.apply(app)

        for path in ("jobwarden", "nowhere", "public, cron"):
            place.run(app, f"ALTER DATABASE app SET search_path = {path}")
            assert place.drift(app) == []

        place.apply(app, jobs={"guard": False})
        place.run(app, "ALTER DATABASE app RESET search_path")
        assert place.drift(app, jobs={"guard": False}) == []

    def test_a_schedule_changed_by_hand_is_shown_and_put_back(self, app: str) -> None:
        place.apply(app)
        jobid = place.jobs(app)[WATCHDOG]["jobid"]
        place.run(app, f"SELECT cron.alter_job({jobid}, schedule := '0 0 * * *')")

        (change,) = place.drift(app)
        assert (change.old, change.new) == (
            {"schedule": "0 0 * * *"},
            {"schedule": "*/5 * * * *"},
        )
        assert place.apply(app).registered
        assert place.drift(app) == []
        assert place.jobs(app)[WATCHDOG]["jobid"] == jobid

    def test_a_paused_schedule_stays_paused_until_it_is_resumed(self, app: str) -> None:
        place.apply(app)
        jobid = place.jobs(app)[WATCHDOG]["jobid"]
        place.run(app, f"SELECT cron.alter_job({jobid}, active := false)")

        result = place.apply(app)
        assert result.changes == ()
        assert [c.action for c in result.after if c.name == WATCHDOG] == ["paused"]
        assert not place.jobs(app)[WATCHDOG]["active"]

        place.apply(app, Wishes(resume=True))
        assert place.jobs(app)[WATCHDOG]["active"]
        assert place.drift(app) == []

    def test_one_taken_out_of_the_environment_goes_and_a_strangers_stays(self, app: str) -> None:
        place.apply(app, schedules=[place.OWN])
        place.run(app, "SELECT cron.schedule('theirs', '@daily', 'SELECT 2')")

        result = place.apply(app)

        assert [(c.name, c.action) for c in result.changes] == [("mine", "delete")]
        assert set(place.jobs(app)) == {WATCHDOG, CLEANUP, "theirs"}
        assert place.rows(app, "SELECT name FROM jobwarden.schedule ORDER BY 1") == [
            (CLEANUP,),
            (WATCHDOG,),
        ]

    def test_all_schedules_dropped_by_hand_come_back(self, app: str) -> None:
        place.apply(app)
        place.run(app, "DELETE FROM cron.job")

        assert {change.why for change in place.drift(app)} == {"somebody dropped it"}
        assert place.apply(app).registered
        assert place.drift(app) == []

    def test_a_changed_limit_is_data_and_touches_no_schedule(self, app: str) -> None:
        place.apply(app)
        place.run(app, "INSERT INTO jobs (action, status) VALUES ('a', 'running')")
        before = place.jobs(app)

        result = place.apply(app, watchdog={"timeout": "3m"})

        (change,) = result.changes
        assert (change.kind, change.new) == ("policy", {"timeout": "3m", "retention": "1d"})
        assert change.why == "holds at once for 1 running job"
        assert place.jobs(app) == before
        assert place.one(app, "SELECT timeout FROM jobwarden.policy").total_seconds() == 180

    @pytest.mark.parametrize(
        "hand",
        [
            NOW,
            "DROP FUNCTION jobwarden.health()",
            "DROP VIEW jobwarden.job CASCADE",
            "DROP TABLE jobwarden.policy CASCADE",
            "DROP TABLE jobwarden.source",
            "DROP TABLE jobwarden.object",
            "DROP TABLE jobwarden.schedule CASCADE",
            "ALTER TABLE jobs DISABLE TRIGGER jobwarden_guard",
            "DROP TRIGGER jobwarden_event ON jobs",
            "GRANT EXECUTE ON PROCEDURE jobwarden.cleanup TO PUBLIC",
            "GRANT DELETE ON jobwarden.event TO PUBLIC",
            "ALTER FUNCTION jobwarden.health() SECURITY INVOKER",
            "ALTER PROCEDURE jobwarden.sweep OWNER TO postgres",
            "DROP INDEX jobwarden_running_idx",
            "ALTER ROLE jobwarden_runner NOLOGIN",
        ],
    )
    def test_a_hand_in_ours_is_undone(self, app: str, hand: str) -> None:
        place.apply(app)
        whole = self._whole(app)
        place.run(app, hand)

        result = place.apply(app)

        if "NOLOGIN" in hand:
            assert "may not log in" in result.problems[0].message
            return
        assert result.changes
        assert result.registered, result.problems
        assert place.drift(app) == []
        assert self._whole(app) == whole

    def _whole(self, url: str) -> object:
        ledger = place.look(url).ledger
        assert ledger is not None
        return (dict(ledger.actual), dict(ledger.policy), set(ledger.schedules))

    def test_a_strangers_object_in_our_schema_never_becomes_ours(self, app: str) -> None:
        place.apply(app)
        place.run(
            app, "CREATE VIEW jobwarden.theirs AS SELECT 1 AS one", "DROP TABLE jobwarden.object"
        )

        place.apply(app)

        assert place.one(app, "SELECT count(*) FROM jobwarden.object WHERE name = 'theirs'") == 0


class TestWhatIsThere:
    def test_a_table_of_the_right_shape_keeps_its_owner_and_its_indexes(self, app: str) -> None:
        place.run(
            app,
            TABLE.format(name="public.jobs"),
            "CREATE ROLE app_owner",
            "ALTER TABLE jobs OWNER TO app_owner",
            "INSERT INTO jobs VALUES (gen_random_uuid(), 'a', 'queued', NULL, NULL, NULL, NULL, 1)",
        )

        assert place.apply(app).registered

        assert (
            place.one(app, "SELECT tableowner FROM pg_tables WHERE tablename = 'jobs'")
            == "app_owner"
        )
        assert place.rows(
            app, "SELECT indexname FROM pg_indexes WHERE tablename = 'jobs' ORDER BY 1"
        ) == [
            ("jobs_pkey",),
            ("jobwarden_running_idx",),
            ("jobwarden_terminal_idx",),
        ]
        assert place.one(app, "SELECT count(*) FROM jobs") == 1

    def test_another_table_of_ours_in_the_environment_takes_the_indexes_along(
        self, app: str
    ) -> None:
        place.apply(app)
        moved = {"table": "tasks"}

        result = place.apply(app, jobs=moved)

        assert result.registered, result.problems
        assert place.drift(app, jobs=moved) == []
        assert place.rows(
            app, "SELECT indexname FROM pg_indexes WHERE tablename = 'jobs' ORDER BY 1"
        ) == [
            ("jobs_pkey",),
            ("jobs_queued_idx",),
        ]
        assert (
            place.one(app, "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'jobs'::regclass") == 0
        )

    def test_a_runner_shut_out_of_the_database_is_let_in(self, app: str) -> None:
        place.run(app, "REVOKE CONNECT ON DATABASE app FROM PUBLIC")
        try:
            result = place.apply(app)

            assert result.registered, result.problems
            may = f"SELECT has_database_privilege('{RUNNER}', 'app', 'CONNECT')"
            assert place.one(app, may)
        finally:
            place.run(app, "GRANT CONNECT ON DATABASE app TO PUBLIC")


class TestWithoutPgCron:
    def test_sql_and_policy_are_applied_and_the_schedules_wait(self, plain_app: str) -> None:
        result = place.apply(plain_app)

        assert not result.registered
        (problem,) = result.problems
        assert "not in the shared_preload_libraries" in problem.message
        assert "shared_preload_libraries = 'pg_cron'\n" in problem.hint
        assert {change.kind for change in result.changes} == {"index", "sql", "policy"}
        assert place.one(plain_app, "SELECT count(*) FROM jobwarden.policy") == 1
        assert place.rows(plain_app, "SELECT jobid FROM jobwarden.schedule") == [(None,), (None,)]

    def test_the_next_apply_writes_nothing_and_still_says_so(self, plain_app: str) -> None:
        place.apply(plain_app)
        before = place.stand(plain_app)

        result = place.apply(plain_app)

        assert result.changes == ()
        assert len(result.problems) == 1
        assert place.stand(plain_app) == before

    def test_the_ledger_follows_the_environment_meanwhile(self, plain_app: str) -> None:
        place.apply(plain_app)

        place.apply(plain_app, watchdog={"schedule": "*/2 * * * *"})

        found = place.one(plain_app, "SELECT min(every) FROM jobwarden.schedule")
        assert found.total_seconds() == 120

    def test_a_database_beside_pg_cron_s_own_waits_and_names_it(self, database: str) -> None:
        result = place.apply(database)

        (problem,) = result.problems
        assert "pg_cron keeps its jobs in database app" in problem.message
        assert "connect to app" in problem.hint


class TestStrangers:
    def test_a_hand_made_watchdog_is_foreign_until_it_is_taken_over(self, app: str) -> None:
        place.run(app, f"SELECT cron.schedule('{WATCHDOG}', '*/7 * * * *', 'SELECT 7')")

        result = place.apply(app)

        assert not result.registered
        assert any("SELECT 7" in problem.message for problem in result.problems)
        assert place.jobs(app)[WATCHDOG]["username"] == "postgres"

        taken = place.apply(app, Wishes(take_over=True))
        assert taken.registered, taken.problems
        assert place.jobs(app)[WATCHDOG]["username"] == RUNNER
        assert place.drift(app) == []

    def test_a_copy_made_later_is_seen_and_taken_over(self, app: str) -> None:
        place.apply(app)
        place.run(app, f"SELECT cron.schedule('{WATCHDOG}', '*/7 * * * *', 'SELECT 7')")

        assert not place.apply(app).registered
        assert place.apply(app, Wishes(take_over=True)).registered
        assert place.jobs(app)[WATCHDOG]["username"] == RUNNER

    def test_a_take_over_that_fails_leaves_both_as_they_were(self, app: str) -> None:
        place.run(app, f"SELECT cron.schedule('{WATCHDOG}', '*/7 * * * *', 'SELECT 7')")
        place.run(
            app,
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN RAISE 'no new job today'; END $$",
            "CREATE TRIGGER refuse BEFORE INSERT ON cron.job FOR EACH ROW"
            " EXECUTE FUNCTION refuse()",
        )
        try:
            with pytest.raises(Exception, match="no new job today"):
                place.apply(app, Wishes(take_over=True))

            assert place.jobs(app)[WATCHDOG]["command"] == "SELECT 7"
            assert place.one(app, "SELECT to_regnamespace('jobwarden')") is None
        finally:
            place.run(app, "DROP FUNCTION refuse() CASCADE")


class TestProof:
    def _own(self, command: str) -> dict[str, object]:
        return {"schedules": [place.OWN | {"command": command}]}

    def test_a_missing_right_is_found_now_and_its_grants_cure_it(self, app: str) -> None:
        place.run(app, "CREATE SCHEMA work", "CREATE TABLE work.session (id int)")
        own = self._own("DELETE FROM work.session WHERE id < 3")

        for _ in range(2):
            (problem,) = place.apply(app, **own).problems
            assert problem.subject == "schedule mine"
            assert "permission denied" in problem.message
            place.run(app, problem.hint.removeprefix("as its owner: "))

        assert place.apply(app, **own).problems == ()
        assert place.one(app, "SELECT count(*) FROM work.session") == 0

    def test_a_dry_run_runs_nothing(self, app: str) -> None:
        place.run(
            app,
            "CREATE SCHEMA work",
            "CREATE TABLE work.t AS SELECT 1 AS id",
            "GRANT USAGE ON SCHEMA work TO PUBLIC",
            "GRANT ALL ON work.t TO PUBLIC",
        )

        assert place.apply(app, **self._own("DELETE FROM work.t")).registered

        assert place.one(app, "SELECT count(*) FROM work.t") == 1

    @pytest.mark.parametrize("command", ["SELECT * FROM nowhere", "SELECT * FROM work.nowhere"])
    def test_a_table_that_the_runner_would_not_find_is_a_problem(
        self, app: str, command: str
    ) -> None:
        place.run(app, "CREATE TABLE public.nowhere ()")

        (problem,) = place.apply(app, **self._own(command)).problems

        assert "does not exist" in problem.message
        assert "schema.name" in problem.hint

    def test_a_procedure_must_be_there_and_open_to_the_runner(self, app: str) -> None:
        own = self._own("CALL work.\"Weekly Report\"(1, 'x')")
        place.run(app, "CREATE SCHEMA work")
        assert "there is no procedure" in place.apply(app, **own).problems[0].message

        place.run(
            app,
            'CREATE PROCEDURE work."Weekly Report"(a int, b text) LANGUAGE sql AS $$ SELECT 1 $$',
            'REVOKE ALL ON PROCEDURE work."Weekly Report" FROM PUBLIC',
        )
        (problem,) = place.apply(app, **own).problems
        assert "may not call" in problem.message

        place.run(app, problem.hint.removeprefix("as its owner:\n"))
        assert place.apply(app, **own).problems == ()

    def test_what_cannot_be_tried_is_said(self, app: str) -> None:
        result = place.apply(app, **self._own("VACUUM public.jobs"))

        assert result.registered
        (warning,) = result.warnings
        assert warning.startswith("schedule mine: VACUUM cannot be tried without doing it;")

    def test_a_locked_table_does_not_hold_up_the_proof(self, app: str) -> None:
        own = self._own("SELECT 1 FROM public.held")
        place.run(app, "CREATE TABLE held ()", "GRANT SELECT ON held TO PUBLIC")
        place.apply(app, **own)
        with psycopg.connect(app) as other:
            other.execute("LOCK TABLE held")

            result = place.apply(app, **own)

        assert result.registered, result.problems
        assert "could not be tried now" in result.warnings[0]


class TestRights:
    def test_a_role_that_may_not_look_is_never_told_that_all_is_well(self, app: str) -> None:
        place.apply(app)
        place.run(app, "CREATE ROLE nobody_special LOGIN")
        url = app.replace("postgres@", "nobody_special@")

        with pytest.raises(Refused) as caught:
            place.apply(url)

        assert 'GRANT jobwarden_owner TO "nobody_special";' in str(caught.value)
