"""What a preview found, as values: one part for each tool and place, one row for each change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from infra.changes import Change

Level = Literal["harmless", "restarting", "destructive"]
Tool = Literal["plan", "pulumi", "pyinfra", "git"]
LEVELS: tuple[Level, ...] = ("harmless", "restarting", "destructive")
_UNIT_FILES = (".service", ".timer")
LIBRARIES = "shared_preload_libraries"


@dataclass(frozen=True, slots=True)
class Taken:
    """How many jobs the next run takes: ``now`` with the limits in force, ``then`` with ours."""

    now: int
    then: int
    more: bool = False

    def __str__(self) -> str:
        """Spell it for a reviewer."""
        return f"{self.then}{' or more' if self.more else ''} (as it is: {self.now})"


@dataclass(frozen=True, slots=True)
class Figures:
    """Jobs by the action of a policy row. None: nobody could be asked, ``why`` says so."""

    sweep: Mapping[str, Taken] | None = None
    cleanup: Mapping[str, Taken] | None = None
    why: str = "no database was asked"


@dataclass(frozen=True, slots=True)
class Part:
    """What one tool said of one place. ``reason``: why it said nothing, or not all of it.

    ``default``: the limits of the environment for actions without any of their own.
    """

    stack: str
    tool: Tool
    place: str = ""
    changes: tuple[Change, ...] = ()
    reason: str | None = None
    notes: tuple[str, ...] = ()
    figures: Figures = Figures()
    default: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One change as a reviewer sees it. ``restarts``: what restarts for it, "" for nothing."""

    part: Part
    change: Change
    level: Level = "harmless"
    restarts: str = ""
    drift: bool = False
    note: str = ""

    @property
    def kind(self) -> str:
        """The table it stands in."""
        if self.change.kind == "file" and self.change.name.endswith(_UNIT_FILES):
            return "unit"
        return "library" if self.change.name == LIBRARIES else self.change.kind

    def to_json(self) -> dict[str, Any]:
        """The change, and what a reviewer must know of it."""
        return {
            "stack": self.part.stack,
            "tool": self.part.tool,
            "place": self.part.place,
            **self.change.to_json(),
            "level": self.level,
            "restarts": self.restarts,
            "drift": self.drift,
            "note": self.note,
        }


def change_of(document: Mapping[str, Any]) -> Change:
    """Read a change as every command prints it. Raises KeyError, TypeError for another document."""
    return Change(
        document["kind"],
        document["name"],
        document["action"],
        document.get("old"),
        document.get("new"),
        document.get("why", ""),
        document.get("waits"),
    )
