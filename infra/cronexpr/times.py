"""When a schedule fires.

pg_cron looks at each minute of UTC and asks what the clock of ``cron.timezone`` shows then
(``ShouldRunTask`` in its ``src/pg_cron.c``). So a local time that the clocks skip does not fire,
and one that they show twice fires twice.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

from infra.cronexpr.grammar import TIMEZONE_SINCE, Cron, Fields, parse_version
from infra.errors import RuleError

_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)
_FURTHEST_OFFSET = timedelta(hours=16)  # no zone was ever further from UTC than 15:56
_LAST_YEAR = 9990


def load_zone(name: str) -> tzinfo:
    """Return the time zone of that name. Raises RuleError if this machine knows none."""
    if name.upper() in {"GMT", "UTC"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        raise RuleError(
            "there is no such time zone",
            got=name,
            allowed="GMT, or a name of the IANA database",
            hint="write it like Europe/Berlin; the operating system's tzdata must be installed",
        ) from error


def next_fires(
    cron: Cron, after: datetime, count: int, timezone: str = "GMT"
) -> tuple[datetime, ...]:
    """Return the first ``count`` fire times later than ``after``, in UTC.

    ``timezone`` is pg_cron's ``cron.timezone``; before 1.5 there was none, and GMT is used. A
    schedule in seconds counts from ``after``. Raises ValueError if ``after`` has no zone.
    """
    if after.tzinfo is None:
        message = "after needs a time zone"
        raise ValueError(message)
    after = after.astimezone(UTC)
    if cron.fields is None:
        step = timedelta(seconds=cron.every or 0)
        return tuple(after + step * number for number in range(1, count + 1))
    return tuple(islice(_fires(cron.fields, after, running_zone(cron, timezone)), count))


def running_zone(cron: Cron, timezone: str) -> tzinfo:
    """Return the zone that the schedule's pg_cron goes by; ``timezone`` is ``cron.timezone``."""
    ignored = cron.version is not None and parse_version(cron.version) < TIMEZONE_SINCE
    return UTC if ignored else load_zone(timezone)


def _fires(fields: Fields, after: datetime, zone: tzinfo) -> Iterator[datetime]:
    """Yield fire times in order. Clocks that go back over midnight mix two days, hence the heap."""
    waiting: list[datetime] = []
    for day in _days(fields, after.astimezone(zone).date() - _DAY):
        settled = datetime(day.year, day.month, day.day, tzinfo=UTC) - _FURTHEST_OFFSET
        while waiting and waiting[0] < settled:
            yield heapq.heappop(waiting)
        for moment in _moments_of_day(fields, day, zone):
            if moment > after:
                heapq.heappush(waiting, moment)


def _days(fields: Fields, first: date) -> Iterator[date]:
    """Yield the local days on which it may fire.

    For ``$`` also the last day but one and the first: 24 hours later it is the first there too,
    where a day has 23 or 25 hours.
    """
    day = first
    while day.year < _LAST_YEAR:
        if day.month not in fields.month.values:
            day = (day.replace(day=1) + 31 * _DAY).replace(day=1)
            continue
        if fields.match_day(day, last=(day + 2 * _DAY).day <= 3):
            yield day
        day += _DAY


def _moments_of_day(fields: Fields, day: date, zone: tzinfo) -> Iterator[datetime]:
    for hour in sorted(fields.hour.values):
        for moment in _moments_of_hour(fields, day, hour, zone):
            # pg_cron asks whether 24 hours later it is the first, also where a day is not 24 hours.
            if not fields.last_day or fields.match_day(
                day, last=(moment + _DAY).astimezone(zone).day == 1
            ):
                yield moment


def _moments_of_hour(fields: Fields, day: date, hour: int, zone: tzinfo) -> Iterator[datetime]:
    begin = datetime(day.year, day.month, day.day, hour)  # noqa: DTZ001 - a local clock's face
    first, last = moments(begin, zone), moments(begin + 59 * _MINUTE, zone)
    steady = len(first) == len(last) == 1 and last[0] - first[0] == 59 * _MINUTE
    for minute in sorted(fields.minute.values):
        if steady:
            yield first[0] + minute * _MINUTE
        else:
            yield from moments(begin + minute * _MINUTE, zone)


def moments(local: datetime, zone: tzinfo) -> list[datetime]:
    """Return when clocks in ``zone`` show ``local``: never in a gap, twice in an overlap."""
    found = {local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(each for each in found if each.astimezone(zone).replace(tzinfo=None) == local)


@lru_cache(maxsize=256)
def longest_gap(cron: Cron) -> timedelta:
    """Return the longest time between two fires, in GMT.

    Looks at the years 2001 to 2056: leap days and days of the week together repeat every 28,
    until 2100, which has no leap day and makes a few rare schedules rarer once.
    """
    if cron.fields is None:
        return timedelta(seconds=cron.every or 0)
    fields = cron.fields
    minutes = [hour * 60 + minute for hour in fields.hour.values for minute in fields.minute.values]
    minutes.sort()
    inside = max((b - a for a, b in pairwise(minutes)), default=0)
    over_night = _widest_step_of_days(fields) * 24 * 60 + minutes[0] - minutes[-1]
    return timedelta(minutes=max(inside, over_night))


def _widest_step_of_days(fields: Fields) -> int:
    if fields.every_day:
        return 1
    start, years = date(2001, 1, 1), 56
    days = [
        day.toordinal()
        for day in (start + number * _DAY for number in range(years * 1461 // 4))
        if fields.match_day(day, last=(day + _DAY).day == 1)
    ]
    return max(b - a for a, b in pairwise(days))
