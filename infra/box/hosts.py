"""Boxes as pyinfra knows them: the hosts of a stack, and what is wanted of one of them."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any

from pyinfra.api import Host

from infra import config, plan, sqltext, stackfile
from infra.box.carrier import text_of
from infra.box_decision import Target
from infra.config import Environment
from infra.config.box_models import BoxEntry
from infra.errors import InfraError, UsageError
from infra.plan import Plan

VARIABLE = "JOBWARDEN_STACK"


@cache
def load(stack: str | None) -> tuple[Environment, Plan]:
    """Read the stack that ``JOBWARDEN_STACK`` names. Raises InfraError with all faults."""
    if not stack:
        there = ", ".join(stackfile.stacks()) or "none"
        raise UsageError(f"{VARIABLE} is not set (stacks here: {there})", hint=f"{VARIABLE}=NAME")
    file = stackfile.load(stack)
    environment = config.parse(file.values, source=str(file.path))
    if environment.target != "box":
        raise InfraError(
            f"{file.path}: target is {environment.target}, and pyinfra deploys boxes",
            hint="set jobwarden:target: box",
        )
    return environment, plan.build(environment, sqltext.render(environment))


def inventory() -> list[tuple[str, dict[str, Any]]]:
    """The boxes of the stack, with what ssh needs for each. A faulty stack ends the program.

    pyinfra would show an error raised here as one of its own, with a stack trace.
    """
    try:
        environment, _ = load(os.environ.get(VARIABLE))
    except InfraError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(error.exit_code) from None
    return [(entry.host, _ssh(entry)) for entry in environment.boxes]


def _ssh(entry: BoxEntry) -> dict[str, Any]:
    given = {"ssh_user": entry.ssh_user, "ssh_port": entry.ssh_port, "ssh_key": entry.ssh_key}
    return {name: value for name, value in given.items() if value is not None}


def target(host: Host) -> Target:
    """What is wanted of a host: its entry in ``boxes``, then ``--data`` over it.

    A host from the command line that has no entry is taken as it is. Raises InfraError.
    """
    environment, wanted = load(os.environ.get(VARIABLE))
    entry = next((each for each in environment.boxes if each.host == host.name), None)
    entry = entry or BoxEntry.model_validate({"host": host.name})
    cluster, port = host.data.get("cluster"), host.data.get("port")
    given = {"cluster": cluster and str(cluster), "port": port and int(port)}
    entry = entry.model_copy(update={name: value for name, value in given.items() if value})
    allowed = host.data.get("allow_restart")
    return Target(
        environment=environment,
        plan=wanted,
        entry=entry,
        secrets=_secrets(environment),
        allow_restart=entry.allow_restart if allowed is None else _truth(allowed),
        fallback_script=text_of("fallback-once"),
        apt_seconds=int(host.data.get("apt_seconds") or 60),
    )


def _truth(value: object) -> bool:
    return str(value).lower() in {"true", "1", "yes", "on"}


def _secrets(environment: Environment) -> dict[str, str]:
    """Those that are given: a dry run and a removal do without the others."""
    names = {name for service in environment.services.values() for name in service.secrets}
    return {name: os.environ[name] for name in names if name in os.environ}
