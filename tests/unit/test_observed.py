"""The document of observe.sql, read into values."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from infra import observed
from infra.observed import Limits, Role, Setting

SERVER = {
    "version_num": 150020,
    "in_recovery": False,
    "database": "app",
    "port": 5432,
    "user": "deployer",
    "superuser": False,
    "createrole": False,
    "creates_schemas": True,
    "sees_every_cron_job": False,
    "rds": False,
    "rds_superuser": False,
    "launcher": None,
}
NOTHING: dict[str, Any] = {
    "server": SERVER,
    "settings": {},
    "pg_cron": None,
    "cron_grants": None,
    "connect_grants": {"runner": True, "to_grant": False},
    "roles": {},
    "table": None,
    "schema_exists": True,
    "creates_in_schema": True,
    "strays": [],
    "cron_jobs": None,
    "cron_orphans": None,
    "installed": False,
    "ledger": None,
    "running": None,
}
JOB = {
    "jobid": 2,
    "jobname": "b",
    "schedule": "@daily",
    "command": "SELECT 1",
    "database": "app",
    "username": "alice",
    "nodename": "localhost",
    "nodeport": 5432,
    "active": False,
}


def _parse(**changed: Any) -> observed.Observed:
    return observed.parse(json.dumps(NOTHING | changed))


def test_what_may_not_be_seen_is_none_and_not_empty() -> None:
    found = _parse()

    assert found.jobs is None
    assert found.ledger is None
    assert found.running is None
    assert found.setting("cron.host") is None
    assert _parse(cron_jobs=[]).jobs == ()


def test_an_empty_database_has_nothing_of_ours() -> None:
    found = _parse()

    assert (found.installed, found.table, found.cron_default_version) == (False, None, None)
    assert (found.cron_usage, found.cron_usage_to_grant, found.runner_cron_usage) == (
        False,
        False,
        False,
    )
    assert found.server.launcher == ()
    assert found.server.major == 15


def test_jobs_come_by_their_number() -> None:
    found = _parse(cron_jobs=[JOB, JOB | {"jobid": 1, "jobname": "a"}]).jobs

    assert found is not None
    assert [(job.jobid, job.name, job.active) for job in found] == [
        (1, "a", False),
        (2, "b", False),
    ]


def test_jobs_of_a_pg_cron_without_names_are_read() -> None:
    old = {key: value for key, value in JOB.items() if key not in {"jobname", "active"}}

    found = _parse(cron_jobs=[old]).jobs

    assert found is not None
    assert (found[0].name, found[0].active) == (None, True)


def test_settings_and_roles_keep_what_matters() -> None:
    found = _parse(
        settings={"cron.host": {"value": "/run", "pending_restart": True}},
        roles={"jobwarden_runner": {"login": True, "superuser": False, "ours_to_set": False}},
    )

    assert found.setting("cron.host") == "/run"
    assert found.settings["cron.host"] == Setting("/run", pending_restart=True)
    assert found.roles["jobwarden_runner"] == Role(login=True, superuser=False, ours_to_set=False)


def test_the_ledger_reads_null_as_never_and_for_ever() -> None:
    found = _parse(
        installed=True,
        ledger={
            "release": 1,
            "sources": {"40_sweep": "x"},
            "objects": {},
            "actual": {},
            "policy": {"*": {"timeout": 600, "retention": None}},
            "schedules": {
                "a": {"schedule": "@daily", "command": "SELECT 1", "every": 86400, "jobid": None}
            },
        },
    ).ledger

    assert found is not None
    assert found.policy == {"*": Limits(timedelta(minutes=10), None)}
    assert found.schedules["a"].every == timedelta(days=1)
    assert found.schedules["a"].jobid is None


def test_a_document_of_another_kind_is_refused() -> None:
    with pytest.raises(KeyError):
        observed.parse("{}")
