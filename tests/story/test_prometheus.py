"""Alert rules, held by promtool, and a real Prometheus that reads our figures."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest

from infra.metrics import HELP
from tests.story.service import ROOT, Service, wait_for

RULES = ROOT / "examples" / "prometheus" / "jobwarden.rules.yml"
TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@pytest.fixture
def program(missing: Callable[[str], NoReturn]) -> Callable[[str], str]:
    def found(name: str) -> str:
        return shutil.which(name) or missing(f"no {name}: apt-get install prometheus")

    return found


@contextmanager
def served(text: str) -> Iterator[int]:
    """Serve one text on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", TYPE)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def figures(service: Service) -> str:
    stack = service.folder / "Pulumi.story.yaml"
    stack.write_text("config: {}\n")
    argv = [sys.executable, "-m", "infra", "metrics", "-s", str(stack)]
    told = subprocess.run(
        [*argv, "--database-url", service.url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout


def test_the_rules_pass_their_own_tests(program: Callable[[str], str]) -> None:
    for kind, file in (("check", RULES), ("test", RULES.with_name("jobwarden.test.yml"))):
        argv = [program("promtool"), kind, "rules", str(file)]
        told = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stdout + told.stderr


def test_each_rule_has_a_test_and_reads_figures_that_exist() -> None:
    rules = RULES.read_text(encoding="utf-8")
    names = set(re.findall(r"alert: (\w+)", rules))
    tests = RULES.with_name("jobwarden.test.yml").read_text(encoding="utf-8")
    used = set(re.findall(r"\bjobwarden_\w+", rules))

    assert len(names) >= 6
    assert names == set(re.findall(r"alertname: (\w+)", tests))
    assert used <= HELP.keys()


def test_a_real_prometheus_reads_what_metrics_prints(
    service: Service, program: Callable[[str], str], tmp_path: Path
) -> None:
    service.rows(
        "INSERT INTO jobs (action, status, started_at)"
        " VALUES (E'we\"ird\\\\\\n', 'running', now() - interval '5 minutes')"
    )
    service.rows("CALL jobwarden.sweep()")
    text = figures(service)
    with served(text) as port:
        config = tmp_path / "prometheus.yml"
        config.write_text(
            f"rule_files: ['{RULES}']\nscrape_configs:\n- job_name: story\n"
            f"  scrape_interval: 1s\n  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
        )
        with served("") as free:
            pass
        service.start(
            "prometheus",
            [
                program("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{free}",
            ],
        )
        with httpx.Client(base_url=f"http://127.0.0.1:{free}/api/v1/") as client:
            wait_for(
                lambda: (
                    "Server is ready" in service.log("prometheus")
                    and asked(client, "jobwarden_healthy")
                ),
                30,
            )
            (oldest,) = asked(client, "jobwarden_oldest_running_seconds")
            (interval,) = asked(client, 'jobwarden_schedule_interval_seconds{kind="sweep"}')
            (up,) = asked(client, 'up{job="story"}')

    assert oldest["metric"]["action"] == 'we"ird\\\n'
    assert 299 < float(oldest["value"][1]) < 360
    assert float(interval["value"][1]) == 300
    assert up["value"][1] == "1"


def asked(client: httpx.Client, query: str) -> list[dict[str, Any]]:
    answer: list[dict[str, Any]] = client.get("query", params={"query": query}).json()["data"][
        "result"
    ]
    return answer
