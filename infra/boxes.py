"""A box as it was found: the parser of what ``box/files/look.sh`` prints.

A value of None means "unknown": nothing is installed that could tell. It never means "not there".
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from infra import observed
from infra.observed import Observed

MARK: Final = "# Jobwarden wrote this"
CONF_NAME: Final = "90-jobwarden.conf"


@dataclass(frozen=True, slots=True)
class Cluster:
    """One line of ``pg_lsclusters``."""

    version: str
    name: str
    port: int
    status: str
    owner: str
    data: str
    log: str

    @property
    def online(self) -> bool:
        """Whether a server process is there."""
        return self.status.startswith("online")

    @property
    def title(self) -> str:
        """VERSION/NAME, as users write it."""
        return f"{self.version}/{self.name}"

    @property
    def unit(self) -> str:
        """The systemd unit of this cluster alone; ``postgresql.service`` is all of them."""
        return f"postgresql@{self.version}-{self.name}.service"

    @property
    def folder(self) -> str:
        """Where Debian keeps its configuration."""
        return f"/etc/postgresql/{self.version}/{self.name}"

    @property
    def conf(self) -> str:
        """The one configuration file that is ours."""
        return f"{self.folder}/conf.d/{CONF_NAME}"


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """A setting in force. ``pending``: the files hold another value, for which it must restart."""

    value: str
    source: str
    context: str
    pending: bool


@dataclass(frozen=True, slots=True)
class FileLine:
    """One line of a configuration file, as the server reads it (``pg_file_settings``).

    A value that waits for a restart has an ``error`` too: it could not be applied.
    """

    name: str | None
    value: str | None
    file: str | None
    line: int | None
    applied: bool
    error: str | None


@dataclass(frozen=True, slots=True)
class BoxRole:
    """A role that a service asks for. ``groups``: those of ours whose rights it has, as it is."""

    login: bool
    superuser: bool
    inherits: bool
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class BoxServer:
    """What the running server says of itself, whatever the database."""

    version_num: int
    in_recovery: bool
    identifier: str
    databases: tuple[str, ...]
    settings: Mapping[str, ServerSetting]
    files: tuple[FileLine, ...]
    hba: str
    ident: str
    roles: Mapping[str, BoxRole]

    def setting(self, name: str) -> str | None:
        """The value in force; None where the server has no such setting."""
        found = self.settings.get(name)
        return found.value if found else None


@dataclass(frozen=True, slots=True)
class UnitState:
    """How systemd sees one unit."""

    load: str
    active: str
    sub: str
    enabled: str
    path: str
    result: str
    restarts: int

    @property
    def running(self) -> bool:
        """True also for a unit that is just being started."""
        return self.active in {"active", "reloading", "activating"} and self.sub != "auto-restart"


@dataclass(frozen=True, slots=True)
class EnvFile:
    """A file of variables: who may read it, a hash of what it holds, whether it has our mark."""

    mode: str
    owner: str
    group: str
    sha256: str
    ours: bool = True


@dataclass(frozen=True, slots=True)
class Box:
    """Everything a deploy decides from."""

    os_id: str
    codename: str
    packages: Mapping[str, str]
    sources: str | None
    clusters: tuple[Cluster, ...]
    chosen: Cluster | None
    conf: str | None
    includes: str
    libraries: frozenset[str]
    cron_version: str | None
    proof: str | None
    server: BoxServer | None
    server_error: str
    observed: Observed | None
    observed_error: str
    systemd: bool
    files: Mapping[str, str]
    units: Mapping[str, UnitState]
    fallback: str | None
    envs: Mapping[str, EnvFile]
    users: frozenset[str]
    due: frozenset[str] = frozenset()

    @property
    def standby(self) -> bool:
        """Whether the chosen server only follows another."""
        return bool(self.server and self.server.in_recovery)


def parse(lines: Iterable[str]) -> Box:
    """Read the findings. Raises ValueError when they were cut off, KeyError when not ours."""
    found = dict(_findings(lines))
    if found.get("end") != "done":
        raise ValueError("the findings were cut off")
    os = _assignments(found.get("os", ""))
    clusters = tuple(_clusters(found.get("clusters", "")))
    return Box(
        os_id=os.get("ID", ""),
        codename=os.get("VERSION_CODENAME", ""),
        packages=_packages(found.get("packages", "")),
        sources=found.get("sources"),
        clusters=clusters,
        chosen=next((each for each in clusters if each.title == found.get("chosen")), None),
        conf=found.get("conf"),
        includes=found.get("includes", ""),
        libraries=frozenset(found.get("libraries", "").split()),
        cron_version=_assignments(found.get("control", "")).get("default_version"),
        proof=found.get("proof"),
        server=_server(found.get("server", "")),
        server_error=found.get("server_error", "").strip(),
        observed=_observed(found.get("observed", "")),
        observed_error=found.get("observed_error", "").strip(),
        systemd="systemctl" in found,
        files={
            key.removeprefix("unit:"): value
            for key, value in found.items()
            if key.startswith("unit:")
        },
        units=dict(_units(found.get("systemctl", ""))),
        fallback=found.get("fallback"),
        envs=dict(_envs(found)),
        users=frozenset(found.get("users", "").split()),
        due=frozenset(found.get("due", "").split()),
    )


def _findings(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Key and value of each line; a greeting of the box's own shell is passed over."""
    for line in lines:
        key, _, value = line.partition(" ")
        with contextlib.suppress(ValueError):
            yield key, base64.b64decode(value, validate=True).decode(errors="replace")


