"""The statements of the schedules. The only place that calls pg_cron.

A schedule belongs to the role that makes it, so the role is set to the runner for the call: the
username argument of pg_cron demands a superuser even for one's own name. Everything here runs in
one transaction; a rollback takes the schedules back too.
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.changes import Change
from infra.observed import PLACE, RUNNER, CronJob, Observed
from infra.plan import Plan
from infra.quoting import ident, interval, literal


def statements(plan: Plan, observed: Observed, changes: tuple[Change, ...]) -> Iterator[str]:
    """What makes the schedule changes, and keeps the ledger true."""
    schedules = [change for change in changes if change.kind == "schedule"]
    if any(change.waits is None for change in schedules):
        yield from _grants(observed)
    for change in schedules:
        if change.action == "delete":
            yield from _end(observed, change)
        else:
            yield from _converge(plan, observed, change)


def _grants(observed: Observed) -> Iterator[str]:
    if not observed.runner_cron_usage:
        yield f"GRANT USAGE ON SCHEMA cron TO {ident(RUNNER)}"
    if not observed.runner_connects:
        yield f"GRANT CONNECT ON DATABASE {ident(observed.server.database)} TO {ident(RUNNER)}"


def _converge(plan: Plan, observed: Observed, change: Change) -> Iterator[str]:
    ledger = observed.ledger.schedules.get(change.name) if observed.ledger else None
    wanted = plan.schedules[change.name]
    if change.waits is not None:
        told = ledger and (ledger.schedule, ledger.command, ledger.every)
        if told != (wanted.schedule, wanted.command, wanted.every):
            yield _write_down(plan, change.name, carried=False)
        return
    job = _held(observed, change.name)
    if change.action == "create" or job is None:
        yield from _schedule(plan, change.name)
    else:
        yield from _update(plan, observed, change, job)
    yield _write_down(plan, change.name, carried=True)


def _update(plan: Plan, observed: Observed, change: Change, job: CronJob) -> Iterator[str]:
    off = set(change.new)
    wake = "active" in off
    if off & PLACE or (wake and not observed.server.superuser):
        yield from _as_runner(f"SELECT cron.unschedule({job.jobid})")
        yield from _schedule(plan, change.name)
        if not job.active and not wake:
            yield _pause(change.name)
    elif off & {"schedule", "command"}:
        yield from _schedule(plan, change.name)
    if wake and observed.server.superuser and not off & PLACE:
        yield f"SELECT cron.alter_job({job.jobid}, active := true)"


def _schedule(plan: Plan, name: str) -> Iterator[str]:
    wanted = plan.schedules[name]
    values = ", ".join(literal(text) for text in (name, wanted.schedule, wanted.command))
    yield from _as_runner(f"SELECT cron.schedule({values})")


def _as_runner(statement: str) -> Iterator[str]:
    yield f"SET LOCAL ROLE {ident(RUNNER)}"
    yield statement
    yield "RESET ROLE"


def _pause(name: str) -> str:
    return f"SELECT cron.alter_job({_jobid(name)}, active := false)"


def _jobid(name: str) -> str:
    return (
        "(SELECT j.jobid FROM pg_catalog.jsonb_to_recordset(jobwarden.cron_jobs())"
        f" AS j (jobid bigint, jobname text) WHERE j.jobname = {literal(name)})"
    )


def _write_down(plan: Plan, name: str, *, carried: bool) -> str:
    """Keep the ledger true. One that waits keeps its job, which pg_cron may still hold."""
    wanted = plan.schedules[name]
    jobid = _jobid(name) if carried else "NULL"
    held = ", jobid = excluded.jobid" if carried else ""
    return (
        "INSERT INTO jobwarden.schedule (name, schedule, command, every, jobid) VALUES "
        f"({literal(name)}, {literal(wanted.schedule)}, {literal(wanted.command)},"
        f" {interval(wanted.every)}, {jobid}) "
        "ON CONFLICT (name) DO UPDATE SET schedule = excluded.schedule, command = excluded.command,"
        f" every = excluded.every{held}"
    )


def _take_over(observed: Observed, change: Change) -> Iterator[str]:
    """End a copy of another role's, in the transaction that makes ours."""
    if not observed.server.superuser:
        yield f"SET LOCAL ROLE {ident(change.old['username'])}"
    yield f"SELECT cron.unschedule({int(change.old['jobid'])})"
    yield "RESET ROLE"


def _end(observed: Observed, change: Change) -> Iterator[str]:
    if change.waits is not None:
        return
    if "username" in change.old:
        yield from _take_over(observed, change)
        return
    if any(
        job.jobid == change.old["jobid"] and job.username == RUNNER for job in observed.jobs or ()
    ):
        yield from _as_runner(f"SELECT cron.unschedule({int(change.old['jobid'])})")
    yield f"DELETE FROM jobwarden.schedule WHERE name = {literal(change.name)}"


def _held(observed: Observed, name: str) -> CronJob | None:
    jobs = observed.jobs or ()
    return next((job for job in jobs if job.name == name and job.username == RUNNER), None)


def probe(name: str, schedule: str) -> str:
    """Register a schedule that only shows whether schedules of the runner fire; answers its id."""
    values = ", ".join(literal(text) for text in (name, schedule, "SELECT 1"))
    return f"SELECT cron.schedule({values}) AS jobid"
