"""Removal: all of ours, nothing else, and once."""

from __future__ import annotations

import psycopg
import pytest

from infra.db.apply import Refused
from infra.db.remove import Removal, remove
from infra.errors import InfraError
from infra.local.cluster import Cluster
from infra.local.folder import PORT
from infra.schedules import CLEANUP, WATCHDOG
from tests.postgres import place
from tests.postgres.copies import copy_of

OWN = {"schedules": [place.OWN]}
LEFT = """
SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = 'jobwarden')
     + (SELECT count(*) FROM pg_class WHERE relname LIKE 'jobwarden%')
     + (SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'jobwarden%')
     + (SELECT count(*) FROM cron.job WHERE username = 'jobwarden_runner')
"""


def _remove(url: str) -> Removal:
    return remove(place.wanted(**OWN), url, really=True)


def _dump(cluster: Cluster, *options: str) -> str:
    """The table as SQL; who may use it aside, since the roles stay with what they were given."""
    argv = [cluster.server.program("pg_dump"), "-h", str(cluster.folder), "-p", str(PORT)]
    argv += ["-U", "postgres", "--no-privileges", "-t", "public.jobs", *options, "app"]
    done = cluster.owner.run(argv, folder=cluster.folder)
    assert done.returncode == 0, done.stdout
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith("\\"))


def test_everything_of_ours_goes_and_the_roles_stay(app: str) -> None:
    place.apply(app, **OWN)
    place.run(app, "INSERT INTO jobs (action) VALUES ('a')")
    roles = place.rows(app, "SELECT rolname FROM pg_roles ORDER BY 1")

    assert _remove(app).done

    assert place.one(app, LEFT) == 0
    assert place.rows(app, "SELECT rolname FROM pg_roles ORDER BY 1") == roles
    assert place.one(app, "SELECT count(*) FROM jobs") == 1


def test_a_second_time_there_is_nothing(app: str) -> None:
    place.apply(app, **OWN)
    _remove(app)
    before = place.stand(app)

    assert _remove(app) == Removal((), done=False)
    assert place.stand(app) == before


def test_a_table_that_was_there_before_is_as_it_was(app: str, cluster: Cluster) -> None:
    place.run(
        app,
        "CREATE TABLE jobs (id uuid PRIMARY KEY, action text, status text, error jsonb,"
        " worker text, started_at timestamptz, completed_at timestamptz, tenant int)",
        "CREATE INDEX theirs ON jobs (tenant)",
        "CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER audit BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION audit()",
        "CREATE ROLE app_owner",
        "ALTER TABLE jobs OWNER TO app_owner",
        "INSERT INTO jobs SELECT gen_random_uuid(), 'a', 'queued' FROM generate_series(1, 50)",
    )
    before = _dump(cluster)
    place.apply(app, **OWN)
    assert _dump(cluster, "--schema-only") != before

    _remove(app)

    assert _dump(cluster) == before


def test_without_really_it_only_says_what_would_go(app: str) -> None:
    place.apply(app, **OWN)
    before = place.stand(app)

    shown = remove(place.wanted(**OWN), app, really=False)

    assert not shown.done
    assert "DROP SCHEMA jobwarden CASCADE" in shown.statements
    assert place.stand(app) == before


def test_jobs_of_others_stay(app: str) -> None:
    place.apply(app, **OWN)
    place.run(app, f"SELECT cron.schedule('{WATCHDOG}', '@daily', 'SELECT 1')")

    _remove(app)

    assert [job["username"] for job in place.jobs(app).values()] == ["postgres"]


def test_one_that_was_scheduled_anew_by_hand_goes_too(app: str) -> None:
    place.apply(app, **OWN)
    runner = app.replace("postgres@", "jobwarden_runner@")
    place.run(
        runner,
        f"SELECT cron.unschedule('{CLEANUP}')",
        f"SELECT cron.schedule('{CLEANUP}', '@daily', 'SELECT 1')",
    )

    _remove(app)

    assert place.jobs(app) == {}


