"""The order of a deploy: install, configure, restart, apply, prove, services, fallback."""

from __future__ import annotations

from pyinfra import host
from pyinfra.api import DeployError, deploy

from infra.box.hosts import target
from infra.box.stages import ABSENT, PRESENT, stage
from infra.errors import InfraError

STATES = {"present": PRESENT, "absent": ABSENT}


@deploy("Jobwarden")
def box() -> None:
    """Take one box to its environment; with ``--data state=absent`` take ours off it."""
    wanted = host.data.get("state") or "present"
    if wanted not in STATES:
        raise DeployError(f"no such state (got {wanted}; allowed: {', '.join(STATES)})")
    try:
        found = target(host)
    except InfraError as error:
        raise DeployError(str(error)) from None
    for title, _ in STATES[wanted]:
        stage(name=title, title=title, target=found)
