"""``jobwarden preview``: every diff of every stack on one page."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.cli.options import CHANGES, Json

if TYPE_CHECKING:
    from infra.page import Page

Stacks = Annotated[
    list[str] | None,
    typer.Option(
        "--stack",
        "-s",
        envvar="JOBWARDEN_STACK",
        help="A stack's name (Pulumi.NAME.yaml) or file; once for each.",
    ),
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", help="Write the page here; stdout gets one line.")
]
Comment = Annotated[
    Path | None, typer.Option("--comment", help="Write it here, cut to what a comment holds.")
]
Base = Annotated[
    str | None, typer.Option("--base", help="Only what changed in the plan since this git ref.")
]
FailOn = Annotated[
    str | None, typer.Option("--fail-on", help="destructive, restarting, harmless or never.")
]
Labels = Annotated[
    list[str] | None, typer.Option("--label", help="A label of the pull request; once for each.")
]
Refresh = Annotated[
    bool, typer.Option("--refresh", help="Let Pulumi look at the cloud first, for drift.")
]
Timeout = Annotated[str, typer.Option("--timeout", help="Limit of each tool.")]


def preview(  # noqa: PLR0917  # as many as it has options
    stack: Stacks = None,
    markdown: Markdown = None,
    comment: Comment = None,
    json: Json = False,
    base: Base = None,
    fail_on: FailOn = None,
    label: Labels = None,
    refresh: Refresh = False,
    timeout: Timeout = "2m",
) -> None:
    """Show every infra diff on one page, before it is applied.

    Runs what each target needs, at the same time: pulumi, pyinfra, the plan. Changes nothing.

    Example: jobwarden preview -s staging -s production --markdown page.md

    Exit code: 0 no changes, 2 changes, 1 something could not be looked at, or is not allowed.
    """
    from infra.preview.preview import Wish
    from infra.preview.preview import preview as look

    stacks, limit, level = _stacks(stack), _limit(timeout), _level(fail_on)
    found = look(Wish(stacks, limit, base, refresh, level, tuple(label or ())))
    _show(found, markdown, comment, json=json)
    if found.counts.unreachable or found.blocks:
        raise typer.Exit(1)
    raise typer.Exit(CHANGES if found.counts.changes else 0)


def _show(found: Page, markdown: Path | None, comment: Path | None, *, json: bool) -> None:
    from infra import page, terminal

    text = page.render(found)
    if markdown:
        _write(markdown, text)
    if comment:
        _write(comment, page.render(found, page.COMMENT))
    if json:
        terminal.document(found.to_json())
    else:
        typer.echo(text.partition("\n")[0] + "\n" if markdown else text, nl=False)


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
