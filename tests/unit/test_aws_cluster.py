"""A cluster of Aurora, declared to a stand-in: its groups, its instances, its upgrade."""

from __future__ import annotations

import pytest

pytest.importorskip("pulumi_aws", reason="the group `managed` is not installed")


from tests.unit.pulumi_engine import Engine, declared, recorded

# A module of the SDK warns of itself while it is imported.
pytestmark = pytest.mark.filterwarnings("ignore:aws.ec2/encryptioncontrol:DeprecationWarning")

GROUP = "aws:rds/parameterGroup:ParameterGroup"
CLUSTER_GROUP = "aws:rds/clusterParameterGroup:ClusterParameterGroup"
CLUSTER = "aws:rds/cluster:Cluster"
MEMBER = "aws:rds/clusterInstance:ClusterInstance"
REBOOT = "pulumi-python:dynamic/jobwarden:Reboot"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return recorded(monkeypatch)


def test_a_cluster_has_pg_cron_in_its_own_group_and_not_in_its_instances(engine: Engine) -> None:
    settings = {"log_min_duration_statement": "1s"}
    declared("aurora", identifier="jobs", instances=3, instanceSettings=settings)

    group = engine.of(CLUSTER_GROUP).inputs
    members = engine.of(GROUP).inputs
    assert group["family"] == members["family"] == "aurora-postgresql16"
    assert "shared_preload_libraries" in [it["name"] for it in group["parameters"]]
    assert [(it["name"], it["value"]) for it in members["parameters"]] == [
        ("log_min_duration_statement", "1000")
    ]
    assert engine.of(CLUSTER).inputs["dbClusterParameterGroupName"] == "jobwarden-1"
    assert [it.inputs["dbParameterGroupName"] for it in engine.all_of(MEMBER)] == (
        ["jobwarden-members-1"] * 3
    )
    assert engine.of(REBOOT).inputs["kind"] == "cluster"


def test_a_cluster_is_encrypted_backed_up_and_hard_to_lose(engine: Engine) -> None:
    declared("aurora", identifier="jobs")

    inputs = engine.of(CLUSTER).inputs
    assert inputs == {
        "backupRetentionPeriod": 7,
        "clusterIdentifier": "jobs",
        "copyTagsToSnapshot": True,
        "databaseName": "app",
        "dbClusterParameterGroupName": "jobwarden-1",
        "deletionProtection": True,
        "engine": "aurora-postgresql",
        "engineVersion": "16",
        "finalSnapshotIdentifier": "jobs-final",
        "manageMasterUserPassword": True,
        "masterUsername": "postgres",
        "skipFinalSnapshot": False,
        "storageEncrypted": True,
        "vpcSecurityGroupIds": ["jobwarden-guard-id"],
    }
    assert engine.of(MEMBER).inputs["publiclyAccessible"] is False
    assert "dbParameterGroupName" not in engine.of(MEMBER).inputs


def test_readers_are_made_after_the_writer(engine: Engine) -> None:
    declared("aurora", identifier="jobs", instances=3)

    members = {each.inputs["identifier"]: each for each in engine.all_of(MEMBER)}
    depends = {
        name: [urn.rpartition("::")[2] for urn in each.depends] for name, each in members.items()
    }
    assert "jobwarden-instance-1" not in depends["jobs-1"]
    assert "jobwarden-instance-1" in depends["jobs-2"]
    assert "jobwarden-instance-1" in depends["jobs-3"]
    assert [members[f"jobs-{number}"].inputs["promotionTier"] for number in (1, 2, 3)] == [0, 1, 2]


def test_an_upgrade_of_a_cluster_takes_the_instances_group_along(engine: Engine) -> None:
    declared("aurora", instanceSettings={"work_mem": "8MB"}, allowMajorVersionUpgrade=True)

    inputs = engine.of(CLUSTER).inputs
    assert inputs["allowMajorVersionUpgrade"] is True
    assert inputs["dbInstanceParameterGroupName"] == "jobwarden-members-1"


def test_without_an_upgrade_the_instances_group_is_not_named_at_the_cluster(
    engine: Engine,
) -> None:
    declared("aurora", instanceSettings={"work_mem": "8MB"})

    assert "dbInstanceParameterGroupName" not in engine.of(CLUSTER).inputs


def test_serverless_has_its_limits(engine: Engine) -> None:
    declared("aurora", instanceClass="db.serverless", serverless={"minimum": 0.5, "maximum": 8})

    assert engine.of(CLUSTER).inputs["serverlessv2ScalingConfiguration"] == {
        "minCapacity": 0.5,
        "maxCapacity": 8,
    }
    assert engine.of(MEMBER).inputs["instanceClass"] == "db.serverless"
