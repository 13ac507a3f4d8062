"""Rows that cannot be written: each is passed over and told of, and stops nobody else."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.postgres.jobs import Jobs

REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'not this one' USING ERRCODE = 'XX123'; END $$
"""
BY_A_CHECK = "ALTER TABLE jobs ADD CHECK (status <> 'failed' OR {those}) NOT VALID"
BY_A_TRIGGER = f"""{REFUSE};
CREATE TRIGGER refuse BEFORE UPDATE ON jobs
FOR EACH ROW WHEN (NOT ({{those}})) EXECUTE FUNCTION refuse()
"""
AT_THE_COMMIT = f"""{REFUSE};
CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON jobs DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW WHEN (NOT ({{those}})) EXECUTE FUNCTION refuse()
"""


def refuse(jobs: Jobs, how: str, poison: list[UUID]) -> None:
    column = "OLD.id" if "TRIGGER" in how else "id"
    those = " AND ".join(f"{column} <> '{job}'" for job in poison)
    jobs.rows(how.format(those=those))


@pytest.mark.parametrize(
    ("how", "sqlstate"),
    [(BY_A_CHECK, "23514"), (BY_A_TRIGGER, "XX123"), (AT_THE_COMMIT, "XX123")],
    ids=["by a check", "by a trigger", "at the commit"],
)
def test_three_poisoned_rows_among_1200_stop_no_other(jobs: Jobs, how: str, sqlstate: str) -> None:
    stuck = jobs.add_many(1200)
    poison = [stuck[0], stuck[700], stuck[1199]]
    refuse(jobs, how, poison)
    run = jobs.sweep("500")
    assert run[:5] == ("ok", 1197, 0, 3, sqlstate)
    assert run.message is not None
    assert str(poison[0]) in run.message
    left = jobs.rows("SELECT id FROM jobs WHERE status = 'running'")
    assert {job for (job,) in left} == set(poison)
    assert len(jobs.events()) == 1197


def test_health_tells_of_poison_until_it_is_mended(jobs: Jobs) -> None:
    job = jobs.add()
    refuse(jobs, BY_A_CHECK, [job])
    jobs.sweep()
    level, detail = jobs.health()["poisoned"]
    assert level == "critical"
    assert str(job) in detail
    assert "[23514]" in detail
    jobs.rows("ALTER TABLE jobs DROP CONSTRAINT jobs_check")
    assert jobs.sweep().changed == 1
    assert jobs.health()["poisoned"].level == "ok"


def test_every_row_poisoned_still_ends_the_sweep(jobs: Jobs) -> None:
    jobs.add_many(40)
    jobs.rows("ALTER TABLE jobs ADD CHECK (status <> 'failed') NOT VALID")
    assert jobs.sweep("15")[:5] == ("ok", 0, 0, 40, "23514")


def test_a_trigger_of_theirs_that_lacks_a_right_is_told_of(jobs: Jobs) -> None:
    jobs.add()
    jobs.rows("CREATE TABLE audit (at timestamptz)")
    jobs.rows(
        "CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO public.audit VALUES (now()); RETURN NULL; END $$;"
        " CREATE TRIGGER audit AFTER UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION audit()"
    )
    run = jobs.sweep()
    assert (run.poisoned, run.sqlstate) == (1, "42501")
    assert run.message is not None
    assert "permission denied for table audit" in run.message
    jobs.rows("GRANT INSERT ON audit TO jobwarden_owner")
    assert jobs.sweep().changed == 1
