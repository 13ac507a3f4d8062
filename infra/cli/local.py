"""``jobwarden local``: the private cluster, kept between commands."""

from __future__ import annotations

from typing import Annotated

import typer

from infra.cli.options import Json

app = typer.Typer(
    help="The private cluster of target local.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("up")
def up(json: Json = False) -> None:
    """Start the private cluster; made the first time, kept between commands.

    Example: jobwarden local up
    """
    from infra.cli import show
    from infra.local import persistent

    persistent.up()
    show.local(persistent.status(), json=json)


@app.command("down")
def down(
    purge: Annotated[bool, typer.Option("--purge", help="Delete its data as well.")] = False,
) -> None:
    """Stop the private cluster. Its data stays, unless told otherwise.

    Example: jobwarden local down
    """
    from infra import terminal
    from infra.local import persistent

    ran = persistent.down(purge=purge)
    terminal.talk("stopped" if ran else "it was not running")


@app.command("psql", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def psql(context: typer.Context) -> None:
    """Open psql on the private cluster; what follows is handed to psql.

    Example: jobwarden local psql -c "TABLE jobs"
    """
    import os

    from infra.errors import InfraError
    from infra.local import persistent

    state = persistent.status()
    if state.url is None or state.server is None:
        raise InfraError("the private cluster is not running", hint="jobwarden local up")
    program = state.server.program("psql")
    os.execv(program, [program, state.url, *context.args])  # noqa: S606  # it is to become psql
