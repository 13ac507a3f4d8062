"""The example service as a user runs it: real processes on a private Postgres."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import httpx
import psycopg
from psycopg.conninfo import make_conninfo

from infra import config, plan, sqltext
from infra.db.apply import apply

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "service"
ROLE = "story_service"
_MAKE_ROLE = f"""
DO $$ BEGIN CREATE ROLE {ROLE} LOGIN IN ROLE jobwarden_worker;
EXCEPTION WHEN duplicate_object THEN NULL; END $$
"""


class Service(ExitStack):
    """One database with our SQL, and the processes that work on it. All end with the block."""

    def __init__(self, url: str, folder: Path, environment: Mapping[str, Any]) -> None:
        super().__init__()
        self.url = url
        self.folder = folder
        self.members: dict[str, subprocess.Popen[bytes]] = {}
        parsed = config.parse({"target": "local", **environment})
        self.plan = plan.build(parsed, sqltext.render(parsed))
        self.result = apply(self.plan, url)
        self.rows(_MAKE_ROLE)
        self.callback(self._end)

    def __enter__(self) -> Self:
        return self

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement as the superuser, on a connection of its own."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(query.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def value(self, query: str, *values: object) -> Any:
        """Return the one value a query gives."""
        ((only,),) = self.rows(query, *values)
        return only

    def start(self, name: str, argv: Sequence[str], **environment: str) -> subprocess.Popen[bytes]:
        """Start a process of the service; its log is `folder/name.log`."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        ours |= {
            "DATABASE_URL": make_conninfo(self.url, user=ROLE),
            "PYTHONPATH": f"{EXAMPLE}:{ROOT}",
            "PYTHONUNBUFFERED": "1",
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                argv, stdout=log, stderr=log, env=ours | environment, cwd=self.folder
            )
        self.members[name] = process
        return process

    def start_api(self, **environment: str) -> httpx.Client:
        """Start the API on a Unix socket, and wait until it answers."""
        socket = self.folder / "api.sock"
        api = self.start(
            "api",
            [sys.executable, "-m", "uvicorn", "jobservice.api:app", "--uds", str(socket)],
            **environment,
        )
        client = self.enter_context(self.client())
        # Not by asking: httpx leaves the socket of a refused connection open.
        wait_for(lambda: "running on" in self.log("api") or api.poll() is not None, 20)
        assert api.poll() is None, self.log("api")
        return client

    def client(self) -> httpx.Client:
        """A client of the API."""
        transport = httpx.HTTPTransport(uds=str(self.folder / "api.sock"))
        return httpx.Client(transport=transport, base_url="http://api", timeout=20)

    def start_worker(self, name: str = "worker-1") -> subprocess.Popen[bytes]:
        """Start one Python worker."""
        return self.start(name, [sys.executable, "-m", "jobservice.worker", name])

    def log(self, name: str) -> str:
        """What a process has said so far."""
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")

    def stop(self, name: str) -> int:
        """End a process with SIGTERM, as systemd does; return its exit code."""
        process = self.members.pop(name)
        process.terminate()
        return process.wait(20)

    def kill(self, name: str) -> None:
        """End a process with SIGKILL, as the kernel does when memory runs out."""
        process = self.members.pop(name)
        process.kill()
        process.wait()

    def freeze(self, name: str) -> None:
        """Stop a process in the middle of what it does."""
        self.members[name].send_signal(signal.SIGSTOP)

    def wake(self, name: str) -> None:
        """Let it go on, as if nothing had happened."""
        self.members[name].send_signal(signal.SIGCONT)

    def stop_all(self) -> None:
        """End all processes with SIGTERM, at the same time, as a machine does that goes down."""
        for process in self.members.values():
            process.terminate()
        for process in self.members.values():
            process.wait(20)
        self.members.clear()

    def queue(self, action: str, payload: str) -> str:
        """Queue a job without the API; return its id."""
        return str(
            self.value(
                "INSERT INTO jobs (action, payload) VALUES (%s, %s) RETURNING id", action, payload
            )
        )

    def status(self, job: str) -> str:
        """The state of one job."""
        return str(self.value("SELECT status FROM jobs WHERE id = %s", job))

    def _end(self) -> None:
        for name in list(self.members):
            self.kill(name)


def wait_for(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Ask until ``condition`` holds. Fails when it does not in that time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)
