"""``jobwarden alerts``: tell people of failed jobs, by the code in the error."""

from __future__ import annotations

from typing import Annotated

import typer

from infra.cli.options import Stack, Url

app = typer.Typer(
    help="Tell people of failed jobs, by code.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("run")
def run(
    stack: Stack = None,
    database_url: Url = None,
    once: Annotated[
        bool, typer.Option("--once", help="Deliver what is due now, then end.")
    ] = False,
) -> None:
    """Deliver an alert for each failure that somebody must hear of, until stopped.

    Each is sent at least once, under a key that stays the same. It connects as a member of
    jobwarden_alerts; a database that is away is waited for.

    Example: jobwarden alerts run -s production
    """
    import logging

    from infra.alerts.runner import Runner
    from infra.alerts.send import destinations
    from infra.cli.setting import load

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs whole addresses
    setting = load(stack, database_url)
    environment = setting.plan.environment
    source = _source(stack or "", environment.target)
    runner = Runner(environment.alerts, destinations(environment.alerts), source)
    (runner.once if once else runner.run)(setting.url)


@app.command("test")
def trial(
    route: Annotated[str, typer.Argument(help="page or notify.")],
    stack: Stack = None,
) -> None:
    """Send a test message to one route.

    Example: jobwarden alerts test page -s production
    """
    from infra import terminal
    from infra.alerts import send
    from infra.cli.setting import load_plan

    environment = load_plan(stack).environment
    send.try_route(environment.alerts, route, _source(stack or "", environment.target))
    terminal.talk(f"route {route} took the message")


def _source(stack: str, target: str) -> str:
    """Where a message comes from. A stack may have many boxes, each with a sender of its own."""
    import socket

    from infra import stackfile

    name = stackfile.name_of(stack)
    return f"{name} on {socket.gethostname()}" if target == "box" else name
