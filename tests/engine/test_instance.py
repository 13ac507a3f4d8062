"""A local server behind an instance of the account: it obeys the parameter group as RDS would."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from infra.errors import InfraError
from infra.local.servers import find_server
from tests.engine.account.server import Account
from tests.engine.conftest import Missing
from tests.engine.instance import LocalPlane, local_plane

PASSWORD = "correct horse"  # noqa: S105  (of a throw-away server)


@pytest.fixture(scope="module")
def plane(missing: Missing) -> Iterator[LocalPlane]:
    try:
        find_server(pg_cron=True)
    except InfraError as error:
        missing(error.message)
    with local_plane() as plane:
        yield plane


@pytest.fixture(scope="module")
def cloud(plane: LocalPlane) -> Iterator[Account]:
    """Yield an account with an instance ``jobs``, its group ``jobs`` still empty."""
    with Account(plane) as account:
        rds = account.client("rds")
        rds.create_db_parameter_group(
            DBParameterGroupName="jobs", DBParameterGroupFamily="postgres15", Description="ours"
        )
        rds.create_db_instance(
            DBInstanceIdentifier="jobs",
            DBInstanceClass="db.t4g.micro",
            Engine="postgres",
            EngineVersion="15.14",
            AllocatedStorage=20,
            DBName="app",
            MasterUsername="master",
            MasterUserPassword=PASSWORD,
            DBParameterGroupName="jobs",
        )
        yield account


def connect(account: Account, plane: LocalPlane, **changes: Any) -> psycopg.Connection[Any]:
    at = account.client("rds").describe_db_instances()["DBInstances"][0]["Endpoint"]
    settings: dict[str, Any] = {
        "host": at["Address"],
        "port": at["Port"],
        "dbname": "app",
        "user": "master",
        "password": PASSWORD,
        "sslmode": "verify-full",
        "sslrootcert": str(plane.ca_file),
        "autocommit": True,
        **changes,
    }
    return psycopg.connect(**settings)


def shown(account: Account, plane: LocalPlane, name: str) -> str:
    with connect(account, plane) as there:
        row = there.execute(f"SHOW {name}").fetchone()
    assert row is not None
    return str(row[0])


def change(account: Account, name: str, value: str, method: str) -> None:
    account.client("rds").modify_db_parameter_group(
        DBParameterGroupName="jobs",
        Parameters=[{"ParameterName": name, "ParameterValue": value, "ApplyMethod": method}],
    )


def status(account: Account) -> str:
    live = account.client("rds").describe_db_instances()["DBInstances"][0]
    return str(live["DBParameterGroups"][0]["ParameterApplyStatus"])


def test_a_static_change_waits_for_the_reboot(cloud: Account, plane: LocalPlane) -> None:
    before = shown(cloud, plane, "shared_preload_libraries")
    change(cloud, "shared_preload_libraries", "pg_stat_statements,pg_tle,pg_cron", "pending-reboot")
    change(cloud, "cron.database_name", "app", "pending-reboot")
    waiting = shown(cloud, plane, "shared_preload_libraries"), status(cloud)
    with connect(cloud, plane) as there, pytest.raises(psycopg.Error):
        there.execute("CREATE EXTENSION pg_cron")
    cloud.client("rds").reboot_db_instance(DBInstanceIdentifier="jobs")
    after = shown(cloud, plane, "shared_preload_libraries"), status(cloud)

    assert before == "rdsutils,pg_stat_statements,pg_tle"
    assert waiting == (before, "pending-reboot")
    assert after == ("rdsutils,pg_stat_statements,pg_tle,pg_cron", "in-sync")
    with connect(cloud, plane) as there:
        there.execute("CREATE EXTENSION pg_cron")
        there.execute("SELECT cron.schedule('probe', '* * * * *', 'SELECT 1')")
        assert there.execute("SELECT count(*) FROM cron.job").fetchone() == (1,)


def test_a_dynamic_change_comes_in_at_once(cloud: Account, plane: LocalPlane) -> None:
    change(cloud, "work_mem", "12345", "immediate")

    assert wait_for(plane.url("jobs"), "work_mem", "12345kB")
    assert status(cloud) == "in-sync"


def test_a_wrong_password_is_refused(cloud: Account, plane: LocalPlane) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        connect(cloud, plane, password="wrong")  # noqa: S106  (the point of the test)


def test_an_address_can_be_cut_off_and_come_back(cloud: Account, plane: LocalPlane) -> None:
    with plane.cut("jobs"), pytest.raises(psycopg.OperationalError):
        connect(cloud, plane, connect_timeout=5)

    assert shown(cloud, plane, "cron.use_background_workers") == "on"


def wait_for(url: str, name: str, value: str) -> bool:
    """Tell whether a reload arrives within 5 seconds; a new session sees it once it is there."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with psycopg.connect(url) as back:
            if back.execute(f"SHOW {name}").fetchone() == (value,):
                return True
        time.sleep(0.05)
    return False
