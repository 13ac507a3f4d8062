"""Services as systemd units: what a box is to have, compared with what it has.

A file of ours begins with a mark; one without it is never touched. A service with ``every`` is two
units: a timer, which is kept up, and what it starts, which may run or not at any moment.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from infra import unit_texts
from infra.boxes import Box, EnvFile
from infra.changes import Change
from infra.checks import Problem
from infra.config.box_models import Service
from infra.unit_texts import ENV_FOLDER, FOLDER, Place, user_of


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that a box's services need: file texts by name, variables by service, users to make.

    ``running`` are the units to be up, each with its service; ``unknown`` by service the secrets
    that were not given, so that its variables cannot be told.
    """

    files: Mapping[str, str]
    envs: Mapping[str, str]
    groups: Mapping[str, str]
    users: tuple[str, ...]
    running: Mapping[str, str]
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Units:
    """What is to be done, in this order: write files, stop, reload, restart and start.

    A timer in ``restart`` stands for what it starts too, which is to run at once.
    """

    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    users: tuple[str, ...] = ()
    write: Mapping[str, str] | None = None
    envs: Mapping[str, str] | None = None
    remove: tuple[str, ...] = ()
    remove_envs: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


def plan(services: Mapping[str, Service], place: Place, secrets: Mapping[str, str]) -> Wanted:
    """Render all services; ``place`` is the Postgres they wait for."""
    files: dict[str, str] = {}
    running: dict[str, str] = {}
    envs, groups, users, unknown = {}, {}, [], {}
    for name, service in services.items():
        files |= dict(unit_texts.files(name, service, place))
        if missing := tuple(key for key in service.secrets if key not in secrets):
            unknown[name] = missing
        else:
            envs[name] = unit_texts.render_env(unit_texts.variables(name, service, place, secrets))
        groups[name] = user_of(name, service)
        if service.user is None:
            users.append(user_of(name, service))
        running |= dict.fromkeys(_kept_up(name, service), name)
    return Wanted(files, envs, groups, tuple(users), running, unknown)


def _kept_up(name: str, service: Service) -> list[str]:
    if service.every:
        return [f"{name}.timer"]
    if service.instances is None:
        return [f"{name}.service"]
    return [f"{name}@{number}.service" for number in range(1, service.instances + 1)]


def patterns(services: Mapping[str, Service]) -> tuple[str, ...]:
    """What to ask systemd for: each wanted unit, and whatever instances there are."""
    names = [unit for name, service in services.items() for unit in _kept_up(name, service)]
    started = [f"{name}.service" for name, service in services.items() if service.every]
    return (*names, *started, *(f"{name}@*.service" for name in services))


def diff(wanted: Wanted, box: Box) -> Units:
    """What takes a box's units to ``wanted``. Files without our mark stay as they are."""
    problems = tuple(_foreign(wanted, box))
    if problems:
        return Units(problems=problems)
    write = {name: text for name, text in wanted.files.items() if box.files.get(name) != text}
    envs = {
        name: text for name, text in wanted.envs.items() if not _env_is(name, text, wanted, box)
    }
    ours = {name for name in box.files if not name.startswith("jobwarden-fallback-")}
    remove = tuple(sorted(ours - set(wanted.files)))
    stop = tuple(_stop(wanted, box, ours, remove))
    touched = {*map(_service_of, write), *envs}
    restart = tuple(
        unit
        for unit, name in wanted.running.items()
        if name in touched or unit in box.due or _down(unit, box)
    )
    users = tuple(user for user in wanted.users if user not in box.users)
    stale = _stale(wanted, box)
    return Units(
        changes=(
            *(Change("user", user, "create", None, {"system": True}) for user in users),
            *_file_changes(box, write, remove),
            *_env_changes(wanted, box, envs, stale),
            *_stop_changes(wanted, box, stop),
            *_start_changes(wanted, box, restart, touched),
        ),
        users=users,
        write=write,
        envs=envs,
        remove=remove,
        remove_envs=stale,
        stop=stop,
        restart=restart,
    )


def _stale(wanted: Wanted, box: Box) -> tuple[str, ...]:
    ours = {name for name, found in box.envs.items() if found.ours}
    return tuple(sorted(ours - set(wanted.groups)))


def _file_changes(box: Box, write: Mapping[str, str], remove: tuple[str, ...]) -> Iterator[Change]:
    for name, text in write.items():
        old = box.files.get(name)
        yield Change("file", f"{FOLDER}/{name}", "update" if old else "create", old, text)
    for name in remove:
        why = "the environment no longer names it"
        yield Change("file", f"{FOLDER}/{name}", "delete", box.files[name], None, why)


