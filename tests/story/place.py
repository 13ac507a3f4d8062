"""Where the story is played: what it asks of the world, and what it does to it.

Nobody but the place starts anything again: on a box that is systemd.
"""

from __future__ import annotations

import json
import sys
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from infra.local.cluster import Cluster
from infra.plan import Plan
from tests.ports import free_port
from tests.story.service import Service, wait_for
from tests.story.webhook import Webhook, webhook

WORKERS = ("worker-1", "worker-2", "worker-3")
# Limits are short through the policy; nothing else is special to the test.
WATCHDOG = {"schedule": "* * * * *", "timeout": "8s"}
LIMIT_SECONDS = 8
ALERTS = {
    "routes": {
        "page": {"kind": "webhook", "urlFrom": "PAGE_URL"},
        "notify": {"kind": "webhook", "urlFrom": "NOTIFY_URL"},
    }
}


class Place(ABC):
    """A service with an API, three workers and a sender of alerts, and the Postgres below it."""

    name: str
    plan: Plan
    url: str
    """Of the database, as its superuser."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.folder = folder
        self.page: Webhook = stack.enter_context(webhook())
        self.notify: Webhook = stack.enter_context(webhook())
        self.hooks = {"PAGE_URL": self.page.url, "NOTIFY_URL": self.notify.url}

    @abstractmethod
    def client(self) -> httpx.Client:
        """A client of the API."""

    @abstractmethod
    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement as the superuser."""

    @abstractmethod
    def freeze(self, unit: str) -> None:
        """Stop a unit in the middle of what it does (SIGSTOP)."""

    @abstractmethod
    def wake(self, unit: str) -> None:
        """Let it go on, as if nothing had happened (SIGCONT)."""

    @abstractmethod
    def kill(self, unit: str) -> None:
        """End a unit with SIGKILL, as the kernel does when memory runs out. It comes back."""

    @abstractmethod
    def kill_postgres(self) -> None:
        """End Postgres with SIGKILL. It stays away."""

    @abstractmethod
    def start_postgres(self) -> None:
        """Start it again, and wait until it answers."""

    @abstractmethod
    def restart(self) -> None:
        """Restart the machine: all of it ends in an orderly way, and comes back by itself."""

    @abstractmethod
    def log(self, unit: str) -> str:
        """What a unit has said so far."""

    def value(self, query: str, *values: object) -> Any:
        """Return the one value a query gives."""
        ((only,),) = self.rows(query, *values)
        return only

    def status(self, job: str) -> str:
        """The state of one job."""
        return str(self.value("SELECT status FROM jobs WHERE id = %s", job))


class Local(Place):
    """Processes on a private cluster. What is killed is started again after a second."""

    name = "local"

    def __init__(self, stack: ExitStack, cluster: Cluster, folder: Path, go: Path | None) -> None:
        super().__init__(stack, folder)
        environment = {"watchdog": WATCHDOG, "alerts": ALERTS}
        self._cluster = cluster
        self._go = go
        self._port = free_port()
        self._boots = 0
        self._service = stack.enter_context(Service(cluster.url("app"), folder, environment))
        self.plan, self.url = self._service.plan, self._service.url
        (folder / "Pulumi.story.yaml").write_text(
            json.dumps({"config": {f"jobwarden:{key}": each for key, each in environment.items()}})
        )
        self.rows(
            "DO $$ BEGIN IF to_regrole('story_alerts') IS NULL THEN"
            " CREATE ROLE story_alerts LOGIN IN ROLE jobwarden_alerts; END IF; END $$"
        )
        self._start_all()

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=f"http://127.0.0.1:{self._port}", timeout=20)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._service.rows(query, *values)

    def freeze(self, unit: str) -> None:
        self._service.freeze(unit)

    def wake(self, unit: str) -> None:
        self._service.wake(unit)

    def kill(self, unit: str) -> None:
        self._service.kill(unit)
        time.sleep(1)
        self._start(unit)

    def kill_postgres(self) -> None:
        self._cluster.kill()

    def start_postgres(self) -> None:
        self._cluster.start()

    def restart(self) -> None:
        self._service.stop_all()
        self._cluster.stop()
        self._cluster.start()
        self._start_all()

    def log(self, unit: str) -> str:
        return self._service.log(unit)

    def _start_all(self) -> None:
        for unit in ("api", "alerts", *WORKERS):
            self._start(unit)
        self._boots += 1
        wait_for(lambda: self.log("api").count("Uvicorn running") == self._boots, 20)

    def _start(self, unit: str) -> None:
        python = [sys.executable, "-m"]
        if unit == "api":
            argv = [*python, "uvicorn", "jobservice.api:app", "--port", str(self._port)]
            self._service.start(unit, argv, JOBWARDEN_STACK="no-such-stack")
        elif unit == "alerts":
            url = self.url.replace("postgres@", "story_alerts@")
            argv = [*python, "infra", "alerts", "run", "-s", "Pulumi.story.yaml"]
            self._service.start(unit, [*argv, "--database-url", url], **self.hooks)
        elif unit == "worker-3" and self._go:
            self._service.start(unit, [str(self._go), unit])
        else:
            self._service.start_worker(unit)
