"""The texts of a service: its unit files, and its file of variables. Rendered, and nothing else.

Each service runs as a user of its own, sees the file system read-only but for its own folder, and
gets its variables from a file that only root and it can read. `systemd-analyze security` rates
such a unit below 3.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from infra import dburl, durations
from infra.boxes import MARK
from infra.config.box_faults import URL, user_named
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
# A run may take as long as its interval, and never less than a slow start does.
_SHORTEST_LIMIT: Final = 60
# After a boot the others come first, and nobody waits for a day.
_LONGEST_AFTER_BOOT: Final = 60


@dataclass(frozen=True, slots=True)
class Place:
    """The Postgres that services work with: its systemd unit, and the way in by its socket."""

    unit: str = ""
    database: str = ""
    port: int = 5432
    folder: str = "/var/run/postgresql"

    def url(self, user: str) -> str:
        """The URL by which the operating system's ``user`` gets in as the role of that name."""
        return dburl.by_socket(user, self.database, self.folder, self.port)


def user_of(name: str, service: Service) -> str:
    """The user a service runs as."""
    return service.user or user_named(name)


def files(name: str, service: Service, place: Place) -> Iterator[tuple[str, str]]:
    """The unit files of a service, by name."""
    yield f"{name}{'@' if service.instances else ''}.service", render(name, service, place)
    if service.every:
        yield f"{name}.timer", _timer(name, service)


def render(name: str, service: Service, place: Place) -> str:
    """One unit file. A template's instance finds its number in the variable INSTANCE."""
    user = user_of(name, service)
    lines = [
        "[Unit]",
        f"Description={_description(name, service)}",
        f"After=network.target {place.unit}",
        f"Wants={place.unit}",
        *_start_limit(service),
        "",
        "[Service]",
        *(["Type=oneshot"] if service.every else []),
        f"ExecStart={_escaped(service.command)}",
        f"User={user}",
        f"Group={user}",
        f"EnvironmentFile={ENV_FOLDER}/{name}.env",
        *(["Environment=INSTANCE=%i"] if service.instances else []),
        *([f"WorkingDirectory={service.working_directory}"] if service.working_directory else []),
        f"StateDirectory=jobwarden/{name}",
        *(f"ReadWritePaths={path}" for path in service.writable),
        *_ending(service),
        "OOMPolicy=stop",
        *([f"MemoryMax={service.memory_max}"] if service.memory_max else []),
        # For a user of its own only: it takes away shared memory, also that of a Postgres.
        *(["RemoveIPC=yes"] if service.user is None else []),
        HARDENING.rstrip(),
        *([] if service.every else ["", "[Install]", "WantedBy=multi-user.target"]),
    ]
    return HEADER + "\n".join(lines) + "\n"


def _description(name: str, service: Service) -> str:
    number = " %i" if service.instances else ""
    return _escaped(service.description or f"{name}{number}")


def _start_limit(service: Service) -> tuple[str, ...]:
    """A timer's runs are no restarts: one a second is no loop that must be ended."""
    if service.every:
        return ("StartLimitIntervalSec=0",)
    return ("StartLimitIntervalSec=60", "StartLimitBurst=5")


def _ending(service: Service) -> Iterator[str]:
    if service.every:
        yield f"TimeoutStartSec={max(durations.seconds(service.every), _SHORTEST_LIMIT)}"
    else:
        yield "Restart=always"
        yield "RestartSec=1"
    yield "KillMode=mixed"
    yield "KillSignal=SIGTERM"
    yield f"TimeoutStopSec={durations.seconds(service.drain)}"


def _timer(name: str, service: Service) -> str:
    """The first run after a boot comes soon; each other one, counted from the start of the last."""
    every = service.every or timedelta()
    seconds = durations.seconds(every)
    return (
        f"{HEADER}[Unit]\n"
        f"Description={_description(name, service)}, every {durations.render(every)}\n"
        "\n[Timer]\n"
        f"OnBootSec={min(seconds, _LONGEST_AFTER_BOOT)}\n"
        f"OnUnitActiveSec={seconds}\n"
        "AccuracySec=1s\n"
        "\n[Install]\nWantedBy=timers.target\n"
    )


def _escaped(text: str) -> str:
    """A percent sign begins one of systemd's own words; variables are the program's business."""
    return re.sub(r"%(?!i\b)", "%%", text)


def variables(
    name: str, service: Service, place: Place, secrets: Mapping[str, str]
) -> dict[str, str]:
    """The variables of a service, all its secrets being given."""
    own = {URL: place.url(user_of(name, service))} if service.database_role else {}
    return {**service.environment, **own, **{key: secrets[key] for key in service.secrets}}


def render_env(values: Mapping[str, str]) -> str:
    """Variables as ``EnvironmentFile=`` reads them: quoted, so that no character is special."""
    lines = (f"{name}={_quoted(value)}\n" for name, value in values.items())
    return HEADER + "".join(lines)


def _quoted(value: str) -> str:
    return '"' + re.sub(r'([\\"`$])', r"\\\1", value) + '"'
