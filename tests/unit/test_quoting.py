"""Names and texts as SQL. Held against a real server in the postgres tier."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.errors import RuleError
from infra.quoting import ident, interval, literal, qualified

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("jobs", '"jobs"'),
        ("Task Queue", '"Task Queue"'),
        ('a"b', '"a""b"'),
        ("user", '"user"'),
        ("a\\b", '"a\\b"'),
    ],
)
def test_a_name_keeps_its_case_and_every_sign(name: str, quoted: str) -> None:
    assert ident(name) == quoted


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (None, "NULL"),
        ("", "''"),
        ("it's", "'it''s'"),
        ("a\\b'", "E'a\\\\b'''"),
        ("%s {x}", "'%s {x}'"),
    ],
)
def test_a_text_is_right_for_either_meaning_of_the_backslash(text: str, quoted: str) -> None:
    assert literal(text) == quoted


@given(TEXT)
def test_no_text_leaves_its_quotes(text: str) -> None:
    inner = literal(text).removeprefix("E")[1:-1]

    assert "'" not in inner.replace("''", "")
    assert inner.replace("''", "'").replace("\\\\", "\\") == text


@given(TEXT.filter(bool))
def test_no_name_leaves_its_quotes(name: str) -> None:
    inner = ident(name)[1:-1]

    assert '"' not in inner.replace('""', "")
    assert inner.replace('""', '"') == name


def test_parts_are_quoted_each_for_itself() -> None:
    assert qualified("a.b", "c") == '"a.b"."c"'


@pytest.mark.parametrize("quote", [ident, literal])
def test_a_nul_is_refused(quote: object) -> None:
    assert callable(quote)
    with pytest.raises(RuleError, match="NUL"):
        quote("a\0b")


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(RuleError, match="empty"):
        ident("")


def test_a_length_of_time_is_exact_to_the_second() -> None:
    assert interval(None) == "NULL"
    assert interval(timedelta(days=1, seconds=1)) == "interval '86401 seconds'"
