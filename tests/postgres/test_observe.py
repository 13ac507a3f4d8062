"""The look: what each role sees, on each kind of server. It changes nothing."""

from __future__ import annotations

import psycopg
import pytest

from infra import sqltext
from infra.errors import InfraError
from infra.local.cluster import Cluster
from infra.observed import RUNNER
from infra.schedules import CLEANUP, WATCHDOG
from tests.postgres import place
from tests.postgres.copies import copy_of


def _as(url: str, role: str, *grants: str) -> str:
    place.run(url, f"CREATE ROLE {role} LOGIN", *grants)
    return url.replace("postgres@", f"{role}@")


def test_an_empty_database_is_seen_as_empty(bare_app: str) -> None:
    found = place.look(bare_app)

    assert (found.installed, found.ledger, found.table, found.jobs) == (False, None, None, None)
    assert found.cron_default_version
    assert found.cron_installed_version is None
    assert found.server.launcher == ("app",)
    assert found.schema_exists
    assert found.setting("cron.database_name") == "app"


def test_a_look_writes_nothing(app: str) -> None:
    place.apply(app)
    before = place.stand(app)

    place.look(app)

    assert place.stand(app) == before


def test_a_role_without_rights_sees_unknown_and_gets_no_error(app: str) -> None:
    place.run(app, "CREATE SCHEMA work")
    place.apply(app, jobs={"table": "work.jobs"})
    found = place.look(_as(app, "plain"), jobs={"table": "work.jobs"})

    assert found.installed
    assert (found.ledger, found.jobs, found.running) == (None, None, None)
    assert found.setting("shared_preload_libraries") is None
    assert found.table is not None
    assert not found.table.owned
    assert found.cron_installed_version


def test_the_reader_sees_the_same_changes_as_a_superuser(app: str) -> None:
    place.apply(app)
    reader = _as(app, "reader", "GRANT jobwarden_readonly TO reader")
    jobid = place.jobs(app)[CLEANUP]["jobid"]
    place.run(
        app,
        f"SELECT cron.alter_job({jobid}, schedule := '1 1 * * *')",
        "UPDATE jobwarden.policy SET timeout = '1 hour'",
        "DROP TRIGGER jobwarden_event ON jobs",
        "INSERT INTO jobs (action, status) VALUES ('a', 'running')",
    )
    environment = {"schedules": [place.OWN]}

    seen = [change for change in place.drift(reader, **environment) if change.action != "unknown"]

    assert seen == place.drift(app, **environment)
    assert {change.kind for change in seen} == {"object", "policy", "schedule"}
    held = {job.name for job in place.look(reader).jobs or ()}
    assert held == {WATCHDOG, CLEANUP}


def test_the_reader_is_told_that_a_copy_under_another_role_would_not_show(app: str) -> None:
    place.apply(app)
    reader = _as(app, "reader", "GRANT jobwarden_readonly TO reader")

    (change,) = place.drift(reader)

    assert change.action == "unknown"
    assert "reader sees only some rows of cron.job" in change.why


def test_a_role_with_its_own_jobs_still_sees_ours_through_the_reader(app: str) -> None:
    place.apply(app)
    grants = ("GRANT jobwarden_readonly TO reader", "GRANT USAGE ON SCHEMA cron TO reader")
    reader = _as(app, "reader", *grants)
    place.run(reader, "SELECT cron.schedule('own', '@daily', 'SELECT 1')")

    held = place.look(reader).jobs or ()

    assert sorted((job.name or "", job.username) for job in held) == [
        (CLEANUP, RUNNER),
        (WATCHDOG, RUNNER),
        ("own", "reader"),
    ]


def test_no_job_at_all_is_not_unknown(app: str) -> None:
    place.apply(app)
    reader = _as(app, "reader", "GRANT jobwarden_readonly TO reader")
    place.run(app, "DELETE FROM cron.job")

    assert place.look(reader).jobs == ()
    assert [c.action for c in place.drift(reader)][:2] == ["create", "create"]


def test_a_standby_is_seen_whole(cluster: Cluster, app: str) -> None:
    place.apply(app)
    with copy_of(cluster, standby=True) as copy:
        found = place.look(copy.url("app"))

    assert found.server.in_recovery
    assert found.server.launcher == ()
    assert found.ledger is not None
    assert {job.name for job in found.jobs or ()} == {WATCHDOG, CLEANUP}


def test_a_broken_installation_is_still_seen(app: str) -> None:
    place.apply(app)
    place.run(app, "DROP TABLE jobwarden.policy CASCADE", "DROP FUNCTION jobwarden.running()")

    found = place.look(app)

    assert found.installed
    assert found.ledger is not None
    assert found.ledger.sources == {}
    assert found.running is None


def test_a_table_of_any_kind_is_described(app: str) -> None:
    place.run(
        app,
        "CREATE TABLE parent (id uuid PRIMARY KEY, status text)",
        "CREATE TABLE child (parent_id uuid REFERENCES parent)",
        "CREATE TABLE indexed (parent_id uuid PRIMARY KEY REFERENCES parent)",
        "ALTER TABLE parent ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "CREATE VIEW shown AS SELECT * FROM parent",
    )

    parent = place.look(app, jobs={"table": "parent"}).table
    shown = place.look(app, jobs={"table": "shown"}).table

    assert parent is not None
    assert shown is not None
    assert (parent.kind, parent.owner, parent.owned) == ("r", "postgres", True)
    assert parent.owner_superuser
    assert parent.forced_row_security
    assert parent.columns == {"id": "uuid", "status": "text"}
    assert parent.indexes == {"parent_pkey": True}
    assert parent.unindexed_children == ("public.child",)
    assert shown.kind == "v"


@pytest.mark.parametrize("jobs", [{"table": "nowhere.jobs"}, {"table": "Jobs"}])
def test_what_is_not_there_is_not_there(app: str, jobs: dict[str, str]) -> None:
    found = place.look(app, jobs=jobs)

    assert found.table is None
    assert found.schema_exists == (jobs["table"] == "Jobs")


def test_it_leaves_no_transaction_and_no_setting_behind(app: str) -> None:
    settings = "SELECT current_setting('search_path'), current_setting('lock_timeout')"
    with psycopg.connect(app, autocommit=True) as connection:
        before = connection.execute(settings).fetchone()
        connection.execute(sqltext.observe(place.wanted().environment).encode())

        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert connection.execute(settings).fetchone() == before


def test_a_table_locked_for_long_ends_the_look_with_a_way_out(app: str) -> None:
    place.apply(app)
    with psycopg.connect(app) as other:
        other.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")

        with pytest.raises(InfraError, match="lock timeout") as caught:
            place.look(app)

    assert caught.value.hint is not None
    assert "holds the jobs table" in caught.value.hint
