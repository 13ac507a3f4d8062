"""Clients of the API: each posts its jobs and polls them until the answers say that it may stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx


@dataclass(slots=True)
class Ticket:
    """A job as its client knows it; ``last`` is the answer after which it stopped."""

    job: str
    last: dict[str, Any] = field(default_factory=dict)
    stopped: bool = False


class Client(threading.Thread):
    """Posts, polls, and ends by itself. It waits as long as Retry-After says."""

    def __init__(self, http: httpx.Client, wanted: Sequence[dict[str, Any]]) -> None:
        super().__init__(daemon=True)
        self.tickets: list[Ticket] = []
        self.answers: dict[int, int] = {}
        self.fault: Exception | None = None
        self._http = http
        self._wanted = wanted

    def run(self) -> None:
        """Do all of it."""
        try:
            for job in self._wanted:
                posted = self._asked("POST", "/api/jobs", json=job)
                self.tickets.append(Ticket(posted.json()["id"]))
            while waiting := [ticket for ticket in self.tickets if not ticket.stopped]:
                pauses = [self._poll(ticket) for ticket in waiting]
                time.sleep(max(pauses))
        except Exception as error:  # noqa: BLE001 - the test that waits for us raises it
            self.fault = error

    def _poll(self, ticket: Ticket) -> float:
        answer = self._asked("GET", f"/api/jobs/{ticket.job}")
        if "retry-after" in answer.headers:
            return float(answer.headers["retry-after"])
        ticket.last = answer.json()
        ticket.stopped = True
        return 0

    def _asked(self, method: str, path: str, **more: Any) -> httpx.Response:
        while True:
            answer = self._http.request(method, path, **more)
            self.answers[answer.status_code] = self.answers.get(answer.status_code, 0) + 1
            if answer.status_code != 503:
                answer.raise_for_status()
                return answer
            time.sleep(float(answer.headers["retry-after"]))
