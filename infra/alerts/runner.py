"""From event to message, for as long as the unit runs.

Everything that must outlast this process is in the database: it may be killed at any moment.
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential_jitter

from infra import alerting
from infra.alerting import Message, Verdict
from infra.alerts.send import SECONDS, Destination, send
from infra.config.alert_models import Alerts, Choice
from infra.db.outbox import BATCH, Outbox, opened
from infra.errors import InfraError

CLAIM = timedelta(seconds=4 * SECONDS)
POLL_SECONDS = 30.0
_TIDY_SECONDS = 3600.0

log = logging.getLogger("jobwarden.alerts")


class Stopped(BaseException):
    """SIGTERM or Ctrl-C came while nothing was being sent."""


class Runner:
    """Files new events and delivers what is due."""

    def __init__(
        self, alerts: Alerts, destinations: Mapping[Choice, Destination], source: str
    ) -> None:
        self._alerts = alerts
        self._destinations = destinations
        self._source = source
        self._busy = False
        self._stopping = False

    def run(self, url: str) -> None:
        """Work until told to stop. A database that is away is waited for."""
        with self._signals():
            try:
                for attempt in Retrying(
                    retry=retry_if_exception_type(InfraError),
                    wait=wait_exponential_jitter(initial=0.5, max=30),
                    before_sleep=_say,
                ):
                    with attempt, opened(url) as outbox:
                        self._work(outbox, attempt.retry_state)
            except Stopped:
                log.info("stopped")

    def once(self, url: str) -> None:
        """Deliver what is due now, and end. Raises InfraError."""
        with opened(url) as outbox:
            outbox.begin()
            self._round(outbox)

    def _work(self, outbox: Outbox, state: RetryCallState) -> None:
        tidied = -_TIDY_SECONDS
        while True:
            if time.monotonic() - tidied >= _TIDY_SECONDS:
                outbox.begin()
                tidied = time.monotonic()
                log.info("listening")
            self._round(outbox)
            state.attempt_number = 1  # it works: the next loss is waited for anew
            outbox.wait(POLL_SECONDS)

    def _round(self, outbox: Outbox) -> None:
        while outbox.file(partial(alerting.group, self._alerts)) == BATCH:
            pass
        while self._deliver_one(outbox):
            pass

    def _deliver_one(self, outbox: Outbox) -> bool:
        with self._whole():
            message = outbox.claim(CLAIM)
            if message is None:
                return False
            verdict = self._sent(message)
            settled = outbox.settle(message, verdict)
            _log(message, verdict, settled=settled)
            return True

    def _sent(self, message: Message) -> Verdict:
        destination = self._destinations.get(message.route)
        if destination is None:
            return Verdict("dead", f"the environment has no route {message.route} any more")
        return send(destination, message, self._source)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Let an attempt end, with its settlement, before a signal is heeded."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
        if self._stopping:
            raise Stopped

    @contextmanager
    def _signals(self) -> Iterator[None]:
        before = {each: signal.signal(each, self._stop) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, *_: object) -> None:
        self._stopping = True
        if not self._busy:
            raise Stopped


def _say(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    log.warning("the database is away: %s", getattr(error, "message", error))


def _log(message: Message, verdict: Verdict, *, settled: bool) -> None:
    level = logging.INFO if verdict.state == "delivered" else logging.WARNING
    what = f"{verdict.state} after attempt {message.attempt}"
    why = f" ({verdict.reason})" if verdict.reason else ""
    note = "" if settled else "; another attempt has begun meanwhile"
    log.log(
        level, "%s to %s: %s%s%s: %s", message.key, message.route, what, why, note, message.summary
    )
