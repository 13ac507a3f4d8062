"""The demo: a private Postgres, real workers, one killed, its job rescued; then all of it goes.

Only the jobs are made up. The schedule, roles, SQL and guard are those of any other database.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import Any

from infra import durations, terminal
from infra.db import runs
from infra.errors import InfraError
from infra.local import servers
from infra.local.crew import Crew
from infra.local.jobs import WORKER_ROLE, Job, Jobs, late_write
from infra.local.orderly import Ended, Signals, orderly
from infra.local.scene import Scene
from infra.local.screen import Screen, document, pairs, quoted
from infra.local.servers import Server
from infra.local.stage import (
    ACTIONS,
    DATABASE,
    DOOMED,
    DOOMED_KEPT,
    KEPT,
    Stage,
    new_cluster,
    set_up,
)
from infra.local.worker import FINISH


def demo(*, seconds: int, json: bool, server: Server | None = None) -> int:
    """Play it; return the exit code. ``seconds``: the limit of the job that is rescued.

    With ``json`` the story goes to stderr, and one document to stdout. Raises InfraError when no
    server is installed, or the rescue does not come.
    """
    screen = Screen(stderr=json)
    tempfile.gettempdir()  # found by writing a file: now, before there is anything to be cut off
    try:
        with orderly() as signals:
            told = _play(screen, server or servers.find_server(), seconds, signals)
    except Ended as end:
        terminal.talk(f"{end.name}: the private Postgres and its workers are gone")
        return end.exit_code
    _sum_up(screen, told)
    if json:
        terminal.document(told)
    return 0


def _play(screen: Screen, server: Server, seconds: int, signals: Signals) -> dict[str, Any]:
    with ExitStack() as stack:
        screen.say(f"Start a private {server}, in a temporary folder, without a network port")
        with signals.held():
            cluster = stack.enter_context(new_cluster(server))
            crew = stack.enter_context(Crew())
        stage = set_up(cluster, seconds)
        _show_apply(screen, stage)
        jobs = stack.enter_context(Jobs(stage.url()))
        jobs.make_role()
        if stage.mechanism == "fallback":
            _start_fallback(screen, stage, crew)
        scene = Scene(screen, stage, crew, jobs, seconds)
        job, waited = scene.play()
        _show_rescue(screen, stage, job, waited)
        _write_late(screen, stage.url(WORKER_ROLE), job)
        scene.close()
        return {
            "rescued": _shown(job),
            "seconds_from_kill_to_rescue": round(waited, 1),
            "limit_seconds": seconds,
            "late_write": "refused",
            "cleaned": _clean_up(screen, stage),
            "mechanism": stage.mechanism,
            "sweep": jobs.sweep_of(job),
            "schedules": _schedules(stage),
            "server": _server(server),
        }


def _show_apply(screen: Screen, stage: Stage) -> None:
    policy = stage.plan.policy
    limits = {action: policy[action].timeout for action in ACTIONS}
    shown = [pairs({action: durations.human(limit) for action, limit in limits.items() if limit})]
    if stage.result.registered:
        schedules = stage.plan.schedules.values()
        shown.append(pairs({wanted.schedule: wanted.command for wanted in schedules}))
    what = "Limits and schedules" if stage.result.registered else "Limits"
    screen.say(f"Apply an environment: {len(stage.result.changes)} changes. {what}:", *shown)


def _start_fallback(screen: Screen, stage: Stage, crew: Crew) -> None:
    server, every = stage.cluster.server, stage.sweep.every or 1
    crew.start_fallback(stage.cluster, DATABASE, every)
    way_out = servers.missing([server], server.version, pg_cron=True).hint
    screen.say(
        f"There is no pg_cron: a loop with psql, fallback.sh, sweeps every {every} s instead",
        quoted(f"To let Postgres do it: {way_out}", "dim"),
        style="yellow",
    )


def _show_rescue(screen: Screen, stage: Stage, job: Job, waited: float) -> None:
    screen.say(
        f"{stage.mechanism} swept: the job is {job.status}, {waited:.1f} s after the kill:",
        document({"action": job.action, "status": job.status, "error": job.error}),
        style="bold green",
    )


def _write_late(screen: Screen, url: str, job: Job) -> None:
    refusal = late_write(url, job.id)
    if refusal is None:
        raise InfraError(
            f"a late write changed job {job.id}", hint="look at the guard of the table"
        )
    screen.say(
        f"What if {job.worker} was only slow? Its late write is refused:",
        quoted(FINISH % f"'{job.id}'", "dim"),
        quoted(refusal, "yellow"),
        style="bold",
    )


def _clean_up(screen: Screen, stage: Stage) -> int:
    ran = runs.run(stage.plan, "cleanup", stage.url())
    if ran.row is None:
        raise InfraError("the cleanup left no row in the run log", hint="jobwarden demo, once more")
    cleaned: int = ran.row["changed"]
    screen.say(
        f"Cleanup: {cleaned} jobs deleted that ended over {durations.human(KEPT)} ago;"
        f" {DOOMED} is kept {durations.human(DOOMED_KEPT)}",
        style="bold",
    )
    return cleaned


def _shown(job: Job) -> dict[str, Any]:
    return {
        "id": str(job.id),
        "action": job.action,
        "status": job.status,
        "worker": job.worker,
        "started_at": job.started_at and job.started_at.isoformat(),
        "completed_at": job.completed_at and job.completed_at.isoformat(),
        "error": job.error,
    }


def _schedules(stage: Stage) -> list[dict[str, Any]]:
    held = {job.name for job in stage.result.observed.jobs or () if job.active}
    return [
        {
            "name": name,
            "schedule": wanted.schedule,
            "command": wanted.command,
            "registered": name in held,
        }
        for name, wanted in stage.plan.schedules.items()
    ]


def _server(server: Server) -> dict[str, Any]:
    return {
        "postgres": server.release or str(server.version),
        "pg_cron": server.pg_cron_version if server.has_pg_cron else None,
    }


def _sum_up(screen: Screen, told: dict[str, Any]) -> None:
    screen.say("The private Postgres, its folder and all processes are gone again")
    screen.tell("")
    screen.tell(
        f"From kill to rescue: {told['seconds_from_kill_to_rescue']} s, by {told['mechanism']}"
        f" (limit {told['limit_seconds']} s, then the next sweep).",
        style="bold",
    )
    screen.tell("Next, on your own database:")
    screen.show(
        pairs(
            {
                "Pulumi.mine.yaml": "write it; Pulumi.existing.example.yaml is a start",
                "jobwarden plan -s mine": "shows what would change; writes nothing",
                "jobwarden apply -s mine": "makes it so",
            }
        )
    )
