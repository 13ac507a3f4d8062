from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from infra import cronexpr
from infra.errors import RuleError

CASES = YAML(typ="safe").load(
    (Path(__file__).parents[1] / "data/cases/cron.yaml").read_text(encoding="utf-8")
)
FRIDAY = datetime(2026, 3, 27, 10, 3, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
MENDED = "1.6.7"


def name_of(case: dict[str, Any]) -> str:
    return f"{case['schedule'] or 'empty'} on {case['version']}"


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def refusal_of(schedule: str, version: str | None = None) -> str:
    """The message, without the schedule that it echoes."""
    with pytest.raises(RuleError) as refusal:
        cronexpr.parse(schedule, version)
    assert refusal.value.got == schedule
    message = str(refusal.value)
    return message.replace(repr(schedule), "").replace(schedule, "") if schedule else message


@pytest.mark.parametrize("case", CASES["accept"], ids=name_of)
def test_the_case_is_accepted_and_fires_when_it_says(case: dict[str, Any]) -> None:
    cron = cronexpr.parse(case["schedule"], case["version"])
    expected = tuple(moment(text) for text in case.get("next", []))
    assert cronexpr.next_fires(cron, FRIDAY, len(expected)) == expected
    assert cron.text == case["schedule"]


@pytest.mark.parametrize("case", CASES["refuse"], ids=name_of)
def test_the_case_is_refused_with_its_reason(case: dict[str, Any]) -> None:
    message = refusal_of(case["schedule"], case["version"])
    assert [name for name in case["names"] if name not in message] == []


@pytest.mark.parametrize("case", CASES["warn"], ids=name_of)
def test_the_case_is_accepted_with_a_warning(case: dict[str, Any]) -> None:
    cron = cronexpr.parse(case["schedule"], case["version"])
    found = cronexpr.warnings(
        cron, case["version"], timezone=case.get("timezone", "GMT"), after=FRIDAY - 20 * DAY
    )
    said = " ".join(found).replace(case["schedule"], "")
    assert [name for name in case["names"] if name not in said] == []


@pytest.mark.parametrize(
    ("schedule", "names"),
    [
        ("* * * *", "5 fields"),
        ("*/5 * * *\n*", "one line"),
        ("*/5 * * * * *", "fifth field"),
        ("@daily now", "no such name"),
        ("@every 5m", "no such name"),
        ("@restart", "restart"),
        ("# off", "5 fields"),
        ("5 minutes", "5 fields"),
        ("0 seconds", "1 to 59"),
        ("30  second ", "5 fields"),
        ("\N{ARABIC-INDIC DIGIT FIVE} * * * *", "minute"),
        ("-1 * * * *", "minute"),
        ("1, * * * *", "minute"),
        ("1-5/2/3 * * * *", "trailing"),
        ("*/99999999999999999999 * * * *", "59"),
        ("99999999999999999999 * * * *", "59"),
        ("*/ * * * *", "step"),
        ("*/-5 * * * *", "step"),
        ("*/1.5 * * * *", "trailing"),
        ("5- * * * *", "minute"),
        ("mon * * * *", "minute"),
        ("0 22-6 * * *", "22-23,0-6"),
        ("0 0 * * fri-sun", "5-7"),
        ("0 0 * * sat-mon", "6-7,1"),
        ("0 0 * nov-feb *", "11-12,1-2"),
        ("0 0 * * 8", "7"),
        ("0 0 * 0 *", "month"),
        ("0 0 * 13 *", "month"),
        ("0 0 L * *", "$"),
        ("0 0 15W * *", "weekday"),
        ("0 0 * * 1#2", "nth"),
        ("0 0 ? * *", "instead of ?"),
        ("0 0 $,15 * *", "stands alone"),
        ("0 0 * * $", "stands alone"),
        ("0 0 30 2 *", "never"),
        ("0 0 31 4,6,9,11 *", "never"),
        ("0 0 30-31 feb */2", "never"),
        ("0" * 1000 + " * * * *", "999 bytes"),
        (" \t\n", "empty"),
    ],
)
def test_what_would_mean_something_else_is_refused(schedule: str, names: str) -> None:
    assert names in refusal_of(schedule)


@pytest.mark.parametrize(
    ("schedule", "first"),
    [
        ("\t*/5  *\t* * * \n", "2026-03-27T10:05"),
        (" @hourly ", "2026-03-27T11:00"),
        ("007 * * * *", "2026-03-27T10:07"),
        ("59,*/30 * * * *", "2026-03-27T10:30"),
        ("0 0 * * SUN", "2026-03-29T00:00"),
        ("0 0 * * 0-6/6", "2026-03-28T00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("0 0 29 2 */7", "2032-02-29T00:00"),
        ("0 0 1-7 * 0", "2026-03-29T00:00"),
        ("0 0 */2 * 0", "2026-03-29T00:00"),
        ("0 0 $ 2 *", "2027-02-28T00:00"),
        ("0 0 $ * 6", "2026-03-28T00:00"),
        ("@weekly", "2026-03-29T00:00"),
        ("@monthly", "2026-04-01T00:00"),
        ("@yearly", "2027-01-01T00:00"),
        ("@annually", "2027-01-01T00:00"),
        ("@midnight", "2026-03-28T00:00"),
    ],
)
def test_odd_but_valid_spellings_fire_as_pg_cron_fires_them(schedule: str, first: str) -> None:
    cron = cronexpr.parse(schedule, MENDED)
    assert cronexpr.next_fires(cron, FRIDAY, 1) == (moment(first),)


def test_without_a_version_only_what_every_version_refuses_is_refused() -> None:
    assert cronexpr.parse("30 seconds").every == 30
    assert cronexpr.parse("0 12 $ * *").version is None
    assert cronexpr.parse("9,19,29 * * * *").every is None
    assert "5 fields" in refusal_of("* * * * * *")


@pytest.mark.parametrize("schedule", ["1 second", "30SECONDS", " 59  seconds \n"])
def test_seconds_count_from_the_given_moment(schedule: str) -> None:
    cron = cronexpr.parse(schedule, "1.5.1")
    every = timedelta(seconds=cron.every or 0)
    assert cronexpr.next_fires(cron, FRIDAY, 2) == (FRIDAY + every, FRIDAY + 2 * every)
    assert cronexpr.longest_gap(cron) == every


@pytest.mark.parametrize("schedule", ["5 * * * *", "1-59/4 * * * *", "09 2 * * *"])
def test_one_five_zero_takes_a_leading_number_for_seconds(schedule: str) -> None:
    assert "1.5.1" in refusal_of(schedule, "1.5.0")
    assert cronexpr.parse(schedule, "1.5.1").every is None
    assert "1.5.0" in cronexpr.warnings(cronexpr.parse(schedule, "1.5"))[0]


@pytest.mark.parametrize("schedule", ["0 2 * * *", "*/5 * * * *", "@daily"])
def test_one_five_zero_reads_other_schedules_rightly(schedule: str) -> None:
    assert cronexpr.warnings(cronexpr.parse(schedule, "1.5.0")) == ()


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("1.4-1", (1, 4)),
        ("1.4.2-2+b1", (1, 4, 2)),
        ("1.6", (1, 6)),
        ("1.6.5-1.pgdg120+1", (1, 6, 5)),
        ("1.10", (1, 10)),
    ],
)
def test_a_version_is_compared_by_its_numbers(version: str, numbers: tuple[int, ...]) -> None:
    assert cronexpr.parse_version(version) == numbers


