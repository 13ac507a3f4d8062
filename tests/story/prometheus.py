"""What reads our figures: a page that serves them, and a real Prometheus that scrapes one."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from tests.ports import free_port
from tests.story.service import ROOT, Service, wait_for

RULES = ROOT / "examples" / "prometheus" / "jobwarden.rules.yml"
TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


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


def figures(
    service: Service, *options: str, url: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `jobwarden metrics` for the service."""
    stack = service.folder / "Pulumi.story.yaml"
    stack.write_text("config: {}\n")
    argv = [sys.executable, "-m", "infra", "metrics", "-s", str(stack)]
    return subprocess.run(
        [*argv, "--database-url", url or service.url, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def scraping(service: Service, program: str, port: int, folder: Path) -> Iterator[httpx.Client]:
    """Start a Prometheus with our rules that scrapes ``port`` each second; its API."""
    config, listen = folder / "prometheus.yml", f"127.0.0.1:{free_port()}"
    config.write_text(
        f"global: {{evaluation_interval: 1s}}\nrule_files: ['{RULES}']\n"
        "scrape_configs:\n- job_name: story\n  scrape_interval: 1s\n"
        f"  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
    )
    argv = [program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    service.start("prometheus", [*argv, f"--web.listen-address={listen}"])
    wait_for(lambda: "Server is ready" in service.log("prometheus"), 30)
    with httpx.Client(base_url=f"http://{listen}/api/v1/") as client:
        yield client
    service.stop("prometheus")


def asked(client: httpx.Client, query: str) -> list[dict[str, Any]]:
    """What a query finds now."""
    answer: list[dict[str, Any]] = client.get("query", params={"query": query}).json()["data"][
        "result"
    ]
    return answer


def rules(client: httpx.Client) -> dict[str, dict[str, Any]]:
    """Our rules as Prometheus sees them, by name."""
    groups = client.get("rules").json()["data"]["groups"]
    return {rule["name"]: rule for group in groups for rule in group["rules"]}
