"""Aurora by the same program: a cluster's group, readers rebooted before the writer, an upgrade."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from moto.rds.models import DBInstance

from tests.engine.account.server import Account
from tests.engine.aws_stack import Stack, make_stack
from tests.engine.instance import LocalPlane

MEMBERS = {"log_min_duration_statement": "1s"}


@pytest.fixture
def stack(tmp_path: Path, pulumi_home: Path, served: Account, plane: LocalPlane) -> Stack:
    return make_stack(tmp_path, pulumi_home, served, plane, target="aurora")


@pytest.fixture
def booted(served: Account, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list that will name each instance as it boots."""
    names: list[str] = []
    boot = served.control.boot

    def note(database: DBInstance) -> None:
        names.append(database.db_instance_identifier)
        boot(database)

    monkeypatch.setattr(type(served.control), "boot", lambda _, database: note(database))
    return names


def clusters(stack: Stack) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stack.account.client("rds").describe_db_clusters()["DBClusters"]
    return found


def groups(stack: Stack, kind: str) -> list[str]:
    """Return the names of the groups that are not AWS's own."""
    key = {"db": "DBParameterGroup", "db_cluster": "DBClusterParameterGroup"}[kind]
    describe = getattr(stack.account.client("rds"), f"describe_{kind}_parameter_groups")
    names = [item[f"{key}Name"] for item in describe()[f"{key}s"]]
    return [name for name in names if not name.startswith("default.")]


def test_a_cluster_from_nothing_through_a_reboot_and_an_upgrade_to_nothing(
    stack: Stack, booted: list[str]
) -> None:
    stack.rds(instances=2, instanceSettings=MEMBERS)
    stack.project.up()
    made = stack.project.outputs()

    assert made["registered"] is True
    assert made["parameterGroupFamily"] == "aurora-postgresql15"
    assert stack.parameters(made["parameterGroupName"], "db_cluster") == {
        "cron.database_name": "app",
        "shared_preload_libraries": "pg_stat_statements,pg_cron",
    }
    [members] = groups(stack, "db")
    assert stack.parameters(members) == {"log_min_duration_statement": "1000"}

    booted.clear()
    stack.say("postgres", {"version": "15", "database": "app", "preload": ["auto_explain"]})
    stack.rds(instances=2, instanceSettings=MEMBERS, rebootWhenPending=True)
    rebooted = stack.project.up()

    assert booted == ["jobs-2", "jobs-1"]
    assert [item["IsClusterWriter"] for item in clusters(stack)[0]["DBClusterMembers"]] == [
        True,
        False,
    ]
    assert "rebooted: jobs-2, jobs-1" in rebooted.output
    assert stack.project.outputs()["requiresReboot"] is False

    stack.say("postgres", {"version": "16", "database": "app", "preload": ["auto_explain"]})
    stack.rds(
        instances=2,
        instanceSettings=MEMBERS,
        allowMajorVersionUpgrade=True,
        applyImmediately=True,
        deletionProtection=False,
    )
    stack.project.up()
    again = stack.project.up()

    assert clusters(stack)[0]["EngineVersion"].startswith("16.")
    assert groups(stack, "db_cluster") == [stack.project.outputs()["parameterGroupName"]]
    assert len(groups(stack, "db")) == 1
    assert again.touched() == {}

    stack.project.destroy()

    assert clusters(stack) == []
    assert groups(stack, "db") == groups(stack, "db_cluster") == []
