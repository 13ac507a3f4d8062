"""One message to one route, over HTTP."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field

import httpx

from infra import alerting
from infra.alerting import Message, Verdict
from infra.config.alert_models import Alerts, Choice, Kind, Route
from infra.errors import InfraError, UsageError

PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Destination:
    """A route with the address and the key it has in this environment. Neither is ever printed."""

    kind: Kind
    url: str = field(repr=False)
    secret: str | None = field(repr=False)


def destinations(alerts: Alerts) -> dict[Choice, Destination]:
    """The routes that are declared, by name. Raises UsageError for a variable that is not set."""
    routes: dict[Choice, Route | None] = {
        "page": alerts.routes.page,
        "notify": alerts.routes.notify,
    }
    found = {name: _destination(name, route) for name, route in routes.items() if route}
    if not found:
        raise UsageError(
            "no route is declared under jobwarden:alerts",
            hint="jobwarden:alerts: {routes: {page: {kind: webhook, urlFrom: ALERTS_URL}, ...}}",
        )
    return found


def _destination(name: str, route: Route) -> Destination:
    url = _variable(name, route.url_from) if route.url_from else PAGERDUTY
    secret = _variable(name, route.secret_from) if route.secret_from else None
    if not url.startswith(("http://", "https://")):
        raise UsageError(
            f"{route.url_from} of route {name} holds no http:// or https:// URL",
            hint="put the webhook's whole address there",
        )
    return Destination(route.kind, url, secret)


def _variable(name: str, variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise UsageError(
            f"route {name} reads {variable}, which is not set",
            hint=f"set {variable} in the environment of this command or unit",
        )
    return value


def send(destination: Destination, message: Message, source: str) -> Verdict:
    """Make one attempt, 15 s at most, and say what came of it. Never raises for the other side."""
    try:
        status, retry_after = asyncio.run(
            asyncio.wait_for(_post(destination, message, source), SECONDS)
        )
    except TimeoutError:
        return alerting.again(message, f"no answer in {SECONDS:.0f} s")
    except httpx.InvalidURL:
        return Verdict("dead", "the URL is malformed")
    except httpx.HTTPError as error:
        # Its type and no more: a text may hold the address, which is secret.
        return alerting.again(message, type(error).__name__)
    return alerting.answered(message, status, retry_after)


async def _post(destination: Destination, message: Message, source: str) -> tuple[int, str | None]:
    body = alerting.payload(destination.kind, message, source=source, secret=destination.secret)
    headers = {"Idempotency-Key": str(message.key)}
    if destination.kind == "webhook" and destination.secret:
        headers["Authorization"] = f"Bearer {destination.secret}"
    async with (
        httpx.AsyncClient(timeout=SECONDS) as client,
        client.stream("POST", destination.url, json=body, headers=headers) as answer,
    ):
        return answer.status_code, answer.headers.get("Retry-After")


def try_route(alerts: Alerts, route: str, source: str) -> None:
    """Send a test message. Raises UsageError for an unknown route, InfraError when not taken."""
    known = destinations(alerts)
    choice = next((name for name in known if name == route), None)
    if choice is None:
        raise UsageError(f"no route is called {route!r}", hint=f"one of {', '.join(known)}")
    verdict = send(known[choice], alerting.trial(choice), source)
    if verdict.state != "delivered":
        raise InfraError(
            f"route {route} did not take the message: {verdict.reason}",
            hint="check the address and the key in the environment",
        )
