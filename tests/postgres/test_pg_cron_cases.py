"""Situations of pg_cron in which a schedule is registered and yet would not fire, or fire twice."""

from __future__ import annotations

import psycopg
import pytest

from infra.changes import Change
from infra.db.apply import Refused
from infra.diff_schedules import Wishes
from infra.local.cluster import Cluster
from infra.observed import RUNNER
from infra.schedules import CLEANUP, WATCHDOG
from tests.postgres import place
from tests.postgres.copies import copy_of


def _watchdog(url: str) -> dict[str, object]:
    return place.jobs(url)[WATCHDOG]


def _drift_of(url: str, name: str = WATCHDOG) -> Change:
    (change,) = [change for change in place.drift(url) if change.name == name]
    return change


def _jobid(url: str) -> int:
    jobid = _watchdog(url)["jobid"]
    assert isinstance(jobid, int)
    return jobid


class TestACopyOfTheCluster:
    def test_rows_that_would_run_in_the_original_are_shown_and_mended(
        self, app: str, cluster: Cluster
    ) -> None:
        place.apply(app)
        with copy_of(cluster, standby=False) as copy:
            there = copy.url("app")

            change = _drift_of(there)
            assert change.old == {"nodename": str(cluster.folder)}
            assert change.new == {"nodename": str(copy.folder)}

            assert place.apply(there).registered
            assert place.drift(there) == []
            assert {job["nodename"] for job in place.jobs(there).values()} == {str(copy.folder)}
        assert place.drift(app) == []


class TestConvergence:
    @pytest.mark.parametrize(
        "hand",
        [
            "UPDATE cron.job SET database = 'postgres'",
            "UPDATE cron.job SET nodename = 'elsewhere'",
            "UPDATE cron.job SET nodeport = 5439",
            "UPDATE cron.job SET schedule = '0 0 1 1 *'",
            "UPDATE cron.job SET command = 'SELECT 1'",
            "UPDATE cron.job SET database = 'postgres', command = 'SELECT 1', nodeport = 1",
            "UPDATE cron.job SET jobname = 'other'",
            "UPDATE cron.job SET username = 'postgres'",
        ],
    )
    def test_every_column_is_put_back_and_the_third_time_is_quiet(
        self, app: str, hand: str
    ) -> None:
        place.apply(app)
        right = self._without_number(app)
        place.run(app, f"{hand} WHERE jobname = '{WATCHDOG}'")

        place.apply(app, Wishes(take_over="username" in hand))
        jobid = _jobid(app)

        assert self._without_number(app) == right
        assert place.apply(app).changes == ()
        assert _jobid(app) == jobid

    def _without_number(self, url: str) -> dict[str, object]:
        return {name: value for name, value in _watchdog(url).items() if name != "jobid"}

    def test_a_paused_row_is_mended_and_stays_paused(self, app: str) -> None:
        place.apply(app)
        place.run(app, "UPDATE cron.job SET active = false, database = 'postgres'")

        place.apply(app)

        assert _watchdog(app)["database"] == "app"
        assert _watchdog(app)["active"] is False
        assert [c.action for c in place.drift(app)] == ["paused", "paused"]
        place.apply(app, Wishes(resume=True))
        assert place.drift(app) == []


