"""Routing, formats and verdicts of alerts: pure values."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from infra import alerting, config
from infra.alerting import Event, Message
from infra.config.alert_models import Alerts, Choice, Kind
from infra.errors import ConfigError

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
MESSAGE = Message(
    key=UUID(int=7),
    route="page",
    code="watchdog_timeout",
    attempt=1,
    made_at=NOW,
    claimed_at=NOW,
    failures=23,
    actions={"pdf_build": 20, "ai_chat": 3},
    jobs=("a", "b"),
    first_at=NOW,
    last_at=NOW,
    sample="worker timed out",
)
BOTH = {
    "page": {"kind": "pagerduty", "secretFrom": "KEY"},
    "notify": {"kind": "slack", "urlFrom": "URL"},
}


def alerts(**values: object) -> Alerts:
    return config.parse({"alerts": {"routes": BOTH, **values}}).alerts


@pytest.mark.parametrize(
    ("action", "code", "choice"),
    [
        ("import", "watchdog_timeout", "page"),
        ("import", "validation_failed", "ignore"),
        ("import", "anything_else", "notify"),
        (None, "watchdog_timeout", "page"),
        ("ai_chat", "watchdog_timeout", "notify"),
        ("ai_chat", "validation_failed", "ignore"),
    ],
)
def test_an_actions_own_rule_goes_before_the_codes_and_that_before_the_default(
    action: str | None, code: str, choice: Choice
) -> None:
    rules = alerts(actions={"ai_chat": {"watchdog_timeout": "notify"}})

    assert alerting.choose(rules, Event(1, action, code)) == choice


def test_events_are_grouped_by_route_and_code() -> None:
    events = [Event(1, "a", "x"), Event(2, "b", "x"), Event(3, "a", "watchdog_timeout")]

    assert alerting.group(alerts(), events) == {
        ("notify", "x"): [1, 2],
        ("page", "watchdog_timeout"): [3],
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"routes": {"page": BOTH["page"]}}, "sent to notify, and there is no such route"),
        ({"routes": {"page": {"kind": "slack"}}}, "a route of kind slack needs urlFrom"),
        ({"routes": {"page": {"kind": "pagerduty"}}}, "kind pagerduty needs secretFrom"),
        ({"routes": {"page": {"kind": "mail"}}}, "not one of the allowed values"),
        ({"codes": {"x": "pgae"}}, "did you mean page?"),
        (
            {"routes": {"page": {"kind": "slack", "urlFrom": "https://hooks.example.net/x"}}},
            "this cannot name a variable",
        ),
        ({"default": "page", "route": {}}, "did you mean routes?"),
    ],
)
def test_a_faulty_block_says_what_is_wrong(given: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.parse({"alerts": given})

    assert words in str(caught.value)


def test_a_pager_gets_the_key_as_its_dedup_key() -> None:
    sent = alerting.payload("pagerduty", MESSAGE, source="production", secret="routing")  # noqa: S106

    assert (sent["routing_key"], sent["event_action"]) == ("routing", "trigger")
    assert sent["dedup_key"] == str(MESSAGE.key)
    assert sent["payload"]["severity"] == "critical"
    assert sent["payload"]["summary"] == (
        "23 jobs failed: watchdog_timeout (pdf_build 20, ai_chat 3)"
    )
    assert sent["payload"]["custom_details"]["jobs"] == ["a", "b"]


def test_a_message_names_the_largest_actions_and_counts_the_others() -> None:
    many = {f"a{n:03}": n for n in range(1, 101)}
    sent = alerting.payload(
        "webhook", replace(MESSAGE, actions={**many, "": 500}), source="s", secret=None
    )

    assert list(sent["actions"].items())[:3] == [("", 500), ("a100", 100), ("a099", 99)]
    assert (len(sent["actions"]), sent["more_actions"]) == (20, 81)
    alike = replace(MESSAGE, actions={"x" * 200: 3, "x" * 201: 4})
    assert alerting.payload("webhook", alike, source="s", secret=None)["actions"] == {"x" * 100: 7}
    assert "(no action 500, a100 100, a099 99, " in sent["summary"]
    assert sent["summary"].endswith(", a097 97 and 96 actions more)")


def test_a_pager_gets_no_time_where_there_is_none() -> None:
    sent = alerting.payload("pagerduty", replace(MESSAGE, last_at=None), source="s", secret="k")  # noqa: S106

    assert "timestamp" not in sent["payload"]


def test_slack_gets_no_mention_that_a_job_wrote() -> None:
    message = replace(MESSAGE, sample="<!channel> & <https://x|y>", code="<b>")
    text = alerting.payload("slack", message, source="production", secret=None)["text"]

    assert "<" not in text
    assert "&lt;!channel&gt; &amp; &lt;https" in text
    assert "a, b and 21 more" in text


@pytest.mark.parametrize("kind", ["webhook", "slack", "pagerduty"])
def test_a_summary_fits_whatever_the_actions_are(kind: Kind) -> None:
    message = replace(MESSAGE, actions={f"action_{n}" * 9: 1 for n in range(500)})
    sent = alerting.payload(kind, message, source="s", secret="k")  # noqa: S106

    longest = sent["payload"]["summary"] if kind == "pagerduty" else sent.get("text", "")
    assert len(longest) < 1024 + 200


def test_each_wait_doubles_up_to_the_longest_and_ends_after_a_day() -> None:
    waits = [alerting.again(replace(MESSAGE, attempt=n), "x").again for n in (1, 2, 3, 8, 999)]
    seconds = [wait.total_seconds() if wait else None for wait in waits]
    late = replace(MESSAGE, claimed_at=NOW + timedelta(hours=24, seconds=1), attempt=200)

    assert seconds == [5, 10, 20, 600, 600]
    assert alerting.again(late, "x").state == "dead"


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        (None, 5),
        ("0", 5),
        ("30", 30),
        ("-30", 5),
        ("1e9", 5),
        ("9" * 99, 3600),
        ("Mon, 04 May 2026 03:03:01 GMT", 60),
        ("Mon, 04 May 2020 03:03:01 GMT", 5),
        ("Mon, 04 May 9999 03:03:01 GMT", 3600),
        ("Mon, 99 May 2026", 5),
    ],
)
def test_retry_after_is_heeded_within_bounds(retry_after: str | None, seconds: float) -> None:
    verdict = alerting.answered(MESSAGE, 429, retry_after)

    assert verdict.state == "waiting"
    assert verdict.again == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (200, "delivered"),
        (202, "delivered"),
        (302, "dead"),
        (400, "dead"),
        (408, "waiting"),
        (425, "waiting"),
        (500, "waiting"),
        (599, "waiting"),
    ],
)
def test_what_a_status_means(status: int, state: str) -> None:
    assert alerting.answered(MESSAGE, status, None).state == state
