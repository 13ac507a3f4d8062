"""From an empty account to a database with pg_cron: up, pending, reboot, and nothing left to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.engine.account.server import Account
from tests.engine.instance import LocalPlane
from tests.engine.project import Project

PROGRAM = """
    import pulumi_aws as aws
    from pulumi import export

    group = aws.rds.ParameterGroup(
        "jobs", family="postgres15", name_prefix="jobs-", parameters={parameters}
    )
    database = aws.rds.Instance(
        "jobs",
        identifier="jobs",
        engine="postgres",
        engine_version="15",
        instance_class="db.t4g.micro",
        allocated_storage=20,
        db_name="app",
        username="master",
        manage_master_user_password=True,
        parameter_group_name=group.name,
        skip_final_snapshot=True,
    )
    export("address", database.address)
    export("port", database.port)
    export("secret", database.master_user_secrets[0].secret_arn)
"""
WANTED = [
    {"name": "cron.database_name", "value": "app", "apply_method": "pending-reboot"},
    {
        "name": "shared_preload_libraries",
        "value": "pg_stat_statements,pg_tle,pg_cron",
        "apply_method": "pending-reboot",
    },
]


@pytest.fixture
def account(plane: LocalPlane) -> Iterator[Account]:
    with Account(plane) as account:
        yield account


def preloaded(project: Project, account: Account, plane: LocalPlane) -> str:
    """Ask the instance at its address, as its master, with the secret that it has."""
    found = project.outputs()
    secret = account.client("secretsmanager").get_secret_value(SecretId=found["secret"])
    password = secret["SecretString"].partition('"password": "')[2].rstrip('"}')
    with psycopg.connect(
        host=found["address"],
        port=found["port"],
        dbname="app",
        user="master",
        password=password,
        sslmode="verify-full",
        sslrootcert=str(plane.ca_file),
    ) as there:
        row = there.execute("SHOW shared_preload_libraries").fetchone()
    assert row is not None
    return str(row[0])


def test_a_preload_library_arrives_with_the_reboot(
    tmp_path: Path, pulumi_home: Path, account: Account, plane: LocalPlane
) -> None:
    project = Project(tmp_path / "project", pulumi_home, account.environment())
    project.program(PROGRAM.format(parameters=[]))
    project.up()
    at_first = preloaded(project, account, plane)
    project.program(PROGRAM.format(parameters=WANTED))
    changed = project.up()
    pending = preloaded(project, account, plane)
    account.client("rds").reboot_db_instance(DBInstanceIdentifier="jobs")
    rebooted = preloaded(project, account, plane)
    again = project.up()

    assert changed.touched() == {"jobs": "update"}
    assert (at_first, pending) == ("rdsutils,pg_stat_statements,pg_tle",) * 2
    assert rebooted == "rdsutils,pg_stat_statements,pg_tle,pg_cron"
    assert again.changes == {"same": 3}
    assert project.destroy().changes == {"delete": 3}
