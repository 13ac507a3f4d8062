"""``jobwarden preview``: every diff of every stack on one page."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from infra.cli.options import CHANGES, Json

Stacks = Annotated[
    list[str] | None,
    typer.Option(
        "--stack",
        "-s",
        envvar="JOBWARDEN_STACK",
        help="A stack's name (Pulumi.NAME.yaml) or file; once for each.",
    ),
]


def preview(
    stack: Stacks = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write the page here; stdout gets one line.")
    ] = None,
    json: Json = False,
    base: Annotated[
        str | None,
        typer.Option("--base", help="Only what changed in the plan since this git ref."),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", help="destructive, restarting, harmless or never."),
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", help="A label of the pull request.")
    ] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Let Pulumi look at the cloud first, for drift.")
    ] = False,
    timeout: Annotated[str, typer.Option("--timeout", help="Limit of each tool.")] = "2m",
) -> None:
    """Show every infra diff on one page, before it is applied.

    Runs what each target needs, at the same time: pulumi, pyinfra, the plan. Changes nothing.

    Example: jobwarden preview -s staging -s production --markdown page.md

    Exit code: 0 no changes, 2 changes, 1 something could not be looked at, or is not allowed.
    """
    from infra import page as pages
    from infra import terminal
    from infra.preview.preview import Wish
    from infra.preview.preview import preview as look

    wish = Wish(
        stacks=_stacks(stack),
        limit=_limit(timeout),
        base=base,
        refresh=refresh,
        fail_on=_level(fail_on),
        labels=tuple(label or ()),
    )
    found = look(wish)
    text = pages.render(found)
    if markdown:
        _write(markdown, text)
    if json:
        terminal.document(found.to_json())
    else:
        typer.echo(text.partition("\n")[0] + "\n" if markdown else text, nl=False)
    raise typer.Exit(_code(found.counts.unreachable, found.blocks, found.counts.changes))


def _code(unreachable: int, blocks: tuple[str, ...], changes: int) -> int:
    if unreachable or blocks:
        return 1
    return CHANGES if changes else 0


def _stacks(given: list[str] | None) -> tuple[str, ...]:
    from infra import stackfile
    from infra.errors import UsageError

    if not given:
        there = ", ".join(stackfile.stacks()) or "none"
        raise UsageError(f"no stack was named (stacks here: {there})", hint="-s STACK -s STACK2")
    return tuple(given)


def _limit(text: str) -> timedelta:
    from infra import durations
    from infra.errors import RuleError, UsageError

    try:
        limit = durations.parse(text)
    except RuleError as error:
        raise UsageError(f"--timeout: {error.message}", hint=error.hint) from None
    if not limit:
        raise UsageError("--timeout: no tool answers in no time (got 0s)", hint="--timeout 2m")
    return limit


def _level(text: str | None) -> str | None:
    from infra.errors import UsageError
    from infra.rows import LEVELS

    allowed = (*reversed(LEVELS), "never")
    if text is not None and text not in allowed:
        raise UsageError(
            f"--fail-on: no such severity (got {text!r}; allowed: {', '.join(allowed)})",
            hint="--fail-on destructive",
        )
    return text


def _write(path: Path, text: str) -> None:
    from infra.errors import InfraError

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InfraError(
            f"{path} cannot be written: {error.strerror}", hint="--markdown page.md"
        ) from None
