"""Durations as people write them: ``90s``, ``10m``, ``24h``, ``7d``, ``1h30m``.

Whole seconds only, never negative, at most 36500 days (100 years), so that every duration also fits
a Postgres interval and a date minus it is still a date.
"""

from __future__ import annotations

import re
from datetime import timedelta

from infra.errors import RuleError

LONGEST = timedelta(days=36500)

_UNITS = (("d", "d", 86400), ("h", "h", 3600), ("m", "min", 60), ("s", "s", 1))
_DURATION = re.compile(
    r"(?:([0-9]{1,10})d)?(?:([0-9]{1,10})h)?(?:([0-9]{1,10})m)?(?:([0-9]{1,10})s)?"
)
_ALLOWED = "numbers with s, m, h or d, the largest unit first, up to 36500d"


def parse(text: object) -> timedelta:
    """Return the duration that ``text`` spells; zero is a duration, a caller may refuse it.

    Raises RuleError for anything else: a number without a unit, a sign, a space, a fraction.
    """
    found = _DURATION.fullmatch(text) if isinstance(text, str) and text else None
    if found is None:
        raise RuleError(
            _what_is_wrong(text), got=text, allowed=_ALLOWED, hint="write it like 90s, 10m or 1h30m"
        )
    total = sum(
        int(number or 0) * size for number, (_, _, size) in zip(found.groups(), _UNITS, strict=True)
    )
    if total > LONGEST.total_seconds():
        raise RuleError(
            "the duration is too long", got=text, allowed=_ALLOWED, hint="write at most 36500d"
        )
    return timedelta(seconds=total)


def _what_is_wrong(text: object) -> str:
    written = str(text).strip()
    if not written:
        return "the duration is empty"
    if written.startswith("-"):
        return "a duration is never negative"
    if written.replace(".", "", 1).isdigit():
        return "the duration has no unit"
    return "this is not a duration"


def seconds(duration: timedelta) -> int:
    """Return the duration in whole seconds. Raises RuleError if negative or with a fraction."""
    if duration < timedelta(0) or duration.microseconds:
        raise RuleError(
            "a duration is whole seconds and never negative",
            got=str(duration),
            allowed="0 s and up, no fraction",
            hint="round it first",
        )
    return duration.days * 86400 + duration.seconds


def render(duration: timedelta) -> str:
    """Return the one spelling that ``parse`` reads back: ``10m``, ``1h30m``, ``1d``."""
    left = seconds(duration)
    parts = []
    for unit, _, size in _UNITS:
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"


def human(duration: timedelta) -> str:
    """Return the duration in the largest unit that fits exactly: ``10 min``, ``90 s``, ``1 h``."""
    total = seconds(duration)
    for _, unit, size in _UNITS:
        if total and total % size == 0:
            return f"{total // size} {unit}"
    return "0 s"
