"""The API of the example service, over HTTP, as its clients see it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import httpx
import pytest

from infra.local.cluster import Cluster
from tests.story.service import Service, wait_for

GOOD = {"action": "pdf_build", "payload": {"title": "Hello", "text": "World"}}
Standing = tuple[Service, httpx.Client]
PROBLEM = "application/problem+json"


@pytest.fixture
def api(service: Service) -> httpx.Client:
    return service.start_api()


def is_problem(answer: httpx.Response, status: int, words: str) -> bool:
    document = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
    assert document["status"] == status
    assert document["title"]
    return words in document["detail"]


def test_a_posted_job_is_queued_and_says_where_to_poll(api: httpx.Client) -> None:
    posted = api.post("/api/jobs", json=GOOD)
    polled = api.get(posted.headers["location"])

    assert posted.status_code == 202
    assert posted.headers["location"] == f"/api/jobs/{posted.json()['id']}"
    assert (polled.status_code, polled.json()["status"]) == (200, "queued")
    assert int(polled.headers["retry-after"]) > 0


def test_only_a_final_job_has_no_retry_after(service: Service, api: httpx.Client) -> None:
    job = api.post("/api/jobs", json=GOOD).headers["location"]
    seen = {}
    for status in ("running", "failed"):
        service.rows(
            "UPDATE jobs SET status = %s,"
            " error = CASE %s WHEN 'failed' THEN '{\"code\": \"x\"}'::jsonb END",
            status,
            status,
        )
        seen[status] = api.get(job)

    assert "retry-after" in seen["running"].headers
    assert "retry-after" not in seen["failed"].headers
    assert seen["failed"].json()["error"] == {"code": "x"}


def test_a_poll_that_knows_the_answer_gets_304(service: Service, api: httpx.Client) -> None:
    job = api.post("/api/jobs", json=GOOD).headers["location"]
    first = api.get(job)
    tag = first.headers["etag"]
    known = [tag, f"W/{tag}", f'"other", {tag}', "*"]
    answers = [api.get(job, headers={"If-None-Match": each}) for each in known]
    service.rows("UPDATE jobs SET status = 'running'")
    later = api.get(job, headers={"If-None-Match": tag})

    assert [(each.status_code, each.content) for each in answers] == [(304, b"")] * 4
    assert all(each.headers["etag"] == tag for each in answers)
    assert all("retry-after" in each.headers for each in answers)
    assert (later.status_code, later.json()["status"]) == (200, "running")


@pytest.mark.parametrize(
    "key", ["5b0e3f3c-71a2-4c5e-9d0a-2f6b8c1d4e7f", "7", "x" * 5000, "%00", "{id}", "a%2Fb"]
)
def test_an_id_of_no_job_is_404(standing: Standing, key: str) -> None:
    _, api = standing
    assert is_problem(api.get(f"/api/jobs/{key}"), 404, "")


def test_other_paths_and_methods_are_problems_too(standing: Standing) -> None:
    _, api = standing
    assert is_problem(api.get("/nowhere"), 404, "Not Found")
    assert is_problem(api.delete(f"/api/jobs/{uuid.uuid4()}"), 405, "Method")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"action": "pdf_build", "payload": {"n": NaN}}', "NaN is not JSON"),
        (b"[]", "must be an object"),
        (b"{}", "action must be one of resume_rewrite, pdf_build, ai_chat"),
        (b'{"action": ["pdf_build"]}', "action must be one of"),
        (b'{"action": "rm"}', "action must be one of"),
        (b'{"action": "pdf_build", "payload": 3}', "payload must be an object"),
        (b'{"action": "pdf_build", "payload": {"t": "\\u0000"}}', "cannot be stored"),
        (b'{"action": "pdf_build", "payload": {"t": "\\ud800"}}', "cannot be stored"),
        (b'{"action": "pdf_build", "payload": {"t": 1e999}}', "cannot be stored"),
    ],
)
def test_what_is_no_job_is_422_and_says_why(standing: Standing, body: bytes, words: str) -> None:
    service, api = standing
    assert is_problem(api.post("/api/jobs", content=body), 422, words)
    assert service.value("SELECT count(*) FROM jobs") == 0


def test_ten_megabytes_are_refused_however_they_come(service: Service, api: httpx.Client) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 100_000

    for content in (b" " * 10_000_000, chunks()):
        try:
            assert is_problem(api.post("/api/jobs", content=content), 413, "longer than 1000000")
        except httpx.WriteError:  # the server closed before all was sent
            continue
    assert api.post("/api/jobs", json=GOOD).status_code == 202
    assert service.value("SELECT count(*) FROM jobs") == 1


def test_a_restart_of_postgres_costs_a_poll_nothing(cluster: Cluster, api: httpx.Client) -> None:
    job = api.post("/api/jobs", json=GOOD).headers["location"]
    cluster.kill()
    away = api.get(job)
    posted = api.post("/api/jobs", json=GOOD)
    cluster.start()
    wait_for(lambda: api.get(job).status_code == 200, 30)

    assert is_problem(away, 503, "away")
    assert int(away.headers["retry-after"]) > 0
    assert is_problem(posted, 503, "away")
    cluster.restart()
    assert api.get(job).status_code == 200


def test_the_api_starts_and_serves_when_boot_fails(service: Service) -> None:
    api = service.start_api(JOBWARDEN_STACK="no-such-stack")

    assert api.post("/api/jobs", json=GOOD).status_code == 202
    assert service.members["api"].poll() is None


def test_the_start_of_the_api_registers_what_its_stack_declares(service: Service) -> None:
    stack = service.folder / "Pulumi.story.yaml"
    declared = {
        "jobwarden:databaseUrl": service.url,
        "jobwarden:watchdog": {"timeout": "7s", "schedule": "* * * * *"},
    }
    stack.write_text(json.dumps({"config": declared}))
    api = service.start_api(JOBWARDEN_STACK=str(stack))

    assert api.get("/").status_code == 404
    limits = "SELECT extract(epoch FROM timeout)::int FROM jobwarden.policy WHERE action = '*'"
    assert service.value(limits) == 7
