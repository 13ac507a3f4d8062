"""`jobwarden alerts run` as a user's unit runs it, and what it is told to send."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any
from unittest import mock

from infra.alerts.runner import Runner
from infra.alerts.send import destinations
from tests.story.service import Service, wait_for
from tests.story.webhook import Webhook

FAIL = """
INSERT INTO jobs (action, status) VALUES ('pdf_build', 'running');
UPDATE jobs SET status = 'failed', error = '{"code": "CODE", "message": "why"}'
WHERE status = 'running'
"""
ROUTES = {
    "page": {"kind": "webhook", "urlFrom": "PAGE_URL", "secretFrom": "PAGE_TOKEN"},
    "notify": {"kind": "slack", "urlFrom": "NOTIFY_URL"},
}
ROLE = "CREATE ROLE story_alerts LOGIN IN ROLE jobwarden_alerts"


class Sender:
    """A service with alerts, the webhooks they go to, and the unit that sends them."""

    def __init__(
        self,
        service: Service,
        page: Webhook,
        notify: Webhook,
        routes: Mapping[str, Any] = ROUTES,
        secret: str = "t0ken",  # noqa: S107 - no secret of anybody
    ) -> None:
        self.service = service
        self.page = page
        self.notify = notify
        self.secret = secret
        self.url = service.url.replace("postgres@", "story_alerts@")
        stack = service.folder / "Pulumi.story.yaml"
        stack.write_text(json.dumps({"config": {"jobwarden:alerts": {"routes": routes}}}))
        service.rows(
            "DO $$ BEGIN IF to_regrole('story_alerts') IS NULL THEN " + ROLE + "; END IF; END $$"
        )

    def start(self) -> None:
        """Start the unit."""
        program = [sys.executable, "-m", "infra", "alerts", "run", "-s", "Pulumi.story.yaml"]
        self.service.start("alerts", [*program, "--database-url", self.url], **self.secrets)

    def started(self) -> None:
        """Start the unit, and wait until it listens."""
        before = self.log().count("listening")
        self.start()
        wait_for(lambda: self.log().count("listening") > before, 20)

    def log(self) -> str:
        """What the unit has said, over all its lives."""
        log = self.service.folder / "alerts.log"
        return log.read_text(encoding="utf-8") if log.exists() else ""

    def once(self) -> None:
        """Deliver what is due now, as `--once` does."""
        alerts = self.service.plan.environment.alerts
        with mock.patch.dict(os.environ, self.secrets):
            routes = destinations(alerts)
        Runner(alerts, routes, "story").once(self.url)

    @property
    def secrets(self) -> dict[str, str]:
        """The variables that the routes name."""
        return {
            "PAGE_URL": self.page.url,
            "PAGE_TOKEN": self.secret,
            "NOTIFY_URL": self.notify.url,
        }

    def fail(self, code: str = "watchdog_timeout") -> None:
        """Make one job fail."""
        self.service.rows(FAIL.replace("CODE", code))

    def forward(self, length: str) -> None:
        """Set our clock so far ahead of the server's."""
        self.service.rows(
            "CREATE OR REPLACE FUNCTION jobwarden.now() RETURNS timestamptz LANGUAGE sql VOLATILE"
            f" AS $$ SELECT pg_catalog.clock_timestamp() + interval '{length}' $$"
        )

    def alerts(self) -> list[tuple[Any, ...]]:
        """Route, code, state and reason of each alert."""
        return self.service.rows(
            "SELECT route, code, state, reason FROM jobwarden.alert WHERE code <> '*' ORDER BY id"
        )

    def attempts(self) -> int:
        """How often the only alert was tried."""
        return int(self.service.value("SELECT attempts FROM jobwarden.alert WHERE code <> '*'"))


def heard(hook: Webhook, count: int) -> None:
    wait_for(lambda: len(hook.got) >= count, 20)
    assert len(hook.got) == count
