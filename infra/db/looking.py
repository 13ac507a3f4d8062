"""What ``plan`` shows: one connection, one read-only query."""

from __future__ import annotations

from dataclasses import dataclass

from infra import changes, checks
from infra.changes import Change
from infra.checks import Problem
from infra.db.connect import connect
from infra.db.observe import observe
from infra.diff import diff
from infra.observed import Observed
from infra.plan import Plan


@dataclass(frozen=True, slots=True)
class Look:
    """The changes of a plan. ``faults`` would stop an apply, ``waits`` keeps schedules back."""

    changes: tuple[Change, ...]
    faults: tuple[Problem, ...]
    waits: Problem | None
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
    return Look(
        changes=diff(plan, found),
        faults=checks.faults(plan, found),
        waits=checks.waiting(found),
        warnings=checks.warnings(plan, found),
        observed=found,
    )
