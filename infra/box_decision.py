"""What the stages of a box's deploy share: what is wanted, and what a stage answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from infra import box_conf, checks
from infra.boxes import Box, Cluster
from infra.changes import Change
from infra.checks import Problem
from infra.config import Environment
from infra.config.box_models import BoxEntry
from infra.observed import RUNNER, Observed
from infra.plan import Plan

UNTIL_INSTALLED: Final = "unknown until installed"
UNTIL_APPLIED: Final = "unknown until our SQL is there"


@dataclass(frozen=True, slots=True)
class Target:
    """One box's part of an environment. ``secrets`` are the values that services ask for.

    ``apt_seconds``: how long to wait for somebody else's apt.
    """

    environment: Environment
    plan: Plan
    entry: BoxEntry
    secrets: Mapping[str, str]
    allow_restart: bool
    fallback_script: str
    apt_seconds: int = 60

    @property
    def database(self) -> str:
        """The database that holds the jobs."""
        return box_conf.database(self.environment)

    @property
    def wants_cron(self) -> bool:
        """Whether pg_cron is to do the work."""
        return self.environment.postgres.cron.enabled


@dataclass(frozen=True, slots=True)
class Script:
    """A file of ``box/files`` and the shell variables it is given."""

    name: str
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a stage found. ``unknown``: it cannot tell yet, and why.

    ``again``: look and decide once more after the script. ``verify`` reads the script's answer and
    says what is still wrong.
    """

    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    unknown: str = ""
    script: Script | None = None
    again: bool = False
    verify: Callable[[str], tuple[Problem, ...]] | None = None
    notes: tuple[str, ...] = field(default=())


def carried(found: Observed) -> bool:
    """Whether the work is pg_cron's: our jobs are there, and so is its scheduler.

    A schedule that somebody paused is pg_cron's too: no timer may do what was stopped on purpose.
    """
    held = {job.jobid for job in found.jobs or () if job.username == RUNNER}
    ledger = found.ledger.schedules.values() if found.ledger else ()
    there = [entry.jobid in held for entry in ledger]
    launched = found.server.database in found.server.launcher
    return bool(there) and all(there) and launched and checks.waiting(found) is None


def no_server(box: Box) -> str:
    """Why no server answers yet; "" where one does."""
    if box.chosen is None:
        return UNTIL_INSTALLED
    if box.server is None:
        said = box.server_error or "no server process is there"
        return (
            f"{box.chosen.title} does not answer (pg_lsclusters says {box.chosen.status}): {said}."
            f" Try: systemctl start {box.chosen.unit}; its log is {box.chosen.log}"
        )
    return ""


def cluster_of(box: Box) -> Cluster:
    """The cluster that is meant. Raises LookupError without one: ask ``no_server`` first."""
    if box.chosen is None:
        raise LookupError("no cluster was chosen")
    return box.chosen


def server_variables(cluster: Cluster) -> dict[str, str]:
    """What every script that speaks to the server is given."""
    return {
        "VERSION": cluster.version,
        "NAME": cluster.name,
        "OWNER": cluster.owner,
        "DATA": cluster.data,
        "FOLDER": cluster.folder,
    }
