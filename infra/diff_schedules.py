"""The changes of the schedules: what is declared against what pg_cron holds.

Identity is (name, role): a schedule of the same name under another role is a stranger's. It is
reported, and never doubled. A schedule paused by hand stays paused until somebody resumes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from infra.changes import COPIES, Change
from infra.observed import PLACE, RUNNER, CronJob, LedgerSchedule, Observed
from infra.plan import Declared, Plan


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller allows.

    ``in_place_only`` is a boot's: no pruning, no index on a table that holds rows, no SQL older
    than what is installed.
    """

    resume: bool = False
    take_over: bool = False
    in_place_only: bool = False


def diff_schedules(
    plan: Plan, observed: Observed, wishes: Wishes, waits: str | None
) -> Iterator[Change]:
    """One change a schedule, ``same`` and ``paused`` ones included.

    ``waits`` is why pg_cron cannot be asked yet (see ``checks.waiting``), or None.
    """
    for name, wanted in plan.schedules.items():
        yield from _one(name, wanted, observed, wishes, waits)
    if not wishes.in_place_only:
        yield from _unwanted(plan, observed, waits)
    if waits is None and observed.jobs is not None and not observed.server.sees_every_cron_job:
        why = f"{observed.server.user} sees only some rows of cron.job: others' would not show"
        yield Change("schedule", COPIES, "unknown", why=why)


def _one(
    name: str, wanted: Declared, observed: Observed, wishes: Wishes, waits: str | None
) -> Iterator[Change]:
    new: dict[str, Any] = {"schedule": wanted.schedule, "command": wanted.command}
    ledger = observed.ledger.schedules.get(name) if observed.ledger else None
    if waits is not None:
        yield Change("schedule", name, "create", None, new, wanted.why, waits)
        return
    if observed.jobs is None and observed.cron_installed_version:
        yield Change("schedule", name, "unknown", None, new, "this role may not see cron.job")
        return
    named = [job for job in observed.jobs or () if job.name == name]
    ours = next((job for job in named if job.username == RUNNER), None)
    copies = [job for job in named if job is not ours and job.database == observed.server.database]
    for job in copies:
        yield _stranger(name, job, new, wishes)
    if ours is not None:
        yield _ours(name, ours, observed, ledger, wanted, wishes)
    elif not copies or wishes.take_over:
        why = "somebody dropped it" if ledger and ledger.jobid else wanted.why
        yield Change("schedule", name, "create", None, new, why)


def _stranger(name: str, job: CronJob, new: dict[str, Any], wishes: Wishes) -> Change:
    old = {
        "schedule": job.schedule,
        "command": job.command,
        "username": job.username,
        "jobid": job.jobid,
    }
    if wishes.take_over:
        return Change("schedule", name, "delete", old, None, f"taken over from {job.username}")
    why = (
        f"role {job.username} has one of this name, which runs `{job.command}`;"
        " `jobwarden apply --take-over` replaces it"
    )
    return Change("schedule", name, "foreign", old, new, why)


def _wanted_row(wanted: Declared, observed: Observed) -> dict[str, Any]:
    """All columns that must be right, as far as this role can know them.

    Host and port are copied into a row when it is made and never again, so that a restored copy
    or a moved port runs in the old place (pg_cron, ``cron.host``; libpq mode only).
    """
    row: dict[str, Any] = {
        "schedule": wanted.schedule,
        "command": wanted.command,
        "database": observed.server.database,
    }
    host = observed.setting("cron.host")
    if observed.setting("cron.use_background_workers") == "off" and host is not None:
        row |= {"nodename": host, "nodeport": observed.server.port}
    return row


def _ours(
    name: str,
    job: CronJob,
    observed: Observed,
    ledger: LedgerSchedule | None,
    wanted: Declared,
    wishes: Wishes,
) -> Change:
    row = _wanted_row(wanted, observed)
    off = {key: getattr(job, key) for key, value in row.items() if getattr(job, key) != value}
    if not job.active and wishes.resume:
        off["active"] = False
        row = {**row, "active": True}
    new = {key: row[key] for key in off}
    if (
        off.keys() & PLACE
        and not job.active
        and not wishes.resume
        and not observed.server.superuser
    ):
        # A new row would be awake, and only a superuser could put it to sleep again.
        why = "paused by hand, and in the wrong place; `jobwarden apply --resume` mends both"
        old, new = {"active": False, **off}, {"active": False, **new}
        return Change("schedule", name, "paused", old, new, why)
    if off:
        why = _why(ledger, job, off) + ("" if job.active or wishes.resume else "; it stays paused")
        return Change("schedule", name, "update", off, new, why)
    if ledger is None or ledger != LedgerSchedule(
        wanted.schedule, wanted.command, wanted.every, job.jobid
    ):
        return Change(
            "schedule",
            name,
            "update",
            {"ledger": False},
            {"ledger": True},
            "not in our ledger as it is",
        )
    if not job.active:
        why = "paused by hand; `jobwarden apply --resume` wakes it"
        return Change("schedule", name, "paused", {"active": False}, {"active": False}, why)
    return Change("schedule", name, "same", dict(row), dict(row))


def _why(ledger: LedgerSchedule | None, job: CronJob, off: Mapping[str, Any]) -> str:
    if off.keys() == {"active"}:
        return "woken, as asked"
    if ledger and (ledger.schedule, ledger.command) == (job.schedule, job.command):
        return "the environment, or the server's host or port, changed"
    return "somebody changed it by hand"


def _unwanted(plan: Plan, observed: Observed, waits: str | None) -> Iterator[Change]:
    """Schedules that the ledger holds and the environment dropped. Only those are ours to end."""
    for name, ledger in (observed.ledger.schedules if observed.ledger else {}).items():
        if name in plan.schedules:
            continue
        old = {"schedule": ledger.schedule, "command": ledger.command, "jobid": ledger.jobid}
        why = "the environment no longer names it"
        yield Change("schedule", name, "delete", old, None, why, waits if ledger.jobid else None)
