"""What is to be installed on a box, and which of its Postgres clusters is meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from infra.boxes import MARK, Box, Cluster
from infra.changes import Change
from infra.checks import Problem
from infra.config import Environment
from infra.config.box_models import BoxEntry

SOURCES: Final = "/etc/apt/sources.list.d/jobwarden-pgdg.sources"
# It comes with the package postgresql-common from 246 on, so that no key has to be fetched.
KEY: Final = "/usr/share/postgresql-common/pgdg/apt.postgresql.org.asc"
# The Postgres that a release brings itself, by code name.
DISTRIBUTION: Final = {
    "bullseye": "13",
    "jammy": "14",
    "bookworm": "15",
    "noble": "16",
    "trixie": "17",
    "plucky": "17",
    "questing": "17",
}
SYSTEMS: Final = ("debian", "ubuntu")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which cluster is meant; "" stands for any."""

    version: str = ""
    name: str = ""
    port: str = ""


@dataclass(frozen=True, slots=True)
class Install:
    """Packages to install, a source for them, and the cluster to make, where one is missing."""

    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    packages: tuple[str, ...] = ()
    sources: str | None = None
    version: str = ""
    name: str = ""


def choice(environment: Environment, entry: BoxEntry) -> Choice:
    """What the environment says about the cluster of one box."""
    version, _, name = (entry.cluster or "").partition("/")
    port = str(entry.port or "")
    return Choice(version or environment.postgres.version or "", name, port)


def decide(environment: Environment, entry: BoxEntry, box: Box) -> Install:
    """Choose the cluster, then list what it lacks."""
    if box.os_id not in SYSTEMS:
        return Install(problems=(_system(box),))
    asked = choice(environment, entry)
    problem = _ambiguous(asked, entry, box)
    if problem:
        return Install(problems=(problem,))
    version = box.chosen.version if box.chosen else asked.version or DISTRIBUTION.get(box.codename)
    if version is None:
        return Install(problems=(_no_version(box),))
    if box.chosen is None and (problem := _unavailable(environment, version, box)):
        return Install(problems=(problem,))
    if environment.postgres.packages == "pgdg" and (problem := _foreign_sources(box)):
        return Install(problems=(problem,))
    return _missing(environment, box, version, asked.name or "main")


def _missing(environment: Environment, box: Box, version: str, name: str) -> Install:
    cron = [f"postgresql-{version}-cron"] if environment.postgres.cron.enabled else []
    wanted = [f"postgresql-{version}", *cron]
    packages = tuple(each for each in wanted if each not in box.packages)
    sources = None
    if environment.postgres.packages == "pgdg":
        text = render_sources(box.codename)
        sources = text if box.sources != text else None
    changes = [Change("package", each, "create", None, "installed") for each in packages]
    if sources:
        action = "update" if box.sources else "create"
        changes.insert(0, Change("file", SOURCES, action, box.sources, sources))  # type: ignore[arg-type]
    if box.chosen is None:
        changes.append(Change("cluster", f"{version}/{name}", "create", None, "online"))
    return Install(tuple(changes), (), packages, sources, version, name)


def render_sources(codename: str) -> str:
    """The source of PGDG's packages, in apt's deb822 form."""
    return (
        f"{MARK}.\n"
        "Types: deb\n"
        "URIs: https://apt.postgresql.org/pub/repos/apt\n"
        f"Suites: {codename}-pgdg\n"
        "Components: main\n"
        f"Signed-By: {KEY}\n"
    )


def _ambiguous(asked: Choice, entry: BoxEntry, box: Box) -> Problem | None:
    if box.chosen is not None or not box.clusters:
        return None
    fits = [each for each in box.clusters if _fits(asked, each)]
    listed = ", ".join(f"{each.title} (port {each.port})" for each in box.clusters)
    if len(fits) > 1:
        return Problem(
            "cluster",
            f"the box has several clusters, and any could be meant: {listed}",
            f"name one in `boxes`: cluster: {fits[0].title}",
        )
    if entry.cluster and entry.port is None:
        return None  # named in full: made where it is not there
    wanted = "/".join(part for part in (asked.version, asked.name) if part)
    if asked.port:
        wanted = f"{wanted} on port {asked.port}".strip()
    return Problem(
        "cluster",
        f"no cluster is {wanted}; the box has {listed}",
        "name that one in `boxes`, or a new one in full, such as"
        f" cluster: {asked.version or 16}/main",
    )


def _fits(asked: Choice, cluster: Cluster) -> bool:
    return (
        asked.version in {"", cluster.version}
        and asked.name in {"", cluster.name}
        and asked.port in {"", str(cluster.port)}
    )


def _unavailable(environment: Environment, version: str, box: Box) -> Problem | None:
    if environment.postgres.packages == "pgdg" or f"postgresql-{version}" in box.packages:
        return None
    brings = DISTRIBUTION.get(box.codename)
    if version == brings:
        return None
    return Problem(
        "postgres.version",
        f"{box.os_id} {box.codename} brings PostgreSQL {brings or 'of a version we do not know'},"
        f" not {version}",
        "set postgres.packages: pgdg, or another postgres.version",
    )


def _foreign_sources(box: Box) -> Problem | None:
    if not box.sources or box.sources.startswith(MARK):
        return None
    return Problem(
        "postgres.packages",
        f"{SOURCES} is there and is not ours; it is never overwritten",
        "move that file away, then deploy again",
    )


def _no_version(box: Box) -> Problem:
    return Problem(
        "postgres.version",
        f"which PostgreSQL {box.os_id} {box.codename} brings is not known here",
        "name it: postgres.version, with postgres.packages: pgdg where it is not the system's own",
    )


def _system(box: Box) -> Problem:
    found = box.os_id or "unknown"
    return Problem(
        "system",
        f"this is no system we can install on (got {found}; allowed: {', '.join(SYSTEMS)})",
        "use target existing with a databaseUrl for a Postgres elsewhere",
    )
