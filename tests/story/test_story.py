"""The whole story: an API, three workers, a sender of alerts, clients, and everything that dies."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import pytest

from infra.db.looking import look
from infra.db.reporting import report
from infra.db.status import status
from infra.errors import InfraError
from infra.local.cluster import Cluster
from infra.local.servers import find_server
from infra.report.page import render
from tests.story.client import Client
from tests.story.mishaps import Mishaps
from tests.story.service import Service, wait_for
from tests.story.webhook import Webhook, webhook

JOBS, CLIENTS = 200, 8
WORKERS = ("worker-1", "worker-2", "worker-3")
ALERTS = {
    "routes": {
        "page": {"kind": "webhook", "urlFrom": "PAGE_URL"},
        "notify": {"kind": "webhook", "urlFrom": "NOTIFY_URL"},
    }
}
# Limits are short through the policy; nothing else is special to the test.
ENVIRONMENT = {"watchdog": {"schedule": "* * * * *", "timeout": "8s"}, "alerts": ALERTS}
RESCUES = """
SELECT j.id::text, j.error ->> 'code', j.completed_at, a.route, a.state, a.ended_at
FROM jobs AS j LEFT JOIN jobwarden.event AS e ON e.job_id = j.id::text
LEFT JOIN jobwarden.alert AS a ON a.id = e.alert
WHERE j.status = 'failed' AND j.error ->> 'code' = 'watchdog_timeout'
"""
CRON = "SELECT jobid, jobname, schedule, command, username, active FROM cron.job ORDER BY jobid"


class Story:
    """Plays it once; the tests look at what is left."""

    def __init__(self, stack: ExitStack, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.page: Webhook = stack.enter_context(webhook())
        self.notify: Webhook = stack.enter_context(webhook())
        self.service = stack.enter_context(Service(cluster.url("app"), folder, ENVIRONMENT))
        self.schedules = self.service.rows(CRON)
        self.mishaps = Mishaps(self.service)
        self.began = time.monotonic()
        self._start_units(folder)
        self.clients = [self._client(stack, number) for number in range(CLIENTS)]

    def play(self) -> None:
        """Everything that can die does, then all wait for the watchdog."""
        for client in self.clients:
            client.start()
        wait_for(lambda: self.service.rows("SELECT 1 FROM jobs OFFSET 30"), 30)
        for number in range(3):
            self._lose(WORKERS[number])
        self.mishaps.hang("worker-1")
        self._lose("worker-2")
        self.cluster.kill()
        time.sleep(2.5)  # long enough for every client to see it
        self.cluster.start()
        self._lose("worker-3")
        self.service.kill("alerts")
        self._lose("worker-2")
        self._start_alerts()
        hung = next(each.job for each in self.mishaps.log if each.what == "hangs")
        wait_for(lambda: self.service.status(hung) == "failed", 150)
        self.mishaps.wake("worker-1")
        for client in self.clients:
            client.join(150)
        wait_for(lambda: not self._undelivered(), 90)
        self.seconds = time.monotonic() - self.began

    def rescues(self) -> dict[str, tuple[Any, ...]]:
        """Code, end, route, state and delivery of each rescued job, by its id."""
        return {row[0]: row[1:] for row in self.service.rows(RESCUES)}

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
        answers = {
            code: sum(each.answers.get(code, 0) for each in self.clients) for code in ANSWERS
        }
        told = ", ".join(f"{count} x {code}" for code, count in answers.items())
        counts = dict(self.service.rows("SELECT status, count(*) FROM jobs GROUP BY status"))
        lines.append(f"jobs: {counts}; answers of the API: {told}")
        lines.append(f"pages sent: {len(self.page.got)}; played in {self.seconds:.0f} s")
        return "\n".join(lines)

    def _lose(self, worker: str) -> None:
        """Kill a worker, and start it again as systemd would."""
        self.mishaps.kill(worker)
        self._start_worker(worker)

    def _start_units(self, folder: Path) -> None:
        (folder / "Pulumi.story.yaml").write_text(
            json.dumps({"config": {f"jobwarden:{key}": each for key, each in ENVIRONMENT.items()}})
        )
        self.service.rows(
            "DO $$ BEGIN IF to_regrole('story_alerts') IS NULL THEN"
            " CREATE ROLE story_alerts LOGIN IN ROLE jobwarden_alerts; END IF; END $$"
        )
        self.service.start_api(JOBWARDEN_STACK="no-such-stack").close()
        self._start_alerts()
        for name in WORKERS:
            self._start_worker(name)

    def _start_alerts(self) -> None:
        url = self.service.url.replace("postgres@", "story_alerts@")
        argv = [sys.executable, "-m", "infra", "alerts", "run", "-s", "Pulumi.story.yaml"]
        hooks = {"PAGE_URL": self.page.url, "NOTIFY_URL": self.notify.url}
        self.service.start("alerts", [*argv, "--database-url", url], **hooks)

    def _start_worker(self, name: str) -> None:
        go = self.service.folder / "worker-go"
        if name == "worker-3" and go.exists():
            self.service.start(name, [str(go), name])
        else:
            self.service.start_worker(name)

    def _client(self, stack: ExitStack, number: int) -> Client:
        http = stack.enter_context(self.service.client())
        return Client(http, [_job(n) for n in range(number, JOBS, CLIENTS)])

    def _undelivered(self) -> list[tuple[Any, ...]]:
        return self.service.rows(
            "SELECT 1 FROM jobwarden.event AS e LEFT JOIN jobwarden.alert AS a ON a.id = e.alert"
            " WHERE coalesce(a.state, 'waiting') = 'waiting'"
        )


ANSWERS = (200, 202, 503)


def _job(number: int) -> dict[str, Any]:
    action = ("resume_rewrite", "pdf_build", "ai_chat")[number % 3]
    good = {"title": "Hello", "text": "World", "message": "hello", "seconds": 0.2}
    return {"action": action, "payload": {} if number % 10 == 9 else good}


@pytest.fixture(scope="module")
def cron_cluster(missing: Callable[[str], NoReturn]) -> Iterator[Cluster]:
    try:
        server = find_server(pg_cron=True)
    except InfraError as error:
        missing(str(error))
    settings = {"synchronous_commit": "on"}
    with Cluster.create(server, durable=False, settings=settings) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def story(
    cron_cluster: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("story")
    if shutil.which("go"):
        shutil.copy(request.getfixturevalue("program"), folder / "worker-go")
    with ExitStack() as stack:
        story = Story(stack, cron_cluster, folder)
        story.play()
        yield story


def test_every_job_is_in_one_final_state(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        sys.stdout.write(f"{story.table()}\n")
    counts = dict(story.service.rows("SELECT status, count(*) FROM jobs GROUP BY status"))

    assert counts.keys() == {"done", "failed"}
    # A post that met the death of Postgres may have been made twice, and is never lost.
    assert JOBS <= sum(counts.values()) <= JOBS + CLIENTS


def test_each_lost_job_was_rescued_and_no_other(story: Story) -> None:
    lost = [each.job for each in story.mishaps.log]
    killed_with_postgres = story.rescues().keys() - set(lost)

    assert len(lost) == len(set(lost)) == 7
    assert set(lost) <= story.rescues().keys()
    # A claim whose commit met the death of Postgres may leave a job to nobody; no more than that.
    assert len(killed_with_postgres) <= len(WORKERS)


def test_each_rescue_has_its_code_and_its_page(story: Story) -> None:
    told = [job for each in story.page.got for job in each["jobs"]]

    assert set(told) == story.rescues().keys()
    assert {row[0::3] for row in story.rescues().values()} == {("watchdog_timeout", "delivered")}
    assert {row[2] for row in story.rescues().values()} == {"page"}


def test_no_bad_job_paged_anyone(story: Story) -> None:
    bad = "SELECT count(*) FROM jobs WHERE error ->> 'code' = 'validation_failed'"

    assert story.service.value(bad) >= JOBS / 10 - 1
    assert {each["code"] for each in story.page.got} == {"watchdog_timeout"}
    assert story.notify.got == []


def test_every_client_stopped_by_itself_with_the_truth(story: Story) -> None:
    kept = {
        str(job): (state, error)
        for job, state, error in story.service.rows("SELECT id, status, error FROM jobs")
    }

    for client in story.clients:
        assert not client.is_alive()
        assert client.fault is None
        assert all(ticket.stopped for ticket in client.tickets)
        assert [(each.last["status"], each.last["error"]) for each in client.tickets] == [
            kept[each.job] for each in client.tickets
        ]
    assert sum(len(client.tickets) for client in story.clients) == JOBS


def test_the_worker_that_hung_was_told_that_it_came_too_late(story: Story) -> None:
    hung = next(each.job for each in story.mishaps.log if each.what == "hangs")
    wait_for(lambda: f"too late for {hung}" in story.service.log("worker-1"), 20)

    assert story.service.status(hung) == "failed"


def test_the_schedules_are_intact(story: Story) -> None:
    changes = [change.action for change in look(story.service.plan, story.service.url).changes]

    assert story.service.rows(CRON) == story.schedules
    assert len(story.schedules) == 2
    assert set(changes) == {"same"}


def test_each_failure_made_one_event(story: Story) -> None:
    made = "SELECT count(*), count(DISTINCT job_id) FROM jobwarden.event"
    failed = story.service.value("SELECT count(*) FROM jobs WHERE status = 'failed'")

    assert story.service.rows(made) == [(failed, failed)]


def test_the_page_shows_it(story: Story) -> None:
    url = story.service.url
    document = report(url, 24)
    page = render(document, status(story.service.plan, url).checks, "story")

    assert document["jobs"]["running"] == document["jobs"]["queued"] == 0
    assert document["jobs"]["failed"] == sum(each["jobs"] for each in document["failures"])
    rescued = sum(run["changed"] for run in document["runs"] if run["kind"] == "sweep")
    assert rescued == len(story.rescues())
    assert "watchdog_timeout" in page
    (story.service.folder / "story.html").write_text(page, encoding="utf-8")
