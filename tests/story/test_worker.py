"""The workers of the example service, each as a real process."""

from __future__ import annotations

import base64
import sys

from infra.local.cluster import Cluster
from tests.story.service import EXAMPLE, Service, wait_for

SLOW = '{"message": "hello there", "seconds": 600}'


def ended(service: Service, job: str) -> dict[str, object]:
    wait_for(lambda: service.status(job) in {"done", "failed"}, 20)
    ((status, result, error),) = service.rows(
        "SELECT status, result, error FROM jobs WHERE id = %s", job
    )
    return {"status": status, "result": result, "error": error}


def runs(service: Service, job: str) -> None:
    wait_for(lambda: service.status(job) == "running", 20)


def test_each_action_ends_with_its_result(service: Service) -> None:
    resume = service.queue("resume_rewrite", '{"text": "was responsible for sales\\n\\n  sold "}')
    pdf = service.queue("pdf_build", '{"title": "Caf\\u00e9 \\u4e16", "text": "World"}')
    chat = service.queue("ai_chat", '{"message": "hello there"}')
    service.start_worker()

    assert ended(service, resume)["result"] == {"text": "Sales\nSold"}
    assert ended(service, chat)["result"] == {"reply": "You said 2 words. What else?"}
    built = ended(service, pdf)["result"]
    assert isinstance(built, dict)
    assert base64.b64decode(built["base64"]).startswith(b"%PDF-")
    assert len(base64.b64decode(built["base64"])) == built["bytes"] > 500


BAD = [
    ("pdf_build", '{"text": "x"}', "validation_failed", "title"),
    ("ai_chat", '{"message": " "}', "validation_failed", "message"),
    ("ai_chat", '{"message": "x", "seconds": -1}', "validation_failed", "seconds"),
    ("ai_chat", '{"message": "x", "seconds": true}', "validation_failed", "seconds"),
    ("unheard_of", "{}", "internal_error", None),
    ("ai_chat", "3", "internal_error", None),
]


def test_a_bad_job_fails_with_a_code_and_the_worker_goes_on(service: Service) -> None:
    bad = [service.queue(action, payload) for action, payload, _, _ in BAD]
    good = service.queue("ai_chat", '{"message": "x"}')
    service.start_worker()

    assert ended(service, good)["status"] == "done"
    errors = [ended(service, job)["error"] for job in bad]
    assert [(error["code"], error.get("field")) for error in errors if isinstance(error, dict)] == [
        (code, field) for _, _, code, field in BAD
    ]


def test_sigterm_puts_back_what_the_worker_holds(service: Service) -> None:
    job = service.queue("ai_chat", SLOW)
    service.start_worker()
    runs(service, job)

    assert service.stop("worker-1") == 0
    assert service.rows("SELECT status, worker, started_at FROM jobs") == [("queued", None, None)]


def test_sigterm_puts_back_a_job_from_before_a_restart_of_postgres(
    service: Service, cluster: Cluster
) -> None:
    job = service.queue("ai_chat", SLOW)
    service.start_worker()
    runs(service, job)
    cluster.restart()

    assert service.stop("worker-1") == 0
    assert service.rows("SELECT status, worker, started_at FROM jobs") == [("queued", None, None)]


def test_a_killed_workers_job_is_rescued_and_no_other_is_touched(service: Service) -> None:
    job = service.queue("ai_chat", SLOW)
    service.start_worker()
    runs(service, job)
    service.kill("worker-1")
    service.rows("UPDATE jobs SET started_at = now() - interval '1 hour'")
    service.rows("CALL jobwarden.sweep()")

    assert service.value("SELECT error ->> 'code' FROM jobs") == "watchdog_timeout"
    assert service.value("SELECT error ->> 'worker' FROM jobs") == "worker-1"


def test_a_worker_that_comes_too_late_is_told_so_and_goes_on(service: Service) -> None:
    late = service.queue("ai_chat", '{"message": "x", "seconds": 2}')
    service.start_worker()
    runs(service, late)
    service.rows("UPDATE jobs SET started_at = now() - interval '1 hour'")
    service.rows("CALL jobwarden.sweep()")
    next_one = service.queue("ai_chat", '{"message": "x"}')

    assert ended(service, next_one)["status"] == "done"
    assert ended(service, late)["status"] == "failed"
    assert f"too late for {late}" in service.log("worker-1")


def test_a_worker_outlives_postgres_and_ends_its_job_then(
    service: Service, cluster: Cluster
) -> None:
    job = service.queue("ai_chat", '{"message": "x", "seconds": 1.5}')
    service.start_worker()
    runs(service, job)
    cluster.kill()
    wait_for(lambda: "the database is away" in service.log("worker-1"), 20)
    cluster.start()

    assert ended(service, job)["status"] == "done"


def test_no_job_is_done_twice_by_three_workers(service: Service) -> None:
    for _ in range(30):
        service.queue("ai_chat", '{"message": "x", "seconds": 0.05}')
    for number in range(3):
        service.start_worker(f"worker-{number}")
    wait_for(lambda: service.value("SELECT count(*) FROM jobs WHERE status = 'done'") == 30, 30)
    claims = [
        line.split()[-1]
        for number in range(3)
        for line in service.log(f"worker-{number}").splitlines()
        if " running " in line
    ]

    assert len(claims) == len(set(claims)) == 30


def test_the_ack_first_imitation_shows_what_its_page_says(service: Service) -> None:
    service.start("queue", [sys.executable, str(EXAMPLE / "ackfirst.py")], DATABASE_URL=service.url)

    assert service.members["queue"].wait(20) == 0
    page = (EXAMPLE / "ack-first.md").read_text(encoding="utf-8")
    said = service.log("queue").strip()
    assert said.endswith("('failed', 'watchdog_timeout')")
    assert said in page