@pytest.mark.parametrize("version", ["", "one", "v1.6", "1", "9999999.1"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(RuleError, match="not a version"):
        cronexpr.parse_version(version)


# Fire times, against the plainest reading of pg_cron's own loop: look at every minute.


def plain_fires(
    cron: cronexpr.Cron, after: datetime, zone: tzinfo, minutes: int
) -> tuple[datetime, ...]:
    assert cron.fields is not None
    fields = cron.fields
    fires = []
    now = after.replace(second=0, microsecond=0)
    for _ in range(minutes):
        now += MINUTE
        local, tomorrow = now.astimezone(zone), (now + DAY).astimezone(zone)
        by_day = local.day in fields.day.values or (fields.day.text == "$" and tomorrow.day == 1)
        by_weekday = (local.weekday() + 1) % 7 in fields.weekday.values
        starred = fields.day.text.startswith("*") or fields.weekday.text.startswith("*")
        if (
            local.minute in fields.minute.values
            and local.hour in fields.hour.values
            and local.month in fields.month.values
            and ((by_day and by_weekday) if starred else (by_day or by_weekday))
        ):
            fires.append(now)
    return tuple(fires)


def field_of(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    pair = st.tuples(number, number).map(sorted)
    step = st.integers(1, high)
    return st.one_of(
        st.just("*"),
        st.just("*"),
        number.map(str),
        pair.map(lambda ends: f"{ends[0]}-{ends[1]}"),
        step.map(lambda size: f"*/{size}"),
        st.tuples(pair, step).map(lambda part: f"{part[0][0]}-{part[0][1]}/{part[1]}"),
        st.lists(number, min_size=1, max_size=3).map(lambda many: ",".join(map(str, many))),
    )


SCHEDULES = st.tuples(
    field_of(0, 59),
    field_of(0, 23),
    st.one_of(field_of(1, 31), st.just("$")),
    st.one_of(st.just("*"), field_of(1, 12)),
    field_of(0, 7),
).map(" ".join)
ZONES = st.sampled_from(
    [
        *("GMT", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"),
        *("America/Santiago", "America/Havana", "Pacific/Apia", "Africa/Casablanca"),
    ]
)
STARTS = st.datetimes(datetime(1990, 1, 1), datetime(2050, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
# Moments around which the clocks of those zones do something.
TURNS = st.sampled_from(
    [
        *("2026-03-28T20:00", "2026-10-24T20:00", "2026-11-01T03:00", "2026-04-04T12:00"),
        *("2011-12-29T06:00", "2026-09-05T22:00", "2026-11-01T00:00", "2026-02-14T20:00"),
    ]
).map(moment)


@settings(max_examples=120, deadline=None)
@given(SCHEDULES, st.one_of(TURNS, STARTS), ZONES)
@example("*/20 0-3 * * *", moment("2026-10-24T20:00"), "Europe/Berlin")
@example("30 0,23 $ * *", moment("2027-10-30T20:00"), "Europe/Berlin")
@example("30 23 $ * *", moment("2024-03-29T20:00"), "Europe/Berlin")
@example("* * $ * *", moment("2026-11-01T03:00"), "America/New_York")
@example("*/10 * * * *", moment("2026-11-01T00:00"), "America/Havana")
# One minute past midnight the clocks went back into the day before.
@example("* * * * *", moment("2001-10-27T20:00"), "America/St_Johns")
def test_fire_times_are_those_of_a_look_at_every_minute(
    schedule: str, after: datetime, name: str
) -> None:
    try:
        cron = cronexpr.parse(schedule, MENDED)
    except RuleError:
        assume(False)  # noqa: FBT003 - a schedule that never fires has no fire times
        raise
    expected = plain_fires(cron, after, cronexpr.load_zone(name), 3 * 24 * 60)
    found = cronexpr.next_fires(cron, after, len(expected) + 1, name)
    assert found[:-1] == expected
    assert found[-1] > after + 3 * DAY - MINUTE


@settings(deadline=None)
@given(SCHEDULES, STARTS)
def test_the_longest_gap_is_never_exceeded(schedule: str, after: datetime) -> None:
    try:
        cron = cronexpr.parse(schedule, MENDED)
    except RuleError:
        assume(False)  # noqa: FBT003 - a schedule that never fires has no gap
        raise
    fires = [fire for fire in cronexpr.next_fires(cron, after, 40) if fire.year <= 2056]
    gaps = [later - earlier for earlier, later in pairwise(fires)]
    assume(gaps)
    assert max(gaps) <= cronexpr.longest_gap(cron)


@pytest.mark.parametrize(
    ("schedule", "gap"),
    [
        ("*/5 * * * *", timedelta(minutes=5)),
        ("*/7 * * * *", timedelta(minutes=7)),
        ("0 2 * * *", timedelta(days=1)),
        ("0 8-18 * * mon-fri", timedelta(days=2, hours=14)),
        ("0 0 29 2 *", timedelta(days=4 * 365 + 1)),
        ("@yearly", timedelta(days=366)),
        ("@monthly", timedelta(days=31)),
    ],
)
def test_the_longest_gap_is_exact(schedule: str, gap: timedelta) -> None:
    assert cronexpr.longest_gap(cronexpr.parse(schedule)) == gap


def test_a_rare_fire_time_is_found_at_once() -> None:
    cron = cronexpr.parse("0 0 29 2 */7", MENDED)
    started = process_time()
    fires = cronexpr.next_fires(cron, FRIDAY, 3, "Europe/Berlin")
    assert process_time() - started < 0.5
    assert [fire.year for fire in fires] == [2032, 2060, 2088]


def test_a_local_time_that_the_clocks_skip_does_not_fire() -> None:
    cron = cronexpr.parse("30 2 * * *", MENDED)
    fires = cronexpr.next_fires(cron, moment("2026-03-28T12:00"), 2, "Europe/Berlin")
    assert fires == (moment("2026-03-30T00:30"), moment("2026-03-31T00:30"))


def test_a_local_time_that_the_clocks_show_twice_fires_twice() -> None:
    cron = cronexpr.parse("30 2 * * *", MENDED)
    fires = cronexpr.next_fires(cron, moment("2026-10-24T12:00"), 3, "Europe/Berlin")
    assert fires == tuple(map(moment, ["2026-10-25T00:30", "2026-10-25T01:30", "2026-10-26T01:30"]))


def test_a_pg_cron_without_time_zones_goes_by_gmt_and_says_so() -> None:
    cron = cronexpr.parse("0 2 * * *", "1.4-1")
    fires = cronexpr.next_fires(cron, FRIDAY, 1, "Asia/Tokyo")
    assert fires == (moment("2026-03-28T02:00"),)
    assert "ignores cron.timezone" in " ".join(cronexpr.warnings(cron, timezone="Asia/Tokyo"))
    assert cronexpr.warnings(cron, timezone="GMT") == ()


def test_a_moment_without_a_zone_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="zone"):
        cronexpr.next_fires(cronexpr.parse("@daily"), FRIDAY.replace(tzinfo=None), 1)


@pytest.mark.parametrize("zone", ["Europe/Berln", "", "../etc/passwd", "/etc/passwd", "Europe"])
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(RuleError, match="no such time zone"):
        cronexpr.load_zone(zone)


def said(schedule: str, version: str = MENDED, timezone: str = "GMT") -> str:
    cron = cronexpr.parse(schedule, version)
    return " | ".join(cronexpr.warnings(cron, timezone=timezone, after=FRIDAY))


@pytest.mark.parametrize(
    "schedule",
    [
        *("*/5 * * * *", "0 2 * * *", "@weekly", "1-59/4 * * * *", "0 8-18/3 * * *"),
        *("0 */6 * * *", "0 0 1 */3 *", "0 0 * * 1-5"),
    ],
)
def test_a_plain_schedule_has_no_warning(schedule: str) -> None:
    assert said(schedule) == ""


@pytest.mark.parametrize("schedule", ["*/40 * * * *", "0 */5 * * *", "0 0 */2 * *", "0 0 * */5 *"])
def test_a_step_that_does_not_fit_is_uneven(schedule: str) -> None:
    assert "uneven" in said(schedule)


def test_a_starred_day_field_asks_for_both() -> None:
    assert "both" in said("0 0 */31 * 1")
    assert "either" not in said("0 0 */31 * 1")


@pytest.mark.parametrize(
    ("version", "warned"),
    [("1.5.2", False), ("1.6.0", True), ("1.6.2", True), ("1.6.3", False), ("1.6", True)],
)
def test_the_day_bug_is_named_where_it_may_be(version: str, warned: bool) -> None:
    assert ("a day early" in said("0 2 1 * *", version)) is warned
    assert "a day early" not in said("0 2 * * *", version)


def test_clock_changes_are_named_with_their_dates() -> None:
    text = said("30 2 * * *", timezone="Europe/Berlin")
    assert "skip 02:30 of 2026-03-29" in text
    assert "02:30 of 2026-10-25 twice" in text


def test_clock_changes_without_a_date_to_start_from_have_none() -> None:
    cron = cronexpr.parse("30 2 * * *", MENDED)
    text = " | ".join(cronexpr.warnings(cron, timezone="Europe/Berlin"))
    assert "02:30 once a year" in text
    assert "20" not in text.replace("02:30", "")


@pytest.mark.parametrize("schedule", ["*/5 * * * *", "30 4 * * *", "30 2 1 1 *"])
def test_clock_changes_that_do_not_matter_are_not_named(schedule: str) -> None:
    assert said(schedule, timezone="Europe/Berlin") == ""


def test_a_zone_whose_clocks_never_change_has_no_warning() -> None:
    assert said("30 2 * * *", timezone="Asia/Kathmandu") == ""
