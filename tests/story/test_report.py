"""The report of a real database: the numbers of its page are those of its jobs."""

from __future__ import annotations

import subprocess
import sys

from tests.story.service import ROOT, Service


def test_the_document_counts_what_is_there(service: Service) -> None:
    service.rows(
        "INSERT INTO jobs (action, status, started_at, completed_at) VALUES"
        " ('a', 'done', now() - interval '3 hours', now() - interval '1 hour'),"
        " ('a', 'done', now() - interval '30 hours', now() - interval '25 hours'),"
        " ('a', 'running', now() - interval '1 hour', NULL), ('b', 'queued', NULL, NULL)"
    )
    service.rows("CALL jobwarden.sweep()")
    document = service.value("SELECT jobwarden.report(24)")

    assert document["jobs"] == {"queued": 1, "running": 0, "done": 1, "failed": 1}
    slices = document["slices"]
    assert [n for n, each in enumerate(slices) if each["done"]] == [45]
    assert [n for n, each in enumerate(slices) if each["failed"]] == [47]
    assert [each["left_running"] for each in slices][45:] == [1, 0, 1]
    assert sum(each["started"] for each in slices) == 2
    assert [(each["code"], each["action"], each["jobs"]) for each in document["failures"]] == [
        ("watchdog_timeout", "a", 1)
    ]
    assert [(each["kind"], each["changed"]) for each in document["runs"]] == [("sweep", 1)]


def test_a_running_jobs_age_stands_beside_its_limit(service: Service) -> None:
    service.rows(
        "INSERT INTO jobs (action, status, started_at)"
        " VALUES ('a', 'running', now() - interval '90 seconds'), ('a', 'running', NULL)"
    )
    service.rows("UPDATE jobwarden.policy SET timeout = '5 minutes' WHERE action = '*'")
    (found,) = service.value("SELECT jobwarden.report()")["ages"]

    assert (found["action"], found["jobs"], found["timeout"]) == ("a", 2, 300)
    assert max(found["seconds"]) - 90 < 5


def test_the_command_writes_one_page(service: Service) -> None:
    stack = service.folder / "Pulumi.story.yaml"
    stack.write_text("config: {}\n")
    argv = [sys.executable, "-m", "infra", "report", "-s", str(stack)]
    argv += ["--database-url", service.url]
    told = subprocess.run(
        [*argv, "--html", "page.html"],
        cwd=service.folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    refused = subprocess.run(
        [*argv, "--html", "nowhere/page.html"],
        cwd=service.folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.returncode == 0, told.stderr
    page = (service.folder / "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 2
    assert refused.returncode == 1
    assert "cannot be written" in refused.stderr
