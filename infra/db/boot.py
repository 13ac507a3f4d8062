"""The final step from an application's start: converge in place, and never stop the boot.

    from infra.db.boot import boot

    boot("production")        # the stack's name or file; DATABASE_URL, or libpq's environment

It makes and updates, and does nothing that an operator should decide: it prunes nothing, resumes
nothing, builds no index on a table that holds rows, and leaves SQL that a newer release installed.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

import psycopg

from infra import config, plan, sqltext, stackfile
from infra.changes import Change
from infra.db import apply as applying
from infra.db.connect import CONNECT_SECONDS, connect, resolve
from infra.diff_schedules import Wishes
from infra.errors import InfraError

log = logging.getLogger("jobwarden.boot")

Outcome = Literal["unchanged", "changed", "paused", "waiting", "failed"]


@dataclass(frozen=True, slots=True)
class Booted:
    """What a boot came to; ``message`` is the one line that was logged."""

    outcome: Outcome
    message: str
    changes: tuple[Change, ...] = ()


def boot(
    stack: str,
    *,
    database_url: str | None = None,
    strict: bool = False,
    seconds: int = CONNECT_SECONDS,
) -> Booted:
    """Converge the database of ``stack`` and log one line.

    One connection, and one round trip when nothing changed; ``seconds`` bounds the connecting.

    Never raises, unless ``strict``: then InfraError for anything but full success.
    """
    try:
        booted = _boot(stack, database_url, seconds)
    except InfraError as error:
        booted = Booted("failed", " ".join(str(error).split()))
    except Exception as error:  # noqa: BLE001  # an application must start, whatever happens here
        booted = Booted("failed", f"{type(error).__name__}: {error}")
    level = logging.INFO if booted.outcome in {"unchanged", "changed"} else logging.WARNING
    log.log(level, "jobwarden: %s", booted.message)
    if strict and level == logging.WARNING:
        raise InfraError(booted.message, hint="jobwarden plan shows what is missing")
    return booted


def _boot(stack: str, database_url: str | None, seconds: int) -> Booted:
    if not stack:
        raise InfraError("no stack was named", hint="-s STACK, or JOBWARDEN_STACK")
    file = stackfile.load(stack)
    environment = config.parse(file.values, source=str(file.path))
    wanted = plan.build(environment, sqltext.render(environment))
    url = resolve(database_url, environment.database_url, target=environment.target)
    with connect(url, seconds=seconds) as connection:
        return _converge(connection, wanted)


def _converge(connection: psycopg.Connection, wanted: plan.Plan) -> Booted:
    result = applying.apply_on(connection, wanted, Wishes(in_place_only=True))
    if result.problems:
        text = "; ".join(problem.message for problem in result.problems)
        hint = " ".join(result.problems[0].hint.split())
        return Booted(
            "waiting", f"not all schedules will fire: {text}. Try: {hint}", result.changes
        )
    paused = [change.name for change in result.after if change.action == "paused"]
    if paused:
        text = f"paused by hand, and will not fire: {', '.join(paused)}"
        return Booted("paused", f"{text}. Try: jobwarden apply --resume", result.changes)
    if result.warnings and wanted.environment.strict:
        return Booted("waiting", "; ".join(result.warnings), result.changes)
    if result.changes:
        names = ", ".join(f"{change.kind} {change.name}" for change in result.changes)
        return Booted("changed", f"schedules registered; changed: {names}", result.changes)
    return Booted("unchanged", "schedules are as declared")
