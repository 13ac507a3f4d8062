"""What the grammar accepts, a real pg_cron accepts."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from infra import cronexpr
from infra.errors import RuleError

BLANK = st.sampled_from([" ", "  ", "\t", " \t "])
EDGE = st.sampled_from(["", " ", "\t", "\n", " \n"])
COMMON = ("*", "*/2", "*/3", "1", "07", "1-5", "2-7/3", "1,3,5", "*/5,3", "1-3,5-6/2", "*,4")
FIELDS = st.tuples(
    st.sampled_from([*COMMON, "0", "59", "*/59", "3-59/4"]),
    st.sampled_from([*COMMON, "0", "23", "8-18"]),
    st.sampled_from([*COMMON, "31", "$", "1-31/31"]),
    st.sampled_from([*COMMON, "jan", "Feb-apr", "DEC", "12", "x"]),
    st.sampled_from([*COMMON, "mon", "SUN", "mon-fri", "tue,thu", "0", "7", "*x"]),
)
SCHEDULES = st.one_of(
    st.tuples(EDGE, FIELDS, BLANK, EDGE).map(lambda it: it[0] + it[2].join(it[1]) + it[3]),
    st.tuples(EDGE, st.sampled_from(["@daily", "@HOURLY", "@weekly", "@yearly"]), EDGE).map(
        "".join
    ),
    st.tuples(EDGE, st.integers(0, 61), BLANK, st.sampled_from(["second", "Seconds"]), EDGE).map(
        lambda it: "".join(map(str, it))
    ),
)


@pytest.fixture
def session(app: str) -> Iterator[psycopg.Connection]:
    """A connection to the database of pg_cron; nothing that it does is committed."""
    with psycopg.connect(app, autocommit=True) as session:
        yield session


def version_of(session: psycopg.Connection) -> str:
    row = session.execute(
        "SELECT extversion FROM pg_extension WHERE extname = 'pg_cron'"
    ).fetchone()
    assert row is not None
    return str(row[0])


def is_taken(session: psycopg.Connection, schedule: str) -> bool:
    try:
        with session.transaction(force_rollback=True):
            session.execute("SELECT cron.schedule('grammar', %s, 'SELECT 1')", [schedule])
    except psycopg.errors.InvalidParameterValue:
        return False
    return True


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(schedule=SCHEDULES)
def test_what_we_accept_the_server_accepts(session: psycopg.Connection, schedule: str) -> None:
    try:
        cronexpr.parse(schedule, version_of(session))
    except RuleError:
        assume(False)  # noqa: FBT003 - we refuse more than the server does
    assert is_taken(session, schedule)


@pytest.mark.parametrize("schedule", ["60 * * * *", "*/0 * * * *", "1/4 * * * *", "@DAILY", ""])
def test_what_the_server_refuses_we_refuse(session: psycopg.Connection, schedule: str) -> None:
    assert not is_taken(session, schedule)
    with pytest.raises(RuleError):
        cronexpr.parse(schedule, version_of(session))


@pytest.mark.parametrize("schedule", ["0 */5 * * * *", "*/5 * * * *x", "0 0 31 2 *"])
def test_the_server_takes_what_we_refuse_for_its_sake(
    session: psycopg.Connection, schedule: str
) -> None:
    assert is_taken(session, schedule)
    with pytest.raises(RuleError):
        cronexpr.parse(schedule, version_of(session))
