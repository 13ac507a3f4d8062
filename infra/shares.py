"""A share of a plan: what is applied by itself, so that one change makes just that change.

The command line applies everything at once. Where parts are resources of their own, each looks at
its own changes and makes no others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import get_args

from infra.changes import Change, Kind
from infra.observed import Observed


@dataclass(frozen=True, slots=True)
class Share:
    """Changes of these kinds; of schedules only the one called ``schedule``, where it is set."""

    kinds: frozenset[str]
    schedule: str | None = None

    def of(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """The changes that belong to this share."""
        return tuple(change for change in changes if self._holds(change))

    def view(self, observed: Observed) -> Observed:
        """What is there, as far as this share goes: only the SQL has to do with the table."""
        if "sql" in self.kinds:
            return observed
        return replace(observed, table=None, schema_exists=True)

    def _holds(self, change: Change) -> bool:
        if change.kind == "schedule" and self.schedule is not None:
            return change.name == self.schedule
        return change.kind in self.kinds


EVERYTHING = Share(frozenset(get_args(Kind)))
SQL = Share(frozenset({"sql", "object", "index"}))
POLICY = Share(frozenset({"policy"}))


def of_schedule(name: str) -> Share:
    """One schedule, and the extension that must be there before the first."""
    return Share(frozenset({"extension", "schedule"}), name)


def end_of_schedule(name: str) -> Share:
    """One schedule that goes."""
    return Share(frozenset({"schedule"}), name)
