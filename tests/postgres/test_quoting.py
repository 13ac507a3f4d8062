"""Names and texts as SQL, held against the server's own quoting."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra.local.cluster import Cluster
from infra.quoting import ident, interval, literal, qualified

TEXT = st.text(
    st.one_of(
        st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
        st.sampled_from("'\"\\$%{};-/*\n E&U"),
    ),
    max_size=40,
)
EACH = "unnest(%s::text[]) WITH ORDINALITY AS u (t, n)"
BATCH = st.lists(TEXT.filter(bool), min_size=1, max_size=20)
HELD = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def session(cluster: Cluster) -> Iterator[psycopg.Connection]:
    cluster.start()
    with psycopg.connect(cluster.url("app"), autocommit=True) as connection:
        yield connection


@pytest.fixture(params=["on", "off"])
def either(session: psycopg.Connection, request: pytest.FixtureRequest) -> psycopg.Connection:
    """A session for each meaning of the backslash in a plain string."""
    session.execute("SET escape_string_warning = off")
    session.execute(f"SET standard_conforming_strings = {request.param}".encode())
    return session


@HELD
@given(texts=BATCH)
def test_a_text_comes_back_as_it_was(either: psycopg.Connection, texts: list[str]) -> None:
    query = "SELECT ARRAY[" + ", ".join(map(literal, texts)) + "]::text[]"

    assert either.execute(query.encode()).fetchone() == (texts,)


@HELD
@given(texts=BATCH)
def test_a_text_is_quoted_as_quote_literal_does(
    session: psycopg.Connection, texts: list[str]
) -> None:
    query = "SELECT array_agg(quote_literal(t) ORDER BY n) FROM " + EACH
    row = session.execute(query, [texts]).fetchone()

    assert row is not None
    assert [literal(text) for text in texts] == row[0]


@HELD
@given(names=BATCH)
def test_a_name_comes_back_as_it_was(either: psycopg.Connection, names: list[str]) -> None:
    short = [name.encode()[:63].decode(errors="ignore") for name in names]
    columns = ", ".join(f"1 AS {ident(name)}" for name in short)

    found = either.execute(f"SELECT {columns}".encode()).description

    assert found is not None
    assert [column.name for column in found] == short


@HELD
@given(names=BATCH)
def test_a_name_differs_from_quote_ident_only_by_quotes_it_could_spare(
    session: psycopg.Connection, names: list[str]
) -> None:
    query = "SELECT array_agg(quote_ident(t) ORDER BY n) FROM " + EACH
    row = session.execute(query, [names]).fetchone()

    assert row is not None
    for ours, theirs in zip(map(ident, names), row[0], strict=True):
        assert ours in {theirs, f'"{theirs}"'}


@pytest.mark.parametrize("name", ["select", "user", "Über", "a.b", 'q"uote', "$$", "%s"])
def test_a_qualified_name_names_that_table(session: psycopg.Connection, name: str) -> None:
    with session.transaction(force_rollback=True):
        session.execute(f"CREATE SCHEMA {ident(name)}".encode())
        session.execute(f"CREATE TABLE {qualified(name, name)} ()".encode())
        found = session.execute(
            b"SELECT nspname, relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace"
            b" ORDER BY c.oid DESC LIMIT 1"
        ).fetchone()

    assert found == (name, name)


@HELD
@given(length=st.timedeltas().filter(lambda length: abs(length.days) < 10**6))
def test_a_length_of_time_comes_back_to_the_second(
    session: psycopg.Connection, length: timedelta
) -> None:
    query = f"SELECT extract(epoch FROM {interval(length)})::bigint"

    assert session.execute(query.encode()).fetchone() == (int(length.total_seconds()),)
