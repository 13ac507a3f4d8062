"""Schedules that are legal and still do not do what they seem to say.

Sources: pg_cron's ``ShouldRunTask`` at each tag (the day bug is in v1.6.0 and v1.6.1, and was
reported as late as 1.6.2), ``TryParseInterval`` at v1.5.0, and pg_cron's own ``CHANGELOG.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo

from infra.cronexpr.grammar import TIMEZONE_SINCE, Cron, Fields, begins_like_seconds, parse_version
from infra.cronexpr.times import load_zone, moments

_DAY = timedelta(days=1)
_DAY_BUG = ((1, 6, 0), (1, 6, 3))
_DAY_BUG_TEXT = "may fire a day early: a bug that is gone in 1.6.3"
_YEAR = 366

# Without a date to start from, a year in which every zone follows its present rules for good.
_SOME_YEAR = datetime(2037, 1, 1, tzinfo=UTC)


def warnings(
    cron: Cron, version: str | None = None, timezone: str = "GMT", after: datetime | None = None
) -> tuple[str, ...]:
    """Return what may surprise whoever wrote the schedule, one sentence each.

    ``version`` is the running pg_cron (by default the one it was read for), ``timezone`` its
    ``cron.timezone``. Changes of the clocks are looked for in the year behind ``after``, with their
    dates; without it they are described with no date. Raises RuleError for an unknown zone.
    """
    version = version or cron.version
    known = parse_version(version) if version else None
    found = list(_about_zone(known, version, timezone))
    if cron.fields is not None:
        found += _about_days(cron.fields)
        found += _about_steps(cron.fields)
        found += _about_version(cron.fields, known, version)
        if known is None or known >= TIMEZONE_SINCE:
            found += _about_clocks(cron.fields, timezone, after)
    return tuple(found)


def _about_zone(known: tuple[int, ...] | None, version: str | None, timezone: str) -> Iterator[str]:
    if known is not None and known < TIMEZONE_SINCE and load_zone(timezone) is not UTC:
        yield f"pg_cron {version} ignores cron.timezone = {timezone} and goes by GMT; 1.5 obeys it"


def _about_days(fields: Fields) -> Iterator[str]:
    day, weekday = fields.day.text, fields.weekday.text
    if fields.either:
        yield (
            f"it fires when either the day of month ({day}) or the day of week ({weekday}) "
            "matches, not only when both do"
        )
    elif day != "*" and weekday != "*":
        yield (
            f"it fires only when both the day of month ({day}) and the day of week ({weekday}) "
            "match, because one of them begins with *"
        )


def _about_steps(fields: Fields) -> Iterator[str]:
    named = {
        "minute": (fields.minute, "hour"),
        "hour": (fields.hour, "day"),
        "day of month": (fields.day, "month"),
        "month": (fields.month, "year"),
        "day of week": (fields.weekday, "week"),
    }
    for name, (field, whole) in named.items():
        if field.uneven:
            yield (
                f"the {name} {field.uneven} is uneven: it starts again with each {whole}, "
                "so the last gap is shorter"
            )


def _about_version(
    fields: Fields, known: tuple[int, ...] | None, version: str | None
) -> Iterator[str]:
    first_bad, first_good = _DAY_BUG
    if known is None:
        return
    if known == (1, 5) and begins_like_seconds(fields):
        yield (
            f"version {version} does not tell the patch release: pg_cron 1.5.0 would run this "
            "every so many seconds; 1.5.1 mended it"
        )
    if fields.every_day:
        return
    if first_bad <= known < first_good:
        yield f"pg_cron {version} {_DAY_BUG_TEXT}"
    if known == first_bad[:2]:
        yield f"version {version} does not tell the patch release: before 1.6.3 it {_DAY_BUG_TEXT}"


def _about_clocks(fields: Fields, timezone: str, after: datetime | None) -> Iterator[str]:
    zone = load_zone(timezone)
    if zone is UTC or len(fields.hour.values) == 24:
        return
    skipped = repeated = False
    for local, count in _odd_times(fields, zone, after or _SOME_YEAR):
        when = f"{local:%H:%M} of {local:%Y-%m-%d}" if after else f"{local:%H:%M} once a year"
        if count == 0 and not skipped:
            skipped = True
            yield f"in {timezone} the clocks skip {when}: it does not fire then"
        if count > 1 and not repeated:
            repeated = True
            yield f"in {timezone} the clocks show {when} twice: it fires twice"


def _odd_times(fields: Fields, zone: tzinfo, after: datetime) -> Iterator[tuple[datetime, int]]:
    """Yield local fire times of the next year that exist not once, but never or twice."""
    first = after.astimezone(zone).date()
    for day in (first + number * _DAY for number in range(_YEAR)):
        if _changes(day, zone) and fields.match_day(day, last=(day + _DAY).day == 1):
            for hour in sorted(fields.hour.values):
                for minute in sorted(fields.minute.values):
                    local = datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001
                    count = len(moments(local, zone))
                    if count != 1:
                        yield local, count


def _changes(day: date, zone: tzinfo) -> bool:
    noon = datetime(day.year, day.month, day.day, tzinfo=zone)
    return noon.utcoffset() != (noon + _DAY).utcoffset()
