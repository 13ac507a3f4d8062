"""What ``pulumi preview --json`` says, as changes: ours by their own kinds, others as resources.

Pulumi compares with its state. Our resources of the final step hold values of the environment; a
key that is only known after the update is no change of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from infra.changes import Change
from infra.rows import LIBRARIES

# What the engine writes for a value that it does not know yet (pulumi/pulumi, sdk/go/common).
UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
LATER: Final = "known after the update"
_ACTIONS: Final = {"create": "create", "update": "update", "delete": "delete", "replace": "delete"}
_GROUPS: Final = (
    "aws:rds/parameterGroup:ParameterGroup",
    "aws:rds/clusterParameterGroup:ClusterParameterGroup",
)
_DYNAMIC: Final = "pulumi-python:dynamic/jobwarden:"
_PLACE: Final = frozenset({"database", "databaseName", "passwordSecret", "registerFrom"})
_HAND: Final = "changedByHand"
_HIDDEN: Final = frozenset({"__defaults", "__provider", "__internal"})

Values = Mapping[str, Any]


def changes(document: Mapping[str, Any]) -> tuple[Change, ...]:
    """The changes of a preview. Raises KeyError, TypeError where it is no such document."""
    steps = [_Step(each) for each in document.get("steps") or ()]
    texts = [step.new.get("text") for step in steps if step.type == f"{_DYNAMIC}Preload"]
    libraries = next((text for text in texts if text), None)
    before = {step.urn: step.old for step in steps if step.op == "refresh"}
    return tuple(
        _by_hand(change) if before.get(step.urn, step.old) != step.old else change
        for step in steps
        if step.custom and step.op != "refresh"
        for change in (*_one(step, libraries), *_paused(step))
    )


class _Step:
    """One step of the engine, with what both sides say."""

    def __init__(self, step: Mapping[str, Any]) -> None:
        self.op: str = step["op"]
        self.urn: str = step["urn"]
        before, after = step.get("oldState") or {}, step.get("newState") or {}
        self.type: str = (after or before).get("type") or self.urn.split("::")[2].split("$")[-1]
        self.name = self.urn.rpartition("::")[2]
        self.old = _plain(before.get("inputs") or {})
        self.new = _unnamed(self.name, _plain(after.get("inputs") or {}), self.old)
        self.outputs: Values = before.get("outputs") or {}
        known = bool((after or before).get("custom"))
        self.custom = known and not self.type.startswith("pulumi:")
        self.reasons = sorted(step.get("replaceReasons") or step.get("diffReasons") or ())

    @property
    def action(self) -> Any:
        return _ACTIONS[self.op]

    def differing(self) -> list[str]:
        """The keys whose values differ, on either side."""
        keys = sorted({*self.old, *self.new} - _HIDDEN)
        return [key for key in keys if self.old.get(key) != self.new.get(key)]

    def side(self, values: Values, keys: list[str]) -> dict[str, Any] | None:
        return {key: values[key] for key in keys if key in values} or None


def _plain(values: Any) -> Any:
    """A value that is not known yet, in words."""
    if isinstance(values, Mapping):
        return {key: _plain(value) for key, value in values.items()}
    if isinstance(values, list):
        return [_plain(value) for value in values]
    return LATER if values == UNKNOWN else values


def _unnamed(name: str, new: Any, old: Any) -> Any:
    """Without names that Pulumi makes up anew in each preview of what is not there yet."""
    made_up = re.compile(rf"{re.escape(name)}-[0-9a-f]{{7}}")
    return {
        key: value
        for key, value in new.items()
        if key in old
        or (
            not (key == "name" and "namePrefix" in new)
            and not (isinstance(value, str) and made_up.fullmatch(value))
        )
    }


def _by_hand(change: Change) -> Change:
    why = f"somebody changed it by hand; {change.why}".rstrip("; ")
    return replace(change, why=why)


def _paused(step: _Step) -> Iterator[Change]:
    """A schedule that somebody put to sleep stays so, which is no change of Pulumi's."""
    schedule = step.type == f"{_DYNAMIC}Schedule" and step.op != "delete"
    if schedule and step.outputs.get("active") is False:
        asleep = {"active": False}
        why = "paused by hand; `jobwarden apply --resume` wakes it"
        yield Change("schedule", step.name, "paused", asleep, asleep, why)


