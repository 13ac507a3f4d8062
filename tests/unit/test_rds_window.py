"""The window for a reboot: what is read, when it is open, when it opens next."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import rds
from infra.errors import RuleError
from infra.rds import Window

MINUTES = st.times().map(lambda it: time(it.hour, it.minute))
WINDOWS = (
    st.tuples(MINUTES, MINUTES).filter(lambda ends: ends[0] != ends[1]).map(lambda it: Window(*it))
)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda it: timezone(timedelta(minutes=it)))
MOMENTS = st.datetimes(datetime(2000, 1, 2), datetime(2100, 1, 1), timezones=ZONES)  # noqa: DTZ001  # hypothesis adds the zone


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-02-28T{text}").replace(tzinfo=UTC)


@given(WINDOWS)
def test_a_window_is_read_as_it_is_written(window: Window) -> None:
    assert rds.window(str(window)) == window


@pytest.mark.parametrize(
    "text",
    [
        *("", "02:00", "2:00-4:00", "02:00-24:00", "02:60-04:00", "02:00 - 04:00", "02:00-04:00\n"),
        *("02:00:00-04:00:00", "02:00-04:00Z", "sun:02:00-sun:04:00", "\u0660\u0662:00-04:00"),
    ],
)
def test_what_is_no_window_is_refused_with_one_that_is(text: str) -> None:
    with pytest.raises(RuleError, match="no window of a day") as caught:
        rds.window(text)

    assert caught.value.hint == 'write "02:00-04:00"'


@given(MINUTES)
def test_a_window_that_ends_when_it_starts_is_refused(moment: time) -> None:
    with pytest.raises(RuleError, match="ends when it starts"):
        rds.window(f"{moment:%H:%M}-{moment:%H:%M}")


@pytest.mark.parametrize(
    ("text", "now", "is_open"),
    [
        ("02:00-04:00", "01:59:59.999999", False),
        ("02:00-04:00", "02:00", True),
        ("02:00-04:00", "03:59:59.999999", True),
        ("02:00-04:00", "04:00", False),
        ("23:00-01:00", "22:59", False),
        ("23:00-01:00", "23:00", True),
        ("23:00-01:00", "00:00", True),
        ("23:00-01:00", "00:59", True),
        ("23:00-01:00", "01:00", False),
        ("23:00-00:00", "23:59", True),
        ("23:00-00:00", "00:00", False),
        ("00:00-23:59", "23:59", False),
    ],
)
def test_a_window_is_open_from_its_start_until_before_its_end(
    text: str, now: str, is_open: bool
) -> None:
    assert rds.within(rds.window(text), at(now)) is is_open


def test_a_window_is_of_utc_wherever_the_clock_hangs() -> None:
    berlin = timezone(timedelta(hours=1))

    assert rds.within(rds.window("02:00-04:00"), at("02:30").astimezone(berlin))
    assert not rds.within(rds.window("02:00-04:00"), datetime(2026, 3, 1, 2, 30, tzinfo=berlin))


@pytest.mark.parametrize(
    ("now", "opens"),
    [
        ("01:59", "2026-02-28 02:00"),
        ("02:00", "2026-03-01 02:00"),
        ("15:30", "2026-03-01 02:00"),
    ],
)
def test_it_opens_today_or_tomorrow(now: str, opens: str) -> None:
    assert f"{rds.opens(rds.window('02:00-04:00'), at(now)):%Y-%m-%d %H:%M}" == opens


@given(WINDOWS, MOMENTS)
def test_it_opens_within_a_day_and_not_a_moment_before(window: Window, now: datetime) -> None:
    opens = rds.opens(window, now)

    assert timedelta(0) < opens - now <= timedelta(days=1)
    assert rds.within(window, opens)
    assert not rds.within(window, opens - timedelta(microseconds=1))


@given(MINUTES, MINUTES, MOMENTS)
def test_of_two_windows_that_share_the_day_one_is_open(
    one: time, other: time, now: datetime
) -> None:
    if one != other:
        assert rds.within(Window(one, other), now) is not rds.within(Window(other, one), now)
