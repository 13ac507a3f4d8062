"""Systemd timers that do the schedules' work where no pg_cron does. Texts only.

One timer and one oneshot service for each schedule: systemd starts no second one while the first
still runs, catches up after a time switched off, and lists what failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from infra import cronexpr
from infra.boxes import MARK, Box, Cluster
from infra.changes import Change
from infra.cronexpr import Fields
from infra.plan import Plan
from infra.schedules import CLEANUP, WATCHDOG
from infra.unit_texts import FOLDER, HARDENING

PREFIX: Final = "jobwarden-fallback-"
SCRIPT: Final = "/usr/local/lib/jobwarden/fallback-once.sh"
STATEMENTS: Final = "/usr/local/lib/jobwarden"
_OURS: Final = {WATCHDOG: "watchdog", CLEANUP: "cleanup"}
_WEEKDAYS: Final = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_HEADER: Final = f"{MARK}. It does the work of a schedule until pg_cron does, and then goes away.\n"


@dataclass(frozen=True, slots=True)
class Fallback:
    """What is to be done. ``write`` holds unit files by name, ``statements`` SQL by file name."""

    changes: tuple[Change, ...] = ()
    write: Mapping[str, str] | None = None
    statements: Mapping[str, str] | None = None
    timers: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


def decide(plan: Plan, box: Box, database: str, *, wanted: bool, script: str) -> Fallback:
    """Compare the timers with what is there: all of them where wanted, none otherwise."""
    files = dict(_files(plan, box.chosen, database)) if wanted and box.chosen else {}
    write = {name: text for name, text in files.items() if box.files.get(name) != text}
    timers = tuple(name for name in files if name.endswith(".timer"))
    down = tuple(name for name in timers if name in write or not _runs(box, name))
    there = {name for name in box.files if name.startswith(PREFIX)}
    remove = tuple(sorted(there - set(files)))
    changes = tuple(_changes(box, write, down, remove))
    if wanted and box.fallback != script:
        action = "update" if box.fallback else "create"
        changes += (Change("file", SCRIPT, action, None, None, "runs one statement"),)  # type: ignore[arg-type]
    if not changes:
        return Fallback()
    return Fallback(changes, write, dict(_statements(plan)) if wanted else {}, down, remove)


def slug(plan: Plan, name: str) -> str:
    """The part of a unit's name that stands for a schedule, whose own name may hold anything."""
    others = [each for each in plan.schedules if each not in _OURS]
    return _OURS[name] if name in _OURS else f"own-{others.index(name) + 1}"


def _statements(plan: Plan) -> Iterator[tuple[str, str]]:
    for name, wanted in plan.schedules.items():
        yield f"{slug(plan, name)}.sql", wanted.command.rstrip().removesuffix(";") + "\n;\n"


def _files(plan: Plan, cluster: Cluster, database: str) -> Iterator[tuple[str, str]]:
    for name, wanted in plan.schedules.items():
        base = PREFIX + slug(plan, name)
        yield f"{base}.service", _service(plan, name, cluster, database)
        yield f"{base}.timer", _timer(name, wanted.schedule)


def _service(plan: Plan, name: str, cluster: Cluster, database: str) -> str:
    version = cluster.version
    return (
        f"{_HEADER}[Unit]\n"
        f"Description=Jobwarden: {_plain(name)}, without pg_cron\n"
        f"After={cluster.unit}\n"
        "\n[Service]\n"
        "Type=oneshot\n"
        f"User={cluster.owner}\n"
        f"Environment=PSQL=/usr/lib/postgresql/{version}/bin/psql\n"
        f"Environment=PGHOST=/var/run/postgresql PGPORT={cluster.port}\n"
        f'Environment="PGDATABASE={_quoted(database)}"\n'
        f"ExecStart={SCRIPT} {STATEMENTS}/{slug(plan, name)}.sql\n"
        f"{HARDENING}"
    )


def _timer(name: str, schedule: str) -> str:
    lines = "".join(f"{line}\n" for line in calendar(schedule))
    return (
        f"{_HEADER}[Unit]\n"
        f"Description=Jobwarden: {_plain(name)}, without pg_cron ({_plain(schedule)})\n"
        "\n[Timer]\n"
        f"{lines}"
        "Persistent=true\n"
        "AccuracySec=1s\n"
        "\n[Install]\nWantedBy=timers.target\n"
    )


def _plain(text: str) -> str:
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def calendar(schedule: str) -> tuple[str, ...]:
    """Return the lines of a timer for a cron schedule, in UTC as pg_cron has it.

    Two restricted day fields mean "either" to cron and "both" to systemd, hence two lines then.
    """
    cron = cronexpr.parse(schedule)
    if cron.fields is None:
        return (f"OnBootSec={cron.every}s", f"OnUnitActiveSec={cron.every}s")
    fields = cron.fields
    time = f"{_list(fields.hour.values, 24)}:{_list(fields.minute.values, 60)}:00 UTC"
    months = _list(fields.month.values, 12)
    weekdays = ",".join(_WEEKDAYS[day] for day in sorted({d % 7 for d in fields.weekday.values}))
    by_day, by_weekday = f"*-{months}{_days(fields)}", f"{weekdays} *-{months}-*"
    if fields.either:
        return (f"OnCalendar={by_day} {time}", f"OnCalendar={by_weekday} {time}")
    some = f"{weekdays} " if len(set(weekdays.split(","))) < 7 else ""
    return (f"OnCalendar={some}{by_day} {time}",)


def _days(fields: Fields) -> str:
    if fields.last_day:
        return "~01"
    return f"-{_list(fields.day.values, 31)}"


def _list(values: frozenset[int], every: int) -> str:
    return "*" if len(values) == every else ",".join(f"{value:02d}" for value in sorted(values))


def _runs(box: Box, timer: str) -> bool:
    found = box.units.get(timer)
    return found is not None and found.active == "active" and found.enabled == "enabled"


def _changes(
    box: Box, write: Mapping[str, str], down: tuple[str, ...], remove: tuple[str, ...]
) -> Iterator[Change]:
    for name, text in write.items():
        old = box.files.get(name)
        yield Change("file", f"{FOLDER}/{name}", "update" if old else "create", old, text)
    for name in down:
        yield Change("unit", name, "create", None, "active", "pg_cron does not do the work")
    for name in remove:
        yield Change(
            "file", f"{FOLDER}/{name}", "delete", box.files[name], None, "pg_cron does the work"
        )
