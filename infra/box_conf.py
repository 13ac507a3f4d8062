"""The configuration of a box's Postgres: our one file, and what must restart for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from infra import cronexpr, preload
from infra.box_precedence import LIBRARIES, in_force, include_line, losers, others_value
from infra.boxes import MARK, Box, Cluster
from infra.changes import Change
from infra.checks import Problem
from infra.config import Environment
from infra.errors import RuleError
from infra.extensions import find_setting

WORKERS: Final = "max_worker_processes"
HEADER: Final = (
    f"{MARK}. Change the environment file instead: a deploy puts this back,\n"
    "# and takes it away with `--data state=absent`.\n"
)
# Both ways of running jobs are there since 1.3, but before 1.5 one long job in a background worker
# holds up all others.
WORKERS_SINCE: Final = (1, 5)
_DEFAULT_DATABASE: Final = "app"
_DEFAULT_JOBS: Final = 5
_SPARE_WORKERS: Final = 3
_LINE = re.compile(r"^\s*([A-Za-z_][\w.]*)\s*=?\s*'((?:[^']|'')*)'\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Conf:
    """What is to be written. ``text`` is all of our file; "" where it is not wanted at all.

    ``problems`` keep our values from being obeyed. ``waiting`` are settings that need a restart.
    """

    text: str
    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    waiting: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


def database(environment: Environment) -> str:
    """The database that holds the jobs on a box."""
    return environment.postgres.database or _DEFAULT_DATABASE


def names(environment: Environment) -> tuple[str, ...]:
    """The settings to ask a server for, besides all of ``cron.*``."""
    asked = {LIBRARIES, WORKERS, "unix_socket_directories", "port", *environment.postgres.settings}
    return tuple(sorted(asked))


def uses_workers(version: str | None) -> bool:
    """Whether this pg_cron runs its jobs in background workers; else it connects as a client."""
    return version is not None and cronexpr.parse_version(version) >= WORKERS_SINCE


def decide(environment: Environment, box: Box) -> Conf:
    """Compare what is wanted with the server's own account of its files. Needs a server."""
    cluster = box.chosen
    if cluster is None or box.server is None:
        return Conf("")
    if box.conf is not None and not box.conf.startswith(MARK):
        return Conf(box.conf, problems=(_foreign(cluster),))
    ours = written(box.conf or "")
    try:
        wanted = _wanted(environment, box, ours)
    except RuleError as error:
        return Conf(box.conf or "", problems=(Problem(LIBRARIES, error.message, error.hint or ""),))
    listed = preload.parse(wanted.get(LIBRARIES) or in_force(box, LIBRARIES))
    return Conf(
        text=render(wanted),
        changes=tuple(_changes(box, ours, wanted)),
        problems=(*_timezone(environment, box), *_not_read(box, cluster), *losers(wanted, box)),
        waiting=_waiting(box, ours, wanted),
        libraries=listed,
    )


def absent(box: Box) -> Conf:
    """The same without our file: what is in force then is what others wrote."""
    if box.chosen is None or box.server is None:
        return Conf("")
    if box.conf is not None and not box.conf.startswith(MARK):
        return Conf(box.conf, problems=(_foreign(box.chosen),))
    ours = written(box.conf or "")
    return Conf("", tuple(_changes(box, ours, {})), (), _waiting(box, ours, {}))


def render(wanted: Mapping[str, str]) -> str:
    """Our file, byte for byte."""
    if not wanted:
        return ""
    lines = (f"{name} = {preload.render_conf_value(value)}\n" for name, value in wanted.items())
    return HEADER + "".join(lines)


def written(text: str) -> dict[str, str]:
    """The settings that a file of ours holds."""
    return {
        name: value.replace("''", "'").replace("\\\\", "\\") for name, value in _LINE.findall(text)
    }


def _wanted(environment: Environment, box: Box, ours: Mapping[str, str]) -> dict[str, str]:
    wanted: dict[str, str] = {}
    libraries = _libraries(environment, box, ours)
    if libraries is not None:
        wanted[LIBRARIES] = libraries
    if environment.postgres.cron.enabled:
        wanted |= _cron(environment, box)
    wanted |= environment.postgres.settings
    if uses_workers(box.cron_version) and environment.postgres.cron.enabled:
        wanted |= _workers(box, wanted)
    return wanted


def _libraries(environment: Environment, box: Box, ours: Mapping[str, str]) -> str | None:
    """The whole list, or None where the one of others is right as it is."""
    base = others_value(box, LIBRARIES)
    extra = list(environment.postgres.preload)
    cron = ["pg_cron"] if environment.postgres.cron.enabled else []
    gone = [] if cron or preload.contains(base, "pg_cron") else ["pg_cron"]
    merged = preload.merge(
        ours.get(LIBRARIES) or base,
        [*preload.parse(base), *extra, *cron],
        remove=gone,
        allow_removal=True,
    )
    if LIBRARIES not in ours and merged.same:
        return None
    return merged.text or None