class TestADeployerWhoIsNoSuperuser:
    @pytest.fixture
    def deployer(self, app: str) -> str:
        place.run(app, "CREATE ROLE deployer LOGIN")
        return app.replace("postgres@", "deployer@")

    def _run_hint(self, app: str, hint: str) -> None:
        statements = [line for line in hint.splitlines() if line.endswith(";")]
        assert statements, hint
        place.run(app, *statements)

    def test_it_is_told_the_grants_it_runs_them_and_then_all_works(
        self, app: str, deployer: str
    ) -> None:
        with pytest.raises(Refused) as caught:
            place.apply(deployer)
        assert place.one(app, "SELECT to_regnamespace('jobwarden')") is None
        assert caught.value.problems[0].hint.splitlines()[1:] == [
            'ALTER ROLE "deployer" CREATEROLE;',
            'GRANT CREATE ON DATABASE "app" TO "deployer";',
            'GRANT CREATE ON SCHEMA "public" TO "deployer";',
        ]
        self._run_hint(app, caught.value.problems[0].hint)

        first = place.apply(deployer)
        (problem,) = first.problems
        assert f"GRANT USAGE ON SCHEMA cron TO {RUNNER};" in problem.hint
        assert place.jobs(app) == {}
        self._run_hint(app, problem.hint)

        second = place.apply(deployer)
        assert second.registered, second.problems
        assert {job["username"] for job in place.jobs(app).values()} == {RUNNER}
        assert place.apply(deployer).changes == ()
        assert place.drift(app) == []

    @pytest.fixture
    def installed(self, app: str, deployer: str) -> str:
        place.run(
            app,
            "ALTER ROLE deployer CREATEROLE",
            "GRANT CREATE ON DATABASE app TO deployer",
            "GRANT CREATE ON SCHEMA public TO deployer",
            "GRANT USAGE ON SCHEMA cron TO deployer WITH GRANT OPTION",
        )
        assert place.apply(deployer).registered
        return deployer

    def test_a_table_of_another_role_works_once_that_role_is_joined(
        self, app: str, deployer: str
    ) -> None:
        place.run(
            app,
            "CREATE ROLE app_owner",
            "GRANT USAGE, CREATE ON SCHEMA public TO app_owner",
            "CREATE TABLE jobs (id uuid PRIMARY KEY, action text, status text, error jsonb,"
            " worker text, started_at timestamptz, completed_at timestamptz)",
            "ALTER TABLE jobs OWNER TO app_owner",
        )

        with pytest.raises(Refused, match='GRANT "app_owner" TO "deployer";') as caught:
            place.apply(deployer)
        self._run_hint(app, caught.value.problems[0].hint)
        self._run_hint(app, place.apply(deployer).problems[0].hint)

        result = place.apply(deployer)
        assert result.registered, result.problems
        owner = "SELECT relowner::regrole::text FROM pg_class WHERE oid = '{}'::regclass"
        assert place.one(app, owner.format("jobs")) == "app_owner"
        assert place.one(app, owner.format("jobwarden.job")) == "app_owner"

    def test_it_grants_the_runner_what_it_may_grant(self, app: str, installed: str) -> None:
        place.run(app, f"REVOKE USAGE ON SCHEMA cron FROM {RUNNER} CASCADE", "DELETE FROM cron.job")
        place.run(app, "GRANT USAGE ON SCHEMA cron TO deployer WITH GRANT OPTION")

        result = place.apply(installed)

        assert result.registered, result.problems
        assert set(place.jobs(app)) == {WATCHDOG, CLEANUP}

    def test_it_resumes_and_moves_and_removes_as_well(self, app: str, installed: str) -> None:
        place.run(app, f"SELECT cron.alter_job({_jobid(app)}, active := false)")
        assert [c.action for c in place.apply(installed).after if c.name == WATCHDOG] == ["paused"]

        place.apply(installed, Wishes(resume=True))
        assert _watchdog(app)["active"] is True

        place.run(app, "UPDATE cron.job SET database = 'postgres'")
        place.apply(installed)
        assert _watchdog(app)["database"] == "app"

        place.run(app, "UPDATE cron.job SET database = 'postgres', active = false")
        result = place.apply(installed)
        assert {c.action for c in result.after if c.name in {WATCHDOG, CLEANUP}} == {"paused"}
        place.apply(installed, Wishes(resume=True))
        assert place.drift(app) == []

    def test_it_never_sees_a_copy_and_says_so(self, app: str, installed: str) -> None:
        place.run(app, f"SELECT cron.schedule('{WATCHDOG}', '@daily', 'SELECT 1')")

        result = place.apply(installed)

        assert any(c.action == "unknown" and "deployer" in c.why for c in result.after)
        assert [c.action for c in place.drift(app)] == ["foreign"]

    def test_a_second_deployer_is_told_what_to_be_granted(self, app: str, installed: str) -> None:
        place.run(app, "CREATE ROLE second LOGIN CREATEROLE")
        second = installed.replace("deployer@", "second@")

        with pytest.raises(Refused) as caught:
            place.apply(second)
        self._run_hint(app, caught.value.problems[0].hint)

        result = place.apply(second, watchdog={"schedule": "*/2 * * * *"})
        assert result.registered, result.problems
        assert _watchdog(app)["schedule"] == "*/2 * * * *"

    def test_a_refused_step_leaves_nothing_half_applied(self, app: str, installed: str) -> None:
        before = place.stand(app)
        place.run(app, "REVOKE jobwarden_runner FROM deployer")

        with pytest.raises(Refused, match="GRANT jobwarden_runner"):
            place.apply(installed, schedules=[place.OWN], watchdog={"timeout": "1m"})

        after = dict(place.stand(app))
        assert after["jobwarden.policy"] == before["jobwarden.policy"]
        assert after["cron.job"] == before["cron.job"]


