"""What ``plan`` shows: one connection, one read-only query."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

from infra import changes, checks, rights
from infra.changes import Change
from infra.checks import Problem
from infra.db.connect import connect
from infra.db.observe import observe
from infra.db.prove import may_prove, prove
from infra.diff import diff
from infra.observed import Observed
from infra.plan import Plan


@dataclass(frozen=True, slots=True)
class Look:
    """The changes of a plan, and what an apply would stumble over.

    ``faults`` would stop it, ``problems`` would make it end with exit 1, ``notes`` are for whoever
    looks: what this role may not do.
    """

    changes: tuple[Change, ...]
    faults: tuple[Problem, ...]
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    warnings: tuple[str, ...]
    observed: Observed

    @property
    def pending(self) -> tuple[Change, ...]:
        """The changes that an apply would make, now or later."""
        return changes.pending(self.changes)


def look(plan: Plan, url: str) -> Look:
    """Compare the plan with the database at ``url``. Raises InfraError when it cannot be asked."""
    with connect(url) as connection:
        found = observe(connection, plan.environment)
        seen = diff(plan, found)
        blind = rights.blind(found)
        faults = (*checks.faults(plan, found), *((blind,) if blind else ()))
        return Look(
            changes=seen,
            faults=faults,
            problems=() if faults else _problems(plan, found, seen, connection),
            notes=rights.lacking(plan, found) if changes.pending(seen) and not blind else (),
            warnings=checks.warnings(plan, found),
            observed=found,
        )


def _problems(
    plan: Plan, found: Observed, seen: tuple[Change, ...], connection: psycopg.Connection
) -> tuple[Problem, ...]:
    """What remains even after an apply; what it would mend is no problem yet."""
    waits = checks.waiting(found)
    foreign = tuple(
        Problem(f"schedule {change.name}", change.why, "jobwarden apply --take-over")
        for change in seen
        if change.action == "foreign"
    )
    if waits or changes.pending(seen):
        return (*((waits,) if waits else ()), *foreign)
    proved = prove(connection, plan).problems if may_prove(found) else ()
    return (*foreign, *checks.proof(plan, found), *proved)
