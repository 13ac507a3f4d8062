"""Clients of the API: each posts its jobs and polls them until the answers say that it may stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

PACE_SECONDS = 2.5
PATIENCE_SECONDS = 180


@dataclass(slots=True)
class Ticket:
    """A job as its client knows it; ``last`` is the answer after which it stopped."""

    job: str
    last: dict[str, Any] = field(default_factory=dict)
    stopped: bool = False


class Client(threading.Thread):
    """Posts a job now and then, polls all it has, and ends by itself when each is final.

    It waits as long as Retry-After says, and asks again when nobody answers. ``unsure`` counts
    the posts whose answer was lost, or was 503: such a job may have been queued, and is then
    queued twice.
    """

    def __init__(self, http: httpx.Client, wanted: Sequence[dict[str, Any]]) -> None:
        super().__init__(daemon=True)
        self.tickets: list[Ticket] = []
        self.answers: dict[int, int] = {}
        self.unanswered = 0
        self.unsure = 0
        self.fault: Exception | None = None
        self._http = http
        self._wanted = list(wanted)

    def run(self) -> None:
        """Do all of it."""
        try:
            while self._wanted or self._waiting():
                self._round()
        except Exception as error:  # noqa: BLE001 - the test that waits for us raises it
            self.fault = error

    def _round(self) -> None:
        pauses = [0.0]
        if self._wanted:
            posted = self._asked("POST", "/api/jobs", json=self._wanted.pop(0))
            self.tickets.append(Ticket(posted.json()["id"]))
            pauses.append(PACE_SECONDS)
        pauses += [self._poll(ticket) for ticket in self._waiting()]
        time.sleep(max(pauses))

    def _waiting(self) -> list[Ticket]:
        return [ticket for ticket in self.tickets if not ticket.stopped]

    def _poll(self, ticket: Ticket) -> float:
        answer = self._asked("GET", f"/api/jobs/{ticket.job}")
        if "retry-after" in answer.headers:
            return float(answer.headers["retry-after"])
        ticket.last = answer.json()
        ticket.stopped = True
        return 0

    def _asked(self, method: str, path: str, **more: Any) -> httpx.Response:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = self._http.request(method, path, **more)
            except httpx.TransportError as error:
                if time.monotonic() > deadline:
                    raise
                self.unanswered += 1
                never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                self.unsure += method == "POST" and not never_sent
                time.sleep(1)
                continue
            self.answers[answer.status_code] = self.answers.get(answer.status_code, 0) + 1
            if answer.status_code != 503:
                answer.raise_for_status()
                return answer
            self.unsure += method == "POST"
            time.sleep(float(answer.headers["retry-after"]))
