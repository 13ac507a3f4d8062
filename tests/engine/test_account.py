"""The account itself, asked by boto3: what AWS refuses, and what waits for a reboot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.errors import InfraError
from tests.engine.account.plane import Endpoint, NoDataPlane, Order
from tests.engine.account.server import Account

LIBRARIES = "shared_preload_libraries"


@pytest.fixture
def rds(account: Account) -> Any:
    client = account.client("rds")
    client.create_db_parameter_group(
        DBParameterGroupName="jobs", DBParameterGroupFamily="postgres16", Description="ours"
    )
    return client


def setting(name: str, value: str, method: str = "pending-reboot") -> dict[str, str]:
    return {"ParameterName": name, "ParameterValue": value, "ApplyMethod": method}


def change(rds: Any, *settings: dict[str, str], group: str = "jobs") -> None:
    rds.modify_db_parameter_group(DBParameterGroupName=group, Parameters=list(settings))


def make_instance(rds: Any, name: str = "db", **more: Any) -> None:
    arguments = {
        "DBInstanceIdentifier": name,
        "DBInstanceClass": "db.t4g.micro",
        "Engine": "postgres",
        "EngineVersion": "16.10",
        "AllocatedStorage": 20,
        "MasterUsername": "master",
        "ManageMasterUserPassword": True,
        "DBParameterGroupName": "jobs",
        **more,
    }
    rds.create_db_instance(**arguments)


def status(rds: Any) -> str:
    live = rds.describe_db_instances(DBInstanceIdentifier="db")["DBInstances"][0]
    return str(live["DBParameterGroups"][0]["ParameterApplyStatus"])


def refused(deed: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        deed()
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ([setting(LIBRARIES, "pg_cron", "immediate")], "InvalidParameterCombination", "static"),
        ([setting("work_memory", "1")], "InvalidParameterValue", "Could not find parameter"),
        ([setting("work_mem", "little")], "InvalidParameterValue", "allowed values are"),
        ([setting(LIBRARIES, "pg_cron,nonsense")], "InvalidParameterValue", "allowed values are"),
        ([setting("cron.host", "db")], "InvalidParameterCombination", "cannot be modified"),
        ([setting("work_mem", "64")] * 21, "InvalidParameterValue", "maximum of 20"),
    ],
)
def test_a_bad_change_is_refused_whole(
    rds: Any, settings: list[dict[str, str]], code: str, words: str
) -> None:
    good = [] if len(settings) > 1 else [setting("log_statement", "ddl", "immediate")]
    found, message = refused(lambda: change(rds, *good, *settings))
    left = rds.describe_db_parameters(DBParameterGroupName="jobs", Source="user")["Parameters"]

    assert (found, left) == (code, [])
    assert words in message


def test_a_default_group_cannot_be_edited_or_deleted(rds: Any) -> None:
    make_instance(rds, DBParameterGroupName="default.postgres16")
    edit = refused(lambda: change(rds, setting("work_mem", "64"), group="default.postgres16"))
    delete = refused(
        lambda: rds.delete_db_parameter_group(DBParameterGroupName="default.postgres16")
    )

    assert {edit[0], delete[0]} == {"InvalidDBParameterGroupState"}


def test_a_group_needs_a_real_family_and_name(rds: Any) -> None:
    def make(name: str, family: str) -> None:
        rds.create_db_parameter_group(
            DBParameterGroupName=name, DBParameterGroupFamily=family, Description="ours"
        )

    assert "not a valid parameter group family" in refused(lambda: make("new", "postgres99"))[1]
    assert "not a valid identifier" in refused(lambda: make("1st", "postgres16"))[1]
    assert refused(lambda: make("jobs", "postgres16"))[0] == "DBParameterGroupAlreadyExists"


def test_only_a_static_change_waits_for_a_reboot(rds: Any) -> None:
    make_instance(rds)
    change(rds, setting("work_mem", "4096", "immediate"))
    dynamic = status(rds)
    change(rds, setting(LIBRARIES, "pg_stat_statements,pg_cron"))
    static = status(rds)
    rds.reboot_db_instance(DBInstanceIdentifier="db")

    assert (dynamic, static, status(rds)) == ("in-sync", "pending-reboot", "in-sync")


def test_a_parameter_set_back_waits_too(rds: Any) -> None:
    change(rds, setting(LIBRARIES, "pg_cron"))
    make_instance(rds)
    rds.reset_db_parameter_group(
        DBParameterGroupName="jobs",
        Parameters=[{"ParameterName": LIBRARIES, "ApplyMethod": "pending-reboot"}],
    )
    listed = rds.describe_db_parameters(DBParameterGroupName="jobs")["Parameters"]
    value = next(item for item in listed if item["ParameterName"] == LIBRARIES)

    assert status(rds) == "pending-reboot"
    assert (value["ParameterValue"], value["Source"]) == ("pg_stat_statements,pg_tle", "system")


def test_a_newly_attached_group_waits_for_a_reboot(rds: Any) -> None:
    make_instance(rds, DBParameterGroupName="default.postgres16")
    rds.modify_db_instance(DBInstanceIdentifier="db", DBParameterGroupName="jobs")
    change(rds, setting("work_mem", "4096", "immediate"))

    assert status(rds) == "pending-reboot"


def test_a_member_of_a_cluster_reboots_for_itself(rds: Any) -> None:
    rds.create_db_cluster_parameter_group(
        DBClusterParameterGroupName="jobs",
        DBParameterGroupFamily="aurora-postgresql16",
        Description="ours",
    )
    rds.create_db_cluster(
        DBClusterIdentifier="jobs",
        Engine="aurora-postgresql",
        EngineVersion="16.10",
        MasterUsername="master",
        ManageMasterUserPassword=True,
        DBClusterParameterGroupName="jobs",
    )
    for name in ("writer", "reader"):
        rds.create_db_instance(
            DBInstanceIdentifier=name,
            DBInstanceClass="db.r7g.large",
            Engine="aurora-postgresql",
            DBClusterIdentifier="jobs",
        )
    rds.modify_db_cluster_parameter_group(
        DBClusterParameterGroupName="jobs", Parameters=[setting(LIBRARIES, "pg_cron")]
    )
    rds.reboot_db_instance(DBInstanceIdentifier="reader")
    members = rds.describe_db_clusters()["DBClusters"][0]["DBClusterMembers"]

    assert {
        item["DBInstanceIdentifier"]: item["DBClusterParameterGroupStatus"] for item in members
    } == {"writer": "pending-reboot", "reader": "in-sync"}


def test_a_last_snapshot_is_named_or_waived(rds: Any) -> None:
    make_instance(rds)
    found = refused(lambda: rds.delete_db_instance(DBInstanceIdentifier="db"))
    rds.delete_db_instance(DBInstanceIdentifier="db", FinalDBSnapshotIdentifier="last")

    assert "FinalDBSnapshotIdentifier is required" in found[1]
    assert rds.describe_db_instances()["DBInstances"] == []


def test_a_major_upgrade_leaves_no_old_group_behind(rds: Any) -> None:
    make_instance(rds)
    found = refused(
        lambda: rds.modify_db_instance(
            DBInstanceIdentifier="db", EngineVersion="17.6", AllowMajorVersionUpgrade=True
        )
    )
    back = refused(lambda: rds.modify_db_instance(DBInstanceIdentifier="db", EngineVersion="16.8"))

    assert "is custom" in found[1]
    assert "it is older" in back[1]


def test_aws_may_throttle_and_be_asked_again(account: Account, rds: Any) -> None:
    account.calls.clear()
    account.fail("DescribeDBInstances", "Throttling", times=1)
    rds.describe_db_instances()

    assert account.calls == ["DescribeDBInstances", "DescribeDBInstances"]


def test_credentials_may_have_expired(account: Account, rds: Any) -> None:
    account.fail("DescribeDBInstances", "ExpiredToken", "The security token is expired", status=403)

    assert refused(rds.describe_db_instances)[0] == "ExpiredToken"


def test_a_managed_secret_is_that_of_its_database(account: Account, rds: Any) -> None:
    make_instance(rds)
    make_instance(rds, "other")
    secrets = [
        account.client("secretsmanager").get_secret_value(
            SecretId=item["MasterUserSecret"]["SecretArn"]
        )["SecretString"]
        for item in rds.describe_db_instances()["DBInstances"]
    ]

    assert all('"username": "master"' in secret for secret in secrets)
    assert secrets[0] != secrets[1]


class BrokenPlane(NoDataPlane):
    """No server starts here."""

    def boot(self, order: Order) -> Endpoint:
        raise InfraError(f"{order.name} did not start")


def test_a_server_that_does_not_start_has_incompatible_parameters() -> None:
    with Account(BrokenPlane()) as account:
        rds = account.client("rds")
        make_instance(rds, DBParameterGroupName="default.postgres16")
        live = rds.describe_db_instances()["DBInstances"][0]

    assert live["DBInstanceStatus"] == "incompatible-parameters"
