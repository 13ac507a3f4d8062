"""SQL names as users write them: plain (folded to lower case) or double-quoted.

Rules: PostgreSQL manual, "Identifiers and Key Words", and 63 bytes (NAMEDATALEN - 1). Longer
names are refused, where the server would cut them silently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from infra.errors import RuleError

NAME_BYTES: Final = 63
_PART = re.compile(r'(?P<plain>[A-Za-z_][A-Za-z0-9_$]*+)|"(?P<quoted>(?:[^"\0]|"")*+)"')
_ALLOWED: Final = 'a plain name (letters, digits, _ and $) or a "double-quoted" one'
_RESERVED_SCHEMAS: Final = frozenset({"cron", "information_schema", "jobwarden"})
_SYSTEM_COLUMNS: Final = frozenset({"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"})


@dataclass(frozen=True, slots=True)
class TableName:
    """A table. Both parts are the real names: unquoted, and folded where they were plain."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{written(self.schema)}.{written(self.name)}"


def parse_table(text: str, *, schema: str = "public") -> TableName:
    """Read ``name`` or ``schema.name``. Raises RuleError, also for a schema that is not theirs."""
    parts = _parts(text)
    if len(parts) > 2:
        raise _bad(text, f"a table has at most 2 parts, this has {len(parts)}")
    table = TableName(parts[0] if len(parts) > 1 else schema, parts[-1])
    if table.schema in _RESERVED_SCHEMAS or table.schema.startswith("pg_"):
        raise RuleError(
            f"schema {table.schema} is not for tables of yours",
            got=text,
            allowed="a table in a schema of yours, such as public.jobs",
            hint="leave jobs.table out for public.jobs, or name a schema of yours",
        )
    return table


def parse_column(text: str) -> str:
    """Read one column's name. Raises RuleError, also for a system column such as ctid."""
    parts = _parts(text)
    if len(parts) > 1:
        raise _bad(text, "a column is one name, without a dot")
    if parts[0] in _SYSTEM_COLUMNS:
        raise _bad(text, f"{parts[0]} is a system column of every table")
    return parts[0]


def check_database(text: str) -> str:
    """Return the database's name as it is, without folding. Raises RuleError."""
    _check_size(text, text)
    if "\0" in text:
        raise _bad(text, "a name cannot hold a NUL character")
    return text


def written(name: str) -> str:
    """Return the name as :func:`parse_table` reads it back: quoted only where it must be."""
    if re.fullmatch(r"[a-z_][a-z0-9_$]*", name):
        return name
    return '"' + name.replace('"', '""') + '"'


def _parts(text: str) -> list[str]:
    parts: list[str] = []
    at = 0
    while match := _PART.match(text, at):
        parts.append(_name(match, text))
        at = match.end()
        if at == len(text):
            return parts
        if text[at] != ".":
            break
        at += 1
    raise _bad(text, f"there is no name at character {at + 1}" if text else "the name is empty")


def _name(match: re.Match[str], text: str) -> str:
    plain, quoted = match["plain"], match["quoted"]
    # Only ASCII can be here, so lower() folds as the server does, in every locale.
    name = plain.lower() if plain is not None else quoted.replace('""', '"')
    _check_size(name, text)
    return name


def _check_size(name: str, text: str) -> None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise _bad(text, "the text is not valid Unicode") from None
    if not size:
        raise _bad(text, "the name is empty")
    if size > NAME_BYTES:
        raise _bad(text, f"the name has {size} bytes", f"at most {NAME_BYTES} bytes of UTF-8")


def _bad(text: str, problem: str, allowed: str = _ALLOWED) -> RuleError:
    hint = 'write it as in SQL: jobs, app.jobs or app."Task Queue"'
    return RuleError(problem, got=text, allowed=allowed, hint=hint)
