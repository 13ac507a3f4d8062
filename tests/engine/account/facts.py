"""What RDS and Aurora know about their PostgreSQL: engine versions, classes, parameters.

A hand-made selection, written from the AWS guides and kept apart from the tables in ``infra`` on
purpose: the same mistake in both would prove itself right.

Sources: "Working with parameters on your RDS for PostgreSQL DB instance" and "Aurora PostgreSQL
parameters" (static or dynamic), "Scheduling maintenance with the PostgreSQL pg_cron extension" (the
cron settings), "Supported DB engines for DB instance classes".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

ENGINES = ("postgres", "aurora-postgresql")
LATEST_MINOR = {"13": 22, "14": 19, "15": 14, "16": 10, "17": 6}
ANY_CLASS = ("db.t4g.micro", "db.t4g.small", "db.t4g.medium", "db.m7g.large", "db.r7g.large")
AURORA_CLASS = ("db.t4g.medium", "db.r7g.large", "db.serverless")
PRELOADABLE = (
    *(
        "auto_explain",
        "orafce",
        "pg_bigm",
        "pg_cron",
        "pg_hint_plan",
        "pg_prewarm",
        "pg_similarity",
    ),
    *(
        "pg_stat_statements",
        "pg_tle",
        "pg_transport",
        "pgaudit",
        "pglogical",
        "plprofiler",
        "plrust",
    ),
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. ``allowed`` is a list ``a,b`` or a range ``1-100``, as AWS writes it."""

    name: str
    static: bool
    allowed: str | None = None
    default: str | None = None
    modifiable: bool = True
    several: bool = False

    @property
    def apply_type(self) -> Literal["static", "dynamic"]:
        return "static" if self.static else "dynamic"

    def allows(self, value: str) -> bool:
        """Tell whether AWS takes the value. Formulas such as ``{DBInstanceClassMemory/8}`` pass."""
        if self.allowed is None or value.startswith(("{", "GREATEST(", "LEAST(", "SUM(")):
            return True
        if bounds := re.fullmatch(r"(-?\d+)-(\d+)", self.allowed):
            return bool(re.fullmatch(r"-?\d+", value)) and (
                int(bounds[1]) <= int(value) <= int(bounds[2])
            )
        parts = value.split(",") if self.several else [value]
        return all(part.strip().lower() in self.allowed.split(",") for part in parts)


_BOOL = "0,1,on,off,true,false"
_LEVELS = "debug5,debug4,debug3,debug2,debug1,info,notice,warning,error,log,fatal,panic"

PARAMETERS = {
    parameter.name: parameter
    for parameter in (
        Parameter(
            "shared_preload_libraries",
            static=True,
            allowed=",".join(PRELOADABLE),
            default="pg_stat_statements,pg_tle",
            several=True,
        ),
        Parameter("cron.database_name", static=True, default="postgres"),
        Parameter("cron.host", static=True, default="localhost", modifiable=False),
        Parameter("cron.log_min_messages", static=False, allowed=_LEVELS),
        Parameter("cron.log_run", static=True, allowed=_BOOL),
        Parameter("cron.log_statement", static=True, allowed=_BOOL),
        Parameter("cron.max_running_jobs", static=True, allowed="0-1000"),
        Parameter("cron.timezone", static=True),
        Parameter(
            "cron.use_background_workers", static=True, allowed=_BOOL, default="1", modifiable=False
        ),
        Parameter("autovacuum_max_workers", static=True, allowed="1-262143"),
        Parameter("max_connections", static=True, allowed="6-262143"),
        Parameter("max_worker_processes", static=True, allowed="0-262143"),
        Parameter("pg_stat_statements.max", static=True, allowed="100-2147483647"),
        Parameter("rds.logical_replication", static=True, allowed="0,1"),
        Parameter("auto_explain.log_min_duration", static=False, allowed="-1-2147483647"),
        Parameter("idle_in_transaction_session_timeout", static=False, allowed="0-2147483647"),
        Parameter("log_min_duration_statement", static=False, allowed="-1-2147483647"),
        Parameter("log_statement", static=False, allowed="none,ddl,mod,all"),
        Parameter("pg_stat_statements.track", static=False, allowed="none,top,all"),
        Parameter("rds.force_ssl", static=False, allowed="0,1"),
        Parameter("statement_timeout", static=False, allowed="0-2147483647"),
        Parameter("work_mem", static=False, allowed="64-2147483647"),
    )
}


def major(version: str) -> str:
    return version.split(".", maxsplit=1)[0]


def versions(engine: str) -> list[str]:
    """Return the engine versions on offer, oldest first: the last four minors of each major."""
    if engine not in ENGINES:
        return []
    return [
        f"{release}.{minor}"
        for release, last in LATEST_MINOR.items()
        for minor in range(last - 3, last + 1)
    ]


def resolve(engine: str, version: str | None) -> str | None:
    """Return the full version for a full or a major one; None for one that is not on offer."""
    offered = versions(engine)
    if version is None:
        return next((known for known in reversed(offered) if major(known) == "16"), None)
    if version in LATEST_MINOR:
        return f"{version}.{LATEST_MINOR[version]}" if offered else None
    return version if version in offered else None


def family(engine: str, version: str) -> str:
    return f"{engine}{major(version)}"


def families() -> list[str]:
    return [f"{engine}{release}" for engine in ENGINES for release in LATEST_MINOR]


def classes(engine: str) -> tuple[str, ...]:
    return {"postgres": ANY_CLASS, "aurora-postgresql": AURORA_CLASS}.get(engine, ())