def parse_observed(text: str) -> Observed | None:
    """Read the last document of ``observe.sql`` in what psql printed; None without one."""
    return _observed(text)


def _assignments(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name.strip(): value.strip().strip("\"'") for name, sign, value in pairs if sign}


def _packages(text: str) -> dict[str, str]:
    rows = (line.split("|") for line in text.splitlines())
    return {row[1]: row[2] for row in rows if len(row) == 3 and row[0].startswith("ii")}


def _clusters(text: str) -> Iterable[Cluster]:
    for line in text.splitlines():
        column = line.split()
        if len(column) >= 6 and column[2].isdigit():
            log = column[6] if len(column) > 6 else ""
            yield Cluster(
                column[0], column[1], int(column[2]), column[3], column[4], column[5], log
            )


def _server(text: str) -> BoxServer | None:
    if not text.strip():
        return None
    doc: dict[str, Any] = json.loads(text)
    return BoxServer(
        version_num=doc["version_num"],
        in_recovery=doc["in_recovery"],
        identifier=doc["identifier"],
        databases=tuple(doc["databases"]),
        settings={name: ServerSetting(**row) for name, row in doc["settings"].items()},
        files=tuple(FileLine(**row) for row in doc["files"]),
        hba=doc["hba"],
        ident=doc["ident"],
        roles={
            name: BoxRole(**{**row, "groups": frozenset(row["groups"])})
            for name, row in doc["roles"].items()
        },
    )


def _observed(text: str) -> Observed | None:
    documents = [line for line in text.splitlines() if line.startswith("{")]
    return observed.parse(documents[-1]) if documents else None


def _units(text: str) -> Iterable[tuple[str, UnitState]]:
    for block in text.split("\n\n"):
        row = dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line)
        if "Id" in row:
            yield (
                row["Id"],
                UnitState(
                    load=row.get("LoadState", ""),
                    active=row.get("ActiveState", ""),
                    sub=row.get("SubState", ""),
                    enabled=row.get("UnitFileState", ""),
                    path=row.get("FragmentPath", ""),
                    result=row.get("Result", ""),
                    restarts=int(row.get("NRestarts") or 0),
                ),
            )


def _envs(found: Mapping[str, str]) -> Iterable[tuple[str, EnvFile]]:
    for key, value in found.items():
        if key.startswith("env:"):
            mode, owner, group, digest, *rest = value.split()
            name = key.removeprefix("env:").removesuffix(".env")
            yield name, EnvFile(mode, owner, group, digest, "foreign" not in rest)
