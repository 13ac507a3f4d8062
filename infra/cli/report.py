"""``jobwarden report``: the page with pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from infra.cli.options import Stack, Url


def report(
    html: Annotated[Path, typer.Option("--html", help="File to write the page to.")],
    stack: Stack = None,
    database_url: Url = None,
    hours: Annotated[int, typer.Option(min=1, max=720, help="How far back it looks.")] = 24,
) -> None:
    """Write one self-contained page: jobs, failures, runs, alerts, health.

    Example: jobwarden report -s production --html report.html
    """
    from infra import terminal
    from infra.cli.setting import load
    from infra.db.reporting import report as ask
    from infra.db.status import status
    from infra.errors import InfraError
    from infra.report.page import render

    setting = load(stack, database_url)
    title = Path(stack or "").name  # of a stack that was named by its file
    page = render(ask(setting.url, hours), status(setting.plan, setting.url).checks, title)
    try:
        html.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InfraError(
            f"{html} cannot be written: {error.strerror}", hint="name another file"
        ) from error
    terminal.talk(f"{html}: written, {len(page) // 1024 + 1} KiB")
