"""The one place where identifiers and literals become SQL.

Always quoted, so that no list of reserved words has to be kept. Held against the server's own
``quote_ident`` and ``quote_literal`` by property tests. Rules: PostgreSQL manual, 4.1.
"""

from __future__ import annotations

from datetime import timedelta

from infra.errors import RuleError


def ident(name: str) -> str:
    """Quote one name as it is, case kept. Raises RuleError for an empty one or one with a NUL."""
    _refuse_nul(name)
    if not name:
        raise RuleError("a name is empty", got=name, allowed="1 to 63 bytes", hint="name it")
    return '"' + name.replace('"', '""') + '"'


def qualified(*parts: str) -> str:
    """Quote ``schema.name``."""
    return ".".join(ident(part) for part in parts)


def literal(text: str | None) -> str:
    """Quote a text, NULL for None. Right for either setting of standard_conforming_strings."""
    if text is None:
        return "NULL"
    _refuse_nul(text)
    quoted = "'" + text.replace("'", "''") + "'"
    return "E" + quoted.replace("\\", "\\\\") if "\\" in text else quoted


def interval(length: timedelta | None) -> str:
    """A length of time, exact to the second, NULL for None."""
    return "NULL" if length is None else f"interval '{int(length.total_seconds())} seconds'"


def _refuse_nul(text: str) -> None:
    if "\0" in text:
        raise RuleError(
            "a text holds a NUL",
            got=text,
            allowed="what PostgreSQL can store",
            hint="take the NUL out",
        )
