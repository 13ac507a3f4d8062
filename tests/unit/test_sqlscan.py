"""The scanner of SQL text: words, depth and where a statement ends."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from infra import sqlscan
from infra.errors import RuleError


def test_words_are_in_upper_case_and_know_their_depth() -> None:
    (statement,) = sqlscan.statements("select (a) from \"B\" where c = 'd' -- e")

    words = [(token.text, token.depth) for token in statement if token.kind == "word"]
    assert words == [("SELECT", 0), ("A", 1), ("FROM", 0), ("WHERE", 0), ("C", 0)]
    assert [token.text for token in statement if token.kind == "quoted"] == ['"B"']
    assert [token.text for token in statement if token.kind == "text"] == ["'d'"]


def test_empty_statements_are_left_out() -> None:
    assert sqlscan.statements("; /* a */ ;\n-- b\n;") == ()


@given(st.text("aE'\"$()\\1 ", max_size=30))
def test_nothing_but_space_is_lost(text: str) -> None:
    found = _scanned(text)

    if isinstance(found, RuleError):
        assert "never closed" in found.problem
    else:
        kept = "".join(token.text for statement in found for token in statement)
        assert kept.replace(" ", "").upper() == text.replace(" ", "").upper()


def test_a_long_hostile_text_is_scanned_in_little_time() -> None:
    started = time.perf_counter()

    for piece in ("'' ", "E'\\' ", "$$", "/*", "((", '""', "E'a'\n"):
        _scanned(piece * 5_000)

    assert time.perf_counter() - started < 5


def _scanned(text: str) -> tuple[tuple[sqlscan.Token, ...], ...] | RuleError:
    try:
        return sqlscan.statements(text)
    except RuleError as error:
        return error