def _env_changes(
    wanted: Wanted, box: Box, envs: Mapping[str, str], stale: tuple[str, ...]
) -> Iterator[Change]:
    """Not even a hash of the values is told: a weak secret could be guessed by it."""
    for name, text in envs.items():
        found, path = box.envs.get(name), f"{ENV_FOLDER}/{name}.env"
        new = {"mode": "640", "owner": "root", "group": wanted.groups[name]}
        if found is None:
            yield Change("file", path, "create", None, new, "values are not shown")
            continue
        why = "its values differ" if found.sha256 != _hash(text) else "its values are the same"
        was = {"mode": found.mode, "owner": found.owner, "group": found.group}
        yield Change("file", path, "update", was, new, f"{why}; they are not shown")
    for name, missing in wanted.unknown.items():
        why = f"secret {', '.join(missing)} not given"
        yield Change("file", f"{ENV_FOLDER}/{name}.env", "unknown", why=why)
    for name in stale:
        path, was = f"{ENV_FOLDER}/{name}.env", {"mode": box.envs[name].mode}
        yield Change("file", path, "delete", was, None, "values are not shown")


def _stop_changes(wanted: Wanted, box: Box, stop: tuple[str, ...]) -> Iterator[Change]:
    for unit in stop:
        gone = "the environment no longer names it"
        why = "a timer starts it from now on" if unit in wanted.files else gone
        yield Change("unit", unit, "delete", _state(box, unit), None, why)


def _start_changes(
    wanted: Wanted, box: Box, restart: tuple[str, ...], touched: set[str]
) -> Iterator[Change]:
    for unit in restart:
        old, found = _state(box, unit), box.units.get(unit)
        if found is None or old is None:
            why = ""
        elif not found.running:
            why = "it was not running"
        elif wanted.running[unit] in touched:
            why = "its files changed"
        elif unit in box.due:
            why = "a deploy ended after its files changed, and before it was restarted"
        elif unit.endswith(".timer"):
            why = "not enabled: its first run failed, or somebody disabled it"
        else:
            why = "it is not set to come up after a boot"
        yield Change("unit", unit, "update" if old else "create", old, "active", why)


def _state(box: Box, unit: str) -> str | None:
    found = box.units.get(unit)
    return f"{found.active} ({found.sub})" if found and found.load == "loaded" else None


def _down(unit: str, box: Box) -> bool:
    found = box.units.get(unit)
    return found is None or not found.running or found.enabled != "enabled"


def _env_is(name: str, text: str, wanted: Wanted, box: Box) -> bool:
    return box.envs.get(name) == EnvFile("640", "root", wanted.groups[name], _hash(text))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _foreign(wanted: Wanted, box: Box) -> Iterator[Problem]:
    for unit in dict.fromkeys([*wanted.running, *wanted.files]):
        found, file = box.units.get(unit), _file_of(unit)
        if found and found.path and found.load != "not-found" and file not in box.files:
            yield _not_ours(f"unit {unit}", found.path)
    for name in wanted.groups:
        if name in box.envs and not box.envs[name].ours:
            yield _not_ours(f"service {name}", f"{ENV_FOLDER}/{name}.env")


def _not_ours(subject: str, path: str) -> Problem:
    return Problem(
        subject,
        f"{path} is there and is not ours; it is never overwritten",
        "give the service another name in `services`, or move that file away",
    )


def _stop(wanted: Wanted, box: Box, ours: set[str], remove: tuple[str, ...]) -> Iterator[str]:
    """Units of ours that are up, or set to come up, and are not to be.

    What a timer starts is wanted, and not kept up: it may be at work, and must not come up by
    itself. It goes with its timer, also where it did not run when the box was looked at.
    """
    for unit, state in box.units.items():
        if unit in wanted.running or "@." in unit or _file_of(unit) not in ours:
            continue
        by_itself = state.active == "active" or state.enabled == "enabled"
        up = state.active not in {"inactive", ""} or state.enabled == "enabled"
        timer_goes = f"{_service_of(unit)}.timer" in remove
        if by_itself if unit in wanted.files else up or timer_goes:
            yield unit


def _file_of(unit: str) -> str:
    return re.sub(r"@[^.]*\.", "@.", unit)


def _service_of(unit: str) -> str:
    """The name that a unit or its file has from its service."""
    return re.sub(r"(@[^.]*)?\.(service|timer)$", "", unit)
