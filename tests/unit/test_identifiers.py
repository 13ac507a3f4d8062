"""SQL names as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import identifiers
from infra.errors import RuleError
from infra.identifiers import TableName

NAMES = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=15)


@pytest.mark.parametrize(
    ("text", "schema", "name"),
    [
        ("jobs", "public", "jobs"),
        ("App.Jobs", "app", "jobs"),
        ('app."Task Queue"', "app", "Task Queue"),
        ('"a.b"."c""d"', "a.b", 'c"d'),
        ("_a$1", "public", "_a$1"),
        ('"é"', "public", "é"),
        ("x" * 63, "public", "x" * 63),
    ],
)
def test_a_table_is_read_as_in_sql(text: str, schema: str, name: str) -> None:
    assert identifiers.parse_table(text) == TableName(schema, name)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a.",
        ".a",
        "a.b.c",
        "a b",
        "1a",
        "$a",
        " a",
        "a\n",
        '"a',
        '""',
        '"a"b',
        'a"b"',
        "é",
        "a-b",
        "jobs; drop table users",
        'jobs" --',
        '"a\0b"',
        "x" * 64,
        '"' + "é" * 32 + '"',
        '"\ud800"',
        "pg_catalog.jobs",
        "information_schema.jobs",
        "cron.jobs",
        '"jobwarden".jobs',
    ],
)
def test_what_is_no_table_of_theirs_is_refused(text: str) -> None:
    with pytest.raises(RuleError) as caught:
        identifiers.parse_table(text)

    assert caught.value.got == text
    assert caught.value.hint


@given(NAMES, NAMES)
def test_a_table_is_read_back_as_it_is_written(schema: str, name: str) -> None:
    table = TableName("s" + schema, name)

    assert identifiers.parse_table(str(table)) == table


@pytest.mark.parametrize("text", ["a.b", "ctid", "XMIN", '"tableoid"', "", "a b"])
def test_what_cannot_be_a_column_is_refused(text: str) -> None:
    with pytest.raises(RuleError):
        identifiers.parse_column(text)


def test_a_quoted_column_keeps_its_case() -> None:
    assert identifiers.parse_column('"CTID"') == "CTID"
    assert identifiers.parse_column("Status") == "status"


def test_a_database_is_never_folded() -> None:
    assert identifiers.check_database("My App") == "My App"


@pytest.mark.parametrize("text", ["", "a\0", "x" * 64, "\ud800"])
def test_what_cannot_be_a_database_is_refused(text: str) -> None:
    with pytest.raises(RuleError):
        identifiers.check_database(text)
