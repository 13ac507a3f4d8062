from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import durations
from infra.errors import RuleError

WHOLE_SECONDS = st.integers(0, 36500 * 86400).map(lambda number: timedelta(seconds=number))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", timedelta(seconds=90)),
        ("10m", timedelta(minutes=10)),
        ("24h", timedelta(hours=24)),
        ("7d", timedelta(days=7)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("1d2h3m4s", timedelta(days=1, hours=2, minutes=3, seconds=4)),
        ("0s", timedelta(0)),
        ("36500d", timedelta(days=36500)),
    ],
)
def test_a_duration_is_read(text: str, expected: timedelta) -> None:
    assert durations.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", "empty"),
        ("soon", "not a duration"),
        ("-1h", "negative"),
        ("10", "no unit"),
        (10, "no unit"),
        (True, "not a duration"),
        (None, "not a duration"),
        ("10 m", "not a duration"),
        ("1.5h", "not a duration"),
        ("30m1h", "not a duration"),
        ("10M", "not a duration"),
        ("\N{ARABIC-INDIC DIGIT THREE}m", "not a duration"),
        ("36501d", "too long"),
        ("99999999999d", "not a duration"),
        ("9999999999d", "too long"),
    ],
)
def test_what_is_no_duration_is_refused_with_the_reason(text: object, names: str) -> None:
    with pytest.raises(RuleError, match=names) as refusal:
        durations.parse(text)
    assert refusal.value.got == text
    assert refusal.value.hint


@given(WHOLE_SECONDS)
def test_what_is_rendered_is_read_back(duration: timedelta) -> None:
    assert durations.parse(durations.render(duration)) == duration


@pytest.mark.parametrize(
    ("text", "rendered", "human"),
    [
        ("10m", "10m", "10 min"),
        ("600s", "10m", "10 min"),
        ("90s", "1m30s", "90 s"),
        ("90m", "1h30m", "90 min"),
        ("60m", "1h", "1 h"),
        ("24h", "1d", "1 d"),
        ("48h", "2d", "2 d"),
        ("25h", "1d1h", "25 h"),
        ("0s", "0s", "0 s"),
    ],
)
def test_a_duration_has_one_spelling_for_machines_and_one_for_people(
    text: str, rendered: str, human: str
) -> None:
    duration = durations.parse(text)
    assert durations.render(duration) == rendered
    assert durations.human(duration) == human


def test_seconds_are_whole() -> None:
    assert durations.seconds(timedelta(days=1, seconds=2)) == 86402
    with pytest.raises(RuleError, match="whole seconds"):
        durations.seconds(timedelta(milliseconds=1500))
    with pytest.raises(RuleError, match="never negative"):
        durations.render(timedelta(seconds=-1))
