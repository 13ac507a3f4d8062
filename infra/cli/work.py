"""``jobwarden sweep``, ``cleanup`` and ``run``: a schedule's work now, or what it would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from infra.cli.options import Json, Stack, Url

if TYPE_CHECKING:
    from infra.cli.setting import Setting

Limit = Annotated[int, typer.Option(min=1, max=100_000, help="How many jobs a dry run shows.")]


def sweep(
    stack: Stack = None,
    database_url: Url = None,
    json: Json = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the jobs it would fail, and why.")
    ] = False,
    limit: Limit = 100,
) -> None:
    """Rescue stuck jobs now, or show which.

    Example: jobwarden sweep -s production --dry-run
    """
    from infra.cli.setting import load

    _work("sweep", load(stack, database_url), limit if dry_run else None, json=json)


def cleanup(
    stack: Stack = None,
    database_url: Url = None,
    json: Json = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the jobs it would delete.")
    ] = False,
    limit: Limit = 100,
) -> None:
    """Delete finished jobs past their retention now, or show which.

    Example: jobwarden cleanup -s production --dry-run
    """
    from infra.cli.setting import load

    _work("cleanup", load(stack, database_url), limit if dry_run else None, json=json)


def run(
    name: Annotated[str, typer.Argument(help="sweep, cleanup, or a schedule's name.")],
    stack: Stack = None,
    database_url: Url = None,
    json: Json = False,
) -> None:
    """Run the work of one schedule now, as the schedules' own role.

    Example: jobwarden run jobsStuckWatchdog -s production
    """
    from infra.cli.setting import load

    _work(name, load(stack, database_url), None, json=json)


def _work(name: str, setting: Setting, dry_run: int | None, *, json: bool) -> None:
    from infra.cli import show
    from infra.db import runs
    from infra.errors import UsageError

    kind = runs.KINDS.get(name)
    if kind is None and name not in setting.plan.schedules:
        known = ", ".join(("sweep", "cleanup", *setting.plan.schedules))
        raise UsageError(f"no schedule is called {name!r}", hint=f"one of {known}")
    if dry_run is not None and kind is not None:
        show.would_go(kind, runs.would_go(kind, setting.url, dry_run), dry_run, json=json)
    else:
        show.ran(runs.run(setting.plan, name, setting.url), json=json)
