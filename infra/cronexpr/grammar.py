"""Reading a schedule: what is accepted, for which version of pg_cron.

Sources: pg_cron's ``src/entry.c`` and, for seconds, ``src/job_metadata.c``, v1.4.2 to v1.6.7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from infra.cronexpr.fields import RULES, Field, parse_field
from infra.errors import RuleError

SECONDS_SINCE = (1, 5)
TIMEZONE_SINCE = (1, 5)
LAST_DAY_SINCE = (1, 6)

_ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_ALLOWED = f"5 fields, or {', '.join(_ALIASES)}, or '30 seconds' (pg_cron 1.5 and later)"
_SECONDS = re.compile(r"\s*([0-9]+)\s*second(?:s\s*)?", re.ASCII | re.IGNORECASE)
_EXAMPLE = "write minute, hour, day of month, month and day of week, such as */5 * * * *"
_LONGEST_TEXT = 999  # pg_cron reads a schedule into a buffer of 1000 bytes

_DAYS_IN_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class Fields:
    """The five fields of a schedule."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def last_day(self) -> bool:
        """Tell whether the day of month is ``$``, the last one."""
        return self.day.text == "$"

    @property
    def either(self) -> bool:
        """Tell whether one of the two day fields is enough: neither begins with ``*``."""
        return not (self.day.starred or self.weekday.starred)

    @property
    def every_day(self) -> bool:
        """Tell whether no day is left out."""
        whole = len(self.day.values) == 31, len(self.weekday.values) == 7
        return len(self.month.values) == 12 and (any(whole) if self.either else all(whole))

    def match_day(self, day: date, *, last: bool) -> bool:
        """Tell whether it fires on this day; ``last``: the day counts as the last of its month."""
        by_day = day.day in self.day.values or (last and self.last_day)
        by_weekday = day.isoweekday() % 7 in self.weekday.values
        matches = (by_day or by_weekday) if self.either else (by_day and by_weekday)
        return matches and day.month in self.month.values


@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule that was read: five fields, or every so many seconds.

    ``version`` is the pg_cron it was read for; None when that is not known.
    """

    text: str
    fields: Fields | None
    every: int | None = None
    version: str | None = None


def parse_version(version: str) -> tuple[int, ...]:
    """Return the numbers of a version: 1.4-1 is (1, 4), 1.6.5-1.pgdg12 is (1, 6, 5).

    Two numbers mean that the patch release is not known. Raises RuleError for other text.
    """
    found = re.match(r"[0-9]{1,6}(?:\.[0-9]{1,6})+(?![0-9])", version)
    if found is None:
        raise RuleError(
            "this is not a version of pg_cron",
            got=version,
            allowed="numbers and dots, such as 1.6 or 1.6.5",
            hint="SELECT extversion FROM pg_extension WHERE extname = 'pg_cron'",
        )
    return tuple(int(number) for number in found[0].split("."))


def parse(text: str, version: str | None = None) -> Cron:
    """Return the schedule that ``text`` spells, for a running pg_cron of ``version``.

    Without a version, seconds and ``$`` pass. Raises RuleError if that pg_cron would refuse the
    schedule, would take it for another one, or would never fire it.
    """
    known = parse_version(version) if version else None
    seconds = _SECONDS.fullmatch(text)
    if seconds:
        _need(known, SECONDS_SINCE, "a schedule in seconds", text, version)
        return Cron(text, None, _check_seconds(int(seconds[1][:9]), text), version)
    fields = _parse_fields(_split(text), text)
    if fields.last_day:
        _need(known, LAST_DAY_SINCE, "$ as the day of month", text, version)
    _check_misread_as_seconds(fields, known, text)
    _check_fires(fields, text)
    return Cron(text, fields, None, version)


def _refuse(problem: str, text: str, hint: str) -> RuleError:
    return RuleError(problem, got=text, allowed=_ALLOWED, hint=hint)


def _split(text: str) -> list[str]:
    if not text.strip():
        raise _refuse("the schedule is empty", text, _EXAMPLE)
    if len(text.encode(errors="replace")) > _LONGEST_TEXT:
        raise _refuse("the schedule is longer than 999 bytes", text, "use ranges and steps")
    if text.strip().startswith("@"):
        return _alias(text).split()
    # pg_cron ends a schedule at the first line break behind a field.
    parts = re.split(r"[ \t]+", text.strip(" \t\n"))
    if len(parts) != len(RULES) or "\n" in text.strip(" \t\n"):
        raise _refuse(
            f"a schedule has 5 fields on one line, this one has {len(text.split())}",
            text,
            f"{_EXAMPLE}. pg_cron ignores all behind the fifth field: no seconds, no user name",
        )
    return parts


def _alias(text: str) -> str:
    name = text.strip()
    if name in {"@reboot", "@restart"}:
        raise _refuse(
            "it would run at each restart of the server, and at no time", text, "use @daily"
        )
    if name not in _ALIASES:
        lower = name.lower()
        hint = f"write {lower}, in lower case" if lower in _ALIASES else _EXAMPLE
        raise _refuse("there is no such name for a schedule", text, hint)
    return _ALIASES[name]


def _parse_fields(parts: list[str], text: str) -> Fields:
    fields = [
        Field("$", frozenset(), starred=False)
        if part == "$" and rule.name == "day of month"
        else parse_field(part, rule, text)
        for part, rule in zip(parts, RULES, strict=True)
    ]
    return Fields(*fields)


def _check_seconds(every: int, text: str) -> int:
    if not 1 <= every <= 59:
        raise _refuse("seconds go from 1 to 59", text, "use minutes for more, such as */2 * * * *")
    return every


def _need(
    known: tuple[int, ...] | None, since: tuple[int, ...], what: str, text: str, version: str | None
) -> None:
    if known is not None and known < since:
        needed = ".".join(map(str, since))
        raise RuleError(
            f"{what} needs pg_cron {needed}, and {version} is running",
            got=text,
            allowed=f"what pg_cron {version} honours",
            hint=f"write it with the five plain fields, or update pg_cron to {needed} or later",
        )


def _check_misread_as_seconds(fields: Fields, known: tuple[int, ...] | None, text: str) -> None:
    if known == (1, 5, 0) and begins_like_seconds(fields):
        raise _refuse(
            "pg_cron 1.5.0 reads only the first number and runs it every so many seconds",
            text,
            "update pg_cron to 1.5.1 or later",
        )


def begins_like_seconds(fields: Fields) -> bool:
    """Tell whether pg_cron 1.5.0 would take the schedule for one in seconds."""
    leading = re.match(r"[0-9]+", fields.minute.text)
    return leading is not None and int(leading[0]) > 0


def _check_fires(fields: Fields, text: str) -> None:
    if fields.either or fields.last_day:
        return
    # With a starred day of month, the first of the month is always in it.
    if all(min(fields.day.values) > _DAYS_IN_MONTH[month - 1] for month in fields.month.values):
        raise _refuse(
            "it never fires: none of its months has such a day", text, "use a day up to 28, or $"
        )
