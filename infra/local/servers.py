"""Which Postgres servers are installed here, and what to install when none fits."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.errors import InfraError

OLDEST, NEWEST = 13, 18
_PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)
_PROGRAMS = ("postgres", "initdb", "pg_ctl", "pg_isready", "psql")
# What each release's own archive ships as `postgresql`.
_SHIPPED = {
    ("debian", "11"): 13,
    ("debian", "12"): 15,
    ("debian", "13"): 17,
    ("ubuntu", "22.04"): 14,
    ("ubuntu", "24.04"): 16,
    ("ubuntu", "26.04"): 18,
}


@dataclass(frozen=True, slots=True)
class Server:
    """An installed Postgres: its major version, its programs, whether pg_cron is beside them."""

    version: int
    bindir: Path
    has_pg_cron: bool
    release: str = ""
    pg_cron_version: str | None = None

    def program(self, name: str) -> str:
        """Return the path of one of the server's programs."""
        return str(self.bindir / name)

    def __str__(self) -> str:
        cron = f"pg_cron {self.pg_cron_version}" if self.has_pg_cron else "no pg_cron"
        return f"Postgres {self.release or self.version}, {cron}"


def find_server(version: int | None = None, *, pg_cron: bool | None = None) -> Server:
    """Return the best installed server: one with pg_cron first, then the newest.

    ``pg_cron=True`` accepts only a server that has it; ``False`` does not ask and takes the
    newest. Raises InfraError with the command that installs what is missing.
    """
    found = installed()
    fits = [server for server in found if version in (None, server.version)]
    if pg_cron:
        fits = [server for server in fits if server.has_pg_cron]
    if not fits:
        raise missing(found, version, pg_cron=bool(pg_cron))
    return max(
        fits, key=lambda server: (server.has_pg_cron and pg_cron is not False, server.version)
    )


def installed() -> list[Server]:
    """Return every usable server, 13 to 18, each folder once."""
    folders = dict.fromkeys(folder.resolve() for folder in _folders())
    servers = (inspect(folder) for folder in folders)
    return [server for server in servers if server and OLDEST <= server.version <= NEWEST]


def inspect(bindir: Path) -> Server | None:
    """Look at one folder of programs; None when it holds no whole server."""
    if not all(os.access(bindir / program, os.X_OK) for program in _PROGRAMS):
        return None
    release = re.search(r"\(PostgreSQL\) (\d+)(\S*)", _say(bindir / "postgres", "--version"))
    if not release:
        return None
    cron = _pg_cron(bindir)
    return Server(int(release[1]), bindir, cron is not None, release[1] + release[2], cron)


def missing(found: Sequence[Server], version: int | None, *, pg_cron: bool) -> InfraError:
    """Say what is not there, what is, and the exact command that installs it here."""
    wanted = f"Postgres {version}" if version else f"Postgres ({OLDEST} to {NEWEST})"
    if pg_cron:
        wanted += " with pg_cron"
    there = "; ".join(f"{server} in {server.bindir}" for server in found) or "none"
    if version is None and found:
        version = max(server.version for server in found)
    return InfraError(
        f"no {wanted} is installed on this machine (found: {there})",
        hint=install_hint(sys.platform, _os_release(), version, root=os.geteuid() == 0),
    )


def install_hint(
    platform: str, release: Mapping[str, str], version: int | None = None, *, root: bool = False
) -> str:
    """Return the install command for a system, from its ``sys.platform`` and its os-release."""
    if platform == "darwin":
        return f"brew install postgresql@{version or 17} pg_cron"
    sudo = "" if root else "sudo "
    system = release.get("ID", "")
    family = {system, *release.get("ID_LIKE", "").split()}
    if family & {"debian", "ubuntu"}:
        shipped = version or _SHIPPED.get((system, release.get("VERSION_ID", "")))
        return _apt(sudo, shipped)
    if family & {"rhel", "fedora", "centos"}:
        major = version or 16
        return (
            f"{sudo}dnf install postgresql{major}-server pg_cron_{major}"
            " (from the PostgreSQL project's own repository)"
        )
    return f"install a Postgres server, {OLDEST} to {NEWEST}, and pg_cron for that same version"


def _apt(sudo: str, version: int | None) -> str:
    if version:
        return f"{sudo}apt-get install postgresql-{version} postgresql-{version}-cron"
    return (
        f"{sudo}apt-get install postgresql, then postgresql-N-cron"
        " for the version N that this brought"
    )


def _folders() -> Iterator[Path]:
    for place in _PLACES:
        yield from sorted(Path("/").glob(place.lstrip("/")))
    if pg_config := shutil.which("pg_config"):
        answer = _say(Path(pg_config), "--bindir").strip()
        if answer:
            yield Path(answer)


def _pg_cron(bindir: Path) -> str | None:
    """Return the version CREATE EXTENSION would give; None without the library or the scripts."""
    pg_config = bindir / "pg_config"
    libraries = Path(_say(pg_config, "--pkglibdir").strip() or bindir.parent / "lib")
    shared = Path(_say(pg_config, "--sharedir").strip() or bindir.parent / "share")
    control = shared / "extension" / "pg_cron.control"
    if not any((libraries / f"pg_cron{end}").exists() for end in (".so", ".dylib")):
        return None
    if not control.is_file():
        return None
    version = re.search(r"^default_version\s*=\s*'([^']*)'", control.read_text(), re.MULTILINE)
    return version[1] if version else None


def _say(program: Path, option: str) -> str:
    try:
        return subprocess.run(
            [program, option], capture_output=True, encoding="utf-8", timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _os_release(file: Path = Path("/etc/os-release")) -> dict[str, str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}
