"""What goes wrong between `pulumi up` and AWS: a clear message, and the next `up` heals."""

from __future__ import annotations

from typing import Any

import pytest

from infra.aws.calls import AwsError, client
from infra.aws.reboot import Database
from infra.aws.secrets import password
from infra.stack.rebooting import RebootProvider
from tests.engine.account.server import REGION, Account, backend
from tests.engine.aws_stack import Stack
from tests.engine.local_stack import words
from tests.engine.project import PulumiError


def test_an_unreachable_database_is_a_warning_and_a_failed_reboot_heals(stack: Stack) -> None:
    """Made; not reached; a library added; the reboot refused, then throttled; all in force."""
    project, account = stack.project, stack.account
    stack.rds(parameterGroupOnly=True)
    group = project.up()
    stack.rds()
    account.fail("GetSecretValue", "AccessDeniedException", times=100)
    with pytest.raises(PulumiError, match="reading the secret") as caught:
        project.up()
    account.fail("GetSecretValue", "none", times=0)

    assert "nothing is registered: attach the group and reboot: aws rds" in group.output
    assert "run pulumi up again" in caught.value.output

    project.up()
    stack.say("postgres", {"version": "15", "database": "app", "preload": ["auto_explain"]})
    stack.rds(rebootWhenPending=True)
    account.fail("RebootDBInstance", "ExpiredToken", "The security token is expired")
    with pytest.raises(PulumiError) as expired:
        project.up()
    account.fail("RebootDBInstance", "Throttling", "Rate exceeded", times=1)
    with stack.plane.cut("jobs"):
        stack.say("watchdog", {"schedule": "*/10 * * * *"})
        cut = project.up()
        outputs = project.outputs()
    healed = project.up()

    text = words(expired.value.output)
    assert "rebooting jobs: ExpiredToken: The security token is expired" in text
    assert "still pending: jobs" in text
    assert "sign in again" in text
    assert "rebooted: jobs" in cut.output
    assert outputs["registered"] is False
    assert "no connection to postgresql://master@127.0.0.1" in words(cut.output)
    assert healed.touched() == {"jobsStuckWatchdog": "update"}
    assert project.outputs()["registered"] is True
    assert stack.ask("SHOW shared_preload_libraries") == [
        ("rdsutils,pg_stat_statements,pg_cron,auto_explain",)
    ]


@pytest.fixture
def instance(account: Account, monkeypatch: pytest.MonkeyPatch) -> Database:
    """Return an instance without a server, whose group was changed: it waits for a reboot."""
    for name, value in account.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("infra.aws.reboot.POLL_SECONDS", 0.01)
    rds = account.client("rds")
    rds.create_db_parameter_group(
        DBParameterGroupName="own", DBParameterGroupFamily="postgres16", Description="own"
    )
    rds.create_db_instance(
        DBInstanceIdentifier="jobs",
        DBInstanceClass="db.t4g.micro",
        Engine="postgres",
        EngineVersion="16.10",
        AllocatedStorage=20,
        MasterUsername="master",
        ManageMasterUserPassword=True,
        DBParameterGroupName="own",
    )
    preload = {
        "ParameterName": "shared_preload_libraries",
        "ParameterValue": "pg_stat_statements,pg_cron",
        "ApplyMethod": "pending-reboot",
    }
    rds.modify_db_parameter_group(DBParameterGroupName="own", Parameters=[preload])
    return Database("instance", "jobs", REGION)


def test_a_reboot_brings_what_is_pending_into_force(instance: Database) -> None:
    before = instance.members()
    done = instance.reboot()

    assert [member.pending for member in before] == [True]
    assert instance.command(before) == (
        "aws rds reboot-db-instance --db-instance-identifier jobs --region eu-central-1 && aws rds"
        " wait db-instance-available --db-instance-identifier jobs --region eu-central-1"
    )
    assert done == ("jobs",)
    assert [member.pending for member in instance.members()] == [False]
    assert instance.reboot() == ()


def test_throttling_is_waited_out(instance: Database, account: Account) -> None:
    account.fail("DescribeDBInstances", "Throttling", "Rate exceeded", times=2)

    assert [member.name for member in instance.members()] == ["jobs"]
    assert account.counted()["DescribeDBInstances"] == 3


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("ExpiredToken", "sign in again"),
        ("InvalidClientTokenId", "sign in again"),
        ("AccessDenied", "allow the action to the role"),
        ("InvalidDBInstanceState", "mend the cause"),
    ],
)
def test_a_refused_reboot_says_what_remains_and_the_way_out(
    instance: Database, account: Account, code: str, says: str
) -> None:
    account.fail("RebootDBInstance", code, "not now")
    with pytest.raises(AwsError) as caught:
        instance.reboot()

    assert f"rebooting jobs: {code}: not now (still pending: jobs)" in str(caught.value)
    assert says in str(caught.value)


def test_an_instance_that_does_not_start_with_its_parameters_is_said_to(
    instance: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    reboot = backend().reboot_db_instance

    def fail(name: str) -> object:
        done = reboot(name)
        monkeypatch.setattr(
            "tests.engine.account.control.Control.boot",
            lambda _, database: setattr(database, "status", "incompatible-parameters"),
        )
        return done

    monkeypatch.setattr(type(backend()), "reboot_db_instance", lambda _, name: fail(name))

    with pytest.raises(AwsError, match="does not start with its parameters"):
        instance.reboot()


def test_a_replica_names_its_source(instance: Database, account: Account) -> None:
    account.client("rds").create_db_instance_read_replica(
        DBInstanceIdentifier="copy", SourceDBInstanceIdentifier=instance.identifier
    )

    [copy] = Database("instance", "copy", REGION).members()

    assert copy.source == "jobs"


def test_an_instance_that_is_not_there_is_named(instance: Database) -> None:
    with pytest.raises(AwsError, match="asking for the instance nobody: DBInstanceNotFound"):
        Database("instance", "nobody", instance.region).members()


def test_a_database_that_is_gone_leaves_the_state_at_a_refresh(instance: Database) -> None:
    provider: Any = RebootProvider()
    there = {
        "kind": "instance",
        "identifier": instance.identifier,
        "waitsFor": {"cron.database_name": "app"},
        "database": "postgresql://nowhere/app",
        "passwordSecret": "",
        "rebootWhenPending": False,
    }
    seen = provider.read("jobs", there)
    gone = provider.read("nobody", {**there, "identifier": "nobody"})

    assert (seen.id, seen.outs["requiresReboot"]) == ("jobs", True)
    assert gone.id == ""


def test_a_password_is_read_from_its_secret_and_in_no_message(
    instance: Database, account: Account
) -> None:
    found = account.client("rds").describe_db_instances()["DBInstances"][0]
    arn = found["MasterUserSecret"]["SecretArn"]
    secrets = account.client("secretsmanager")
    text = secrets.get_secret_value(SecretId=arn)["SecretString"]

    assert f'"password": "{password(arn)}"' in text

    secrets.put_secret_value(SecretId=arn, SecretString="not JSON, and a secret")
    with pytest.raises(AwsError, match="has no password in it") as caught:
        password(arn)
    assert "a secret" not in str(caught.value).replace("the secret arn", "")
    assert instance.identifier == "jobs"


def test_no_credentials_is_said_before_anything_is_asked(
    instance: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)

    with pytest.raises(AwsError, match="no AWS credentials"):
        instance.members()


def test_no_region_is_said_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    with pytest.raises(AwsError, match="pulumi config set aws:region"):
        client("rds", None)
