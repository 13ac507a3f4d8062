"""The block `rds` of an environment: every fault with its path, and what is read."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from infra import config
from infra.config import Environment
from infra.errors import ConfigError, Fault


def parsed(target: str = "rds", postgres: Any = None, **rds: Any) -> Environment:
    block = {"target": target, "postgres": {"version": "16", **(postgres or {})}, "rds": rds}
    return config.parse(block)


def faults(target: str = "rds", postgres: Any = None, **rds: Any) -> tuple[Fault, ...]:
    with pytest.raises(ConfigError) as caught:
        parsed(target, postgres, **rds)
    return caught.value.faults


def test_a_version_is_all_that_must_be_said() -> None:
    found = config.parse({"target": "rds", "postgres": {"version": "16"}})

    assert found.rds.deletion_protection is True
    assert found.rds.final_snapshot is True
    assert found.rds.manage_password is True
    assert found.rds.reboot_when_pending is False
    assert found.rds.allow_preload_removal is False
    assert found.rds.backup_retention == 7


@pytest.mark.parametrize("target", ["rds", "aurora"])
def test_the_version_is_needed_for_the_family(target: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.parse({"target": target})

    assert [fault.path for fault in caught.value.faults] == ["postgres.version"]
    assert "family" in caught.value.faults[0].problem


@pytest.mark.parametrize(
    ("target", "postgres", "rds", "path", "says"),
    [
        ("rds", {}, {"family": "postgres15"}, "rds.family", "postgres16"),
        ("aurora", {}, {"family": "postgres16"}, "rds.family", "aurora-postgresql16"),
        ("rds", {}, {"engineVersion": "15.3"}, "rds.engineVersion", "another major version"),
        ("rds", {}, {"engineVersion": "sixteen"}, "rds.engineVersion", "no engine version"),
        ("rds", {}, {"instanceClass": "t4g.micro"}, "rds.instanceClass", "db.t4g.medium"),
        ("rds", {}, {"identifier": "Jobs"}, "rds.identifier", "a letter first"),
        ("rds", {}, {"identifier": "a--b"}, "rds.identifier", "single -"),
        ("rds", {}, {"username": "rdsadmin"}, "rds.username", "taken"),
        ("rds", {}, {"allocatedStorage": 5}, "rds.allocatedStorage", "20 to 65536"),
        ("rds", {}, {"backupRetention": 0}, "rds.backupRetention", "1 to 35"),
        ("rds", {}, {"instances": 2}, "rds.instances", "target aurora"),
        ("rds", {}, {"instanceSettings": {"jit": "on"}}, "rds.instanceSettings", "target aurora"),
        ("aurora", {}, {"multiAz": True}, "rds.multiAz", "target rds"),
        ("aurora", {}, {"allocatedStorage": 50}, "rds.allocatedStorage", "target rds"),
        ("rds", {}, {"allowFrom": ["0.0.0.0/0"]}, "rds.allowFrom.0", "everybody"),
        ("rds", {}, {"allowFrom": ["my office"]}, "rds.allowFrom.0", "neither"),
        (
            "rds",
            {},
            {"subnetIds": ["subnet-0123456a"], "vpcId": "vpc-0123456a"},
            "rds.subnetIds",
            "one subnet",
        ),
        ("rds", {}, {"subnetGroup": "private"}, "rds.vpcId", "VPC of the subnets"),
        (
            "rds",
            {},
            {"securityGroupIds": ["sg-0123456a"], "allowFrom": ["10.0.0.0/8"]},
            "rds.allowFrom",
            "not ours to change",
        ),
        (
            "rds",
            {},
            {"instanceClass": "db.t4g.micro", "performanceInsights": True},
            "rds.performanceInsights",
            "no Performance Insights",
        ),
        ("aurora", {}, {"instanceClass": "db.serverless"}, "rds.serverless", "go together"),
        ("rds", {}, {"blueGreenUpdate": True}, "rds.blueGreenUpdate", "must stay off"),
        ("rds", {}, {"replicateSourceDb": "x"}, "rds.replicateSourceDb", "runs no schedules"),
        ("rds", {}, {"instanceClas": "db.t4g.micro"}, "rds.instanceClas", "instanceClass?"),
        ("rds", {}, {"rebootWindow": "2:00-04:00"}, "rds.rebootWindow", "it may pass midnight"),
        ("rds", {}, {"rebootWindow": "02:00-02:00"}, "rds.rebootWindow", "is empty"),
        (
            "rds",
            {},
            {"rebootWindow": "02:00-04:00", "rebootWhenPending": True},
            "rds.rebootWindow",
            "rds.rebootWhenPending: true reboots at any hour",
        ),
        ("rds", {}, {"existingPreload": "pg_cron,"}, "rds.existingPreload", "trailing"),
        ("rds", {"preload": ["citus"]}, {}, "postgres.preload", "not to be had"),
        ("rds", {"settings": {"wrk_mem": "1"}}, {}, "postgres.settings.wrk_mem", "work_mem?"),
        ("rds", {"settings": {"work_mem": "x"}}, {}, "postgres.settings.work_mem", "kB"),
        (
            "rds",
            {"settings": {"cron.max_running_jobs": 32}},
            {},
            "postgres.settings.max_worker_processes",
            "worker slots",
        ),
        (
            "rds",
            {"settings": {"rds.allowed_extensions": "hstore"}},
            {},
            "postgres.settings",
            "leaves out pg_cron",
        ),
        ("rds", {"cron": {"enabled": False}}, {}, "postgres.cron.enabled", "no timer"),
        (
            "rds",
            {},
            {"parameters": {"max_connections": {"value": "10", "static": False}}},
            "rds.parameters.max_connections",
            "is static",
        ),
        (
            "rds",
            {},
            {"parameters": {"cron.timezone": {"value": "UTC", "static": True}}},
            "rds.parameters.cron.timezone",
            "another place",
        ),
        (
            "aurora",
            {},
            {"instanceSettings": {"shared_preload_libraries": "pg_cron"}},
            "rds.instanceSettings.shared_preload_libraries",
            "an instance's own group would win",
        ),
        (
            "aurora",
            {},
            {"instanceSettings": {"cron.log_run": "off"}},
            "rds.instanceSettings.cron.log_run",
            "belongs to the cluster's group",
        ),
    ],
)
def test_what_aws_would_refuse_is_a_fault_with_its_path(
    target: str, postgres: dict[str, Any], rds: dict[str, Any], path: str, says: str
) -> None:
    found = faults(target, postgres, **rds)

    assert [fault.path for fault in found] == [path]
    assert says in str(found[0])
    assert found[0].hint


def test_all_faults_come_at_once() -> None:
    found = faults(
        "rds",
        {"preload": ["timescaledb"], "settings": {"work_mem": "x"}},
        family="postgres14",
        instances=3,
    )

    assert {fault.path for fault in found} == {
        "rds.family",
        "rds.instances",
        "postgres.preload",
        "postgres.settings.work_mem",
    }


def test_the_block_is_for_aws_only() -> None:
    with pytest.raises(ConfigError, match="rds: only for AWS"):
        config.parse({"target": "existing", "rds": {"instanceClass": "db.t4g.small"}})


def test_a_url_goes_with_a_group_alone() -> None:
    url = "postgresql://u@db.example.net/app"
    block = {"target": "rds", "postgres": {"version": "16"}, "databaseUrl": url}
    with pytest.raises(ConfigError, match="databaseUrl: the address is that of the database"):
        config.parse(block)

    found = config.parse({**block, "rds": {"parameterGroupOnly": True}})
    assert found.database_url == url


def test_serverless_has_its_class_and_its_limits() -> None:
    found = parsed(
        "aurora", instanceClass="db.serverless", serverless={"minimum": 1, "maximum": 8.5}
    )

    assert found.rds.serverless is not None
    assert (found.rds.serverless.minimum, found.rds.serverless.maximum) == (1.0, 8.5)


@pytest.mark.parametrize("target", ["rds", "aurora"])
def test_a_window_for_the_reboot_is_read_beside_the_flag_that_is_off(target: str) -> None:
    found = parsed(target, rebootWindow="23:00-01:00", rebootWhenPending=False).rds

    assert (found.reboot_window, found.reboot_when_pending) == ("23:00-01:00", False)
    assert parsed(target).rds.reboot_window is None


@pytest.mark.parametrize(
    ("text", "fits"),
    [("02:00-04:00", True), ("23:59-00:00", True), ("24:00-01:00", False), ("2-4", False)],
)
def test_the_schema_knows_a_window_by_its_shape(text: str, fits: bool) -> None:
    stack = {"config": {"jobwarden:target": "rds", "jobwarden:rds": {"rebootWindow": text}}}

    assert Draft202012Validator(config.json_schema()).is_valid(stack) is fits


def test_an_engine_version_may_be_a_number() -> None:
    assert parsed(engineVersion=16).rds.engine_version == "16"
