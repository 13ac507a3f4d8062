"""PagerDuty and Slack over real HTTP: they take what is sent, and their answers are heeded."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.story.receivers import PagerDuty, Slack
from tests.story.sender import Sender
from tests.story.service import Service, wait_for

KEY = "e93facc04764012d7bfb002500d5d1a6"
ROUTES = {
    "page": {"kind": "pagerduty", "urlFrom": "PAGE_URL", "secretFrom": "PAGE_TOKEN"},
    "notify": {"kind": "slack", "urlFrom": "NOTIFY_URL"},
}
GOOD: dict[str, Any] = {
    "routing_key": KEY,
    "event_action": "trigger",
    "dedup_key": "k",
    "payload": {"summary": "s", "source": "here", "severity": "critical"},
}
# 3000 jobs, each with an action and a long reason of its own.
MANY = """
INSERT INTO jobs (action, status)
SELECT 'import:' || n || repeat('x', 300), 'running' FROM generate_series(1, 3000) AS n;
UPDATE jobs SET status = 'failed',
  error = jsonb_build_object('code', '{}', 'message', repeat('why <!channel> ', 2000))
"""


class Pair:
    """PagerDuty, Slack, and the unit that sends to both."""

    def __init__(self, service: Service, pager: PagerDuty, slack: Slack) -> None:
        self.pager = pager
        self.slack = slack
        self.sender = Sender(service, pager, slack, ROUTES, KEY)

    def deliver(self, code: str = "watchdog_timeout") -> None:
        """Fail one job and send what is to be sent of it."""
        self.sender.fail(code)
        self.again("3 seconds")

    def again(self, length: str) -> None:
        """File what is new, and send what is due so long from now."""
        self.sender.once()
        self.sender.forward(length)
        self.sender.once()

    def ends(self) -> list[tuple[Any, ...]]:
        """State and reason of each alert."""
        return [each[2:] for each in self.sender.alerts()]


@pytest.fixture
def pair(serve: Callable[..., Service]) -> Iterator[Pair]:
    with closing(PagerDuty(KEY)) as pager, closing(Slack()) as slack:
        yield Pair(serve(alerts={"routes": ROUTES}), pager, slack)


def test_the_unit_opens_an_incident_and_writes_to_the_channel(pair: Pair) -> None:
    pair.sender.started()
    pair.sender.fail("watchdog_timeout")
    pair.sender.fail("out_of_paper")
    wait_for(lambda: [each[0] for each in pair.ends()] == ["delivered"] * 2, 20)
    ((key, event),) = pair.pager.incidents.items()
    made = pair.sender.service.value("SELECT key::text FROM jobwarden.alert WHERE route = 'page'")
    at = pair.sender.service.value("SELECT at FROM jobwarden.event WHERE code <> 'out_of_paper'")

    assert key == made
    assert event["payload"]["severity"] == "critical"
    assert event["payload"]["summary"] == "1 job failed: watchdog_timeout (pdf_build 1)"
    assert event["payload"]["source"] == "story"
    assert datetime.fromisoformat(event["payload"]["timestamp"]) == at
    assert event["payload"]["custom_details"]["message"] == "why"
    assert [sorted(each) for each in pair.slack.got] == [["text"]]
    assert "*1 job failed: out_of_paper (pdf_build 1)*" in pair.slack.got[0]["text"]


@pytest.mark.parametrize("route", ["page", "notify"])
def test_a_route_says_how_loud_a_pager_is(serve: Callable[..., Service], route: str) -> None:
    pagers = {name: {**ROUTES["page"]} for name in ("page", "notify")}
    with closing(PagerDuty(KEY)) as pager, closing(Slack()) as slack:
        service = serve(alerts={"routes": pagers})
        pair = Pair(service, pager, slack)
        pair.deliver("watchdog_timeout" if route == "page" else "out_of_paper")
        ((_, event),) = pager.incidents.items()

    loud = {"page": "critical", "notify": "warning"}
    assert event["payload"]["severity"] == loud[route]


def test_a_pager_that_asks_for_time_gets_the_same_event_then(pair: Pair) -> None:
    pair.pager.answers = [(429, {"Retry-After": "90"})]
    pair.deliver()
    assert pair.ends() == [("waiting", "HTTP 429")]
    pair.again("80 seconds")
    assert len(pair.pager.got) == 1
    pair.again("95 seconds")

    first, second = pair.pager.got
    assert first == second
    assert list(pair.pager.incidents) == [first["dedup_key"]]
    assert pair.ends() == [("delivered", None)]


def test_a_kill_before_the_answer_opens_no_second_incident(pair: Pair) -> None:
    pair.pager.delay = 2
    pair.sender.started()
    pair.sender.fail()
    wait_for(lambda: pair.pager.incidents, 20)
    pair.sender.service.kill("alerts")
    pair.pager.delay = 0
    pair.again("61 seconds")

    assert len(pair.pager.got) == 2
    assert len(pair.pager.incidents) == 1
    assert pair.ends() == [("delivered", None)]


def test_an_event_that_is_refused_is_a_dead_letter_at_once(pair: Pair) -> None:
    pair.pager.key = "another"
    pair.deliver()
    pair.again("1 hour")

    assert len(pair.pager.got) == 1
    assert pair.ends() == [("dead", "HTTP 400: refused, and trying again would not help")]


@pytest.mark.parametrize(
    ("status", "state"), [(400, "dead"), (404, "dead"), (410, "dead"), (429, "waiting")]
)
def test_a_channel_that_refuses_is_a_dead_letter_and_one_that_is_busy_is_not(
    pair: Pair, status: int, state: str
) -> None:
    pair.slack.answers = [(status, {"Retry-After": "30"})]
    pair.deliver("out_of_paper")

    assert [each[0] for each in pair.ends()] == [state]


@pytest.mark.parametrize("code", ["watchdog_timeout", "out_of_paper"])
def test_an_outage_of_everything_is_still_a_message_they_take(pair: Pair, code: str) -> None:
    pair.sender.service.rows(MANY.replace("{}", code))
    pair.again("3 seconds")

    assert pair.ends() == [("delivered", None)]
    (sent,) = pair.pager.got or pair.slack.got
    assert "3000 jobs failed" in str(sent)
    assert "and 2995 actions more" in str(sent)


def test_the_routing_key_is_written_nowhere(pair: Pair) -> None:
    pair.pager.answers = [(429, {}), (500, {})]
    pair.sender.started()
    pair.sender.fail()
    wait_for(lambda: "HTTP 429" in pair.sender.log(), 20)
    shown = Path(f"/proc/{pair.sender.service.members['alerts'].pid}/cmdline").read_text()
    pair.sender.service.stop("alerts")
    pair.pager.key = "another"
    pair.again("1 hour")
    rows = str(pair.sender.service.rows("SELECT * FROM jobwarden.alert"))
    stack = (pair.sender.service.folder / "Pulumi.story.yaml").read_text(encoding="utf-8")

    assert pair.pager.got[0]["routing_key"] == KEY
    assert "alerts" in shown
    for place in (pair.sender.log(), shown, rows, stack):
        assert KEY not in place
        assert "s3cret" not in place


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("routing_key",), "short"),
        (("routing_key",), "f" * 32),
        (("routing_key",), None),
        (("event_action",), "page"),
        (("dedup_key",), "k" * 256),
        (("payload", "summary"), "s" * 1025),
        (("payload", "summary"), ""),
        (("payload", "source"), None),
        (("payload", "severity"), "bad"),
        (("payload", "timestamp"), "yesterday"),
        (("payload", "custom_details"), {"x": "x" * 600_000}),
    ],
)
def test_the_pager_here_refuses_what_the_real_one_does(path: tuple[str, ...], value: Any) -> None:
    event = copy.deepcopy(GOOD)
    inner = event["payload"] if path[0] == "payload" else event
    inner[path[-1]] = value
    with closing(PagerDuty(KEY)) as pager:
        good, bad = httpx.post(pager.url, json=GOOD), httpx.post(pager.url, json=event)

    assert (good.status_code, good.json()["status"]) == (202, "success")
    assert (bad.status_code, bad.json()["status"]) == (400, "invalid event")
    assert len(bad.json()["errors"]) == 1


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"text": "hello"}, 200, "ok"),
        ({"text": ""}, 400, "no_text"),
        ({}, 400, "no_text"),
        ({"text": ["hello"]}, 400, "invalid_payload"),
        ("hello", 400, "invalid_payload"),
    ],
)
def test_the_channel_here_refuses_what_the_real_one_does(
    body: object, status: int, text: str
) -> None:
    with closing(Slack()) as slack:
        answer = httpx.post(slack.url, json=body)

    assert (answer.status_code, answer.text) == (status, text)
