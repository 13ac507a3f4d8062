"""The components of AWS, declared to a stand-in: types, names, inputs, parents of the children."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pulumi_aws", reason="the group `managed` is not installed")

import pulumi  # behind the skip

from infra.aws.names import child_of
from tests.unit.pulumi_engine import PRELOAD, Engine, declared, recorded, run

# A module of the SDK warns of itself while it is imported.
pytestmark = pytest.mark.filterwarnings("ignore:aws.ec2/encryptioncontrol:DeprecationWarning")

GROUP = "aws:rds/parameterGroup:ParameterGroup"
CLUSTER_GROUP = "aws:rds/clusterParameterGroup:ClusterParameterGroup"
INSTANCE = "aws:rds/instance:Instance"
CLUSTER = "aws:rds/cluster:Cluster"
SUBNETS = "aws:rds/subnetGroup:SubnetGroup"
GUARD = "aws:ec2/securityGroup:SecurityGroup"
RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
REBOOT = "pulumi-python:dynamic/jobwarden:Reboot"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return recorded(monkeypatch)


def test_an_instance_comes_with_its_group_its_guard_and_its_reboot(engine: Engine) -> None:
    declared("rds", identifier="jobs", allowFrom=["10.0.0.0/8", "sg-0123456a"])

    names = {(each.kind, each.name) for each in engine.declared}
    assert names >= {
        (PRELOAD, "jobwarden-preload"),
        (GROUP, "jobwarden-parameters"),
        (GUARD, "jobwarden-guard"),
        (RULE, "jobwarden-allow-10.0.0.0/8"),
        (RULE, "jobwarden-allow-sg-0123456a"),
        (INSTANCE, "jobwarden-database"),
        (REBOOT, "jobwarden-reboot"),
    }
    assert not engine.all_of(CLUSTER_GROUP) + engine.all_of(CLUSTER) + engine.all_of(SUBNETS)


def test_an_instance_is_encrypted_private_backed_up_and_hard_to_lose(engine: Engine) -> None:
    declared("rds", identifier="jobs", multiAz=True, tags={"team": "jobs"})

    inputs = engine.of(INSTANCE).inputs
    assert inputs == {
        "allocatedStorage": 20,
        "backupRetentionPeriod": 7,
        "copyTagsToSnapshot": True,
        "dbName": "app",
        "deletionProtection": True,
        "engine": "postgres",
        "engineVersion": "16",
        "finalSnapshotIdentifier": "jobs-final",
        "identifier": "jobs",
        "instanceClass": "db.t4g.medium",
        "manageMasterUserPassword": True,
        "multiAz": True,
        "parameterGroupName": "jobwarden-1",
        "performanceInsightsEnabled": True,
        "performanceInsightsRetentionPeriod": 7,
        "publiclyAccessible": False,
        "skipFinalSnapshot": False,
        "storageEncrypted": True,
        "storageType": "gp3",
        "tags": {"team": "jobs"},
        "username": "postgres",
        "vpcSecurityGroupIds": ["jobwarden-guard-id"],
    }


def test_every_parameter_has_its_method_and_all_are_in_order(engine: Engine) -> None:
    settings = {"work_mem": "16MB", "max_connections": "200", "cron.log_run": "off"}
    other = {"io_method": {"value": "worker", "static": True}}
    declared("rds", {"preload": ["auto_explain"], "settings": settings}, parameters=other)

    group = engine.of(GROUP).inputs
    assert group["family"] == "postgres16"
    assert group["namePrefix"] == "jobwarden-"
    assert "name" not in group
    assert [(it["name"], it["value"], it["applyMethod"]) for it in group["parameters"]] == [
        ("cron.database_name", "app", "pending-reboot"),
        ("cron.log_run", "0", "pending-reboot"),
        ("io_method", "worker", "pending-reboot"),
        ("max_connections", "200", "pending-reboot"),
        ("shared_preload_libraries", "pg_stat_statements,auto_explain,pg_cron", "pending-reboot"),
        ("work_mem", "16384", "immediate"),
    ]


def test_only_static_parameters_make_it_look_for_a_reboot(engine: Engine) -> None:
    declared("rds", {"settings": {"work_mem": "16MB", "max_connections": "200"}})

    assert engine.of(REBOOT).inputs["waitsFor"] == {
        "cron.database_name": "app",
        "max_connections": "200",
        "shared_preload_libraries": "pg_stat_statements,pg_cron",
    }
    assert engine.of(REBOOT).inputs["rebootWhenPending"] is False
    assert engine.of(REBOOT).inputs["database"] == (
        "postgresql://postgres@jobs.example.net:5432/app?sslmode=require"
    )
    assert engine.of(REBOOT).inputs["passwordSecret"] == "arn:secret"


def test_static_settings_of_a_clusters_instances_wait_for_a_reboot_too(engine: Engine) -> None:
    declared("aurora", instanceSettings={"work_mem": "8MB", "max_connections": "200"})

    assert engine.of(REBOOT).inputs["waitsFor"] == {
        "cron.database_name": "app",
        "max_connections": "200",
        "shared_preload_libraries": "pg_stat_statements,pg_cron",
    }


def test_a_given_ca_has_the_servers_certificate_checked(engine: Engine) -> None:
    declared("rds", caFile="/etc/ssl/rds bundle.pem")

    assert (
        engine.of(REBOOT)
        .inputs["database"]
        .endswith("?sslmode=verify-full&sslrootcert=/etc/ssl/rds%20bundle.pem")
    )


def test_a_group_alone_says_how_to_attach_it(engine: Engine) -> None:
    declared("rds", parameterGroupOnly=True)

    assert [each.kind for each in engine.declared if each.kind.startswith("aws:")] == [GROUP]
    assert not engine.all_of(REBOOT)


def test_given_groups_are_used_and_nothing_is_made_around(engine: Engine) -> None:
    declared("rds", subnetGroup="private", securityGroupIds=["sg-0123456a"], vpcId="vpc-0123456a")

    inputs = engine.of(INSTANCE).inputs
    assert inputs["dbSubnetGroupName"] == "private"
    assert inputs["vpcSecurityGroupIds"] == ["sg-0123456a"]
    assert not engine.all_of(GUARD) + engine.all_of(SUBNETS)


def test_subnets_become_a_group_and_the_guard_stands_in_their_vpc(engine: Engine) -> None:
    subnets = ["subnet-0123456b", "subnet-0123456a"]
    declared("rds", subnetIds=subnets, vpcId="vpc-0123456a", allowFrom=["10.0.0.0/8"])

    assert engine.of(SUBNETS).inputs["subnetIds"] == sorted(subnets)
    assert engine.of(GUARD).inputs["vpcId"] == "vpc-0123456a"
    assert engine.of(RULE).inputs == {
        "cidrIpv4": "10.0.0.0/8",
        "fromPort": 5432,
        "ipProtocol": "tcp",
        "securityGroupId": "jobwarden-guard-id",
        "toPort": 5432,
    }


def test_a_guard_that_lets_nobody_in_is_a_warning(engine: Engine) -> None:
    declared("rds")

    assert engine.all_of(RULE) == []
    assert ["rds.allowFrom" in text for text in engine.warnings] == [True]


def test_an_adopted_instance_keeps_its_password(engine: Engine) -> None:
    declared("rds", managePassword=False)

    assert "manageMasterUserPassword" not in engine.of(INSTANCE).inputs
    assert engine.of(REBOOT).inputs["passwordSecret"] == ""


@pytest.mark.parametrize("target", ["rds", "aurora"])
def test_no_child_is_unparented(engine: Engine, target: str) -> None:
    declared(target, subnetIds=["subnet-0123456a", "subnet-0123456b"], vpcId="vpc-0123456a")

    children = [each for each in engine.declared if not each.kind.startswith("jobwarden:")]
    top = [each.name for each in children if not each.parent.count("jobwarden:aws:")]
    assert top == ["jobwarden-reboot"]  # of the program, not of a component
    assert len(children) >= 6


@pytest.mark.parametrize("target", ["rds", "aurora"])
def test_what_was_imported_without_a_parent_is_found(engine: Engine, target: str) -> None:
    declared(target)

    for each in engine.declared:
        if each.kind.startswith("aws:"):
            assert each.name in each.aliases, each.name


def test_a_renamed_child_is_found_by_the_name_it_had(engine: Engine) -> None:
    class Thing(pulumi.ComponentResource):
        def __init__(self) -> None:
            super().__init__("jobwarden:aws:Thing", "it")
            self.options = child_of(self, "it", "new", {"new": ("old", "older")})

    found: list[Any] = []
    run(lambda: found.append(Thing().options))

    assert [alias.name for alias in found[0].aliases] == ["it-old", "it-older", "it-new"]
    assert "jobwarden:aws:Thing" in [each.kind for each in engine.declared]
