"""Our schedules, declared once, and the rules for anybody's: name and command.

A schedule is a name, a cron expression and one SQL statement. When it fires is ``cronexpr``'s.
"""

from __future__ import annotations

import difflib
import itertools
import unicodedata
from dataclasses import dataclass
from typing import Final

from infra import sqlscan
from infra.errors import RuleError

WATCHDOG: Final = "jobsStuckWatchdog"
CLEANUP: Final = "jobsDailyCleanup"
NAME_BYTES: Final = 63


@dataclass(frozen=True, slots=True)
class Schedule:
    """What pg_cron is asked to run: ``command`` at each time that ``schedule`` names."""

    name: str
    schedule: str
    command: str
    why: str


OURS: Final = (
    Schedule(
        name=WATCHDOG,
        schedule="*/5 * * * *",
        command="CALL jobwarden.sweep()",
        why="a job that runs too long becomes failed",
    ),
    Schedule(
        name=CLEANUP,
        schedule="0 2 * * *",
        command="CALL jobwarden.cleanup()",
        why="finished jobs go when their retention is over",
    ),
)

_COMMANDS: Final = frozenset(
    {
        "ALTER",
        "ANALYSE",
        "ANALYZE",
        "CALL",
        "CHECKPOINT",
        "CLUSTER",
        "COMMENT",
        "COPY",
        "CREATE",
        "DELETE",
        "DISCARD",
        "DO",
        "DROP",
        "EXPLAIN",
        "GRANT",
        "IMPORT",
        "INSERT",
        "LOAD",
        "LOCK",
        "MERGE",
        "NOTIFY",
        "REASSIGN",
        "REFRESH",
        "REINDEX",
        "RESET",
        "REVOKE",
        "SECURITY",
        "SELECT",
        "SET",
        "TABLE",
        "TRUNCATE",
        "UPDATE",
        "VACUUM",
        "VALUES",
        "WITH",
    }
)
_TRANSACTION: Final = frozenset(
    {"ABORT", "BEGIN", "COMMIT", "END", "PREPARE", "RELEASE", "ROLLBACK", "SAVEPOINT", "START"}
)
_ONE_STATEMENT: Final = "one SQL statement, such as `CALL app.weekly_report()`"


def is_ours(name: str) -> bool:
    """Tell whether the name is one of ours, also as it is in another database (``name@db``)."""
    return name.partition("@")[0] in {WATCHDOG, CLEANUP}


def check_name(text: str) -> str:
    """Return the name, or raise RuleError: 1 to 63 bytes of UTF-8 without control characters.

    Before 1.5 pg_cron cuts longer names to 63 bytes, so two of them would be one schedule.
    """
    size = len(_utf8(text, f"1 to {NAME_BYTES} bytes of UTF-8"))
    if not 1 <= size <= NAME_BYTES:
        raise _bad_name(text, f"the name has {size} bytes")
    if any(unicodedata.category(char) == "Cc" for char in text):
        raise _bad_name(text, "the name has a control character")
    return text


def check_command(text: str) -> str:
    """Return the command without the space around it, or raise RuleError.

    pg_cron sends a command as it stands, in one transaction: two statements roll back together,
    a SET before a CALL forbids that CALL to commit, and COPY to or from the client blocks.
    """
    _utf8(text, _ONE_STATEMENT)
    if "\0" in text:
        raise _bad_command(text, "the command has a NUL character", "leave the NUL out")
    _refuse_psql(text)
    found = sqlscan.statements(text)
    if not found:
        raise _bad_command(text, "the command is empty", "write the statement to run")
    if len(found) > 1:
        raise _bad_command(
            text,
            f"the command has {len(found)} statements",
            "put them in a procedure and CALL it, or make a schedule of each",
        )
    _check_statement(text, found[0])
    return text.strip()


def _check_statement(text: str, tokens: tuple[sqlscan.Token, ...]) -> None:
    first = next((token for token in tokens if token.text != "("), tokens[0])
    if first.text in _TRANSACTION and first.kind == "word":
        raise _bad_command(
            text,
            f"{first.text} controls a transaction",
            "leave it out: each run is a transaction of its own",
        )
    if first.kind != "word" or first.text not in _COMMANDS:
        raise _not_sql(text, first.text)
    if any(token.text == "\\" and token.kind == "sign" for token in tokens):
        raise _psql(text)
    if first.text == "COPY" and _copies_to_client(tokens):
        raise _bad_command(
            text,
            "COPY to or from the client cannot run here, since no client is there",
            "use INSERT ... SELECT, or COPY with a file on the server",
        )


def _copies_to_client(tokens: tuple[sqlscan.Token, ...]) -> bool:
    """PostgreSQL takes STDIN and STDOUT after TO and after FROM alike."""
    words = [token.text if token.kind == "word" else "" for token in tokens if token.depth == 0]
    return any(
        before in {"TO", "FROM"} and after in {"STDIN", "STDOUT"}
        for before, after in itertools.pairwise(words)
    )


def _refuse_psql(text: str) -> None:
    if text.lstrip().startswith("\\"):
        raise _psql(text)


def _psql(text: str) -> RuleError:
    return _bad_command(
        text,
        "a backslash command is psql's, the server does not know it",
        "write SQL; a shell command belongs in a systemd timer or in cron",
    )


def _not_sql(text: str, word: str) -> RuleError:
    near = difflib.get_close_matches(word.upper(), _COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else "start with SELECT, CALL, DELETE, VACUUM, ..."
    return _bad_command(text, f"{word} does not begin an SQL statement a schedule can run", hint)


def _bad_command(text: str, problem: str, hint: str) -> RuleError:
    return RuleError(problem, got=text, allowed=_ONE_STATEMENT, hint=hint)


def _bad_name(text: str, problem: str) -> RuleError:
    allowed = f"1 to {NAME_BYTES} bytes of UTF-8, no control characters"
    return RuleError(problem, got=text, allowed=allowed, hint="use a short name, as jobsReport")


def _utf8(text: str, allowed: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        problem = "the text is not valid Unicode"
        raise RuleError(problem, got=text, allowed=allowed, hint="use plain letters") from None
