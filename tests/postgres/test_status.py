"""Status: what it calls unhealthy, and to whom it answers."""

from __future__ import annotations

import pytest

from infra.db import status as asking
from infra.db.apply import Refused
from infra.db.status import Status
from infra.errors import InfraError
from infra.local.cluster import Cluster
from infra.schedules import WATCHDOG
from tests.postgres import place
from tests.postgres.copies import copy_of


def _status(url: str, /, **environment: object) -> Status:
    return asking.status(place.wanted(**environment), url)


def _level(found: Status, name: str) -> str:
    return next(check.level for check in found.checks if check.name == name)


def test_a_fresh_installation_is_healthy(app: str) -> None:
    place.apply(app)

    found = _status(app)

    assert found.healthy, [check for check in found.checks if check.level == "critical"]
    assert _level(found, "drift") == "ok"
    assert _level(found, "pending_restart") == "ok"
    assert _level(found, "schedules") == "ok"


def test_nothing_installed_is_unhealthy(app: str) -> None:
    found = _status(app)

    assert not found.healthy
    assert _level(found, "installed") == "critical"


def test_a_table_of_bigint_ids_is_critical_and_every_check_still_answers(app: str) -> None:
    place.apply(app)
    place.run(
        app,
        "INSERT INTO jobs (action, status, started_at) VALUES ('a', 'running', 'epoch')",
        "CALL jobwarden.sweep()",
        "CREATE TABLE theirs (LIKE jobs INCLUDING ALL)",
        "ALTER TABLE theirs ALTER id DROP DEFAULT, ALTER id TYPE bigint USING 1",
    )

    found = _status(app, jobs={"table": "theirs"})

    assert any("id is bigint (wanted uuid)" in check.detail for check in found.checks)
    assert _level(found, "late_writes") == "ok"
    with pytest.raises(Refused):
        place.apply(app, jobs={"table": "theirs"})


def test_the_reader_may_ask_and_a_stranger_may_not(app: str) -> None:
    place.apply(app)
    place.run(
        app,
        "CREATE ROLE reader LOGIN",
        "GRANT jobwarden_readonly TO reader",
        "CREATE ROLE plain LOGIN",
    )

    found = _status(app.replace("postgres@", "reader@"))

    assert found.healthy
    assert {check.name for check in found.checks} >= {check.name for check in _status(app).checks}
    assert {figure.name for figure in found.figures}
    with pytest.raises(InfraError, match="role plain may not read schema jobwarden"):
        _status(app.replace("postgres@", "plain@"))


def test_a_paused_schedule_is_critical_and_drift_a_warning(app: str) -> None:
    place.apply(app)
    jobid = place.jobs(app)[WATCHDOG]["jobid"]
    place.run(app, f"SELECT cron.alter_job({jobid}, schedule := '1 1 * * *')")
    assert _level(_status(app), "drift") == "warning"

    place.apply(app)
    place.run(app, f"SELECT cron.alter_job({jobid}, active := false)")
    paused = _status(app)
    assert _level(paused, "drift") == "critical"
    assert not paused.healthy


def test_a_setting_that_waits_for_a_restart_is_said(app: str, cluster: Cluster) -> None:
    place.apply(app)
    conf = cluster.data / "jobwarden.conf"
    was = conf.read_text()
    try:
        conf.write_text(was + "cron.max_running_jobs = '7'\n")
        place.run(app, "SELECT pg_reload_conf()")
        place.hold_until(lambda: _level(_status(app), "pending_restart") == "warning", "reload")
    finally:
        conf.write_text(was)
        place.run(app, "SELECT pg_reload_conf()")


def test_without_pg_cron_it_says_what_is_missing(plain_app: str) -> None:
    place.apply(plain_app)

    found = _status(plain_app)

    assert not found.healthy
    (check,) = (check for check in found.checks if check.name == "pg_cron")
    assert "shared_preload_libraries" in check.detail
    assert check.hint


def test_a_standby_answers_and_says_that_it_is_one(app: str, cluster: Cluster) -> None:
    place.apply(app)
    with copy_of(cluster, standby=True) as copy:
        found = _status(copy.url("app"))

    assert not found.healthy
    assert any("standby" in check.detail for check in found.checks)


def test_a_broken_installation_points_to_apply(app: str) -> None:
    place.apply(app)
    place.run(app, "DROP FUNCTION jobwarden.health()")

    with pytest.raises(InfraError) as caught:
        _status(app)

    assert caught.value.hint is not None
    assert "jobwarden apply" in caught.value.hint
