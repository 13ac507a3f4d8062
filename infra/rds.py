"""Decisions for RDS and Aurora: the family, parameters and how they apply, worker slots, reboots.

All are functions of plain values, so that what AWS would refuse minutes later is refused before
anything is made. Facts and their sources: ``rds_facts``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from fractions import Fraction
from typing import Final, Literal

from infra import rds_facts as facts
from infra.errors import RuleError
from infra.extensions import EXTENSIONS, find_setting

Method = Literal["immediate", "pending-reboot"]
Target = Literal["rds", "aurora"]

ENGINES: Final[Mapping[str, str]] = {"rds": "postgres", "aurora": "aurora-postgresql"}
PRELOAD: Final = "shared_preload_libraries"
LIBRARY: Final = "pg_cron"

_FORMULA = re.compile(r"\{.*\}|(GREATEST|LEAST|SUM)\(.*\)")
_AMOUNT = re.compile(r"(-?\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_HOUR: Final = "((?:[01][0-9]|2[0-3]):[0-5][0-9])"
_WINDOW = re.compile(f"{_HOUR}-{_HOUR}")
_CLASS = re.compile(r"db\.[a-z0-9-]+\.(?:(micro|small|medium|large)|(\d*)xlarge)")
_SWITCH: Final = {
    **dict.fromkeys(("on", "true", "yes", "1"), "1"),
    **dict.fromkeys(("off", "false", "no", "0"), "0"),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a group. ``static``: it takes effect with a reboot.

    Raises RuleError for a parameter that is known to be static and said not to be: AWS refuses
    `immediate` for it, without its name.
    """

    name: str
    value: str
    static: bool

    def __post_init__(self) -> None:
        known = _known(self.name)
        if known is not None and known[0] and not self.static:
            raise RuleError(
                f"{self.name} is static: it cannot be applied at once",
                got="static: false",
                allowed="static: true",
                hint=f"say static: true for {self.name}, or leave it to postgres.settings",
            )

    @property
    def method(self) -> Method:
        """How AWS is told to apply it."""
        return "pending-reboot" if self.static else "immediate"


def family(target: str, version: str) -> str:
    """Return the family of parameter groups for a target and a version, such as postgres16."""
    return ENGINES[target] + version.partition(".")[0]


def check_family(given: str, target: str, version: str) -> None:
    """Raise RuleError where a family is not that of the engine's version."""
    wanted = family(target, version)
    if given != wanted:
        raise RuleError(
            f"the family is not that of target {target} and version {version}",
            got=given,
            allowed=wanted,
            hint="leave family out: it follows from postgres.version",
        )


def libraries(preload: Iterable[str]) -> tuple[str, ...]:
    """Return what must be preloaded: the user's libraries, then pg_cron, in lower case.

    Raises RuleError for a library that AWS does not offer.
    """
    wanted = tuple(dict.fromkeys([*(each.lower() for each in preload), LIBRARY]))
    for each in wanted:
        if each in facts.NOT_OFFERED:
            raise RuleError(
                f"{each} is not to be had on RDS and Aurora",
                got=each,
                allowed="libraries that AWS lists for shared_preload_libraries",
                hint=f"take {each} out of postgres.preload, or run Postgres on a box",
            )
    return wanted


def cron_parameters(database: str, timezone: str | None) -> tuple[Parameter, ...]:
    """Return what pg_cron itself needs: its database, and a time zone if one is set."""
    zone = [Parameter("cron.timezone", timezone, static=True)] if timezone else []
    return (Parameter("cron.database_name", database, static=True), *zone)


