"""What each stage of a deploy decides from a box as it was found."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from infra import box_database, box_doors, box_plan, box_removal, script
from infra.box_decision import UNTIL_APPLIED, UNTIL_INSTALLED, Decision
from infra.boxes import Cluster, EnvFile
from infra.observed import CronJob, Ledger, LedgerSchedule, Observed, Setting
from tests.unit import boxsamples
from tests.unit.boxsamples import MAIN, bare, box, line, server, setting, target

STAGES = (
    box_plan.configure,
    box_plan.restart,
    box_database.database,
    box_database.apply,
    box_database.prove,
    box_plan.fallback,
)
LOADED = {"shared_preload_libraries": setting("pg_cron")}


def nothing(**more: Any) -> Observed:
    """A database with nothing in it, on a server that is ready for pg_cron."""
    found = script._nothing()  # noqa: SLF001 - the sample that the printed script starts from
    there = dataclasses.replace(
        found.server, version_num=150018, database="app", port=5432, user="postgres"
    )
    return dataclasses.replace(found, server=there, cron_default_version="1.4-1", **more)


def carried(*, active: bool = True, jobid: int = 1, launcher: str = "app") -> Observed:
    """A database whose one schedule pg_cron carries."""
    job = CronJob(
        jobid, "jobsStuckWatchdog", "*/5 * * * *", "CALL jobwarden.sweep()", "app",
        "jobwarden_runner", "/var/run/postgresql", 5432, active,
    )  # fmt: skip
    entry = LedgerSchedule(job.schedule, job.command, timedelta(minutes=5), 1)
    found = nothing(jobs=(job,), installed=True)
    return dataclasses.replace(
        found,
        server=dataclasses.replace(found.server, launcher=(launcher,)),
        settings={"cron.use_background_workers": Setting("off", pending_restart=False)},
        cron_installed_version="1.4-1",
        runner_cron_usage=True,
        ledger=Ledger(1, {}, {}, {}, {}, {"jobsStuckWatchdog": entry}),
    )


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_is_claimed_of_a_bare_box(stage: Any) -> None:
    assert stage(target(), bare()) == Decision(unknown=UNTIL_INSTALLED)


@pytest.mark.parametrize("stage", STAGES)
def test_a_server_that_is_down_is_told_with_its_way_out(stage: Any) -> None:
    down = Cluster("15", "main", 5432, "down", "postgres", MAIN.data, "/log")
    found = stage(target(), box(chosen=down, server=None, server_error="no such socket"))

    assert found.script is None
    assert "15/main does not answer (pg_lsclusters says down): no such socket" in found.unknown
    assert "systemctl start postgresql@15-main.service" in found.unknown


def test_a_restart_is_made_only_with_leave() -> None:
    waits = box(server=server(**LOADED, shared_buffers=setting("1GB", pending=True)))
    held = box_plan.restart(target(allow_restart=False), waits)
    made = box_plan.restart(target(), waits)

    assert held.script is None
    assert held.changes[0].waits
    assert "systemctl restart postgresql@15-main.service" in held.notes[0]
    assert made.script is not None
    assert made.script.name == "restart"


@pytest.mark.parametrize("stage", [box_plan.configure, box_plan.restart])
def test_no_restart_towards_a_library_of_another_major(stage: Any) -> None:
    found = stage(target(), box(libraries=frozenset({"auto_explain.so"})))

    assert found.script is None
    assert "pg_cron is not installed for PostgreSQL 15" in found.problems[0].message


def test_no_restart_while_something_wins_over_our_file() -> None:
    there = server(line("cron.database_name", "other", boxsamples.AUTO))

    assert box_plan.restart(target(), box(server=there)) == Decision()


def test_a_standby_gets_the_configuration_and_no_schedules() -> None:
    standby = box(server=dataclasses.replace(server(**LOADED), in_recovery=True))

    assert box_plan.configure(target(), standby).script is not None
    assert box_database.database(target(), standby).script is None
    applied = box_database.apply(target(), standby)
    assert (applied.script, applied.problems) == (None, ())
    assert "standby" in applied.notes[0]
    assert box_database.prove(target(), standby) == Decision()
    assert box_plan.fallback(target(), standby) == Decision()


def test_a_database_that_is_missing_is_made_before_anything_is_restarted() -> None:
    found = box_database.database(target(postgres={"database": 'a"b'}), box())

    assert found.script is not None
    assert 'CREATE DATABASE "a""b"' in found.script.variables["SQL"]
    assert box_database.database(target(), box()).script is None


def test_an_apply_sends_the_statements_in_one_session_under_one_lock() -> None:
    found = box_database.apply(target(), box(server=server(**LOADED), observed=nothing()))

    assert found.script is not None
    sql = found.script.variables["SQL"]
    assert sql.index("pg_try_advisory_lock") < sql.index("BEGIN;") < sql.index("lock_timeout")
    assert sql.index("COMMIT;") < sql.index("pg_advisory_unlock") < sql.index("jobwarden.observed")
    assert sql.count("cron.schedule(") == 2


def test_without_pg_cron_no_schedule_is_sent() -> None:
    wanted = target(postgres={"cron": {"enabled": False}})
    found = box_database.apply(wanted, box(server=server(), observed=nothing()))

    assert found.script is not None
    assert "cron.schedule(" not in found.script.variables["SQL"]
    assert {change.kind for change in found.changes} == {"index", "sql", "policy"}


def test_a_database_that_cannot_be_read_is_an_error_with_psql_s_words() -> None:
    found = box_database.apply(target(), box(observed_error="FATAL: no"))

    assert "FATAL: no" in found.problems[0].message


def test_an_answer_without_a_document_is_not_taken_for_success() -> None:
    found = box_database.apply(target(), box(server=server(**LOADED), observed=nothing()))

    assert found.verify is not None
    assert found.verify("")[0].subject == "read-back"


def test_removal_leaves_the_file_that_jobs_of_others_run_by() -> None:
    theirs = CronJob(
        7, "theirs", "@daily", "SELECT 1", "app", "ann", "localhost", 5432, active=True
    )
    ours = "# Jobwarden wrote this\nshared_preload_libraries = 'pg_cron'\n"
    held = box_removal.configuration(target(), box(conf=ours, observed=nothing(jobs=(theirs,))))
    gone = box_removal.configuration(target(), box(conf=ours, observed=nothing(jobs=())))

    assert held.script is None
    assert "theirs of ann" in held.notes[0]
    assert gone.script is not None
    assert gone.script.variables["TEXT"] == ""


def test_removal_of_nothing_is_nothing() -> None:
    for stage in (box_removal.units_and_timers, box_removal.sql, box_removal.restart):
        found = stage(target(), box(observed=nothing()))
        assert (found.changes, found.script, found.problems) == ((), None, ())


@pytest.mark.parametrize(
    ("found", "timers"),
    [
        (carried(), False),
        (carried(active=False), False),  # paused on purpose: no timer may do it instead
        (carried(jobid=2), True),
        (carried(launcher="other"), True),
        (dataclasses.replace(carried(), installed=False), False),
    ],
    ids=["carried", "paused", "dropped", "no-launcher", "not-installed"],
)
def test_timers_stand_in_only_while_pg_cron_does_not_have_the_work(
    found: Observed, timers: bool
) -> None:
    decided = box_plan.fallback(target(), box(server=server(**LOADED), observed=found))

    assert bool(decided.script) == timers


API = {"api": {"command": "/srv/api", "secrets": ["TOKEN", "KEY"]}}


def test_services_wait_for_a_secret_that_is_not_given() -> None:
    found = box_plan.services(target(services=API), box())

    assert found.script is None
    assert found.unknown.startswith("secret KEY not given. Try: export KEY=")
    env = [change for change in found.changes if change.name == "/etc/jobwarden/api.env"]
    assert [(change.action, change.why) for change in env] == [("unknown", "secret KEY not given")]


def test_a_removal_needs_no_secret_and_leaves_variables_of_others() -> None:
    wanted = dataclasses.replace(target(services=API), secrets={})
    envs = {
        "api": EnvFile("640", "root", "jobwarden-api", "0"),
        "theirs": EnvFile("600", "ann", "ann", "0", ours=False),
    }
    found = box_removal.units_and_timers(wanted, box(envs=envs))

    assert found.script is not None
    assert found.script.variables["REMOVE_ENVS"] == "api"


@pytest.mark.parametrize("differs", ["none", "server", "port", "workers", "doors", "version"])
def test_a_proof_holds_until_something_it_hangs_on_changes(differs: str) -> None:
    there, found = server(**LOADED), carried()
    proven = box(
        server=there,
        observed=found,
        proof=box_database.proof(box(server=there), found) + "\n",
    )
    if differs == "server":
        there = dataclasses.replace(there, identifier="7002")
    elif differs == "doors":
        there = dataclasses.replace(there, hba=box_doors.with_block(there.hba, "local x"))
    elif differs == "port":
        found = dataclasses.replace(found, server=dataclasses.replace(found.server, port=5444))
    elif differs == "workers":
        on = {"cron.use_background_workers": Setting("on", pending_restart=False)}
        found = dataclasses.replace(found, settings=on)
    elif differs == "version":
        found = dataclasses.replace(found, cron_installed_version="1.6", cron_default_version="1.6")
    decided = box_database.prove(
        target(), dataclasses.replace(proven, server=there, observed=found)
    )

    assert bool(decided.script) == (differs != "none")
    if differs == "version":
        assert decided.script
        assert "'2 seconds'" in decided.script.variables["SQL"]


def test_a_dry_run_before_pg_cron_is_installed_promises_no_rest() -> None:
    adopted = box(cron_version=None, server=server(), observed=nothing())

    for stage in (box_plan.configure, box_plan.restart, box_database.prove):
        assert stage(target(), adopted) == Decision(unknown=UNTIL_INSTALLED)
    assert box_plan.fallback(target(), adopted) == Decision(unknown=UNTIL_APPLIED)


def test_without_pg_cron_nothing_waits_for_its_package() -> None:
    plain = box(cron_version=None, server=server(), observed=nothing(installed=True))
    without = target(postgres={"cron": {"enabled": False}})

    assert box_plan.restart(without, plain) == Decision()
    assert box_database.prove(without, plain) == Decision()
    assert box_plan.fallback(without, plain).script is not None


def test_a_removal_names_itself_as_the_reason() -> None:
    files = {"api.service": "# Jobwarden wrote this.\n", "jobwarden-fallback-x.timer": "old"}
    found = box_removal.units_and_timers(target(services=API), box(files=files))

    assert found.changes
    assert {change.why for change in found.changes} == {"state=absent"}
