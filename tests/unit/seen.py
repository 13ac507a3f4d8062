"""Hand-made observations: an installed, healthy server, from which a test takes one thing away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from infra import config, plan, sqltext
from infra.observed import (
    RUNNER,
    CronJob,
    Ledger,
    LedgerSchedule,
    Observed,
    Role,
    Server,
    Setting,
    Table,
)
from infra.plan import Plan
from infra.rights import OUR_ROLES

SUPERUSER = Server(
    version_num=150020,
    in_recovery=False,
    database="app",
    port=5432,
    user="postgres",
    superuser=True,
    createrole=True,
    creates_schemas=True,
    sees_every_cron_job=True,
    launcher=("app",),
)
DEPLOYER = replace(
    SUPERUSER, user="deployer", superuser=False, createrole=False, sees_every_cron_job=False
)
SETTINGS = {
    "shared_preload_libraries": "pg_cron",
    "cron.database_name": "app",
    "cron.host": "localhost",
    "cron.use_background_workers": "off",
    "max_worker_processes": "8",
    "cron.max_running_jobs": "32",
}
ROLES = {name: Role(login=name == RUNNER, superuser=False, ours_to_set=True) for name in OUR_ROLES}


def wanted(**environment: object) -> Plan:
    """The plan of an environment with nothing but these keys."""
    read = config.parse(environment)
    return plan.build(read, sqltext.render(read))


def settings(**changed: str | None) -> dict[str, Setting]:
    """The usual settings with some changed; None: the role may not see it. ``__`` is a dot."""
    given = SETTINGS | {name.replace("__", "."): value for name, value in changed.items()}
    return {
        name: Setting(value, pending_restart=False)
        for name, value in given.items()
        if value is not None
    }


def table(of: Plan, **changed: Any) -> Table:
    """The jobs table as an apply makes it."""
    made = Table(
        kind="r",
        owner="app",
        owned=True,
        forced_row_security=False,
        columns=of.columns,
        indexes=dict.fromkeys(of.rendered.indexes, True),
        triggers=("jobwarden_event",),
        unindexed_children=(),
    )
    return replace(made, **changed)


def ledger(of: Plan, **changed: Any) -> Ledger:
    """What an apply of the plan writes down; schedules get the jobs 1, 2, ..."""
    schedules = {
        name: LedgerSchedule(one.schedule, one.command, one.every, number)
        for number, (name, one) in enumerate(of.schedules.items(), 1)
    }
    objects = {"function sweep()": "aa", "view job": "bb"}
    made = Ledger(
        release=of.rendered.release,
        sources=dict(of.rendered.sources),
        objects=objects,
        actual=objects,
        policy=dict(of.policy),
        schedules=schedules,
    )
    return replace(made, **changed)


def job(of: Plan, name: str, **changed: Any) -> CronJob:
    """The row of ``cron.job`` that an apply of the plan makes."""
    number = list(of.schedules).index(name) + 1
    one = of.schedules[name]
    made = CronJob(
        jobid=number,
        name=name,
        schedule=one.schedule,
        command=one.command,
        database="app",
        username=RUNNER,
        nodename="localhost",
        nodeport=5432,
        active=True,
    )
    return replace(made, **changed)


def installed(of: Plan, **changed: Any) -> Observed:
    """A server where the plan holds."""
    made = Observed(
        server=SUPERUSER,
        settings=settings(),
        cron_default_version="1.4-1",
        cron_installed_version="1.4-1",
        cron_usage=True,
        cron_usage_to_grant=True,
        runner_cron_usage=True,
        roles=ROLES,
        table=table(of),
        schema_exists=True,
        jobs=tuple(job(of, name) for name in of.schedules),
        orphans=(),
        installed=True,
        ledger=ledger(of),
        running={},
    )
    return replace(made, **changed)


def empty(**changed: Any) -> Observed:
    """A server with pg_cron preloaded and nothing of ours."""
    made = replace(
        installed(wanted()),
        cron_installed_version=None,
        runner_cron_usage=False,
        roles={},
        table=None,
        jobs=None,
        installed=False,
        ledger=None,
        running=None,
    )
    return replace(made, **changed)
