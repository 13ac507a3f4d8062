"""What RDS refuses and moto accepts. Each check raises moto's own client error, with AWS's code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from moto.rds.exceptions import RDSClientError

from tests.engine.account import facts

MOST_AT_ONCE = 20
_DEFAULT = "default."
_NAME = re.compile(r"(?!.*--)[A-Za-z][A-Za-z0-9-]{0,254}(?<!-)")


def group_name(name: str) -> None:
    """Refuse a name that is not an identifier; the default groups' own names are not, either."""
    if not _NAME.fullmatch(name):
        raise RDSClientError(
            "InvalidParameterValue",
            f"The parameter DBParameterGroupName is not a valid identifier: {name}. Identifiers"
            " must begin with a letter; must contain only ASCII letters, digits, and hyphens; and"
            " must not end with a hyphen or contain two consecutive hyphens.",
        )


def known_family(family: str) -> None:
    if family not in facts.families():
        raise RDSClientError(
            "InvalidParameterValue",
            f"ParameterGroupFamily {family} is not a valid parameter group family.",
        )


def own_group(name: str) -> None:
    """Refuse to change or delete a default group."""
    if name.startswith(_DEFAULT):
        raise RDSClientError(
            "InvalidDBParameterGroupState", f"Default parameter group {name} cannot be modified."
        )


def unused_group(name: str, members: Sequence[str]) -> None:
    if members:
        raise RDSClientError(
            "InvalidDBParameterGroupState",
            "One or more database instances are still members of this parameter group"
            f" {name}, so the group cannot be deleted ({', '.join(members)})",
        )


def changes(parameters: Sequence[Mapping[str, str]]) -> None:
    """Refuse a whole ModifyDBParameterGroup call: nothing of it is applied."""
    if not parameters:
        raise RDSClientError("InvalidParameterValue", "No parameters were given.")
    if len(parameters) > MOST_AT_ONCE:
        raise RDSClientError(
            "InvalidParameterValue",
            f"A maximum of {MOST_AT_ONCE} parameters can be modified in a single request"
            f" (got {len(parameters)}).",
        )
    for parameter in parameters:
        _change(
            parameter["ParameterName"],
            parameter.get("ParameterValue"),
            parameter.get("ApplyMethod"),
        )


def _change(name: str, value: str | None, method: str | None) -> None:
    known = facts.PARAMETERS.get(name)
    if known is None:
        raise RDSClientError("InvalidParameterValue", f"Could not find parameter with name: {name}")
    if not known.modifiable:
        raise RDSClientError(
            "InvalidParameterCombination", f"The parameter {name} cannot be modified."
        )
    if method not in {"immediate", "pending-reboot"}:
        raise RDSClientError("InvalidParameterValue", f"Invalid apply method {method} for: {name}")
    if known.static and method == "immediate":
        raise RDSClientError(
            "InvalidParameterCombination",
            "cannot use immediate apply method for static parameter",
        )
    if value is not None and not known.allows(value):
        raise RDSClientError(
            "InvalidParameterValue",
            f"Invalid parameter value: {value} for: {name} allowed values are: {known.allowed}",
        )


def fitting_group(name: str, group_family: str, engine: str, version: str) -> None:
    wanted = facts.family(engine, version)
    if group_family != wanted:
        raise RDSClientError(
            "InvalidParameterCombination",
            f"The Parameter Group {name} with DBParameterGroupFamily {group_family} cannot be used"
            " for this instance. Please use a Parameter Group with DBParameterGroupFamily"
            f" {wanted}",
        )


def known_version(engine: str, version: str | None) -> str:
    """Return the full version. Refuse one that is not on offer."""
    full = facts.resolve(engine, version)
    if full is None:
        raise RDSClientError(
            "InvalidParameterCombination", f"Cannot find version {version} for {engine}"
        )
    return full


def orderable(engine: str, version: str, instance_class: str) -> None:
    if instance_class not in facts.classes(engine):
        raise RDSClientError(
            "InvalidParameterCombination",
            "RDS does not support creating a DB instance with the following combination:"
            f" DBInstanceClass={instance_class}, Engine={engine}, EngineVersion={version}.",
        )


def upgrade(old: str, new: str, group: str | None, *, allowed: bool) -> None:
    """Refuse a step back, and a major step without its flag or with a group left behind."""
    before, after = int(facts.major(old)), int(facts.major(new))
    if _numbers(new) < _numbers(old):
        raise RDSClientError(
            "InvalidParameterCombination", f"Cannot upgrade from {old} to {new}: it is older."
        )
    if before == after:
        return
    if not allowed:
        raise RDSClientError(
            "InvalidParameterCombination",
            "The AllowMajorVersionUpgrade flag must be present when upgrading to a new major"
            " version.",
        )
    if group is not None:
        raise RDSClientError(
            "InvalidParameterCombination",
            f"The current DB instance parameter group {group} is custom. You must explicitly"
            " specify a new DB parameter group, either default or custom, for the engine version"
            " upgrade.",
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def default_group(engine: str, version: str) -> str:
    return _DEFAULT + facts.family(engine, version)


def is_default(name: str) -> bool:
    return name.startswith(_DEFAULT)


def family_of_default(name: str) -> str:
    return name.removeprefix(_DEFAULT)


def names(parameters: Iterable[Mapping[str, str]]) -> list[str]:
    return [parameter["ParameterName"] for parameter in parameters]
