"""`pulumi up` on a Postgres that is there already: the real command line, a private cluster."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from infra.errors import InfraError
from infra.local.cluster import Cluster
from infra.local.servers import find_server
from infra.schedules import CLEANUP, WATCHDOG
from tests.engine.local_stack import NOWHERE, Database, LocalStack, words
from tests.engine.project import PulumiError
from tests.postgres import emptying

Missing = Callable[[str], NoReturn]
Stack = Callable[..., LocalStack]

OURS = {
    CLEANUP: ("0 2 * * *", "CALL jobwarden.cleanup()", True),
    WATCHDOG: ("*/5 * * * *", "CALL jobwarden.sweep()", True),
}
STRANGER = "SELECT cron.schedule('theirs', '0 1 * * *', 'SELECT 1')"
SIX = 6  # the stack, the component, SQL, policy and our two schedules


@pytest.fixture(scope="module")
def cluster(missing: Missing) -> Iterator[Cluster]:
    try:
        server = find_server(pg_cron=True)
    except InfraError as error:
        missing(str(error))
    with Cluster.create(server, durable=False) as cluster:
        yield cluster


@pytest.fixture
def app(cluster: Cluster) -> Database:
    """An empty database with pg_cron preloaded, and not created yet."""
    emptying.empty(cluster)
    emptying.set_extension(cluster, present=False)
    return Database(cluster.url("app"))


@pytest.fixture
def stack(tmp_path: Path, pulumi_home: Path) -> Stack:
    return lambda **environment: LocalStack(tmp_path / "project", pulumi_home, **environment)


def test_an_up_registers_and_a_second_one_changes_nothing(app: Database, stack: Stack) -> None:
    project = stack(databaseUrl=app.url)

    first, second = project.up(), project.up()

    assert first.changes == {"create": SIX}
    assert app.schedules() == OURS
    assert app.has("public.jobs")
    assert second.changes == {"same": SIX}
    outputs = project.outputs()
    assert outputs["registered"] is True
    assert outputs["schedules"][WATCHDOG]["next"].endswith("+00:00")
    assert project.preview("--expect-no-changes").touched() == {}


def test_a_preview_needs_no_database(stack: Stack) -> None:
    project = stack(databaseUrl=NOWHERE)

    assert project.preview().changes == {"create": SIX}


def test_a_changed_schedule_is_one_update_with_both_values(app: Database, stack: Stack) -> None:
    project = stack(databaseUrl=app.url)
    project.up()
    before = app.rows("SELECT jobid FROM cron.job ORDER BY jobid")
    project.declare(databaseUrl=app.url, watchdog={"schedule": "*/2 * * * *"})

    plan, text, up = project.preview(), project.preview_text(), project.up()

    assert plan.touched() == {WATCHDOG: "update"}
    assert 'schedule : "*/5 * * * *" => "*/2 * * * *"' in words(text)
    assert up.touched() == {WATCHDOG: "update"}
    assert app.schedules() == OURS | {WATCHDOG: ("*/2 * * * *", *OURS[WATCHDOG][1:])}
    assert app.rows("SELECT jobid FROM cron.job ORDER BY jobid") == before


def test_a_changed_limit_is_one_update_of_the_policy(app: Database, stack: Stack) -> None:
    project = stack(databaseUrl=app.url)
    project.up()
    project.declare(databaseUrl=app.url, watchdog={"actions": {"pdf": {"timeout": "3m"}}})

    text, up = project.preview_text(), project.up()

    assert '+ timeout : "3m"' in words(text)
    assert up.touched() == {"policy": "update"}
    assert app.rows("SELECT timeout::text FROM jobwarden.policy WHERE action = 'pdf'") == [
        ("00:03:00",)
    ]


def test_a_schedule_comes_and_goes_alone(app: Database, stack: Stack) -> None:
    project = stack(databaseUrl=app.url)
    project.up()
    app.run(STRANGER)
    report = {"name": "report", "schedule": "0 6 * * 1", "command": "SELECT 2"}
    project.declare(databaseUrl=app.url, schedules=[report])

    came = project.up()
    there = app.schedules()
    project.declare(databaseUrl=app.url)
    gone = project.up()

    assert came.touched() == {"report": "create"}
    assert there["report"] == ("0 6 * * 1", "SELECT 2", True)
    assert gone.touched() == {"report": "delete"}
    assert set(app.schedules()) == {WATCHDOG, CLEANUP, "theirs"}


def test_a_refresh_sees_what_hands_did_and_the_next_up_heals_it(
    app: Database, stack: Stack
) -> None:
    project = stack(databaseUrl=app.url)
    project.up()
    app.run(
        f"SELECT cron.alter_job(jobid, schedule := '0 3 * * *') FROM cron.job"
        f" WHERE jobname = '{CLEANUP}'",
        f"SELECT cron.unschedule(jobid) FROM cron.job WHERE jobname = '{WATCHDOG}'",
        "UPDATE jobwarden.policy SET timeout = '1 hour'",
        "DROP FUNCTION jobwarden.health()",
    )

    refreshed, text, healed = project.refresh(), project.preview_text(), project.up()

    touched = {"sql": "update", "policy": "update", CLEANUP: "update"}
    assert refreshed.changes == {"same": 2, "update": 3, "delete": 1}
    assert 'schedule : "0 3 * * *" => "0 2 * * *"' in words(text)
    assert 'timeout : "1h" => "10m"' in words(text)
    assert re.search(r'- \[0\]: "\w+ \S*health\(\)\S*: somebody dropped it"', text)
    assert healed.touched() == touched | {WATCHDOG: "create"}
    assert app.schedules() == OURS
    assert project.refresh("--expect-no-changes").changes == {"same": SIX}


def test_a_dropped_schema_is_made_again_and_the_schedules_with_it(
    app: Database, stack: Stack
) -> None:
    project = stack(databaseUrl=app.url)
    project.up()
    app.run("DROP SCHEMA jobwarden CASCADE", f"DELETE FROM cron.job WHERE jobname = '{CLEANUP}'")

    up = project.up("--refresh")

    assert up.changes["create"] == 3
    assert app.schedules() == OURS
    assert project.refresh("--expect-no-changes").changes == {"same": SIX}


def test_a_paused_schedule_stays_paused(app: Database, stack: Stack) -> None:
    project = stack(databaseUrl=app.url)
    project.up()
    app.run(f"UPDATE cron.job SET active = false WHERE jobname = '{CLEANUP}'")

    refreshed, up = project.refresh(), project.up()

    assert refreshed.changes == {"same": SIX - 1, "update": 1}
    assert up.touched() == {}
    assert f"{CLEANUP} is paused by hand" in up.output
    project.declare(databaseUrl=app.url, cleanup={"schedule": "0 4 * * *"})
    assert project.up().touched() == {CLEANUP: "update"}
    assert app.schedules()[CLEANUP] == ("0 4 * * *", "CALL jobwarden.cleanup()", False)


def test_an_unreachable_database_is_a_warning_and_the_next_up_heals(
    app: Database, stack: Stack
) -> None:
    project = stack()
    project.environment(DATABASE_URL=NOWHERE)

    first = project.up()
    outputs = project.outputs()
    project.environment(DATABASE_URL=app.url)
    second = project.up()

    assert first.changes == {"create": SIX}
    assert "no connection to" in first.output
    assert "Try:" in first.output
    assert outputs["registered"] is False
    assert set(second.touched()) == {"sql", "policy", WATCHDOG, CLEANUP}
    assert app.schedules() == OURS
    assert project.outputs()["registered"] is True
    assert project.preview("--expect-no-changes").touched() == {}


def test_an_up_that_was_killed_is_finished_by_the_next(app: Database, stack: Stack) -> None:
    project = stack(databaseUrl=app.url)
    with app.busy():
        project.killed_while("sql creating", "up", "--skip-preview")
    assert not app.has("jobwarden.policy")

    project.pulumi("cancel", "--yes")
    up = project.up()

    assert {"sql", "policy", WATCHDOG, CLEANUP} <= set(up.touched())
    assert app.schedules() == OURS
    assert project.preview("--expect-no-changes").touched() == {}


def test_strict_turns_an_unreachable_database_into_an_error(stack: Stack) -> None:
    project = stack(databaseUrl=NOWHERE, strict=True)

    with pytest.raises(PulumiError) as failed:
        project.up()

    assert "no connection to" in failed.value.output
    assert "Try: check that the server is up" in failed.value.output
    assert "Traceback" not in failed.value.output


def test_schedules_wait_for_pg_cron_and_the_next_up_registers_them(
    missing: Missing, stack: Stack
) -> None:
    try:
        server = find_server(pg_cron=True)
    except InfraError as error:
        missing(str(error))
    with Cluster.create(server, pg_cron=False, durable=False) as cluster:
        app = Database(cluster.url("app"))
        project = stack(databaseUrl=app.url)

        first = project.up()
        outputs = project.outputs()
        with (cluster.folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(
                "shared_preload_libraries = 'pg_cron'\n"
                "cron.database_name = 'app'\n"
                "cron.use_background_workers = on\n"
            )
        cluster.restart()
        second = project.up()

        assert "pg_cron is not in the shared_preload_libraries in force" in first.output
        assert outputs["registered"] is False
        assert outputs["server"] == {"version": server.version, "database": "app"}
        assert second.touched() == {WATCHDOG: "update", CLEANUP: "update"}
        assert app.schedules() == OURS
        assert project.outputs()["registered"] is True


def test_a_table_of_another_shape_stops_the_up_and_stays_as_it_is(
    app: Database, stack: Stack
) -> None:
    app.run("CREATE TABLE public.jobs (id int)")
    project = stack(databaseUrl=app.url)

    with pytest.raises(PulumiError) as failed:
        project.up()

    assert "is not the table we would make" in failed.value.output
    assert not app.has("jobwarden.policy")


def test_a_schedule_that_this_pg_cron_refuses_stops_itself_and_no_other(
    app: Database, stack: Stack
) -> None:
    app.run("CREATE EXTENSION pg_cron")
    if app.rows("SELECT extversion >= '1.5' FROM pg_extension WHERE extname = 'pg_cron'")[0][0]:
        pytest.skip("this pg_cron honours seconds")
    often = {"name": "often", "schedule": "30 seconds", "command": "SELECT 1"}
    project = stack(databaseUrl=app.url, schedules=[often])

    with pytest.raises(PulumiError) as failed:
        project.up()
    left = app.schedules()
    project.declare(databaseUrl=app.url, schedules=[{**often, "schedule": "* * * * *"}])
    healed = project.up()

    assert "schedule often:" in failed.value.output
    assert "Try:" in failed.value.output
    assert "often" not in left
    assert healed.touched()["often"] == "create"
    assert set(app.schedules()) == {"often", WATCHDOG, CLEANUP}


def test_a_strangers_schedule_of_our_name_is_reported_and_not_doubled(
    app: Database, stack: Stack
) -> None:
    app.run(
        "CREATE EXTENSION pg_cron",
        f"SELECT cron.schedule('{WATCHDOG}', '*/9 * * * *', 'SELECT 1')",
    )
    project = stack(databaseUrl=app.url)

    first = project.up()
    before = app.schedules()
    app.run("DELETE FROM cron.job WHERE username = 'postgres'")
    second = project.up()

    assert "`jobwarden apply --take-over` replaces it" in first.output
    assert before[WATCHDOG] == ("*/9 * * * *", "SELECT 1", True)
    assert second.touched() == {WATCHDOG: "update"}
    assert app.schedules() == OURS


def test_destroy_leaves_the_jobs_and_what_is_a_strangers(app: Database, stack: Stack) -> None:
    project = stack(databaseUrl=app.url)
    project.up()
    app.run(STRANGER, "INSERT INTO public.jobs (action) VALUES ('pdf')")

    destroyed = project.destroy()

    assert destroyed.changes == {"delete": SIX}
    assert set(app.schedules()) == {"theirs"}
    assert not app.has("jobwarden.policy")
    assert app.rows("SELECT count(*) FROM public.jobs") == [(1,)]


def test_destroy_without_the_database_fails_with_the_way_out(app: Database, stack: Stack) -> None:
    project = stack()
    project.environment(DATABASE_URL=app.url)
    project.up()
    project.environment(DATABASE_URL=NOWHERE)

    with pytest.raises(PulumiError) as failed:
        project.destroy()
    project.declare(abandonOnDestroy=True)
    project.up()
    project.destroy()

    assert "pulumi config set jobwarden:abandonOnDestroy true" in failed.value.output
    assert app.schedules() == OURS


@pytest.mark.parametrize(
    ("who", "says"), [("boot", "the application does it"), ("command", "`jobwarden apply` does it")]
)
def test_another_way_to_register_leaves_the_database_alone(
    app: Database, stack: Stack, who: str, says: str
) -> None:
    project = stack(databaseUrl=app.url, registerFrom=who)

    up = project.up()

    assert says in up.output
    assert not app.has("public.jobs")
    assert project.outputs()["registerFrom"] == who
    assert project.outputs()["registered"] is False
    assert project.preview("--expect-no-changes").touched() == {}


def test_giving_the_registration_away_takes_nothing_away(app: Database, stack: Stack) -> None:
    project = stack(databaseUrl=app.url)
    project.up()
    project.declare(databaseUrl=app.url, registerFrom="boot")

    project.up()
    project.destroy()

    assert app.schedules() == OURS


def test_a_password_is_used_and_is_nowhere_to_be_read(
    app: Database, cluster: Cluster, stack: Stack
) -> None:
    secret = secrets.token_hex(8)
    app.run(f"CREATE ROLE locked SUPERUSER LOGIN PASSWORD '{secret}'")
    rules = cluster.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all locked scram-sha-256\n{before}")
    app.run("SELECT pg_reload_conf()")
    project = stack(databaseUrl=cluster.url("app", "locked"))
    try:
        refused = project.up()
        project.config("jobwarden:databasePassword", secret, secret=True)
        up = project.up()
        destroyed = project.destroy()
    finally:
        rules.write_text(before)
        app.run("SELECT pg_reload_conf()")

    assert "no password supplied" in refused.output
    assert set(up.touched()) == {"sql", "policy", WATCHDOG, CLEANUP}
    assert destroyed.changes == {"delete": SIX}
    told = refused.output + up.output + destroyed.output
    kept = [file for file in project.folder.rglob("*") if file.is_file()]
    assert secret not in told
    assert [str(file) for file in kept if secret.encode() in file.read_bytes()] == []


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"target": "box"}, "pyinfra inventory.py deploy.py"),
        ({"watchdg": {}}, "did you mean watchdog?"),
        ({"databasePassword": "hunter2"}, "jobwarden:databasePassword"),
    ],
    ids=["a box", "a misspelt key", "a password in plain text"],
)
def test_what_is_wrong_is_said_before_anything_is_made(
    stack: Stack, environment: dict[str, Any], says: str
) -> None:
    project = stack(**environment)

    with pytest.raises(PulumiError) as failed:
        project.preview_text()

    assert says in failed.value.output
    assert "Traceback" not in failed.value.output
    assert "hunter2" not in failed.value.output
