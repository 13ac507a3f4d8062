"""What every command starts from: the stack file, its plan, and the database to talk to."""

from __future__ import annotations

from dataclasses import dataclass

from infra import config, dburl, sqltext, stackfile
from infra import plan as planning
from infra.db.connect import resolve
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
    if stack is None:
        raise UsageError("no stack was named", hint=_stacks())
    file = stackfile.load(stack)
    environment = config.parse(file.values, source=str(file.path))
    return planning.build(environment, sqltext.render(environment))


def _stacks() -> str:
    found = stackfile.stacks()
    names = f"one of {', '.join(found)}" if found else "a file such as Pulumi.local.example.yaml"
    return f"-s STACK, or JOBWARDEN_STACK; here: {names}"


def database(wanted: Plan, given: str | None) -> str:
    """The URL given, the stack's, DATABASE_URL; for the local target the private cluster's."""
    if given:
        given = dburl.check(given)
    found = resolve(given, wanted.environment.database_url)
    if found or wanted.environment.target != "local":
        return found
    from infra.local import persistent

    state = persistent.status()
    if state.url is None:
        raise InfraError(
            "the private cluster of target local is not running", hint="jobwarden local up"
        )
    return state.url


def private_url(stack: str | None) -> str | None:
    """The private cluster's URL for a stack of target local; None for others, and on errors."""
    try:
        setting = load(stack, None)
    except InfraError:
        return None
    return setting.url if setting.plan.environment.target == "local" else None
