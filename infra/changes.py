"""A change is a value: what, which, from what, to what, and why. The same shape everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Action = Literal["create", "update", "delete", "same", "paused", "foreign", "unknown"]
Kind = Literal[
    "extension",
    "sql",
    "object",
    "index",
    "policy",
    "schedule",
    "package",
    "cluster",
    "database",
    "parameter",
    "file",
    "restart",
    "probe",
    "user",
    "role",
    "unit",
    "stage",
    "library",
    "resource",
    "setting",
]

# The name of the change that says: this role sees only some rows of cron.job.
COPIES = "copies under other roles"

WRITES: frozenset[str] = frozenset({"create", "update", "delete"})


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between what is wanted (``new``) and what is there (``old``).

    ``waits`` is why it cannot be made yet; None where apply makes it.
    """

    kind: Kind
    name: str
    action: Action
    old: Any = None
    new: Any = None
    why: str = ""
    waits: str | None = None

    @property
    def partial(self) -> bool:
        """True for the note that copies under other roles could not be looked for."""
        return self.action == "unknown" and self.name == COPIES

    @property
    def writes(self) -> bool:
        """True where an apply has something to do, now or once it need not wait."""
        return self.action in WRITES

    def to_json(self) -> dict[str, Any]:
        """The document every command prints for a change."""
        document = {
            "kind": self.kind,
            "name": self.name,
            "action": self.action,
            "old": self.old,
            "new": self.new,
            "why": self.why,
        }
        return document | ({"waits": self.waits} if self.waits else {})


def pending(changes: Iterable[Change]) -> tuple[Change, ...]:
    """The changes that an apply would make, now or later."""
    return tuple(change for change in changes if change.writes)


def due(changes: Iterable[Change]) -> tuple[Change, ...]:
    """The changes that an apply makes now."""
    return tuple(change for change in changes if change.writes and change.waits is None)
