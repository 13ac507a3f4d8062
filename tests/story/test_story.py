"""The whole story: an API, three workers, a sender of alerts, clients, and everything that dies."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NoReturn

import httpx
import pytest

from infra.db.looking import look
from infra.db.reporting import report
from infra.errors import InfraError
from infra.local.cluster import Cluster
from infra.local.servers import find_server
from tests.story.onbox import OnBox
from tests.story.picture import draw
from tests.story.place import WORKERS, Local, Place
from tests.story.service import wait_for
from tests.story.story import CRON, JOBS, Story
from tools import boxes
from tools.boxes import Box

Missing = Callable[[str], NoReturn]


def local(stack: ExitStack, folder: Path, request: pytest.FixtureRequest) -> Callable[[], Place]:
    """The way to the story on a private cluster; what is missing for it ends the test."""
    missing: Missing = request.getfixturevalue("missing")
    try:
        server = find_server(pg_cron=True)
    except InfraError as error:
        missing(str(error))
    go: Path | None = request.getfixturevalue("program") if shutil.which("go") else None
    settings = {"synchronous_commit": "on"}

    def opened() -> Place:
        cluster = Cluster.create(server, durable=False, settings=settings)
        return Local(stack, stack.enter_context(cluster), folder, go)

    return opened


def box(stack: ExitStack, folder: Path, request: pytest.FixtureRequest) -> Callable[[], Place]:
    """The way to the story on a bare box."""
    missing: Missing = request.getfixturevalue("missing")
    if reasons := boxes.missing():
        missing(f"boxes cannot be booted here: {'; '.join(reasons)}")
    release = os.environ.get("JOBWARDEN_STORY_RELEASE") or "trixie"
    return lambda: OnBox(stack, stack.enter_context(Box.boot(release)), folder)


PLACES = {"local": local, "box": box}


@pytest.fixture(scope="module")
def plays(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Story]]:
    """All that is asked for, played at the same time: a story mostly waits."""
    asked = (item for item in request.session.items if item.path == request.path)
    chosen = {
        str(each.callspec.params["story"]) for each in asked if isinstance(each, pytest.Function)
    }
    opened: dict[str, Callable[[], Story]] = {}
    lacking: dict[str, BaseException] = {}
    with ExitStack() as stack:
        for name in chosen:
            own = stack.enter_context(ExitStack())
            try:
                place = PLACES[name](own, tmp_path_factory.mktemp(name), request)
                opened[name] = partial(play, own, place)
            except (pytest.skip.Exception, pytest.fail.Exception) as reason:
                lacking[name] = reason
        # Entered last: no place is taken away below a story that is being played.
        pool = stack.enter_context(ThreadPoolExecutor(len(PLACES)))
        running = {name: pool.submit(begin) for name, begin in opened.items()}

        def played(name: str) -> Story:
            if name in lacking:
                raise lacking[name]
            return running[name].result()

        yield played


def play(stack: ExitStack, opened: Callable[[], Place]) -> Story:
    """Play it once, from nothing."""
    story = Story(stack, opened())
    story.play()
    return story


@pytest.fixture(scope="module", params=list(PLACES))
def story(request: pytest.FixtureRequest, plays: Callable[[str], Story]) -> Story:
    """What is left of a story that was played."""
    return plays(request.param)


def test_every_job_is_in_one_final_state(
    story: Story, record_property: Callable[[str, object], None]
) -> None:
    record_property("told", story.table())
    counts = dict(story.place.rows("SELECT status, count(*) FROM jobs GROUP BY status"))

    assert counts.keys() == {"done", "failed"}
    # A post whose answer was lost may have been made twice, and is never lost.
    twice = sum(client.unsure for client in story.everybody())
    assert JOBS <= sum(counts.values()) <= JOBS + twice


def test_each_lost_job_was_rescued_and_no_other(story: Story) -> None:
    lost = story.mishaps.lost()
    killed_with_postgres = story.rescues().keys() - set(lost)

    assert len(lost) == len(set(lost)) == 7
    assert set(lost) <= story.rescues().keys()
    # A claim whose commit met the death of Postgres may leave a job to nobody; no more than that.
    assert len(killed_with_postgres) <= len(WORKERS)


def test_what_ran_when_the_machine_went_down_was_put_back_and_done(story: Story) -> None:
    (down,) = (each for each in story.mishaps.outages if each.what == "machine")
    ended = "SELECT status, started_at FROM jobs WHERE id::text = ANY (%s)"

    ((status, claimed_again),) = story.place.rows(ended, story.mishaps.spared)
    assert status == "done"
    assert claimed_again > down.began
    rescued_then = "SELECT error FROM jobs WHERE status = 'failed' AND started_at < %s"
    codes = [error["code"] for (error,) in story.place.rows(rescued_then, down.began)]
    assert codes.count("watchdog_timeout") == len(WORKERS)


def test_each_rescue_has_its_code_and_its_page(story: Story) -> None:
    told = [job for each in story.place.page.got for job in each["jobs"]]

    assert set(told) == story.rescues().keys()
    assert {row[0::3] for row in story.rescues().values()} == {("watchdog_timeout", "delivered")}
    assert {row[2] for row in story.rescues().values()} == {"page"}


def test_no_bad_job_paged_anyone(story: Story) -> None:
    bad = "SELECT count(*) FROM jobs WHERE error ->> 'code' = 'validation_failed'"

    assert story.place.value(bad) >= JOBS / 10 - 1
    assert {each["code"] for each in story.place.page.got} == {"watchdog_timeout"}
    assert story.place.notify.got == []


def test_every_client_stopped_by_itself_with_the_truth(story: Story) -> None:
    kept = {
        str(job): (state, error)
        for job, state, error in story.place.rows("SELECT id, status, error FROM jobs")
    }

    for client in story.everybody():
        assert not client.is_alive()
        assert client.fault is None
        assert all(ticket.stopped for ticket in client.tickets)
        assert [(each.last["status"], each.last["error"]) for each in client.tickets] == [
            kept[each.job] for each in client.tickets
        ]
    assert sum(len(client.tickets) for client in story.everybody()) == JOBS


def test_the_worker_that_hung_was_told_that_it_came_too_late(story: Story) -> None:
    wait_for(lambda: f"too late for {story.hung()}" in story.place.log("worker-1"), 20)

    assert story.place.status(story.hung()) == "failed"


def test_the_schedules_are_intact(story: Story) -> None:
    changes = [change.action for change in look(story.place.plan, story.place.url).changes]

    assert story.place.rows(CRON) == story.schedules
    assert len(story.schedules) == 2
    assert set(changes) == {"same"}


def test_each_failure_made_one_event(story: Story) -> None:
    made = "SELECT count(*), count(DISTINCT job_id) FROM jobwarden.event"
    failed = story.place.value("SELECT count(*) FROM jobs WHERE status = 'failed'")

    assert story.place.rows(made) == [(failed, failed)]


def test_the_page_shows_it(story: Story) -> None:
    document = report(story.place.url, 24)
    page = (story.place.folder / "story.html").read_text(encoding="utf-8")

    assert document["jobs"]["running"] == document["jobs"]["queued"] == 0
    assert document["jobs"]["failed"] == sum(each["jobs"] for each in document["failures"])
    rescued = sum(run["changed"] for run in document["runs"] if run["kind"] == "sweep")
    assert rescued == len(story.rescues())
    assert "watchdog_timeout" in page


def test_the_record_tells_the_same(story: Story) -> None:
    record = json.loads((story.place.folder / "story.json").read_text(encoding="utf-8"))
    rescued = {each["id"] for each in record["jobs"] if each["code"] == "watchdog_timeout"}
    paged = {each["id"] for each in record["alerts"] if each["route"] == "page"}

    assert {each["job"] for each in record["mishaps"]} <= rescued == story.rescues().keys()
    assert {each["job"] for each in record["events"] if each["alert"] in paged} == rescued
    assert sum(each["changed"] for each in record["sweeps"]) == len(rescued)
    assert [each["what"] for each in record["outages"]] == ["machine", "postgres", "alerts"]
    for each in (*record["jobs"], *record["outages"]):
        begun = datetime.fromisoformat(each.get("began") or each["started"])
        assert begun <= datetime.fromisoformat(each["ended"])


def test_the_picture_has_each_kill_and_each_rescue(story: Story) -> None:
    record = json.loads((story.place.folder / "story.json").read_text(encoding="utf-8"))
    picture = draw(record)
    legend = 1

    assert picture.count("M-5-5L5 5M-5 5L5-5") == legend + 6
    assert picture.count("M-3-6V6M3-6V6") == legend + 1
    assert picture.count('<line class="lost"') == legend + len(record["mishaps"])
    assert f">{len(story.rescues())} rescued<" in picture or len(story.place.page.got) > 1


# From here on the box alone, each test after the one before.
after_all = pytest.mark.parametrize("story", ["box"], indirect=True)


@pytest.fixture(scope="module")
def site(story: Story) -> OnBox:
    """The box, after its story."""
    assert isinstance(story.place, OnBox)
    return story.place


@after_all
def test_node_exporter_tells_what_the_timer_wrote(site: OnBox) -> None:
    def page() -> list[str]:
        return httpx.get(f"http://{site.box.host}:9100/metrics").text.splitlines()

    # By now the timer has come up again with the box.
    assert "jobwarden_up 1" in page()
    assert "node_textfile_scrape_error 0" in page()
    site.rows("INSERT INTO jobs (action, status) VALUES ('nobody_knows_it', 'running')")
    wait_for(lambda: 'jobwarden_running_jobs{action="nobody_knows_it"} 1' in page(), 45)
    site.rows("DELETE FROM jobs WHERE action = 'nobody_knows_it'")


@after_all
def test_a_second_deploy_changes_nothing(site: OnBox) -> None:
    before = site.processes()
    again = site.deploy()

    assert "Jobwarden | Set up services" in site.first.changed
    assert again.code == 0, again.log
    assert again.changed == []
    assert again.changes == ()
    assert site.processes() == before


@after_all
def test_a_release_that_was_not_finished_is_brought_again(site: OnBox) -> None:
    before = site.processes()
    site.box.ssh("rm /srv/jobservice/release", check=True)
    again = site.deploy()

    assert again.code == 0, again.log
    assert again.changes == ()
    assert "Service | Install the packages" in again.changed
    assert not set(site.processes()) & {"0", *before}
    wait_for(lambda: "Uvicorn running" in site.log("api").rpartition("Stopped api")[2], 20)


@after_all
def test_going_back_after_a_release_that_failed_brings_the_last_one(site: OnBox) -> None:
    read = "cat /srv/jobservice/stack.yaml"
    before = site.box.ssh(read, check=True).stdout
    refused = {"database": "app", "settings": {"work_mem": "lots"}}
    failed = site.deploy(postgres=refused)
    brought = site.box.ssh(read, check=True).stdout
    back = site.deploy()

    assert failed.code == 1, failed.log
    assert "lots" in brought
    assert back.code == 0, back.log
    assert site.box.ssh(read, check=True).stdout == before


@after_all
def test_the_service_is_taken_away_and_its_jobs_stay(site: OnBox) -> None:
    jobs = site.value("SELECT count(*) FROM jobs")
    gone = site.deploy("--data", "state=absent")
    units, figures = "/etc/systemd/system", "/var/lib/prometheus/node-exporter"
    left = (
        f"ls -d /srv/jobservice {units}/api.service {units}/metrics.* {figures}/*.prom;"
        " systemctl is-active worker@1"
    )

    assert gone.code == 0, gone.log
    assert site.box.ssh(left).stdout.strip() == "inactive"
    assert site.value("SELECT count(*) FROM jobs") == jobs