@pytest.mark.parametrize(
    ("theirs", "named"),
    [
        ("CREATE VIEW public.report AS SELECT count(*) FROM jobwarden.event", "public.report"),
        ("CREATE VIEW public.mine AS SELECT jobwarden.human(interval '1 s')", "public.mine"),
        ("CREATE TABLE public.note (event bigint REFERENCES jobwarden.event)", "public.note"),
        ("CREATE TABLE public.log (at timestamptz DEFAULT jobwarden.now())", "public.log.at"),
        ("CREATE TABLE public.kept (was jobwarden.policy)", "public.kept.was"),
        (
            "CREATE FUNCTION public.age() RETURNS timestamptz RETURN jobwarden.now()",
            "public.age()",
        ),
        (
            "CREATE TRIGGER theirs BEFORE INSERT ON other EXECUTE FUNCTION jobwarden.guard()",
            "theirs on public.other",
        ),
        ("CREATE PUBLICATION stream FOR TABLE jobwarden.event", "stream"),
        ("CREATE TABLE jobwarden.theirs ()", "table theirs"),
        ("CREATE SEQUENCE jobwarden.theirs", "relation theirs"),
        ("CREATE TYPE jobwarden.mood AS ENUM ('ok')", "type mood"),
        (
            "CREATE FUNCTION jobwarden.own() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "function own()",
        ),
    ],
)
def test_what_a_stranger_built_on_ours_stops_it(app: str, theirs: str, named: str) -> None:
    if "RETURN " in theirs and place.look(app).server.major < 14:
        pytest.skip("a body that the server has parsed came with 14")
    place.apply(app, **OWN)
    place.run(app, "CREATE TABLE public.other ()", theirs)
    before = place.stand(app)

    with pytest.raises(InfraError, match="nothing was removed") as caught:
        _remove(app)

    assert named in caught.value.message
    assert place.stand(app) == before
    if "PUBLICATION" in theirs:
        place.run(app, "DROP PUBLICATION stream")


def test_an_installation_that_lost_its_ledger_is_mended_before_it_is_removed(app: str) -> None:
    place.apply(app, **OWN)
    place.run(app, "DROP TABLE jobwarden.object")

    with pytest.raises(InfraError, match="a part of the installation is missing"):
        _remove(app)

    place.apply(app, **OWN)
    assert _remove(app).done
    assert place.one(app, LEFT) == 0


def test_without_pg_cron_the_rest_goes(plain_app: str) -> None:
    place.apply(plain_app, **OWN)

    assert _remove(plain_app).done
    assert place.one(plain_app, "SELECT to_regnamespace('jobwarden')") is None
    assert not _remove(plain_app).statements


def test_a_role_without_rights_removes_nothing(app: str) -> None:
    place.apply(app, **OWN)
    place.run(app, "CREATE ROLE plain LOGIN")
    before = place.stand(app)

    with pytest.raises(Refused, match="GRANT jobwarden_owner"):
        _remove(app.replace("postgres@", "plain@"))

    assert place.stand(app) == before


def test_a_standby_is_refused(app: str, cluster: Cluster) -> None:
    place.apply(app, **OWN)
    with copy_of(cluster, standby=True) as copy, pytest.raises(Refused, match="standby"):
        _remove(copy.url("app"))


def test_a_busy_table_ends_it_with_nothing_removed(app: str) -> None:
    place.apply(app, **OWN)
    before = place.stand(app)
    with psycopg.connect(app) as other:
        other.execute("INSERT INTO jobs (action) VALUES ('a')")

        with pytest.raises(InfraError, match="lock timeout"):
            _remove(app)
        other.rollback()

    assert set(place.jobs(app)) == {WATCHDOG, CLEANUP, "mine"}
    assert place.stand(app)["pg_trigger"] == before["pg_trigger"]
