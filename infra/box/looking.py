"""The one fact: a box as it is, read in one round trip and kept until something was changed."""

from __future__ import annotations

from typing import Any

from pyinfra.api import FactBase, FactProcessError, Host, State

from infra import box_carry, boxes, sqltext, units
from infra.box.carrier import AS_ROOT, script
from infra.box_decision import Target
from infra.box_fallback import PREFIX, slug
from infra.box_install import choice
from infra.boxes import Box
from infra.unit_texts import user_of

_SEEN: dict[str, tuple[Any, Box | None]] = {}


class BoxFact(FactBase[Box | None]):
    """What ``look.sh`` prints; the script itself travels by stdin."""

    def command(self) -> str:
        """Run what comes by stdin, as root."""
        return AS_ROOT

    @staticmethod
    def default() -> None:
        """Nothing is known."""

    def process(self, output: list[str]) -> Box:
        """Read the findings. Raises FactProcessError."""
        try:
            return boxes.parse(output)
        except (KeyError, ValueError) as error:
            raise FactProcessError(f"the box answered something else: {error}") from error


def look(state: State, host: Host, target: Target) -> Box | None:
    """The box as it is. None: it could not be read, pyinfra said why, and the host has failed.

    A look of the planning phase is not kept for the run: somebody may have read the plan for long.
    """
    phase = state.current_stage
    seen = _SEEN.get(host.name)
    if seen is None or seen[0] is not phase:
        seen = (phase, host.get_fact(BoxFact, _stdin=script("look", questions(target))))
        _SEEN[host.name] = seen
    return seen[1]


def forget(host: Host) -> None:
    """Something was changed: the next stage looks again."""
    _SEEN.pop(host.name, None)


def questions(target: Target) -> dict[str, str]:
    """The variables of ``look.sh``."""
    asked = choice(target.environment, target.entry)
    services = target.environment.services
    timers = [f"{PREFIX}{slug(target.plan, name)}.timer" for name in target.plan.schedules]
    names = [user_of(name, service) for name, service in services.items()]
    return {
        "WANT_VERSION": asked.version,
        "WANT_NAME": asked.name,
        "WANT_PORT": asked.port,
        "DATABASE": target.database,
        "CONF_NAME": boxes.CONF_NAME,
        "UNITS": " ".join([*units.patterns(services), *timers]),
        "USERS": " ".join(names),
        "SERVER_SQL": box_carry.server_sql(target.environment),
        "OBSERVE_SQL": sqltext.observe(target.environment),
    }
