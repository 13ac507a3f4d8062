"""The same worker in Go: any language needs only SQL."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.local.cluster import Cluster
from tests.story.service import Service, wait_for

Hire = Callable[[Service], None]


@pytest.fixture
def hire(program: Path) -> Hire:
    return lambda service: (service.start("go-1", [str(program), "go-1"]), None)[1]


def row(service: Service, job: str) -> tuple[object, ...]:
    (found,) = service.rows("SELECT status, worker, result, error FROM jobs WHERE id = %s", job)
    return found


def final(service: Service, job: str) -> tuple[object, ...]:
    wait_for(lambda: service.status(job) in {"done", "failed"}, 20)
    return row(service, job)


def runs(service: Service, job: str) -> None:
    wait_for(lambda: service.status(job) == "running", 20)


def test_it_ends_good_jobs_and_fails_bad_ones_with_a_code(service: Service, hire: Hire) -> None:
    chat = service.queue("ai_chat", '{"message": "hello there"}')
    resume = service.queue("resume_rewrite", '{"text": " x "}')
    bad = service.queue("pdf_build", '{"text": "x"}')
    odd = service.queue("ai_chat", "[1]")
    slow = service.queue("ai_chat", '{"message": "x", "seconds": "soon"}')
    unknown = service.queue("unheard_of", "{}")
    hire(service)
    codes = {"code": "validation_failed", "message": "title must be a text", "field": "title"}

    assert final(service, bad) == ("failed", "go-1", None, codes)
    assert final(service, chat)[2] == {"reply": "You said 2 words. What else?"}
    assert final(service, resume)[2] == {"text": "x"}
    assert [final(service, each)[3]["code"] for each in (odd, slow, unknown)] == [  # type: ignore[index]
        "validation_failed",
        "validation_failed",
        "internal_error",
    ]


def test_its_pdf_is_one(service: Service, hire: Hire) -> None:
    job = service.queue("pdf_build", '{"title": "Caf\\u00e9 (1\\\\2) \\u4e16", "text": "a\\nb"}')
    hire(service)
    result = final(service, job)[2]
    assert isinstance(result, dict)
    pdf = base64.b64decode(result["base64"])
    places = [int(place) for place in re.findall(rb"(\d{10}) 00000 n ", pdf)]
    (start,) = re.findall(rb"startxref\n(\d+)", pdf)

    assert pdf.startswith(b"%PDF-1.4")
    assert [pdf[place:].split()[0] for place in places] == [b"1", b"2", b"3", b"4", b"5"]
    assert pdf[int(start) :].startswith(b"xref")
    assert b"(Caf\xe9 \\(1\\\\2\\) ?) '" in pdf
    assert result["bytes"] == len(pdf)


def test_sigterm_puts_back_what_it_holds(service: Service, hire: Hire) -> None:
    job = service.queue("ai_chat", '{"message": "x", "seconds": 600}')
    hire(service)
    runs(service, job)

    assert service.stop("go-1") == 0
    assert row(service, job) == ("queued", None, None, None)


def test_sigterm_puts_back_a_job_from_before_a_restart_of_postgres(
    service: Service, hire: Hire, cluster: Cluster
) -> None:
    job = service.queue("ai_chat", '{"message": "x", "seconds": 600}')
    hire(service)
    runs(service, job)
    cluster.restart()

    assert service.stop("go-1") == 0
    assert row(service, job) == ("queued", None, None, None)


def test_it_is_told_when_it_comes_too_late(service: Service, hire: Hire) -> None:
    late = service.queue("ai_chat", '{"message": "x", "seconds": 2}')
    hire(service)
    runs(service, late)
    service.rows("UPDATE jobs SET started_at = now() - interval '1 hour'")
    service.rows("CALL jobwarden.sweep()")
    good = service.queue("ai_chat", '{"message": "x"}')

    assert final(service, good)[0] == "done"
    assert final(service, late)[0] == "failed"
    assert f"too late for {late}" in service.log("go-1")


def test_it_outlives_postgres_and_ends_its_job_then(
    service: Service, cluster: Cluster, hire: Hire
) -> None:
    job = service.queue("ai_chat", '{"message": "x", "seconds": 1.5}')
    hire(service)
    runs(service, job)
    cluster.kill()
    wait_for(lambda: "the database is away" in service.log("go-1"), 20)
    cluster.start()

    assert final(service, job)[0] == "done"
