"""The story: clients, kills, a restart, and the wait for the watchdog. Written down at its end."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from infra.db.reporting import report
from infra.db.status import status
from infra.report.page import render
from tests.story.client import Client
from tests.story.mishaps import Mishaps
from tests.story.place import WORKERS, Place
from tests.story.record import kept, text_of
from tests.story.service import wait_for

JOBS, CLIENTS = 200, 8
CRON = "SELECT jobid, jobname, schedule, command, username, active FROM cron.job ORDER BY jobid"
RESCUES = """
SELECT j.id::text, j.error ->> 'code', j.completed_at, a.route, a.state, a.ended_at
FROM jobs AS j LEFT JOIN jobwarden.event AS e ON e.job_id = j.id::text
LEFT JOIN jobwarden.alert AS a ON a.id = e.alert
WHERE j.status = 'failed' AND j.error ->> 'code' = 'watchdog_timeout'
"""
UNDELIVERED = """
SELECT 1 FROM jobwarden.event AS e LEFT JOIN jobwarden.alert AS a ON a.id = e.alert
WHERE coalesce(a.state, 'waiting') = 'waiting'
"""
# Long enough to be at work still when the machine has begun to go down.
LONG = {"action": "ai_chat", "payload": {"message": "think about it", "seconds": 4}}


class Story:
    """Plays it once; the tests look at what is left."""

    def __init__(self, stack: ExitStack, place: Place) -> None:
        self.place = place
        self.schedules = place.rows(CRON)
        self.mishaps = Mishaps(place)
        self.woken: list[dict[str, Any]] = []
        self.clients = [self._client(stack, range(n, JOBS - 1, CLIENTS)) for n in range(CLIENTS)]
        self.patient = Client(stack.enter_context(place.client()), [LONG])
        self.began = datetime.now(UTC)

    def play(self) -> None:
        """Everything that can die does, then all wait for the watchdog."""
        for client in self.clients:
            client.start()
        wait_for(lambda: self.place.rows("SELECT 1 FROM jobs OFFSET 20"), 60)
        for worker in WORKERS:
            self.mishaps.kill(worker)
        self._restart()
        self.mishaps.hang("worker-1")
        self.mishaps.kill("worker-2")
        with self.mishaps.outage("postgres"):
            self.place.kill_postgres()
            time.sleep(2.5)  # long enough for every client to see it
            self.place.start_postgres()
        self.mishaps.kill("worker-3")
        with self.mishaps.outage("alerts"):
            self.place.kill("alerts")
        self.mishaps.kill("worker-2")
        self._wake("worker-1")
        for client in self.everybody():
            client.join(240)
        wait_for(lambda: not self.place.rows(UNDELIVERED), 120)
        self.ended = datetime.now(UTC)
        self._write_down()

    def everybody(self) -> list[Client]:
        """All clients."""
        return [*self.clients, self.patient]

    def hung(self) -> str:
        """The job of the worker that hung."""
        return next(each.job for each in self.mishaps.log if each.what == "hangs")

    def rescues(self) -> dict[str, tuple[Any, ...]]:
        """Code, end, route, state and delivery of each rescued job, by its id."""
        return {row[0]: row[1:] for row in self.place.rows(RESCUES)}

    def answers(self) -> dict[str, int]:
        """How many answers of each kind the clients got; "none": nobody answered."""
        found = Counter({"none": sum(each.unanswered for each in self.everybody())})
        for client in self.everybody():
            found.update({str(code): count for code, count in client.answers.items()})
        return dict(sorted(found.items()))

    def table(self) -> str:
        """Kills, rescues, times and alerts."""
        rescues = self.rescues()
        lines = ["", "what     worker    action          rescued after  code              alert"]
        for each in self.mishaps.log:
            code, ended, route, state, told = rescues[each.job]
            after, later = (ended - each.at).total_seconds(), (told - ended).total_seconds()
            lines.append(
                f"{each.what:8} {each.worker:9} {each.action:15} {after:10.1f} s   {code:17}"
                f" {route}, {state} {later:.1f} s later"
            )
        away = ", ".join(
            f"{each.what} {(each.ended - each.began).total_seconds():.1f} s"
            for each in self.mishaps.outages
        )
        told = ", ".join(f"{count} x {code}" for code, count in self.answers().items())
        counts = dict(self.place.rows("SELECT status, count(*) FROM jobs GROUP BY status"))
        seconds = (self.ended - self.began).total_seconds()
        return "\n".join(
            [
                *lines,
                f"away: {away}; jobs put back by SIGTERM: {len(self.mishaps.spared)}",
                f"jobs: {counts}; answers of the API: {told}",
                f"pages sent: {len(self.place.page.got)}; {self.place.name}, {seconds:.0f} s",
            ]
        )

    def _restart(self) -> None:
        """Restart the machine while a job runs that is far from its end."""
        self.patient.start()
        wait_for(lambda: self.patient.tickets, 60)
        held = self.patient.tickets[0].job
        self.mishaps.spared.append(held)
        wait_for(lambda: self.place.status(held) == "running", 60)
        with self.mishaps.outage("machine"):
            self.place.restart()

    def _wake(self, worker: str) -> None:
        wait_for(lambda: self.place.status(self.hung()) == "failed", 150)
        self.place.wake(worker)
        self.woken.append({"worker": worker, "at": datetime.now(UTC)})

    def _client(self, stack: ExitStack, numbers: range) -> Client:
        http = stack.enter_context(self.place.client())
        return Client(http, [_job(number) for number in numbers])

    def _write_down(self) -> None:
        """``story.json`` and ``story.html``, also into the folder JOBWARDEN_STORY_KEEP names."""
        written = {
            **kept(self.place),
            "began": self.began,
            "ended": self.ended,
            "mishaps": [asdict(each) for each in self.mishaps.log],
            "wakes": self.woken,
            "outages": [asdict(each) for each in self.mishaps.outages],
            "put_back": self.mishaps.spared,
            "answers": self.answers(),
        }
        record, page = self.place.folder / "story.json", self.place.folder / "story.html"
        record.write_text(json.dumps(written, indent=1, default=text_of), encoding="utf-8")
        url = self.place.url
        text = render(report(url, 24), status(self.place.plan, url).checks, "story")
        page.write_text(text, encoding="utf-8")
        if keep := os.environ.get("JOBWARDEN_STORY_KEEP"):
            kept_in = Path(keep) / self.place.name
            kept_in.mkdir(parents=True, exist_ok=True)
            for path in (record, page):
                shutil.copy(path, kept_in)


def _job(number: int) -> dict[str, Any]:
    action = ("resume_rewrite", "pdf_build", "ai_chat")[number % 3]
    good = {"title": "Hello", "text": "World", "message": "hello", "seconds": 0.6}
    return {"action": action, "payload": {} if number % 10 == 9 else good}
