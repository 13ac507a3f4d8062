"""``jobwarden metrics``: figures for a dashboard, and for the rules that watch the watchdog."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from infra.cli.options import Stack, Url


def metrics(
    stack: Stack = None,
    database_url: Url = None,
    textfile: Annotated[
        Path | None,
        typer.Option(
            "--textfile", help="Write them to this file for node_exporter, whole or not at all."
        ),
    ] = None,
) -> None:
    r"""Print figures and checks as OpenMetrics text.

    Example: jobwarden metrics -s production --textfile \
    /var/lib/prometheus/node-exporter/jobwarden.prom

    With --textfile a failure leaves jobwarden_up 0 and nothing else in the file, so that no old
    figure looks fresh. Exit code: 0 written, 1 error.
    """
    if textfile is None:
        sys.stdout.write(_text(stack, database_url))
    else:
        _write(textfile, stack, database_url)


def _write(path: Path, stack: str | None, database_url: str | None) -> None:
    from infra import metrics as openmetrics
    from infra.cli.textfile import Textfile
    from infra.errors import InfraError, UsageError

    file = Textfile(path)
    try:
        text = _text(stack, database_url)
    except UsageError:
        raise  # this command line never worked: what another one wrote is still true
    except InfraError:
        file.write(openmetrics.DOWN)
        raise
    file.write(text)


def _text(stack: str | None, database_url: str | None) -> str:
    from infra.cli import show
    from infra.cli.setting import load
    from infra.db.status import status

    setting = load(stack, database_url)
    return show.metrics(status(setting.plan, setting.url))
