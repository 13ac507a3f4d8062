"""A small scanner of SQL text: enough to tell how many statements it holds, and their words.

It follows the lexical rules of PostgreSQL (manual, "Lexical Structure") with
``standard_conforming_strings`` on, which is the default. It does not parse grammar. A semicolon
inside parentheses does not end a statement, as in psql.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from infra.errors import RuleError

_LETTER = r"A-Za-z_\x80-\U0010ffff"
_TOKEN = re.compile(
    rf"""
      (?P<space>   [ \t\n\r\f\v]+ | --[^\n\r]* )
    | (?P<comment> /\* )
    | (?P<escape>  [eE]'(?:[^'\\]|\\.|'')*+'
                   (?:[ \t\f\v]*+[\n\r][ \t\n\r\f\v]*+'(?:[^'\\]|\\.|'')*+')*+ )
    | (?P<text>    '(?:[^']|'')*+' )
    | (?P<dollar>  \$(?P<tag>(?:[{_LETTER}][{_LETTER}0-9]*+)?)\$.*?\$(?P=tag)\$ )
    | (?P<quoted>  "(?:[^"]|"")*+" )
    | (?P<word>    [{_LETTER}][{_LETTER}0-9$]*+ )
    | (?P<number>  [0-9][0-9A-Za-z_.]*+ )
    | (?P<open>    ['"] | \$(?:[{_LETTER}][{_LETTER}0-9]*+)?\$ )
    | (?P<sign>    . )
    """,
    re.VERBOSE | re.DOTALL,
)
_SHOWN: Final = 20
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Token:
    """One token that matters. ``kind`` is word, sign, quoted, text or number.

    ``depth`` counts the parentheses around it. The text of a word is in upper case.
    """

    kind: str
    text: str
    depth: int


def statements(sql: str) -> tuple[tuple[Token, ...], ...]:
    """Split into statements, without comments and without empty ones.

    Raises RuleError for a quote, a comment or a parenthesis that is never closed.
    """
    found: list[tuple[Token, ...]] = []
    current: list[Token] = []
    for token in _with_depth(sql):
        if token.kind == "sign" and token.text == ";" and token.depth == 0:
            found.append(tuple(current))
            current = []
        else:
            current.append(token)
    found.append(tuple(current))
    return tuple(statement for statement in found if statement)


def _with_depth(sql: str) -> Iterator[Token]:
    depth = 0
    for kind, text in _tokens(sql):
        if text == ")" and kind == "sign":
            depth = max(depth - 1, 0)
        yield Token(kind, text.upper() if kind == "word" else text, depth)
        if text == "(" and kind == "sign":
            depth += 1
    if depth:
        raise _unclosed(sql, "parenthesis", "close it with `)`")


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    at = 0
    while match := _TOKEN.match(sql, at):
        kind = match.lastgroup or "sign"
        at = match.end()
        if kind == "comment":
            at = _end_of_comment(sql, at)
        elif kind == "open":
            start = sql[match.start() :][:_SHOWN]
            raise _unclosed(sql, "quote", f"close the one that starts at {start!r}")
        elif kind in {"escape", "dollar", "tag"}:
            yield "text", match.group()
        elif kind != "space":
            yield kind, match.group()


def _end_of_comment(sql: str, start: int) -> int:
    """Comments nest in PostgreSQL, unlike in C."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(sql, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise _unclosed(sql, "comment", "close it with `*/`")


def _unclosed(sql: str, what: str, hint: str) -> RuleError:
    return RuleError(
        f"a {what} is never closed", got=sql, allowed="one whole SQL statement", hint=hint
    )
