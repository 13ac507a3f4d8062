"""What each instance runs with, next to what its groups say now. The gap is ``pending-reboot``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Values = dict[str, str]


@dataclass(slots=True)
class Link:
    """An instance's tie to one group: the group it runs with, and the values it took from it.

    Setting a value back before the reboot makes the link in sync again. AWS may well keep saying
    ``pending-reboot`` then; no rule here leans on that.
    """

    group: str
    values: Values

    def status(self, group: str, values: Mapping[str, str]) -> str:
        same = group == self.group and dict(values) == self.values
        return "in-sync" if same else "pending-reboot"


@dataclass(slots=True)
class Booted:
    """All links of an account: by instance, its own group's and (Aurora) its cluster's."""

    own: dict[str, Link] = field(default_factory=dict)
    cluster: dict[str, Link] = field(default_factory=dict)

    def forget(self, instance: str) -> None:
        self.own.pop(instance, None)
        self.cluster.pop(instance, None)

    def running(self, instance: str) -> Values:
        """Return what the instance runs with; its own group wins over its cluster's."""
        links = (self.cluster.get(instance), self.own.get(instance))
        return {name: value for link in links if link for name, value in link.values.items()}


def apply_now(links: dict[str, Link], group: str, changed: Mapping[str, str | None]) -> list[str]:
    """Give dynamic values to the instances that run with the group; return their names.

    None sets a parameter back. An instance that has yet to reboot into the group is left alone.
    """
    reached = [instance for instance, link in links.items() if link.group == group]
    for instance in reached:
        for name, value in changed.items():
            if value is None:
                links[instance].values.pop(name, None)
            else:
                links[instance].values[name] = value
    return reached
