"""The kinds of value an environment holds: each a type with its rule and its JSON Schema.

A rule raises RuleError; pydantic collects it and ``config.faults`` adds the path.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

from infra import cronexpr, dburl, durations, identifiers, schedules
from infra.errors import RuleError
from infra.identifiers import TableName

OLDEST: Final = 13
NEWEST: Final = 18
MAX_TIMEOUT: Final = timedelta(days=365)
MAX_RETENTION: Final = timedelta(days=36500)
_SPAN_PATTERN: Final = r"^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
_DURATION: Final = "a number with a unit, such as 90s, 10m, 24h or 7d"


def _span(value: object, most: timedelta, word: str | None) -> timedelta | None:
    allowed = f"{_DURATION}, at most {most.days}d" + (f", or {word}" if word else "")
    if word and value == word:
        return None
    if not isinstance(value, str):
        hint = f'write "{value}s" for seconds' if type(value) is int else 'write "10m"'
        raise RuleError("a time needs a number and a unit", got=value, allowed=allowed, hint=hint)
    hint = f"write a time such as 10m, or {word} for no limit" if word else "write a time as 10m"
    try:
        span = durations.parse(value)
    except RuleError as error:
        raise RuleError(error.problem, got=value, allowed=allowed, hint=hint) from None
    if not timedelta(0) < span <= most:
        problem = "the time is too long" if span else "the time is zero"
        raise RuleError(problem, got=value, allowed=allowed, hint=hint)
    return span


def _cron(text: str) -> str:
    return cronexpr.parse(text).text


def _version(value: object) -> object:
    """Take 16 for "16": ``pulumi config set --path`` writes a number."""
    text = str(value) if type(value) is int else value
    if text not in {str(version) for version in range(OLDEST, NEWEST + 1)}:
        raise RuleError(
            "PostgreSQL's version is not one we know",
            got=value,
            allowed=f"a major version from {OLDEST} to {NEWEST}",
            hint=f'write "{NEWEST}"; leave the minor version out',
        )
    return text


def _timezone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, OSError, ValueError):
        raise RuleError(
            "the time zone has no such name",
            got=text,
            allowed="a name of the IANA list, such as Europe/Berlin",
            hint="use UTC, or Region/City",
        ) from None
    return text


def _create(value: bool) -> bool:  # noqa: FBT001 - pydantic passes it by position
    if not value:
        raise RuleError(
            "adopting an existing table is not there yet",
            got=value,
            allowed="true",
            hint="leave jobs.create out; a table of ours is made",
        )
    return value


def _table(value: object) -> TableName:
    if isinstance(value, TableName):
        return value
    if isinstance(value, str):
        return identifiers.parse_table(value)
    raise RuleError(
        "the table must be text",
        got=value,
        allowed="name or schema.name",
        hint="write public.jobs",
    )


def _state(text: str) -> str:
    if not text or "\0" in text:
        problem = "the state has a NUL character" if text else "the state is empty"
        raise RuleError(problem, got=text, allowed="a text that is not empty", hint='"running"')
    return text


def _action(text: str) -> str:
    if not text or text == "*" or "\0" in text:
        raise RuleError(
            "an action's name may not be this",
            got=text,
            allowed="a text that is not empty, not * and has no NUL character",
            hint="for all other actions set watchdog.timeout and cleanup.retention",
        )
    return text


def _encrypted(value: object) -> object:
    """Take what Pulumi encrypted. The message never holds what was given instead."""
    if isinstance(value, Mapping) and set(value) == {"secure"}:
        return value
    raise RuleError(
        "a password in plain text",
        got="***",
        allowed="a value that Pulumi encrypted, secure: ...",
        hint="pulumi config set --secret jobwarden:databasePassword, or PGPASSWORD, or ~/.pgpass",
    )


def _schedule_name(text: str) -> str:
    if schedules.is_ours(text):
        raise RuleError(
            "the name is one of ours",
            got=text,
            allowed=f"any other than {schedules.WATCHDOG} and {schedules.CLEANUP}, also with @",
            hint="set watchdog.schedule or cleanup.schedule, or choose another name",
        )
    return schedules.check_name(text)


def written(value: object) -> object:
    """Return a value as users write it in a stack file."""
    if isinstance(value, timedelta):
        return durations.render(value)
    return str(value) if isinstance(value, TableName) else value


def _as_text(word: str) -> PlainSerializer:
    """Write a time back as users write it; pydantic would write ISO 8601."""
    return PlainSerializer(lambda span: word if span is None else written(span), str)


def _span_schema(word: str | None = None) -> WithJsonSchema:
    number = {"type": "string", "pattern": _SPAN_PATTERN, "examples": ["90s", "10m", "24h", "7d"]}
    choice = {"anyOf": [number, {"const": word}]} if word else number
    return WithJsonSchema(choice)


Timeout = Annotated[
    timedelta,
    BeforeValidator(lambda value: _span(value, MAX_TIMEOUT, None)),
    _as_text("never"),
    _span_schema(),
]
TimeoutOrNever = Annotated[
    timedelta | None,
    BeforeValidator(lambda value: _span(value, MAX_TIMEOUT, "never")),
    _as_text("never"),
    _span_schema("never"),
]
Retention = Annotated[
    timedelta | None,
    BeforeValidator(lambda value: _span(value, MAX_RETENTION, "forever")),
    _as_text("forever"),
    _span_schema("forever"),
]
CronText = Annotated[str, AfterValidator(_cron)]
Encrypted = Annotated[
    dict[str, str],
    BeforeValidator(_encrypted),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"secure": {"type": "string"}},
            "required": ["secure"],
            "additionalProperties": False,
        }
    ),
]
Column = Annotated[
    str,
    AfterValidator(identifiers.parse_column),
    # The model holds the real name; the file holds it quoted where it must be.
    PlainSerializer(identifiers.written, str),
]
State = Annotated[str, AfterValidator(_state)]
Action = Annotated[str, AfterValidator(_action)]
Database = Annotated[str, AfterValidator(identifiers.check_database)]
UserSchedule = Annotated[str, AfterValidator(_schedule_name)]
Command = Annotated[str, AfterValidator(schedules.check_command)]
DatabaseUrl = Annotated[str, AfterValidator(dburl.check)]
TimeZone = Annotated[str, AfterValidator(_timezone)]
Created = Annotated[bool, AfterValidator(_create), WithJsonSchema({"const": True})]
Version = Annotated[
    str,
    BeforeValidator(_version),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": [str(version) for version in range(OLDEST, NEWEST + 1)]},
                {"type": "integer", "minimum": OLDEST, "maximum": NEWEST},
            ]
        }
    ),
]
Table = Annotated[
    TableName,
    BeforeValidator(_table),
    PlainSerializer(str, str),
    WithJsonSchema({"type": "string", "minLength": 1}),
]
