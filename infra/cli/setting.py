"""What every command starts from: the stack file, its plan, and the database to talk to."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from urllib.parse import quote

from infra import box_conf, config, dburl, sqltext, stackfile
from infra import plan as planning
from infra.config import Environment
from infra.db.connect import PRIVATE_URL, resolve
from infra.errors import InfraError, UsageError
from infra.plan import Plan


@dataclass(frozen=True, slots=True)
class Setting:
    """A stack's plan and the URL of its database ("": libpq's own environment)."""

    plan: Plan
    url: str


def load(stack: str | None, database_url: str | None) -> Setting:
    """Read and check everything before anything is opened. Raises InfraError."""
    wanted = load_plan(stack)
    return Setting(wanted, database(wanted, database_url))


def load_plan(stack: str | None) -> Plan:
    """The plan of a stack. Raises UsageError without one, ConfigError with all its faults."""
    if not stack:
        raise UsageError("no stack was named", hint=_stacks())
    file = stackfile.load(stack)
    environment = config.parse(file.values, source=str(file.path))
    return planning.build(environment, sqltext.render(environment))


def _stacks() -> str:
    found = stackfile.stacks()
    names = f"one of {', '.join(found)}" if found else "a file such as Pulumi.local.example.yaml"
    return f"-s STACK, or JOBWARDEN_STACK; here: {names}"


def database(wanted: Plan, given: str | None) -> str:
    """The URL given, the stack's, DATABASE_URL; for the local target the private cluster's only.

    On a box the stack says which database it is, and the socket is where libpq looks by itself.
    """
    environment = wanted.environment
    if given:
        given = dburl.check(given)
    if given or environment.database_url or environment.target != "local":
        url = resolve(given, environment.database_url)
        return _on_this_box(environment) if not url and environment.target == "box" else url
    from infra.local import persistent

    state = persistent.status()
    if state.url is None:
        raise InfraError(
            "the private cluster of target local is not running", hint="jobwarden local up"
        )
    return state.url


def _on_this_box(environment: Environment) -> str:
    if "PGDATABASE" in os.environ or "PGSERVICE" in os.environ:
        return ""
    return f"postgresql:///{quote(box_conf.database(environment), safe='')}"


def tell_private_url() -> None:
    """Say in JOBWARDEN_LOCAL_URL where the private cluster is, if it runs, for code below us."""
    from infra.local import persistent

    with contextlib.suppress(InfraError):
        if url := persistent.status().url:
            os.environ.setdefault(PRIVATE_URL, url)
