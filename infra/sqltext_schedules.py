"""The statements of the schedules. The only place that calls pg_cron.

A schedule belongs to the role that makes it, so the role is set to the runner for the call: the
username argument of pg_cron demands a superuser even for one's own name. Everything here runs in
one transaction; a rollback takes the schedules back too.
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.changes import Change
from infra.observed import RUNNER, CronJob, Observed
from infra.plan import Plan
from infra.quoting import ident, interval, literal

_PLACE = {"database", "nodename", "nodeport"}


def statements(plan: Plan, observed: Observed, changes: tuple[Change, ...]) -> Iterator[str]:
    """What makes the schedule changes, and keeps the ledger true."""
    schedules = [change for change in changes if change.kind == "schedule"]
    if any(change.waits is None for change in schedules) and not observed.runner_cron_usage:
        yield f"GRANT USAGE ON SCHEMA cron TO {ident(RUNNER)}"
    for change in schedules:
        if change.action == "delete":
            yield from _end(observed, change)
        else:
            yield from _converge(plan, observed, change)


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
        if change.old:  # taken over from another role, in this same transaction
            yield f"SELECT cron.unschedule({int(change.old['jobid'])})"
        yield from _schedule(plan, change.name)
    else:
        yield from _update(plan, observed, change, job)
    yield _write_down(plan, change.name, carried=True)


def _update(plan: Plan, observed: Observed, change: Change, job: CronJob) -> Iterator[str]:
    off = set(change.new)
    wake = "active" in off
    if off & _PLACE or (wake and not observed.server.superuser):
        # Host, port and database are set when a row is made and by nothing else.
        yield from _as_runner(f"SELECT cron.unschedule({job.jobid})")
        yield from _schedule(plan, change.name)
        if not job.active and not wake:
            yield _pause(change.name)
    elif off & {"schedule", "command"}:
        yield from _schedule(plan, change.name)
    if wake and observed.server.superuser and not off & _PLACE:
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
    wanted = plan.schedules[name]
    jobid = _jobid(name) if carried else "NULL"
    return (
        "INSERT INTO jobwarden.schedule (name, schedule, command, every, jobid) VALUES "
        f"({literal(name)}, {literal(wanted.schedule)}, {literal(wanted.command)},"
        f" {interval(wanted.every)}, {jobid}) "
        "ON CONFLICT (name) DO UPDATE SET schedule = excluded.schedule, command = excluded.command,"
        " every = excluded.every, jobid = excluded.jobid"
    )


def _end(observed: Observed, change: Change) -> Iterator[str]:
    if change.waits is not None:
        return
    if any(
        job.jobid == change.old["jobid"] and job.username == RUNNER for job in observed.jobs or ()
    ):
        yield from _as_runner(f"SELECT cron.unschedule({int(change.old['jobid'])})")
    yield f"DELETE FROM jobwarden.schedule WHERE name = {literal(change.name)}"


def _held(observed: Observed, name: str) -> CronJob | None:
    jobs = observed.jobs or ()
    return next((job for job in jobs if job.name == name and job.username == RUNNER), None)
