"""Services as systemd units: rendered, and compared with what a box has.

A file of ours begins with a mark; one without it is never touched. Each service runs as a user
of its own, sees the file system read-only but for its own folder, and gets its variables from a
file that only root and it can read. `systemd-analyze security` rates such a unit below 3.0.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from infra.boxes import MARK, Box, EnvFile
from infra.changes import Change
from infra.checks import Problem
from infra.config.box_models import Service

FOLDER: Final = "/etc/systemd/system"
ENV_FOLDER: Final = "/etc/jobwarden"
HEADER: Final = (
    f"{MARK}. Change `services` in the environment file instead: a deploy puts this back.\n"
)
HARDENING: Final = """\
AmbientCapabilities=
CapabilityBoundingSet=
LockPersonality=yes
NoNewPrivileges=yes
PrivateDevices=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
UMask=0027
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that a box's services need: file texts by name, variables by service, users to make.

    ``running`` are the units to be up, each with the file it comes from; ``unknown`` by service the
    secrets that were not given, so that its variables cannot be told.
    """

    files: Mapping[str, str]
    envs: Mapping[str, str]
    groups: Mapping[str, str]
    users: tuple[str, ...]
    running: Mapping[str, str]
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Units:
    """What is to be done, in this order: write files, reload, stop, restart and start."""

    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    users: tuple[str, ...] = ()
    write: Mapping[str, str] | None = None
    envs: Mapping[str, str] | None = None
    remove: tuple[str, ...] = ()
    remove_envs: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


def user_of(name: str, service: Service) -> str:
    """The user a service runs as."""
    return service.user or f"jobwarden-{name}"[:32]


def plan(services: Mapping[str, Service], after: str, secrets: Mapping[str, str]) -> Wanted:
    """Render all services; ``after`` is the unit of the Postgres they wait for."""
    files, envs, groups, users, running, unknown = {}, {}, {}, [], {}, {}
    for name, service in services.items():
        file = f"{name}@.service" if service.instances else f"{name}.service"
        files[file] = render(name, service, after)
        if missing := tuple(key for key in service.secrets if key not in secrets):
            unknown[name] = missing
        else:
            given = {key: secrets[key] for key in service.secrets}
            envs[name] = render_env({**service.environment, **given})
        groups[name] = user_of(name, service)
        if service.user is None:
            users.append(user_of(name, service))
        for unit in _instances(name, service):
            running[unit] = file
    return Wanted(files, envs, groups, tuple(users), running, unknown)


def _instances(name: str, service: Service) -> list[str]:
    if service.instances is None:
        return [f"{name}.service"]
    return [f"{name}@{number}.service" for number in range(1, service.instances + 1)]


def patterns(services: Mapping[str, Service]) -> tuple[str, ...]:
    """What to ask systemd for: each wanted unit, and whatever instances there are."""
    names = [unit for name, service in services.items() for unit in _instances(name, service)]
    return (*names, *(f"{name}@*.service" for name in services))


def render(name: str, service: Service, after: str) -> str:
    """One unit file. A template's instance finds its number in the variable INSTANCE."""
    user = user_of(name, service)
    number = " %i" if service.instances else ""
    description = _escaped(service.description or f"{name}{number}")
    lines = [
        "[Unit]",
        f"Description={description}",
        f"After=network.target {after}",
        f"Wants={after}",
        "StartLimitIntervalSec=60",
        "StartLimitBurst=5",
        "",
        "[Service]",
        f"ExecStart={_escaped(service.command)}",
        f"User={user}",
        f"Group={user}",
        f"EnvironmentFile={ENV_FOLDER}/{name}.env",
        *(["Environment=INSTANCE=%i"] if service.instances else []),
        *([f"WorkingDirectory={service.working_directory}"] if service.working_directory else []),
        f"StateDirectory=jobwarden/{name}",
        *(f"ReadWritePaths={path}" for path in service.writable),
        "Restart=always",
        "RestartSec=1",
        "KillMode=mixed",
        "KillSignal=SIGTERM",
        f"TimeoutStopSec={int(service.drain.total_seconds())}",
        "OOMPolicy=stop",
        *([f"MemoryMax={service.memory_max}"] if service.memory_max else []),
        # For a user of its own only: it takes away shared memory, also that of a Postgres.
        *(["RemoveIPC=yes"] if service.user is None else []),
        HARDENING.rstrip(),
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    return HEADER + "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    """A percent sign begins one of systemd's own words; variables are the program's business."""
    return re.sub(r"%(?!i\b)", "%%", text)


def render_env(values: Mapping[str, str]) -> str:
    """Variables as ``EnvironmentFile=`` reads them: quoted, so that no character is special."""
    lines = (f"{name}={_quoted(value)}\n" for name, value in values.items())
    return HEADER + "".join(lines)


def _quoted(value: str) -> str:
    return '"' + re.sub(r'([\\"`$])', r"\\\1", value) + '"'


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
    stop = tuple(unit for unit in _loaded(box, ours) if unit not in wanted.running)
    restart = tuple(
        unit
        for unit, file in wanted.running.items()
        if file in write or file.split("@")[0].removesuffix(".service") in envs or _down(unit, box)
    )
    users = tuple(user for user in wanted.users if user not in box.users)
    stale = _stale(wanted, box)
    return Units(
        changes=(
            *(Change("user", user, "create", None, {"system": True}) for user in users),
            *_file_changes(box, write, envs, remove),
            *_env_changes(wanted, box, stale),
            *_state_changes(box, stop, restart),
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


def _file_changes(
    box: Box,
    write: Mapping[str, str],
    envs: Mapping[str, str],
    remove: tuple[str, ...],
) -> Iterator[Change]:
    for name, text in write.items():
        old = box.files.get(name)
        yield Change("file", f"{FOLDER}/{name}", "update" if old else "create", old, text)
    for name in envs:
        found = box.envs.get(name)
        action = "update" if found else "create"
        was = {"mode": found.mode, "sha256": found.sha256} if found else None
        new = {"mode": "640", "sha256": _hash(envs[name])}
        yield Change("file", f"{ENV_FOLDER}/{name}.env", action, was, new, "values are not shown")  # type: ignore[arg-type]  # one of two literals
    for name in remove:
        why = "the environment no longer names it"
        yield Change("file", f"{FOLDER}/{name}", "delete", box.files[name], None, why)


def _env_changes(wanted: Wanted, box: Box, stale: tuple[str, ...]) -> Iterator[Change]:
    for name, missing in wanted.unknown.items():
        why = f"secret {', '.join(missing)} not given"
        yield Change("file", f"{ENV_FOLDER}/{name}.env", "unknown", why=why)
    for name in stale:
        yield Change("file", f"{ENV_FOLDER}/{name}.env", "delete", box.envs[name].sha256, None)


def _state_changes(box: Box, stop: tuple[str, ...], restart: tuple[str, ...]) -> Iterator[Change]:
    for unit in stop:
        why = "the environment no longer names it"
        yield Change("unit", unit, "delete", _state(box, unit), None, why)
    for unit in restart:
        old = _state(box, unit)
        found = box.units.get(unit)
        there = found is not None and found.running
        why = "" if old is None else "its files changed" if there else "it was not running"
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
    for unit, file in wanted.running.items():
        found = box.units.get(unit)
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


def _loaded(box: Box, files: set[str]) -> list[str]:
    """Units that come from files of ours and are up, or set to come up."""
    found = []
    for unit, state in box.units.items():
        file = re.sub(r"@[^.]*\.", "@.", unit)
        up = state.active not in {"inactive", ""} or state.enabled == "enabled"
        if file in files and "@." not in unit and up:
            found.append(unit)
    return found