def _one(step: _Step, libraries: str | None) -> Iterator[Change]:
    if step.op not in _ACTIONS:
        return
    if step.type in _GROUPS:
        yield from _group(step, libraries)
    elif step.type == f"{_DYNAMIC}Preload":
        return
    elif step.type == f"{_DYNAMIC}Reboot":
        yield from _reboot(step)
    elif step.type.startswith(_DYNAMIC):
        yield from _final(step)
    else:
        yield _resource(step, step.differing())


def _resource(step: _Step, keys: list[str]) -> Change:
    """A resource of the provider: on a create all that is said of it."""
    short = "/".join(step.type.split(":")[1:2])
    why = ""
    if step.op == "replace":
        reasons = ", ".join(step.reasons)
        why = f"replaced: this one goes and a new one is made ({reasons})"
    old, new = step.side(step.old, keys), step.side(step.new, keys)
    return Change("resource", f"{short} {step.name}", step.action, old, new, why)


def _group(step: _Step, libraries: str | None) -> Iterator[Change]:
    """A parameter group, one change for each parameter; its other keys as a resource."""
    old, new = _parameters(step.old), _parameters(step.new)
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        value = after and after["value"]
        if name == LIBRARIES and value == LATER:
            value = libraries or LATER
        if before and before["value"] == value:
            continue
        action = "create" if before is None else "update" if after else "delete"
        why = _applied((after or before or {}).get("applyMethod"), step)
        was = before and before["value"]
        yield Change("parameter", name, action, was, value, why)  # type: ignore[arg-type]  # one of three
    keys = [key for key in step.differing() if key != "parameters"]
    if keys:
        yield _resource(step, keys)


def _parameters(values: Values) -> dict[str, Any]:
    listed = values.get("parameters") or []
    return {each["name"]: each for each in listed} if isinstance(listed, list) else {}


def _applied(method: Any, step: _Step) -> str:
    """A new group is in force with the first start of a new server: nothing waits for it."""
    if method == "pending-reboot" and step.op != "create":
        return "in force after a reboot"
    return ""


def _reboot(step: _Step) -> Iterator[Change]:
    """What waits for a reboot, and who does it."""
    old, new = step.old.get("waitsFor") or {}, step.new.get("waitsFor") or {}
    waits = [name for name in sorted(new) if new[name] not in (old.get(name), LATER)]
    pending = bool(step.outputs.get("requiresReboot"))
    if step.op != "update" or not (waits or pending):
        return
    named = ", ".join(waits or sorted(step.outputs.get("waiting") or {}))
    yield Change("restart", str(step.new.get("identifier")), "update", None, named, _who(step))


def _who(step: _Step) -> str:
    if step.new.get("rebootWhenPending"):
        return "pulumi up reboots it"
    if window := step.new.get("rebootWindow"):
        return f"pulumi up reboots it within {window} UTC"
    return "it waits until somebody reboots it"


def _final(step: _Step) -> Iterator[Change]:
    """The SQL, the limits or a schedule. Where the database is, is no part of them."""
    kind = step.type.removeprefix(_DYNAMIC)
    found = list({"Policy": _policy, "Sql": _sql, "Schedule": _schedule}[kind](step))
    if not found and step.op == "update" and step.outputs.get("registered") is False:
        why = "not registered yet; pulumi up tries again"
        found = [Change(_kind(kind), step.name, "update", None, "registered", why)]
    yield from found


def _kind(resource: str) -> Any:
    return resource.lower()


def _policy(step: _Step) -> Iterator[Change]:
    old, new = step.old.get("actions") or {}, step.new.get("actions") or {}
    for action in sorted({*old, *new}):
        yield from _pair("policy", action, old.get(action), new.get(action))


def _sql(step: _Step) -> Iterator[Change]:
    for key, kind in (("files", "sql"), ("indexes", "index")):
        old, new = step.old.get(key) or {}, step.new.get(key) or {}
        for name in sorted({*old, *new}):
            yield from _pair(kind, name, old.get(name), new.get(name))
    for text in step.old.get(_HAND) or []:
        name, _, why = str(text).partition(": ")
        yield Change("object", name, "update", None, None, why)


def _schedule(step: _Step) -> Iterator[Change]:
    keys = [key for key in step.differing() if key not in _PLACE]
    if step.op == "update" and not keys:
        return
    kept = [key for key in keys if key not in {"name", _HAND, "pausedByHand"}]
    old, new = step.side(step.old, kept), step.side(step.new, kept)
    yield Change("schedule", step.name, step.action, old, new, "")


def _pair(kind: Any, name: str, old: Any, new: Any) -> Iterator[Change]:
    if old == new:
        return
    action: Any = "create" if old is None else "delete" if new is None else "update"
    yield Change(kind, name, action, old, new)
