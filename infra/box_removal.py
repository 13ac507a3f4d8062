"""Take ours off a box, in the order that keeps ``cron.*`` working until the end. Values only."""

from __future__ import annotations

import dataclasses

from infra import box_carry, box_conf, box_doors, box_fallback, box_roles, sqltext_removal, units
from infra.box_decision import (
    Decision,
    Script,
    Target,
    cluster_of,
    no_server,
    server_variables,
)
from infra.box_plan import (
    configure_script,
    fallback_decision,
    restart_decision,
    units_decision,
)
from infra.boxes import Box
from infra.changes import Change
from infra.checks import Problem
from infra.observed import RUNNER

_NOTHING = units.Wanted({}, {}, {}, (), {})


def units_and_timers(target: Target, box: Box) -> Decision:
    """Services first, so that nobody works on what goes; the timers with them."""
    found = _as_removal(units_decision(units.diff(_NOTHING, box), {}))
    if found.script or found.problems:
        return dataclasses.replace(found, again=True)
    made = box_fallback.decide(target.plan, box, target.database, wanted=False, script="")
    return _as_removal(fallback_decision(target, made))


def _as_removal(found: Decision) -> Decision:
    """The same with the true reason: the environment may well name what goes."""
    changes = (dataclasses.replace(each, why="state=absent") for each in found.changes)
    return dataclasses.replace(found, changes=tuple(changes))


def sql(target: Target, box: Box) -> Decision:
    """Schedules, triggers, indexes and our schema, in one transaction. Never a jobs table."""
    found = box.observed
    if no_server(box) or box.standby or found is None:
        return Decision(notes=("no database of ours answers: nothing is removed there",))
    without_jobs = dataclasses.replace(found, jobs=None)
    statements = (
        *box_carry.ending_sql(found),
        *sqltext_removal.removal(target.plan, without_jobs),
    )
    notes = box_roles.staying(target.environment.services, box)
    if not statements:
        return Decision(notes=notes)
    if foreign := sqltext_removal.inside(found):
        return Decision(problems=(_foreign(foreign),))
    variables = server_variables(cluster_of(box)) | {
        "DATABASE": target.database,
        "SQL": box_carry.removal_sql(statements),
        "BUSY": box_carry.BUSY,
    }
    ledger = found.ledger.schedules if found.ledger else {}
    changes = tuple(
        Change("schedule", name, "delete", {"schedule": was.schedule}, None, "state=absent")
        for name, was in ledger.items()
    )
    schema = Change("sql", "jobwarden", "delete", "schema", None, "state=absent")
    return Decision((*changes, schema), script=Script("apply", variables), notes=notes)


def configuration(target: Target, box: Box) -> Decision:
    """Our file and our blocks, unless pg_cron still runs jobs of others by them."""
    if no_server(box):
        return Decision(notes=("no server answers: its configuration is left as it is",))
    jobs = box.observed.jobs if box.observed else None
    strangers = [job for job in jobs or () if job.username != RUNNER]
    if strangers and box.conf is not None:
        names = ", ".join(f"{job.name or job.jobid} of {job.username}" for job in strangers)
        return Decision(notes=(f"our file stays: pg_cron runs jobs of others by it ({names})",))
    conf = box_conf.absent(box)
    doors = box_doors.decide(target.environment, box, present=False)
    changes = (*conf.changes, *doors.changes)
    if conf.problems or not changes:
        return Decision(changes, conf.problems)
    return Decision(changes, script=configure_script(box, conf, doors))


def restart(target: Target, box: Box) -> Decision:
    """What our file set is in force until a restart."""
    if no_server(box):
        return Decision()
    return restart_decision(target, box, box_conf.absent(box))


def _foreign(names: tuple[str, ...]) -> Problem:
    return Problem(
        "schema jobwarden",
        f"not ours, and would go with it: {', '.join(names)}",
        "move or drop those yourself, then deploy again",
    )
