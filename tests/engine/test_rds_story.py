"""RDS by one program: from an empty account to a rescued row, and back to an empty account."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.engine.account.server import Account
from tests.engine.aws_stack import Stack
from tests.engine.local_stack import words
from tests.engine.project import PulumiError

STUCK = """
    INSERT INTO jobs (status, action, started_at)
    VALUES ('running', 'pdf', now() - interval '1 hour')
"""
RESCUED = "SELECT status, error ->> 'code' FROM jobs"


def test_from_an_empty_account_to_a_rescued_row_and_back(stack: Stack) -> None:
    project, account = stack.project, stack.account
    preview = project.preview()
    first = project.up()
    made = project.outputs()
    again = project.up()

    assert preview.changes == first.changes == {"create": 15}
    assert again.changes == {"same": 15}
    assert made["registered"] is True
    assert made["requiresReboot"] is False
    assert made["preloadLibraries"] == "pg_stat_statements,pg_cron"
    assert made["parameterGroupName"].startswith("jobwarden-")
    assert (made["parameterGroupFamily"], made["cronDatabase"]) == ("postgres15", "app")
    assert (made["endpoint"], made["port"]) == ("127.0.0.1", int(made["port"]))
    assert made["masterUserSecretArn"].startswith("arn:aws:secretsmanager:")
    assert made["schedules"]["jobsDailyCleanup"]["next"].endswith("T02:00:00+00:00")
    assert stack.parameters(made["parameterGroupName"]) == {
        "cron.database_name": "app",
        "shared_preload_libraries": "pg_stat_statements,pg_cron",
    }
    no_secret_in(stack)

    stack.say("watchdog", {"schedule": "* * * * *"})
    shown = project.preview_text()
    changed = project.up()
    stack.ask(STUCK)
    stack.fire("jobsStuckWatchdog")

    assert 'schedule : "*/5 * * * *" => "* * * * *"' in words(shown)
    assert changed.touched() == {"jobsStuckWatchdog": "update"}
    assert stack.ask(RESCUED) == [("failed", "watchdog_timeout")]

    stack.ask("UPDATE cron.job SET schedule = '0 0 1 1 *' WHERE jobname = 'jobsStuckWatchdog'")
    seen = project.refresh()
    with pytest.raises(PulumiError, match="protected"):
        project.pulumi("destroy", "--yes")  # with its preview, as people run it
    kept = stack.ask("SELECT count(*) FROM cron.job")
    stack.rds(deletionProtection=False)
    mended = project.up()
    schedule = stack.ask("SELECT schedule FROM cron.job WHERE jobname = 'jobsStuckWatchdog'")
    project.destroy()

    assert seen.changes["update"] == 1
    assert mended.touched() == {"jobsStuckWatchdog": "update", "jobwarden-database": "update"}
    assert kept == [(2,)]
    assert schedule == [("* * * * *",)]
    nothing_is_left(account)


def test_a_library_that_waits_for_a_reboot_is_reported_until_somebody_reboots(
    stack: Stack,
) -> None:
    stack.project.up()
    stack.say("postgres", {"version": "15", "database": "app", "preload": ["auto_explain"]})
    told = stack.project.up()
    waits = stack.project.outputs()
    stack.account.client("rds").reboot_db_instance(DBInstanceIdentifier="jobs")
    after = stack.project.up()
    again = stack.project.up()

    assert (
        "jobs must be rebooted before this is in force: shared_preload_libraries ="
        " pg_stat_statements,pg_cron,auto_explain." in told.output
    )
    assert waits["rebootCommand"].startswith(
        "aws rds reboot-db-instance --db-instance-identifier jobs"
    )
    assert (waits["requiresReboot"], waits["registered"]) == (True, True)
    assert after.touched() == {"jobwarden-reboot": "update"}
    assert stack.project.outputs()["requiresReboot"] is False
    assert again.changes == {"same": 15}

    stack.say("postgres", {"version": "15", "database": "app"})
    with pytest.raises(PulumiError, match="auto_explain would be taken out of the list"):
        stack.project.preview()
    stack.rds(allowPreloadRemoval=True, rebootWindow=hours(from_now=6, until=8))
    closed = stack.project.up()
    stack.rds(allowPreloadRemoval=True, rebootWindow=hours(from_now=-1, until=2))
    removed = stack.project.up()

    assert "UTC is closed; it opens next at " in closed.output
    assert "rebooted: " not in closed.output
    assert "rebooted: jobs" in removed.output
    assert stack.ask("SHOW shared_preload_libraries") == [("rdsutils,pg_stat_statements,pg_cron",)]


def test_an_instance_that_is_there_is_adopted_and_waits_for_its_reboot(stack: Stack) -> None:
    """Made by hand, it runs without pg_cron: nothing can be registered before the reboot."""
    rds = stack.account.client("rds")
    rds.create_db_instance(
        DBInstanceIdentifier="jobs",
        DBInstanceClass="db.t4g.medium",
        Engine="postgres",
        EngineVersion="15",
        AllocatedStorage=20,
        DBName="app",
        MasterUsername="master",
        MasterUserPassword="chosen by hand",  # of a server that ends with the test
        StorageEncrypted=True,
        StorageType="gp3",
    )
    stack.rds(managePassword=False)
    stack.project.config("jobwarden:databasePassword", "chosen by hand", secret=True)
    stack.project.pulumi(
        *("import", "aws:rds/instance:Instance", "jobwarden-database", "jobs"),
        *("--yes", "--generate-code=false", "--skip-preview"),
    )
    planned = stack.project.preview().touched()
    told = stack.project.up()
    waits = stack.project.outputs()
    rds.reboot_db_instance(DBInstanceIdentifier="jobs")
    after = stack.project.up()

    assert planned["jobwarden-database"] == "update"
    assert "jobs must be rebooted before this is in force" in told.output
    assert "pg_cron is not in the shared_preload_libraries in force" in told.output
    assert "ALTER SYSTEM" not in told.output
    assert (waits["requiresReboot"], waits["registered"]) == (True, False)
    assert after.touched().keys() >= {"jobwarden-reboot", "jobsStuckWatchdog"}
    assert stack.project.outputs()["registered"] is True
    assert stack.account.counted()["CreateDBInstance"] == 1
    assert stack.project.up().touched() == {}


def test_a_major_upgrade_switches_to_a_new_group_and_drops_the_old_one(stack: Stack) -> None:
    stack.project.up()
    old = stack.project.outputs()["parameterGroupName"]
    stack.say("postgres", {"version": "16", "database": "app"})
    stack.rds(allowMajorVersionUpgrade=True, applyImmediately=True)
    stack.project.up()
    found = stack.project.outputs()
    instance = stack.account.client("rds").describe_db_instances()["DBInstances"][0]

    assert instance["EngineVersion"].startswith("16.")
    assert found["parameterGroupFamily"] == "postgres16"
    assert old not in own_groups(stack.account)
    assert own_groups(stack.account) == [found["parameterGroupName"]]
    assert stack.project.up().touched() == {}


def hours(*, from_now: int, until: int) -> str:
    """Return a window around now: the program under test goes by the clock of this machine."""
    now = datetime.now(UTC)
    return "-".join(f"{now + timedelta(hours=each):%H:%M}" for each in (from_now, until))


def no_secret_in(stack: Stack) -> None:
    arn = stack.project.outputs()["masterUserSecretArn"]
    secret = stack.account.client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"]
    password = secret.partition('"password": "')[2].rstrip('"}')

    assert len(password) > 10
    assert password not in stack.project.state()
    assert password not in str(stack.project.outputs())


def own_groups(account: Account) -> list[str]:
    groups = account.client("rds").describe_db_parameter_groups()["DBParameterGroups"]
    names = [group["DBParameterGroupName"] for group in groups]
    return [name for name in names if not name.startswith("default.")]


def nothing_is_left(account: Account) -> None:
    rds = account.client("rds")
    snapshots = rds.describe_db_snapshots(DBSnapshotIdentifier="jobs-final")["DBSnapshots"]

    assert rds.describe_db_instances()["DBInstances"] == []
    assert own_groups(account) == []
    assert len(snapshots) == 1
