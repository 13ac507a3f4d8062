"""A trigger of the user's own on the jobs table: whose rights it has in a schedule's write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres.jobs import Jobs

SQL_PAGE = Path(__file__).parents[2] / "sql" / "README.md"
# A trigger of an application, which has a role and a table of its own.
AUDIT = """
CREATE ROLE {app};
GRANT CREATE ON SCHEMA public TO {app};
GRANT TRIGGER ON jobs TO {app};
SET ROLE {app};
CREATE TABLE audit (who text);
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO audit VALUES (current_user); RETURN coalesce(NEW, OLD); END $$;
CREATE TRIGGER note_change BEFORE UPDATE OR DELETE ON jobs
FOR EACH ROW EXECUTE FUNCTION note_change();
RESET ROLE
"""


def named_in_full(jobs: Jobs) -> None:
    """Let the trigger find its table, and let anybody write there."""
    jobs.rows("GRANT INSERT ON audit TO PUBLIC")
    jobs.rows(
        "CREATE OR REPLACE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO public.audit VALUES (current_user); RETURN coalesce(NEW, OLD); END $$"
    )


@pytest.fixture
def app(jobs: Jobs) -> Iterator[str]:
    """The role whose trigger is on the table."""
    app = f"app_{jobs.value('SELECT current_database()')}"
    jobs.rows(AUDIT.format(app=app))
    yield app
    jobs.rows(f"DROP OWNED BY {app} CASCADE; DROP ROLE {app}")


@pytest.mark.usefixtures("app")
def test_it_runs_as_our_owner_in_a_sweep_and_in_a_cleanup(jobs: Jobs) -> None:
    named_in_full(jobs)
    jobs.add()
    assert jobs.sweep().changed == 1
    jobs.forward("25 hours")
    assert jobs.cleanup().changed == 1

    assert jobs.rows("SELECT who FROM audit") == [("jobwarden_owner",)] * 2


def test_one_that_needs_its_makers_rights_stops_the_rescue_until_it_has_them(
    jobs: Jobs, app: str
) -> None:
    job = jobs.add()
    run = jobs.sweep()
    assert (run.changed, run.poisoned, run.sqlstate) == (0, 1, "42P01")
    assert jobs.job(job).status == "running"

    (mend,) = re.findall(r"^ALTER FUNCTION .*;$", SQL_PAGE.read_text("utf-8"), re.MULTILINE)
    jobs.rows(mend)
    assert jobs.sweep().changed == 1
    assert jobs.job(job).status == "failed"
    assert jobs.rows("SELECT who FROM audit") == [(app,)]


def test_no_role_of_ours_may_put_a_trigger_on_the_table(jobs: Jobs) -> None:
    roles = jobs.rows(
        "SELECT rolname, has_table_privilege(oid, 'jobs', 'TRIGGER') FROM pg_roles"
        " WHERE rolname LIKE 'jobwarden%'"
    )
    assert len(roles) == 5
    assert not any(may for _, may in roles)