class TestTheLauncher:
    def test_a_job_of_a_dropped_role_is_named_and_the_way_out_works(
        self, app: str, cluster: Cluster
    ) -> None:
        place.run(
            app,
            'CREATE ROLE "al\'ice" LOGIN',
            'GRANT USAGE ON SCHEMA cron TO "al\'ice"',
            'SET ROLE "al\'ice"',
            "SELECT cron.schedule('hers', '@daily', 'SELECT 1')",
            "RESET ROLE",
            'REVOKE USAGE ON SCHEMA cron FROM "al\'ice"',
            'DROP ROLE "al\'ice"',
        )

        (problem,) = place.apply(app).problems

        assert "'al''ice'" in problem.message
        assert "no job runs at all" in problem.message
        place.run(app, *[line for line in problem.hint.splitlines() if line.startswith("DELETE")])
        cluster.restart()
        place.hold_until(lambda: place.look(app).server.launcher, "launcher")
        assert place.apply(app).problems == ()

    def test_a_launcher_that_was_ended_is_no_success(self, app: str, cluster: Cluster) -> None:
        place.apply(app)
        place.run(
            app,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'pg_cron scheduler'",
        )
        place.hold_until(lambda: not place.look(app).server.launcher, "end of the launcher")
        try:
            result = place.apply(app)

            assert not result.registered
            assert "nothing will fire" in result.problems[0].message
            assert "restart Postgres" in result.problems[0].hint
        finally:
            cluster.restart()
        place.hold_until(lambda: place.look(app).server.launcher, "launcher")
        assert place.apply(app).registered

    def test_a_standby_is_refused_and_sweeps_only_once_promoted(
        self, app: str, cluster: Cluster
    ) -> None:
        place.apply(app)
        with copy_of(cluster, standby=True) as copy:
            assert not place.look(copy.url("app")).server.launcher
            with pytest.raises(Refused, match="standby") as caught:
                place.apply(copy.url("app"), schedules=[place.OWN])

            assert "connect to the primary" in caught.value.problems[0].hint
            copy.owner.run(
                [copy.server.program("pg_ctl"), "promote", "-w", "-D", str(copy.data)],
                folder=copy.folder,
            )
            place.hold_until(lambda: place.look(copy.url("app")).server.launcher, "launcher")
            assert place.apply(copy.url("app")).registered
            assert place.one(copy.url("app"), "SELECT count(*) FROM jobwarden.run") == 0
            place.run(copy.url("app"), "CALL jobwarden.sweep()")
            assert place.one(copy.url("app"), "SELECT outcome FROM jobwarden.run") == "ok"


class TestWhatIsRegistered:
    @pytest.mark.parametrize("schedule", ["30 seconds", "0 12 $ * *"])
    def test_a_schedule_of_a_newer_pg_cron_is_refused_before_anything(
        self, app: str, schedule: str
    ) -> None:
        version = place.look(app).cron_default_version
        if version is None or version >= "1.5":
            pytest.skip("this pg_cron has it")

        with pytest.raises(Refused, match=r"1\.[56]"):
            place.apply(app, watchdog={"schedule": schedule})

        assert place.one(app, "SELECT to_regnamespace('jobwarden')") is None

    def test_either_day_field_is_said(self, app: str) -> None:
        result = place.apply(app, schedules=[place.OWN | {"schedule": "0 5 1-7 * 0"}])

        assert result.registered
        assert any("mine" in warning for warning in result.warnings)

    def test_an_old_pg_cron_extension_is_updated_first(self, app: str) -> None:
        if "1.4" not in str(place.look(app).cron_default_version):
            pytest.skip("the step from 1.3 is for 1.4")
        place.run(app, "DROP EXTENSION pg_cron", "CREATE EXTENSION pg_cron VERSION '1.3'")

        result = place.apply(app)

        (problem,) = result.problems
        assert problem.hint == "ALTER EXTENSION pg_cron UPDATE;"
        assert place.rows(app, "SELECT * FROM cron.job") == []
        place.run(app, problem.hint)
        assert place.apply(app).registered
        assert set(place.jobs(app)) == {WATCHDOG, CLEANUP}

    def test_a_name_of_63_bytes_is_read_back_the_same(self, app: str) -> None:
        name = "ä" * 31 + "x"

        assert place.apply(app, schedules=[place.OWN | {"name": name}]).registered

        assert name in place.jobs(app)

    def test_another_database_than_pg_cron_s_own_is_never_called_success(
        self, app: str, database: str
    ) -> None:
        result = place.apply(database)

        assert not result.registered
        assert place.jobs(app) == {}

    def test_a_home_that_moved_away_leaves_nothing_to_believe_in(
        self, app: str, cluster: Cluster
    ) -> None:
        place.apply(app)
        conf = cluster.data / "jobwarden.conf"
        was = conf.read_text()
        try:
            conf.write_text(was + "cron.database_name = 'postgres'\n")
            cluster.restart()

            result = place.apply(app)
            drifted = place.drift(app)
        finally:
            conf.write_text(was)
            cluster.restart()
        assert "pg_cron keeps its jobs in database postgres" in result.problems[0].message
        assert all(change.waits for change in drifted)
        place.hold_until(lambda: place.look(app).server.launcher, "launcher")
        assert place.apply(app).registered
        assert place.drift(app) == []

    def test_background_workers_before_1_5_are_a_warning(self, app: str, cluster: Cluster) -> None:
        conf = cluster.data / "jobwarden.conf"
        was = conf.read_text()
        try:
            conf.write_text(
                was + "cron.use_background_workers = on\ncron.max_running_jobs = 5\n"
                "max_worker_processes = 4\n"
            )
            cluster.restart()
            place.hold_until(lambda: place.look(app).server.launcher, "launcher")

            result = place.apply(app)
        finally:
            conf.write_text(was)
            cluster.restart()
        assert any("max_worker_processes" in problem.message for problem in result.problems)
        assert any("background workers" in warning for warning in result.warnings)


def test_a_run_now_uses_the_runner_s_own_rights(app: str) -> None:
    place.apply(app)
    runner = app.replace("postgres@", f"{RUNNER}@")

    with psycopg.connect(runner, autocommit=True) as connection:
        connection.execute("CALL jobwarden.sweep()")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM public.jobs")