def _cron(environment: Environment, box: Box) -> dict[str, str]:
    settings = environment.postgres.cron
    wanted = {"cron.database_name": settings.database or database(environment)}
    if settings.timezone and uses_workers(box.cron_version):
        wanted["cron.timezone"] = settings.timezone
    if uses_workers(box.cron_version):
        return wanted | {"cron.use_background_workers": "on"}
    socket = (box.server.setting("unix_socket_directories") if box.server else None) or ""
    folder = socket.partition(",")[0].strip().strip('"')
    return wanted | {"cron.use_background_workers": "off", "cron.host": folder}


def _workers(box: Box, wanted: Mapping[str, str]) -> dict[str, str]:
    """A job that finds no free worker is never started, so there must be some to spare."""
    if WORKERS in wanted:
        return {}
    jobs = wanted.get("cron.max_running_jobs") or others_value(box, "cron.max_running_jobs")
    needed = int(jobs or _DEFAULT_JOBS) + _SPARE_WORKERS
    has = int(others_value(box, WORKERS) or 8)
    return {WORKERS: str(needed)} if has < needed else {}


def _foreign(cluster: Cluster) -> Problem:
    return Problem(
        "conf.d",
        f"{cluster.conf} is there and is not ours; it is never overwritten",
        "move it to another name, then deploy again",
    )


def _not_read(box: Box, cluster: Cluster) -> Iterator[Problem]:
    if include_line(box) is None:
        yield Problem(
            "conf.d",
            f"{cluster.folder}/postgresql.conf does not read conf.d, so no file of ours can work",
            f"add the line include_dir = 'conf.d' to {cluster.folder}/postgresql.conf",
        )


def _timezone(environment: Environment, box: Box) -> Iterator[Problem]:
    zone = environment.postgres.cron.timezone
    if (
        zone
        and zone.upper() not in {"UTC", "GMT"}
        and box.cron_version
        and not uses_workers(box.cron_version)
    ):
        yield Problem(
            "cron.timezone",
            f"pg_cron {box.cron_version} has no time zone and runs by GMT (got {zone};"
            " allowed: UTC or GMT before 1.5)",
            "leave postgres.cron.timezone out and write the schedules in UTC",
        )


def _changes(box: Box, ours: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[Change]:
    for name in dict.fromkeys([*wanted, *ours]):
        old, new = ours.get(name), wanted.get(name)
        if old == new:
            continue
        action = "create" if old is None else "update" if new is not None else "delete"
        before = old if old is not None else in_force(box, name)
        why = "needs a restart" if _static(box, name) else "needs a reload"
        yield Change("parameter", name, action, before, new, why)  # type: ignore[arg-type]


def _static(box: Box, name: str) -> bool:
    found = box.server.settings.get(name) if box.server else None
    rule = find_setting(name)
    return found.context == "postmaster" if found else bool(rule and rule.static)


def _waiting(box: Box, ours: Mapping[str, str], wanted: Mapping[str, str]) -> tuple[str, ...]:
    """Settings that only a restart brings into force: those the server says, and our changes.

    Whoever changed them: a setting that we took out is in no file any more, yet waits.
    """
    settings = box.server.settings if box.server else {}
    says = {name for name, setting in settings.items() if setting.pending}
    if LIBRARIES in says and _same_libraries(box):
        says.remove(LIBRARIES)
    names = {*wanted, *ours}
    changed = {name for name in names if ours.get(name) != wanted.get(name) and _static(box, name)}
    loaded = in_force(box, LIBRARIES)
    missing = {
        LIBRARIES
        for lib in preload.parse(wanted.get(LIBRARIES))
        if not preload.contains(loaded, lib)
    }
    equal = {name for name in changed if _same_in_force(box, name, wanted.get(name))}
    return tuple(sorted(says | (changed - equal) | missing))


def _same_libraries(box: Box) -> bool:
    """To the server another spelling is another value; it loads the same."""
    lines = [line for line in box.server.files if line.name == LIBRARIES] if box.server else []
    return bool(lines) and preload.parse(lines[-1].value) == preload.parse(in_force(box, LIBRARIES))


def _same_in_force(box: Box, name: str, value: str | None) -> bool:
    """A value that is in force already needs no restart, whichever file it comes from."""
    if value is None:
        value = others_value(box, name)
    return value is not None and value == in_force(box, name)
