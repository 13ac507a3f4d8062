"""What the commands share: their options and their exit codes."""

from __future__ import annotations

from typing import Annotated

import typer

CHANGES, UNHEALTHY, USAGE, INTERRUPTED = 2, 3, 64, 130

Stack = Annotated[
    str | None,
    typer.Option(
        "--stack", "-s", envvar="JOBWARDEN_STACK", help="A stack's name (Pulumi.NAME.yaml) or file."
    ),
]
Url = Annotated[
    str | None,
    typer.Option("--database-url", help="postgresql://user@host/database, never with a password."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