def in_order(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """Return parameters by name, as AWS lists them; the last of a name counts."""
    return tuple(each for _, each in sorted({each.name: each for each in parameters}.items()))


def parameter(name: str, value: str) -> Parameter:
    """Return a setting of the server as a parameter of a group, its value in the unit AWS wants.

    Raises RuleError: AWS has no such parameter or does not let it be changed, or the value cannot
    be written in its unit.
    """
    known = _known(name)
    if known is None:
        raise _unknown(name)
    static, unit = known
    return Parameter(name, _converted(name, value.strip(), unit), static)


def _known(name: str) -> tuple[bool, str] | None:
    """Tell whether a parameter is static, and its unit; None for one that is not known."""
    if name == PRELOAD:
        return True, facts.PLAIN
    if found := facts.PARAMETERS.get(name):
        return found
    rule = find_setting(name)
    if rule is None or not rule.managed:
        return None
    return rule.static, "bool" if rule.kind == "bool" else facts.PLAIN


def _unknown(name: str) -> RuleError:
    rule = find_setting(name)
    names = [*facts.PARAMETERS, *(key for each in EXTENSIONS.values() for key in each.settings)]
    near = difflib.get_close_matches(name, names, n=1)
    if rule is not None:
        problem, hint = "AWS does not let this parameter be changed", f"take {name} out"
    elif near:
        problem, hint = "no such parameter that we know", f"did you mean {near[0]}?"
    else:
        problem = "no such parameter that we know"
        hint = f"if AWS has it, write rds.parameters: {{{name}: {{value: ..., static: true}}}}"
    return RuleError(problem, got=name, allowed="a parameter of the family", hint=hint)


def _converted(name: str, value: str, unit: str) -> str:
    if _FORMULA.fullmatch(value) or unit == facts.PLAIN:
        return value
    if unit == "bool":
        return _switch(name, value)
    scale = facts.TIME if unit in facts.TIME else facts.MEMORY
    amount = _AMOUNT.fullmatch(value)
    if amount and not amount[2]:
        return value
    if amount is None or amount[2] not in scale:
        raise _bad_amount(name, value, unit, scale)
    found = Fraction(amount[1]) * scale[amount[2]] / scale[unit]
    if found.denominator != 1:
        raise _bad_amount(name, value, unit, scale)
    return str(found.numerator)


def _switch(name: str, value: str) -> str:
    found = _SWITCH.get(value.lower())
    if found is None:
        raise RuleError(
            f"{name} is a switch", got=value, allowed="on or off", hint=f"write {name}: on"
        )
    return found


def _bad_amount(name: str, value: str, unit: str, scale: Mapping[str, int]) -> RuleError:
    units = ", ".join(each for each in scale if each != "8kB")
    return RuleError(
        f"{name} cannot be written as a whole number of {unit}, which is all AWS takes",
        got=value,
        allowed=f"a number, alone or with one of {units}",
        hint=f"write a multiple of {unit}",
    )


def vcpus(instance_class: str) -> int | None:
    """Return the number of virtual CPUs of an instance class; None where its name does not tell."""
    found = _CLASS.fullmatch(instance_class)
    if found is None:
        return None
    return 2 if found[1] else 4 * int(found[2] or 1)


def worker_slots(instance_class: str, settings: Mapping[str, str]) -> int | None:
    """Return max_worker_processes as it will be; None where that is not known (serverless)."""
    given = settings.get("max_worker_processes")
    if given is not None:
        return int(given) if given.isdigit() else None
    cpus = vcpus(instance_class)
    return max(facts.FEWEST_WORKERS, facts.WORKERS_PER_VCPU * cpus) if cpus else None


def check_slots(instance_class: str, settings: Mapping[str, str]) -> None:
    """Raise RuleError where pg_cron's launcher and its jobs would not all find a worker slot."""
    slots = worker_slots(instance_class, settings)
    jobs = settings.get("cron.max_running_jobs", str(facts.RUNNING_JOBS))
    if slots is None or not jobs.isdigit() or slots > int(jobs):
        return
    raise RuleError(
        f"{jobs} jobs at once and the launcher of pg_cron need {int(jobs) + 1} worker slots",
        got=f"max_worker_processes {slots} on {instance_class}",
        allowed=f"{int(jobs) + 1} or more; other workers use them too",
        hint=f'write postgres.settings: {{max_worker_processes: "{int(jobs) + 3}"}}, or lower '
        "cron.max_running_jobs",
    )


def check_allowed_extensions(settings: Mapping[str, str]) -> None:
    """Raise RuleError where the list of extensions that may be created leaves out pg_cron."""
    given = settings.get("rds.allowed_extensions")
    names = {each.strip().lower() for each in (given or "").split(",")}
    if given is not None and not names & {"*", LIBRARY}:
        raise RuleError(
            "the list of allowed extensions leaves out pg_cron, so it could not be created",
            got=given,
            allowed="a list with pg_cron, or *",
            hint="add pg_cron to rds.allowed_extensions",
        )


def has_insights(instance_class: str) -> bool:
    """Tell whether Performance Insights can be had for an instance class."""
    return instance_class not in facts.WITHOUT_INSIGHTS


@dataclass(frozen=True, slots=True)
class Window:
    """A time of every day, in UTC. It passes midnight where it ends before it starts."""

    start: time
    end: time

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M}"


def window(text: str) -> Window:
    """Return the window of a text such as 02:00-04:00 or 23:00-01:00. Raises RuleError."""
    found = _WINDOW.fullmatch(text)
    ends = [time.fromisoformat(each) for each in found.groups()] if found else []
    if ends and ends[0] != ends[1]:
        return Window(*ends)
    raise RuleError(
        "this window is empty: it ends when it starts" if ends else "this is no window of a day",
        got=text,
        allowed="HH:MM-HH:MM in UTC, 00:00 to 23:59, two different times; it may pass midnight",
        hint='write "02:00-04:00"',
    )


def within(window: Window, now: datetime) -> bool:
    """Tell whether a window is open at an aware time. Its end is no part of it."""
    clock = now.astimezone(UTC).time()
    if window.start < window.end:
        return window.start <= clock < window.end
    return clock >= window.start or clock < window.end


def opens(window: Window, now: datetime) -> datetime:
    """Return when a window opens next after an aware time, in UTC."""
    there = now.astimezone(UTC)
    today = datetime.combine(there, window.start, UTC)
    return today if today > there else today + timedelta(days=1)
