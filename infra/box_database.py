"""The stages of a box's deploy that speak SQL: the database, an apply, the proof. Values only."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from infra import box_carry, box_conf, box_doors, checks, sqltext
from infra.box_decision import (
    UNTIL_INSTALLED,
    Decision,
    Script,
    Target,
    carried,
    cluster_of,
    no_server,
    server_variables,
)
from infra.boxes import Box, parse_observed
from infra.changes import Change, due
from infra.checks import Problem
from infra.diff import diff
from infra.observed import Observed

CRON_KINDS: Final = frozenset({"schedule", "extension"})


def database(target: Target, box: Box) -> Decision:
    """The database, before a restart: pg_cron's scheduler does not start without it."""
    if unknown := no_server(box):
        return Decision(unknown=unknown)
    if box.server is None or box.standby or target.database in box.server.databases:
        return Decision()
    return _create_database(target, box)


def apply(target: Target, box: Box) -> Decision:
    """SQL, policy and schedules: the same plan and the same statements as everywhere."""
    if unknown := no_server(box):
        return Decision(unknown=unknown)
    if box.standby:
        return Decision(notes=("a standby: it gets the configuration, and no schedules",))
    if box.server and target.database not in box.server.databases:
        return Decision(unknown=f"unknown until database {target.database} is there")
    if box.observed is None:
        return Decision(problems=(_not_readable(target, box),))
    if stops := checks.faults(target.plan, box.observed):
        return Decision(problems=stops)
    return _converge(target, box, box.observed)


def _converge(target: Target, box: Box, found: Observed) -> Decision:
    changes = tuple(each for each in diff(target.plan, found) if _wanted(target, each))
    ended = () if target.wants_cron else box_carry.ending_sql(found)
    notes = _waits(target, found)
    if not due(changes) and not ended:
        return Decision(changes, _read_back(target, found), notes=notes)
    made = sqltext.statements(target.plan, found, changes)
    statements = sqltext.Statements(made.alone, (*ended, *made.together))
    variables = server_variables(cluster_of(box)) | {
        "DATABASE": target.database,
        "SQL": box_carry.apply_sql(target.environment, statements),
        "BUSY": box_carry.BUSY,
    }
    return Decision(
        (*changes, *_ends(ended)),
        script=Script("apply", variables),
        verify=lambda answer: _verify(target, answer),
        notes=notes,
    )


def _ends(ended: tuple[str, ...]) -> tuple[Change, ...]:
    if not ended:
        return ()
    why = "postgres.cron.enabled is false; a timer does the work"
    return (Change("schedule", "all of ours", "delete", "carried by pg_cron", None, why),)


def _wanted(target: Target, change: Change) -> bool:
    return target.wants_cron or change.kind not in CRON_KINDS


def _create_database(target: Target, box: Box) -> Decision:
    change = Change("database", target.database, "create", None, "owned by postgres")
    variables = server_variables(cluster_of(box)) | {
        "DATABASE": "postgres",
        "SQL": box_carry.database_sql(target.database),
        "BUSY": box_carry.BUSY,
    }
    return Decision((change,), script=Script("apply", variables))


def _verify(target: Target, answer: str) -> tuple[Problem, ...]:
    found = parse_observed(answer)
    if found is None:
        return (Problem("read-back", "psql answered nothing", "deploy again"),)
    left = [
        Problem(f"{change.kind} {change.name}", "still to be made after the apply", "deploy again")
        for change in due(diff(target.plan, found))
        if _wanted(target, change)
    ]
    return (*left, *_read_back(target, found))


def _read_back(target: Target, found: Observed) -> tuple[Problem, ...]:
    if not target.wants_cron or checks.waiting(found):
        return ()
    foreign = [
        Problem(f"schedule {change.name}", change.why, "jobwarden apply --take-over")
        for change in diff(target.plan, found)
        if change.action == "foreign"
    ]
    return (*foreign, *checks.proof(target.plan, found))


def _waits(target: Target, found: Observed) -> tuple[str, ...]:
    waits = checks.waiting(found)
    return (f"schedules wait: {waits.message}",) if waits and target.wants_cron else ()


def prove(target: Target, box: Box) -> Decision:
    """A schedule must have fired as the runner since whatever could keep it from that changed."""
    if unknown := no_server(box):
        return Decision(unknown=unknown)
    found = box.observed
    if box.standby or not target.wants_cron:
        return Decision()
    if box.cron_version is None:
        return Decision(unknown=UNTIL_INSTALLED)
    if found is None or checks.waiting(found):
        return Decision()
    if not carried(found):
        return Decision(unknown="unknown until the schedules are registered")
    wanted = proof(box, found)
    return _probe(target, box, found, wanted) if (box.proof or "").strip() != wanted else Decision()


def _probe(target: Target, box: Box, found: Observed, wanted: str) -> Decision:
    cluster = cluster_of(box)
    quick = box_conf.uses_workers(found.cron_installed_version)
    variables = server_variables(cluster) | {
        "DATABASE": target.database,
        "SQL": box_carry.probe_sql("2 seconds" if quick else "* * * * *"),
        "PROBE": box_carry.PROBE,
        "PROOF": wanted,
        "PROOF_FILE": f"/var/lib/jobwarden/{cluster.version}-{cluster.name}.proof",
        "LOG": cluster.log,
    }
    old = json.loads(box.proof) if box.proof and box.proof.startswith("{") else None
    why = "never proven here" if old is None else "the way jobs are started has changed"
    why += "" if quick else "; it takes up to a minute"
    change = Change("probe", "a job that fires", "update" if old else "create", old, None, why)
    return Decision((change,), script=Script("prove", variables))


def proof(box: Box, found: Observed) -> str:
    """What the firing of schedules hangs on, as one line. Another one asks for a new proof."""
    server = box.server
    doors = f"{box_doors.inside(server.hba)} {box_doors.inside(server.ident)}" if server else ""
    return json.dumps(
        {
            "server": server.identifier if server else None,
            "port": found.server.port,
            "pg_cron": found.cron_installed_version,
            "workers": found.setting("cron.use_background_workers"),
            "host": found.setting("cron.host"),
            "database": found.server.database,
            "doors": hashlib.sha256(doors.encode()).hexdigest()[:16],
        }
    )


def _not_readable(target: Target, box: Box) -> Problem:
    return Problem(
        f"database {target.database}",
        f"it could not be read: {box.observed_error or 'psql answered nothing'}",
        "see the server's log; then deploy again",
    )
