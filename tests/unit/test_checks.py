"""What keeps an apply or its schedules back: each problem, and the way out that it names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from infra import checks, rights
from infra.checks import Problem
from infra.observed import RUNNER, Observed, Role
from infra.schedules import CLEANUP, WATCHDOG
from tests.unit import seen

PLAN = seen.wanted()
HELD = seen.installed(PLAN)


def _server(**changed: Any) -> Observed:
    return replace(HELD, server=replace(HELD.server, **changed))


def _deployer(**changed: Any) -> Observed:
    return replace(HELD, server=seen.DEPLOYER, **changed)


def _only(problems: tuple[Problem, ...]) -> Problem:
    assert len(problems) == 1, problems
    return problems[0]


def _waits(observed: Observed) -> Problem:
    found = checks.waiting(observed)
    assert found is not None
    return found


def test_a_healthy_server_has_no_problem_and_no_warning() -> None:
    assert checks.faults(PLAN, HELD) == ()
    assert rights.lacking(PLAN, HELD) == ()
    assert checks.waiting(HELD) is None
    assert rights.blind(HELD) is None
    assert checks.proof(PLAN, HELD) == ()
    assert checks.warnings(PLAN, HELD) == ()


def test_a_problem_reads_as_subject_message_and_way_out() -> None:
    assert str(Problem("server", "it is down", "start it")) == "server: it is down\nTry: start it"


class TestFaults:
    def test_a_standby_is_refused_and_points_to_the_primary(self) -> None:
        problem = _only(checks.faults(PLAN, _server(in_recovery=True)))

        assert "standby" in problem.message
        assert "primary" in problem.hint

    def test_a_server_that_is_too_old_is_refused(self) -> None:
        problem = _only(checks.faults(PLAN, _server(version_num=120017)))

        assert "PostgreSQL 12 is too old" in problem.message

    def test_another_database_than_the_declared_one_is_refused(self) -> None:
        plan = seen.wanted(postgres={"database": "jobs"})

        problem = _only(checks.faults(plan, HELD))

        assert "names database jobs, and this is database app" in problem.message

    def test_a_missing_schema_gets_its_statement(self) -> None:
        plan = seen.wanted(jobs={"table": '"My App".jobs'})
        observed = replace(HELD, schema_exists=False, table=None)

        assert _only(checks.faults(plan, observed)).hint == 'CREATE SCHEMA "My App";'

    @pytest.mark.parametrize("kind", ["p", "v", "f", "m"])
    def test_what_is_no_ordinary_table_is_refused(self, kind: str) -> None:
        problem = _only(checks.faults(PLAN, replace(HELD, table=seen.table(PLAN, kind=kind))))

        assert "no ordinary table" in problem.message
        assert "create: false" in problem.hint

    def test_another_table_of_the_name_is_refused_with_every_column_that_is_off(self) -> None:
        columns = dict(PLAN.columns) | {"id": "bigint"}
        del columns["error"]

        table = seen.table(PLAN, columns=columns)
        problem = _only(checks.faults(PLAN, replace(HELD, table=table)))

        assert "id is bigint (wanted uuid)" in problem.message
        assert "error is missing (wanted jsonb)" in problem.message
        assert "action" not in problem.message
        assert "Nothing was changed" in problem.hint

    def test_more_columns_than_ours_are_no_fault(self) -> None:
        table = seen.table(PLAN, columns=dict(PLAN.columns) | {"tenant": "integer"})

        assert checks.faults(PLAN, replace(HELD, table=table)) == ()

    def test_forced_row_security_is_refused_with_its_statement(self) -> None:
        table = seen.table(PLAN, forced_row_security=True)

        problem = _only(checks.faults(PLAN, replace(HELD, table=table)))

        assert problem.hint == 'ALTER TABLE "public"."jobs" NO FORCE ROW LEVEL SECURITY;'

    @pytest.mark.parametrize(("schedule", "needs"), [("30 seconds", "1.5"), ("0 12 $ * *", "1.6")])
    def test_a_schedule_the_installed_pg_cron_refuses_stops_it_all(
        self, schedule: str, needs: str
    ) -> None:
        plan = seen.wanted(watchdog={"schedule": schedule})

        problem = _only(checks.faults(plan, seen.installed(plan)))

        assert problem.subject == f"schedule {WATCHDOG}"
        assert needs in str(problem)
        assert "1.4-1" in str(problem)
        newer = replace(seen.installed(plan), cron_installed_version="1.6")
        assert checks.faults(plan, newer) == ()


class TestRights:
    def test_a_first_apply_needs_roles_and_a_schema(self) -> None:
        server = replace(seen.DEPLOYER, creates_schemas=False)

        observed = seen.empty(server=server, creates_in_schema=False)
        problem = _only(rights.lacking(PLAN, observed))

        assert problem.hint.splitlines()[1:] == [
            'ALTER ROLE "deployer" CREATEROLE;',
            'GRANT CREATE ON DATABASE "app" TO "deployer";',
            'GRANT CREATE ON SCHEMA "public" TO "deployer";',
        ]
        assert "nothing was changed" in problem.message

    def test_roles_that_are_there_must_be_joined(self) -> None:
        roles = {name: replace(role, ours_to_set=False) for name, role in seen.ROLES.items()}

        problem = _only(rights.lacking(PLAN, _deployer(roles=roles)))

        assert problem.hint.splitlines()[1:] == [
            'GRANT jobwarden_owner TO "deployer";',
            'GRANT jobwarden_runner TO "deployer";',
        ]

    def test_createrole_joins_them_by_itself_but_only_in_a_first_apply(self) -> None:
        server = replace(seen.DEPLOYER, createrole=True)
        roles = {name: replace(role, ours_to_set=False) for name, role in seen.ROLES.items()}

        assert rights.lacking(PLAN, seen.empty(server=server, roles=roles)) == ()
        assert rights.lacking(PLAN, replace(HELD, server=server, roles=roles)) != ()

    def test_a_table_of_another_owner_needs_that_owner(self) -> None:
        table = seen.table(PLAN, owned=False)

        problem = _only(rights.lacking(PLAN, _deployer(table=table)))

        assert 'GRANT "app" TO "deployer";' in problem.hint

    def test_nobody_is_told_to_join_a_superuser(self) -> None:
        table = seen.table(PLAN, owned=False, owner="postgres", owner_superuser=True)

        problem = _only(rights.lacking(PLAN, _deployer(table=table)))

        assert 'ALTER TABLE "public"."jobs" OWNER TO "deployer";' in problem.hint
        assert "GRANT" not in problem.hint

    def test_a_superuser_lacks_nothing(self) -> None:
        assert rights.lacking(PLAN, replace(HELD, table=seen.table(PLAN, owned=False))) == ()

    def test_a_role_that_may_not_read_ours_is_told_so(self) -> None:
        problem = rights.blind(_deployer(ledger=None))

        assert problem is not None
        assert "deployer may not read schema jobwarden" in problem.message
        assert 'GRANT jobwarden_readonly TO "deployer";' in problem.hint


class TestWaiting:
    def test_no_pg_cron_names_the_package_and_the_fallback(self) -> None:
        problem = _waits(seen.empty(cron_default_version=None))

        assert "postgresql-15-cron" in problem.hint
        assert "fallback.sh" in problem.hint

    def test_a_library_that_is_not_preloaded_keeps_the_others(self) -> None:
        observed = seen.empty(settings=seen.settings(shared_preload_libraries="auto_explain"))

        problem = _waits(observed)

        assert "shared_preload_libraries = 'auto_explain,pg_cron'\n" in problem.hint
        assert "cron.database_name = 'app'\n" in problem.hint

    def test_another_home_of_pg_cron_is_named(self) -> None:
        problem = _waits(replace(HELD, settings=seen.settings(cron__database_name="other")))

        assert "database other" in problem.message
        assert "cron.database_name = 'app'" in problem.hint

    def test_the_launcher_tells_the_home_where_the_setting_may_not_be_read(self) -> None:
        settings = seen.settings(cron__database_name=None)
        server = replace(seen.DEPLOYER, launcher=("other",))

        assert "database other" in _waits(replace(HELD, server=server, settings=settings)).message

    def test_a_plain_role_is_told_what_a_superuser_runs(self) -> None:
        problem = _waits(seen.empty(server=seen.DEPLOYER))

        assert "CREATE EXTENSION pg_cron;" in problem.hint
        assert f"GRANT USAGE ON SCHEMA cron TO {RUNNER};" in problem.hint

    def test_on_rds_its_master_makes_the_extension_itself(self) -> None:
        master = replace(seen.DEPLOYER, createrole=True, rds=True, rds_superuser=True)

        assert checks.waiting(seen.empty(server=master)) is None
        assert checks.waiting(seen.empty(server=replace(master, rds_superuser=False))) is not None

    def test_on_rds_the_library_comes_from_the_parameter_group(self) -> None:
        settings = seen.settings(shared_preload_libraries="rdsutils,pg_stat_statements")
        problem = _waits(replace(_server(rds=True), settings=settings))

        assert "parameter group" in problem.hint
        assert "aws rds reboot-db-instance" in problem.hint
        assert "postgresql.conf" not in problem.hint

    def test_old_sql_of_the_extension_is_updated_first(self) -> None:
        problem = _waits(replace(HELD, cron_installed_version="1.3"))

        assert "is 1.3, its library 1.4-1" in problem.message
        assert problem.hint == "ALTER EXTENSION pg_cron UPDATE;"

    def test_a_runner_without_schema_cron_is_granted_it_or_waits(self) -> None:
        lacking = replace(HELD, runner_cron_usage=False)

        assert checks.waiting(lacking) is None
        problem = _waits(replace(lacking, cron_usage_to_grant=False))
        assert problem.hint.endswith(f"GRANT USAGE ON SCHEMA cron TO {RUNNER};")

    def test_a_runner_that_may_not_connect_is_granted_it_or_waits(self) -> None:
        lacking = replace(HELD, runner_connects=False)

        assert checks.waiting(lacking) is None
        problem = _waits(replace(lacking, connect_to_grant=False))
        assert problem.hint.endswith(f'GRANT CONNECT ON DATABASE "app" TO {RUNNER};')


class TestProof:
    def test_a_dead_launcher_is_no_success(self) -> None:
        problem = _only(checks.proof(PLAN, _server(launcher=())))

        assert "nothing will fire" in problem.message
        assert "restart Postgres" in problem.hint

    def test_a_launcher_in_another_database_is_no_success(self) -> None:
        problem = _only(checks.proof(PLAN, _server(launcher=("old",))))

        assert "reads database old, not app" in problem.message

    def test_missing_owners_are_named_with_the_repair(self) -> None:
        observed = replace(_server(launcher=()), orphans=("al'ice", "bob"))

        problem = _only(checks.proof(PLAN, observed))

        assert "'al''ice', 'bob'" in problem.message
        assert "DELETE FROM cron.job WHERE username IN ('al''ice', 'bob');" in problem.hint

    @pytest.mark.parametrize(
        ("runner", "said"),
        [
            (None, "is not there"),
            (Role(login=False, superuser=False, ours_to_set=True), "may not log in"),
            (Role(login=True, superuser=True, ours_to_set=True), "is a superuser"),
        ],
    )
    def test_a_runner_whose_jobs_do_not_start_is_no_success(
        self, runner: Role | None, said: str
    ) -> None:
        roles = {name: role for name, role in seen.ROLES.items() if name != RUNNER}
        observed = replace(HELD, roles=roles | ({RUNNER: runner} if runner else {}))

        assert said in _only(checks.proof(PLAN, observed)).message

    def test_too_few_worker_slots_are_no_success(self) -> None:
        few = seen.settings(cron__use_background_workers="on", cron__max_running_jobs="8")

        problem = _only(checks.proof(PLAN, replace(HELD, settings=few)))

        assert problem.hint.startswith("max_worker_processes = 11")
        enough = replace(HELD, settings=few | seen.settings(max_worker_processes="10"))
        assert len(checks.proof(PLAN, enough)) == 0

    def test_a_schedule_that_did_not_arrive_is_no_success(self) -> None:
        rows = (seen.job(PLAN, WATCHDOG), seen.job(PLAN, CLEANUP, username="postgres"))

        problem = _only(checks.proof(PLAN, replace(HELD, jobs=rows)))

        assert problem.subject == f"schedule {CLEANUP}"


class TestWarnings:
    def test_day_of_month_or_weekday_is_said(self) -> None:
        mine = {"name": "mine", "schedule": "0 5 1-7 * 0", "command": "SELECT 1"}
        plan = seen.wanted(schedules=[mine])

        found = checks.warnings(plan, seen.installed(plan))

        assert len(found) == 1
        assert found[0].startswith("schedule mine: ")

    def test_background_workers_before_one_point_five_are_said(self) -> None:
        settings = seen.settings(cron__use_background_workers="on")
        old = replace(HELD, settings=settings)

        assert "holds up all others" in checks.warnings(PLAN, old)[0]
        assert checks.warnings(PLAN, replace(old, cron_installed_version="1.5")) == ()

    def test_children_without_an_index_are_said(self) -> None:
        table = seen.table(PLAN, unindexed_children=("app.step",))

        assert "app.step" in checks.warnings(PLAN, replace(HELD, table=table))[0]
