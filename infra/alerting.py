"""Which route a failure takes, what is sent there, and what an answer means. Pure values.

Formats: PagerDuty's Events API v2, and Slack's incoming webhooks, which Mattermost and others read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from uuid import UUID

from infra.config.alert_models import Alerts, Choice, Kind

State = Literal["delivered", "waiting", "dead"]

FIRST_WAIT = timedelta(seconds=5)
LONGEST_WAIT = timedelta(minutes=10)
LONGEST_ASKED = timedelta(hours=1)
GIVE_UP = timedelta(hours=24)
# Refusals that a second try may mend (RFC 9110): request timeout, too early, too many requests.
_PASSING = {408, 425, 429}
_SUMMARY_LENGTH = 1000
# So many actions are named, the largest: PagerDuty takes 512 KB, and a message that is refused
# tells nobody. A name is cut where no reader goes on.
_NAMED = 20
_NAME_LENGTH = 100


@dataclass(frozen=True, slots=True)
class Event:
    """A failure nobody has looked at yet."""

    id: int
    action: str | None
    code: str


@dataclass(frozen=True, slots=True)
class Message:
    """One alert: a burst of failures with one code. ``jobs`` holds the first 20 ids.

    ``key`` is the same at each attempt, so that a receiver tells a second copy. The times are the
    database's: ``claimed_at`` is when this attempt began.
    """

    key: UUID
    route: Choice
    code: str
    attempt: int
    made_at: datetime
    claimed_at: datetime
    failures: int
    actions: Mapping[str, int]
    jobs: Sequence[str]
    first_at: datetime | None
    last_at: datetime | None
    sample: str | None

    @property
    def summary(self) -> str:
        """The one line a phone shows."""
        count = f"{self.failures} job{'s' if self.failures != 1 else ''} failed"
        named = [f"{name or 'no action'} {jobs}" for name, jobs in self.largest(5).items()]
        more = f" and {len(self.actions) - 5} actions more" if len(self.actions) > 5 else ""
        return f"{count}: {self.code}" + (f" ({', '.join(named)}{more})" if named else "")

    def largest(self, count: int) -> dict[str, int]:
        """So many actions, the ones with the most failures, by name."""
        ordered = sorted(self.actions.items(), key=lambda item: (-item[1], item[0]))
        named: Counter[str] = Counter()
        for name, jobs in ordered[:count]:
            named[name[:_NAME_LENGTH]] += jobs
        return dict(named)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of an attempt. ``again`` is set where the alert waits."""

    state: State
    reason: str | None = None
    again: timedelta | None = None


def choose(alerts: Alerts, event: Event) -> Choice:
    """The route of one failure: its action's own rule for the code, the code's, the default."""
    own = alerts.actions.get(event.action or "", {})
    return own.get(event.code) or alerts.codes.get(event.code) or alerts.default


def group(alerts: Alerts, events: Iterable[Event]) -> dict[tuple[Choice, str], list[int]]:
    """The ids of the events by route and code."""
    groups: dict[tuple[Choice, str], list[int]] = {}
    for event in events:
        groups.setdefault((choose(alerts, event), event.code), []).append(event.id)
    return groups


def trial(route: Choice) -> Message:
    """What `jobwarden alerts test` sends: it reads as what it is."""
    now = datetime.now(tz=UTC)
    return Message(
        UUID(int=0),
        route,
        "test",
        1,
        now,
        now,
        0,
        {},
        (),
        now,
        now,
        "A test of this route by hand.",
    )


def payload(kind: Kind, message: Message, *, source: str, secret: str | None) -> dict[str, Any]:
    """The JSON document for one kind of route. ``secret`` is PagerDuty's routing key."""
    if kind == "pagerduty":
        return _pagerduty(message, source, secret)
    return _slack(message, source) if kind == "slack" else _document(message, source)


def _document(message: Message, source: str) -> dict[str, Any]:
    return {
        "key": str(message.key),
        "source": source,
        "route": message.route,
        "code": message.code,
        "summary": message.summary,
        "count": message.failures,
        "actions": message.largest(_NAMED),
        "more_actions": max(len(message.actions) - _NAMED, 0),
        "jobs": list(message.jobs),
        "first_at": _time(message.first_at),
        "last_at": _time(message.last_at),
        "message": message.sample,
    }


def _pagerduty(message: Message, source: str, secret: str | None) -> dict[str, Any]:
    when = {"timestamp": _time(message.last_at)} if message.last_at else {}
    return {
        "routing_key": secret,
        "event_action": "trigger",
        "dedup_key": str(message.key),
        "client": "jobwarden",
        "payload": {
            "summary": message.summary[:_SUMMARY_LENGTH],
            "source": source,
            "severity": "critical" if message.route == "page" else "warning",
            **when,
            "class": message.code,
            "custom_details": _document(message, source),
        },
    }


def _slack(message: Message, source: str) -> dict[str, Any]:
    more = message.failures - len(message.jobs)
    lines = [
        f"*{_escaped(message.summary[:_SUMMARY_LENGTH])}*",
        _escaped(message.sample or ""),
        _escaped(", ".join(message.jobs)) + (f" and {more} more" if more > 0 else ""),
        _escaped(f"{source}, {_time(message.last_at)}, alert {message.key}"),
    ]
    return {"text": "\n".join(filter(None, lines))}


def _escaped(text: str) -> str:
    """Escape what Slack reads as a link or a mention, such as <!channel>."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _time(time: datetime | None) -> str | None:
    return time.astimezone(UTC).isoformat() if time else None


def answered(message: Message, status: int, retry_after: str | None) -> Verdict:
    """What an HTTP answer means: taken, try again, or refused for good."""
    if 200 <= status < 300:
        return Verdict("delivered")
    if status >= 500 or status in _PASSING:
        return again(message, f"HTTP {status}", asked=_asked(retry_after, message.claimed_at))
    return Verdict("dead", f"HTTP {status}: refused, and trying again would not help")


def again(message: Message, reason: str, asked: timedelta | None = None) -> Verdict:
    """Wait twice as long each time, or as long as was asked; after a day give up."""
    if message.claimed_at - message.made_at > GIVE_UP:
        return Verdict("dead", f"{reason}; gave up after {message.attempt} attempts in a day")
    doubled = FIRST_WAIT * 2 ** min(message.attempt - 1, 20)
    return Verdict("waiting", reason, max(min(doubled, LONGEST_WAIT), asked or timedelta()))


def _asked(retry_after: str | None, now: datetime) -> timedelta | None:
    """Read Retry-After: seconds or a date (RFC 9110, 10.2.3). What is malformed is passed over."""
    if not retry_after:
        return None
    try:
        if retry_after.strip().isdecimal():
            wait = timedelta(seconds=min(int(retry_after), LONGEST_ASKED.total_seconds()))
        else:
            date = parsedate_to_datetime(retry_after)
            wait = date.replace(tzinfo=date.tzinfo or UTC) - now
    except (ValueError, OverflowError):
        return None
    return min(max(wait, timedelta()), LONGEST_ASKED)
