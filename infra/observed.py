"""What is there: the parser of the one JSON document that ``sql/observe.sql`` returns.

A value of None means "unknown": the role may not see it. It never means "not there".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

RUNNER = "jobwarden_runner"

# Columns of cron.job that are set when a row is made, and by nothing that a plain role may call.
PLACE = frozenset({"database", "nodename", "nodeport"})


@dataclass(frozen=True, slots=True)
class Server:
    """The server and the role that looked.

    ``rds``: RDS or Aurora, by its role rds_superuser, which has no superuser's rights but creates
    what AWS allows; ``rds_superuser``: the role that looked is a member.
    """

    version_num: int
    in_recovery: bool
    database: str
    port: int
    user: str
    superuser: bool
    createrole: bool
    creates_schemas: bool
    sees_every_cron_job: bool
    launcher: tuple[str | None, ...]
    rds: bool = False
    rds_superuser: bool = False

    @property
    def major(self) -> int:
        """The major version, such as 15."""
        return self.version_num // 10000


@dataclass(frozen=True, slots=True)
class Setting:
    """A server setting in force, and whether a changed one waits for a restart."""

    value: str
    pending_restart: bool


@dataclass(frozen=True, slots=True)
class Role:
    """One of our roles; ``ours_to_set``: the connecting role has its rights and may become it."""

    login: bool
    superuser: bool
    ours_to_set: bool


@dataclass(frozen=True, slots=True)
class Table:
    """The jobs table that the environment names."""

    kind: str
    owner: str
    owned: bool
    forced_row_security: bool
    columns: Mapping[str, str]
    indexes: Mapping[str, bool]
    triggers: tuple[str, ...]
    unindexed_children: tuple[str, ...]
    owner_superuser: bool = False


@dataclass(frozen=True, slots=True)
class CronJob:
    """A row of ``cron.job``."""

    jobid: int
    name: str | None
    schedule: str
    command: str
    database: str
    username: str
    nodename: str
    nodeport: int
    active: bool


@dataclass(frozen=True, slots=True)
class LedgerSchedule:
    """What we declared; ``jobid`` is None while no pg_cron carries it."""

    schedule: str
    command: str
    every: timedelta
    jobid: int | None


@dataclass(frozen=True, slots=True)
class Limits:
    """A row of ``jobwarden.policy``: None is "never" and "for ever"."""

    timeout: timedelta | None
    retention: timedelta | None


@dataclass(frozen=True, slots=True)
class Ledger:
    """What an earlier apply wrote down, and what is there now (``actual``)."""

    release: int
    sources: Mapping[str, str]
    objects: Mapping[str, str]
    actual: Mapping[str, str]
    policy: Mapping[str, Limits]
    schedules: Mapping[str, LedgerSchedule]


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that plan, apply and boot decide from.

    ``strays``: schema and name of our indexes on a table that the environment does not name.
    """

    server: Server
    settings: Mapping[str, Setting]
    cron_default_version: str | None
    cron_installed_version: str | None
    cron_usage: bool
    cron_usage_to_grant: bool
    runner_cron_usage: bool
    roles: Mapping[str, Role]
    table: Table | None
    schema_exists: bool
    jobs: tuple[CronJob, ...] | None
    orphans: tuple[str, ...]
    installed: bool
    ledger: Ledger | None
    running: Mapping[str, int] | None
    runner_connects: bool = True
    connect_to_grant: bool = True
    creates_in_schema: bool = True
    strays: tuple[tuple[str, str], ...] = ()

    def setting(self, name: str) -> str | None:
        """The value of a setting in force; None where it is unknown or does not exist."""
        found = self.settings.get(name)
        return found.value if found else None


def parse(document: str) -> Observed:
    """Read the document. Raises ValueError or KeyError on one ``observe.sql`` did not write."""
    doc = json.loads(document)
    extension = doc["pg_cron"] or {}
    grants = doc["cron_grants"] or {}
    return Observed(
        server=_server(doc["server"]),
        settings={name: Setting(**value) for name, value in doc["settings"].items()},
        cron_default_version=extension.get("default_version"),
        cron_installed_version=extension.get("installed_version"),
        cron_usage=bool(grants.get("usage")),
        cron_usage_to_grant=bool(grants.get("usage_to_grant")),
        runner_cron_usage=bool(grants.get("runner_usage")),
        roles={name: Role(**value) for name, value in doc["roles"].items()},
        table=_table(doc["table"]),
        schema_exists=doc["schema_exists"],
        jobs=_jobs(doc["cron_jobs"]),
        orphans=tuple(doc["cron_orphans"] or ()),
        installed=doc["installed"],
        ledger=_ledger(doc["ledger"]),
        running=doc["running"],
        runner_connects=doc["connect_grants"]["runner"],
        connect_to_grant=doc["connect_grants"]["to_grant"],
        creates_in_schema=doc["creates_in_schema"],
        strays=tuple((schema, name) for schema, name in doc["strays"]),
    )


def _server(doc: Mapping[str, Any]) -> Server:
    return Server(
        version_num=doc["version_num"],
        in_recovery=doc["in_recovery"],
        database=doc["database"],
        port=doc["port"],
        user=doc["user"],
        superuser=doc["superuser"],
        createrole=doc["createrole"],
        creates_schemas=doc["creates_schemas"],
        sees_every_cron_job=doc["sees_every_cron_job"],
        launcher=tuple(doc["launcher"] or ()),
        rds=doc["rds"],
        rds_superuser=doc["rds_superuser"],
    )


def _table(doc: Mapping[str, Any] | None) -> Table | None:
    if doc is None:
        return None
    return Table(
        kind=doc["kind"],
        owner=doc["owner"],
        owned=doc["owned"],
        forced_row_security=doc["forced_row_security"],
        columns=doc["columns"] or {},
        indexes=doc["indexes"],
        triggers=tuple(doc["triggers"]),
        unindexed_children=tuple(doc["unindexed_children"]),
        owner_superuser=doc["owner_superuser"],
    )


def _jobs(doc: list[Mapping[str, Any]] | None) -> tuple[CronJob, ...] | None:
    if doc is None:
        return None
    return tuple(
        CronJob(
            jobid=job["jobid"],
            name=job.get("jobname"),  # pg_cron 1.2 and older have no names
            schedule=job["schedule"],
            command=job["command"],
            database=job["database"],
            username=job["username"],
            nodename=job["nodename"],
            nodeport=job["nodeport"],
            active=job.get("active", True),
        )
        for job in sorted(doc, key=lambda job: job["jobid"])
    )


def _ledger(doc: Mapping[str, Any] | None) -> Ledger | None:
    if doc is None:
        return None
    return Ledger(
        release=doc["release"],
        sources=doc["sources"],
        objects=doc["objects"],
        actual=doc["actual"],
        policy={
            action: Limits(_seconds(row["timeout"]), _seconds(row["retention"]))
            for action, row in doc["policy"].items()
        },
        schedules={
            name: LedgerSchedule(
                row["schedule"], row["command"], timedelta(seconds=row["every"]), row["jobid"]
            )
            for name, row in doc["schedules"].items()
        },
    )


def _seconds(value: int | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)
