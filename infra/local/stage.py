"""What the demo is played on: a private server with an environment applied."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import timedelta

from infra import config, cronexpr, durations, sqltext
from infra.cronexpr import Cron
from infra.db.apply import Result, apply
from infra.errors import InfraError, RuleError
from infra.local.cluster import Cluster
from infra.local.servers import Server
from infra.plan import Plan, build

DATABASE = "app"
ACTIONS = ("resume_rewrite", "pdf_build", "ai_chat")
DOOMED = "pdf_build"
KEPT = timedelta(seconds=1)
DOOMED_KEPT = timedelta(days=7)
_OFTEN, _EACH_MINUTE = "5 seconds", "* * * * *"
_LAUNCHER_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Stage:
    """A database that is ready; ``result`` is what was applied, ``sweep`` how often one comes."""

    cluster: Cluster
    plan: Plan
    result: Result
    sweep: Cron

    @property
    def mechanism(self) -> str:
        """Who calls the sweep."""
        return "pg_cron" if self.cluster.server.has_pg_cron else "fallback"

    def url(self, user: str = "postgres") -> str:
        """Return the URL of the database for one of its roles."""
        return self.cluster.url(DATABASE, user)


def new_cluster(server: Server) -> Cluster:
    """Start a server for the demo. Not durable, since nothing of it is to last: it starts sooner.

    Raises InfraError when it does not start.
    """
    return Cluster.create(server, database=DATABASE, pg_cron=server.has_pg_cron, durable=False)


def set_up(cluster: Cluster, seconds: int) -> Stage:
    """Apply an environment. ``seconds``: the shortest limit in it.

    Raises InfraError when a schedule would not fire.
    """
    server = cluster.server
    sweep = how_often(server, seconds)
    plan = _plan(sweep if server.has_pg_cron else cronexpr.parse(_EACH_MINUTE), seconds)
    result = _apply(plan, cluster.url(DATABASE), with_schedules=server.has_pg_cron)
    return Stage(cluster, plan, result, sweep)


def how_often(server: Server, seconds: int) -> Cron:
    """Return the shortest schedule this pg_cron honours; without one, the fallback's interval."""
    if not server.has_pg_cron:
        return cronexpr.parse(f"{min(5, seconds)} seconds")
    try:
        return cronexpr.parse(_OFTEN, server.pg_cron_version)
    except RuleError:
        return cronexpr.parse(_EACH_MINUTE, server.pg_cron_version)


def _plan(sweep: Cron, seconds: int) -> Plan:
    limits = dict(zip(ACTIONS, (2 * seconds, seconds, 6 * seconds), strict=True))
    values = {
        "target": "local",
        "watchdog": {
            "schedule": sweep.text,
            "actions": {action: {"timeout": f"{limit}s"} for action, limit in limits.items()},
        },
        "cleanup": {
            "retention": durations.render(KEPT),
            "actions": {DOOMED: {"retention": durations.render(DOOMED_KEPT)}},
        },
    }
    environment = config.parse(values, source="the demo's environment")
    return build(environment, sqltext.render(environment))


def _apply(plan: Plan, url: str, *, with_schedules: bool) -> Result:
    """Apply; then look again until pg_cron's launcher is there, which starts in its own time."""
    first = result = apply(plan, url)
    give_up = time.monotonic() + _LAUNCHER_SECONDS
    while with_schedules and not result.registered:
        if time.monotonic() > give_up:
            raise InfraError("\n".join(str(problem) for problem in result.problems))
        time.sleep(0.2)
        result = apply(plan, url)
    return replace(result, changes=first.changes)
