"""The command line. Answers go to stdout, talk to stderr; ``--json`` prints one document.

Exit codes: 0 done, 1 error, 2 a plan has changes, 3 unhealthy, 64 wrong usage, 130 Ctrl-C.
Everything but typer is imported by the command that needs it: ``--help`` must answer at once.
"""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from infra.cli import alerts, local, report, work
from infra.cli.metrics import metrics
from infra.cli.options import CHANGES, UNHEALTHY, Json, Stack, Url
from infra.cli.preview import preview

app = typer.Typer(
    name="jobwarden",
    help="Postgres is the watchdog: it rescues stuck jobs and prunes finished ones.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.add_typer(local.app, name="local")
app.add_typer(alerts.app, name="alerts")


@app.command()
def plan(stack: Stack = None, database_url: Url = None, json: Json = False) -> None:
    """Show what an apply would change. Reads only.

    Example: jobwarden plan -s production

    Exit code: 0 no changes, 2 changes, 1 error, or something that no apply mends.
    """
    from infra.cli import show
    from infra.cli.setting import load
    from infra.db.looking import look

    setting = load(stack, database_url)
    seen = look(setting.plan, setting.url)
    show.plan(seen, json=json)
    if seen.faults or (seen.problems and not seen.pending):
        raise typer.Exit(1)
    raise typer.Exit(CHANGES if seen.pending else 0)


@app.command()
def apply(
    stack: Stack = None,
    database_url: Url = None,
    json: Json = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Wake schedules that were paused by hand.")
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option("--take-over", help="Replace schedules of our names that another role made."),
    ] = False,
) -> None:
    """Make the changes: SQL, policy, schedules; then look again.

    Example: jobwarden apply -s production

    Exit code: 0 every schedule is registered, and will fire unless somebody paused it by hand;
    1 not so: the reason and the next step are printed.
    """
    from infra.cli import show
    from infra.cli.setting import load
    from infra.db.apply import apply as make
    from infra.diff_schedules import Wishes

    setting = load(stack, database_url)
    result = make(setting.plan, setting.url, Wishes(resume=resume, take_over=take_over))
    show.applied(result, json=json)
    strict = setting.plan.environment.strict and result.warnings
    raise typer.Exit(0 if result.registered and not strict else 1)


@app.command()
def boot(
    stack: Stack = None,
    database_url: Url = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 on anything but full success.")
    ] = False,
) -> None:
    """Converge from an application's start, never in its way.

    Example: jobwarden boot -s production && exec my-api

    Exit code: 0, whatever happened; with --strict 1 on anything but full success.
    """
    import logging

    from infra.cli.setting import tell_private_url
    from infra.db.boot import boot as start

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    tell_private_url()
    booted = start(stack or "", database_url=database_url)
    raise typer.Exit(1 if strict and booted.outcome in {"paused", "waiting", "failed"} else 0)


@app.command()
def status(stack: Stack = None, database_url: Url = None, json: Json = False) -> None:
    """Say whether it works: launcher, last success, lag, drift.

    Example: jobwarden status -s production

    Exit code: 0 ok, 3 unhealthy, 1 error.
    """
    from infra.cli import show
    from infra.cli.setting import load
    from infra.db.status import status as ask

    setting = load(stack, database_url)
    found = ask(setting.plan, setting.url)
    show.status(found, json=json)
    raise typer.Exit(0 if found.healthy else UNHEALTHY)


app.command()(metrics)
app.command()(work.sweep)
app.command()(work.cleanup)
app.command()(work.run)
app.command()(report.report)
app.command()(preview)


@app.command()
def sql(stack: Stack = None) -> None:
    """Print every statement of a first apply, for psql.

    Example: jobwarden sql -s production | psql -v ON_ERROR_STOP=1 app
    """
    from infra.cli.setting import load_plan
    from infra.script import script

    typer.echo(script(load_plan(stack)), nl=False)


@app.command()
def schema() -> None:
    """Print the JSON Schema of the environment file, for editors.

    Example: jobwarden schema > .jobwarden.schema.json
    """
    from infra import config, terminal

    terminal.document(config.json_schema())


@app.command()
def remove(
    stack: Stack = None,
    database_url: Url = None,
    json: Json = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Remove; without it only say what would go.")
    ] = False,
) -> None:
    """Take away what an apply made; never a job or a role.

    Our schedules, functions, guard, indexes and logs go. A stranger's objects and schedules stay.

    Example: jobwarden remove -s production --yes
    """
    from infra.cli import show
    from infra.cli.setting import load
    from infra.db.remove import remove as take_away

    setting = load(stack, database_url)
    show.removed(take_away(setting.plan, setting.url, really=yes), json=json)


@app.command()
def demo(
    json: Json = False,
    seconds: Annotated[
        int, typer.Option(min=1, max=600, help="Limit of a job in the demo: how long it may run.")
    ] = 5,
) -> None:
    """See it work: a worker is killed, its job rescued.

    On a private Postgres with real worker processes; nothing is left behind.

    Example: jobwarden demo
    """
    from infra.local.demo import demo as show

    sys.exit(show(seconds=seconds, json=json))  # it has said all there is to say


def main() -> NoReturn:
    """Run a command. A user's mistake ends in a message and an exit code, not a stack trace."""
    import logging

    from infra.cli import ending

    # A query cut off by Ctrl-C is told once, by us.
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    sys.exit(ending.of(lambda: app(prog_name="jobwarden", standalone_mode=False)))


if __name__ == "__main__":
    main()
