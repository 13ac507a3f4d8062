"""What would keep an apply from being made, or its schedules from firing, and the way out.

pg_cron accepts a schedule that nothing will ever run. These checks are the difference between
"registered" and "will fire". The failure modes are those of pg_cron 1.3 to 1.6, tried on a server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from infra import cronexpr, preload
from infra.errors import RuleError
from infra.observed import RUNNER, Observed
from infra.plan import Plan
from infra.quoting import ident, literal, qualified

OLDEST_MAJOR = 13


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong and what to do; ``hint`` may hold SQL to run, one statement a line."""

    subject: str
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}\nTry: {self.hint}"


def faults(plan: Plan, observed: Observed) -> tuple[Problem, ...]:
    """What stops plan and apply alike, whoever connects: nothing is changed while one stands."""
    return (
        *_server_faults(plan, observed),
        *_table_faults(plan, observed),
        *_grammar(plan, observed),
    )


def _server_faults(plan: Plan, observed: Observed) -> Iterator[Problem]:
    server = observed.server
    declared = plan.environment.postgres.database
    if declared is not None and declared != server.database:
        yield Problem(
            "postgres.database",
            f"the environment names database {declared}, and this is database {server.database}",
            "name the right one in `jobwarden:databaseUrl`, DATABASE_URL or PGDATABASE",
        )
    if server.in_recovery:
        yield Problem(
            "server",
            "this is a standby (in recovery): it takes no writes and runs no schedules",
            "connect to the primary; after a promotion apply again there",
        )
    if server.major < OLDEST_MAJOR:
        yield Problem(
            "server",
            f"PostgreSQL {server.major} is too old (allowed: {OLDEST_MAJOR} and later)",
            f"upgrade the server to PostgreSQL {OLDEST_MAJOR} or later",
        )


def _table_faults(plan: Plan, observed: Observed) -> Iterator[Problem]:
    jobs, table = plan.environment.jobs, observed.table
    if not observed.schema_exists:
        yield Problem(
            "jobs.table",
            f"there is no schema {jobs.table.schema} in database {observed.server.database}",
            f"CREATE SCHEMA {ident(jobs.table.schema)};",
        )
    if table is None:
        return
    off = {
        name: (table.columns.get(name, "missing"), kind)
        for name, kind in plan.columns.items()
        if table.columns.get(name) != kind
    }
    if table.kind != "r" or off:
        found = "is no ordinary table" if table.kind != "r" else _columns_text(off)
        yield Problem(
            "jobs.table",
            f"{jobs.table} is there already and is not the table we would make: {found}",
            "name another table in `jobs.table`, or its columns in `jobs.columns`; `create: false`"
            " will adopt a table as it is, but is not in this version yet. Nothing was changed",
        )
    elif table.forced_row_security:
        yield Problem(
            "jobs.table",
            f"row security of {jobs.table} is forced on its owner: a sweep would see no rows",
            f"ALTER TABLE {quoted_table(plan)} NO FORCE ROW LEVEL SECURITY;",
        )


def quoted_table(plan: Plan) -> str:
    """The jobs table for a statement that a reader runs."""
    table = plan.environment.jobs.table
    return qualified(table.schema, table.name)


def _columns_text(off: dict[str, tuple[str, str]]) -> str:
    return ", ".join(f"{name} is {found} (wanted {kind})" for name, (found, kind) in off.items())


def _grammar(plan: Plan, observed: Observed) -> Iterator[Problem]:
    """Schedules that the pg_cron which is really there refuses."""
    version = observed.cron_installed_version or observed.cron_default_version
    if version is None:
        return
    for name, wanted in plan.schedules.items():
        try:
            cronexpr.parse(wanted.schedule, version)
        except RuleError as error:
            yield Problem(f"schedule {name}", error.message, error.hint or "write another schedule")


def waiting(observed: Observed) -> Problem | None:
    """Why pg_cron cannot be asked for schedules yet; None where it can. The first step first."""
    return next(_waiting(observed), None)


def _waiting(observed: Observed) -> Iterator[Problem]:
    server, major = observed.server, observed.server.major
    if observed.cron_default_version is None:
        yield Problem(
            "pg_cron",
            "pg_cron is not installed on this server",
            f"install it (Debian, Ubuntu: apt-get install postgresql-{major}-cron), preload it,"
            " restart Postgres and apply again; without it, infra/files/fallback.sh does the work",
        )
    libraries = observed.setting("shared_preload_libraries")
    if libraries is not None and not preload.contains(libraries, "pg_cron"):
        yield Problem(
            "pg_cron",
            "pg_cron is not in the shared_preload_libraries in force",
            _preload_hint(libraries, server.database, rds=server.rds),
        )
    home = observed.setting("cron.database_name") or next(iter(server.launcher), None)
    if home is not None and home != server.database:
        yield Problem(
            "pg_cron",
            f"pg_cron keeps its jobs in database {home}, and this is database {server.database}",
            f"set cron.database_name = {literal(server.database)} and restart Postgres,"
            f" or connect to {home}",
        )
    yield from _extension_waits(observed)


def _preload_hint(libraries: str, database: str, *, rds: bool) -> str:
    if rds:
        return (
            "put pg_cron into shared_preload_libraries of its parameter group, if it is not there,"
            " and reboot it: aws rds reboot-db-instance --db-instance-identifier NAME; then apply"
            " again"
        )
    # ALTER SYSTEM knows no cron.database_name before the library is loaded: hence the file.
    merged = preload.render_conf_value(preload.merge(libraries, ["pg_cron"]).text)
    return (
        "write in postgresql.conf\n"
        f"shared_preload_libraries = {merged}\n"
        f"cron.database_name = {preload.render_conf_value(database)}\n"
        "then restart Postgres and apply again"
    )


def _extension_waits(observed: Observed) -> Iterator[Problem]:
    found, default = observed.cron_installed_version, observed.cron_default_version
    if found is None and not (observed.server.superuser or observed.server.rds_superuser):
        yield Problem(
            "pg_cron",
            f"the extension is not in database {observed.server.database} yet",
            "have a superuser (on RDS: a member of rds_superuser) run:\nCREATE EXTENSION pg_cron;\n"
            "GRANT USAGE ON SCHEMA cron TO jobwarden_runner;\nand apply again",
        )
    if found is not None and found != default:
        yield Problem(
            "pg_cron",
            f"the SQL of pg_cron is {found}, its library {default}: names and runs would be wrong",
            "ALTER EXTENSION pg_cron UPDATE;",
        )
    if found and not (observed.runner_cron_usage or observed.cron_usage_to_grant):
        yield Problem(
            "pg_cron",
            f"{RUNNER} may not use schema cron, and {observed.server.user} may not grant it",
            f"have a superuser run:\nGRANT USAGE ON SCHEMA cron TO {RUNNER};",
        )
    if not (observed.runner_connects or observed.connect_to_grant):
        database = observed.server.database
        yield Problem(
            "pg_cron",
            f"{RUNNER} may not connect to database {database}, and {observed.server.user} may not"
            " grant it",
            f"have its owner run:\nGRANT CONNECT ON DATABASE {ident(database)} TO {RUNNER};",
        )


def proof(plan: Plan, observed: Observed) -> tuple[Problem, ...]:
    """What would keep registered schedules from firing, read back from the server."""
    return (*_launcher(observed), *_owner(observed), *_slots(observed), *_rows(plan, observed))


def _launcher(observed: Observed) -> Iterator[Problem]:
    server = observed.server
    if observed.orphans:
        names = ", ".join(literal(name) for name in observed.orphans)
        yield Problem(
            "pg_cron",
            f"jobs of missing roles ({names}) keep the scheduler from starting: no job runs at all",
            "make the roles again, or as a superuser:\n"
            f"DELETE FROM cron.job WHERE username IN ({names});",
        )
    elif not server.launcher:
        yield Problem(
            "pg_cron",
            "the process `pg_cron scheduler` is not there: nothing will fire",
            "restart Postgres (before 1.6.1 the scheduler stays away once it was terminated),"
            " then: jobwarden status",
        )
    elif server.launcher[0] != server.database:
        yield Problem(
            "pg_cron",
            f"the scheduler reads database {server.launcher[0]}, not {server.database}",
            "restart Postgres after a change of cron.database_name",
        )


def _owner(observed: Observed) -> Iterator[Problem]:
    runner = observed.roles.get(RUNNER)
    if runner is None:
        yield Problem("pg_cron", f"role {RUNNER} is not there", "jobwarden apply makes it again")
    elif not runner.login:
        yield Problem(
            "pg_cron",
            f"{RUNNER} may not log in: its jobs never start",
            f"ALTER ROLE {RUNNER} LOGIN;",
        )
    elif runner.superuser:
        yield Problem(
            "pg_cron",
            f"{RUNNER} is a superuser: schedules must not be",
            f"ALTER ROLE {RUNNER} NOSUPERUSER;",
        )


def _slots(observed: Observed) -> Iterator[Problem]:
    if observed.setting("cron.use_background_workers") != "on":
        return
    slots, jobs = (
        observed.setting("max_worker_processes"),
        observed.setting("cron.max_running_jobs"),
    )
    # The launchers of pg_cron and of logical replication take one each.
    if slots and jobs and int(slots) < int(jobs) + 2:
        yield Problem(
            "pg_cron",
            f"max_worker_processes is {slots}, cron.max_running_jobs {jobs}: jobs find no slot",
            f"max_worker_processes = {int(jobs) + 3}, then restart Postgres",
        )


def _rows(plan: Plan, observed: Observed) -> Iterator[Problem]:
    if observed.jobs is None:
        return
    held = {job.name for job in observed.jobs if job.username == RUNNER}
    for name in plan.schedules:
        if name not in held:
            yield Problem(f"schedule {name}", "it is not in cron.job", "jobwarden plan says why")


def warnings(plan: Plan, observed: Observed) -> tuple[str, ...]:
    """What will work, but not as a reader of the environment might think."""
    version = observed.cron_installed_version or observed.cron_default_version
    zone = observed.setting("cron.timezone") or "GMT"
    found = [
        f"schedule {name}: {text}"
        for name, wanted in plan.schedules.items()
        for text in cronexpr.warnings(cronexpr.parse(wanted.schedule), version, zone)
    ]
    if (
        version
        and observed.setting("cron.use_background_workers") == "on"
        and cronexpr.parse_version(version) < (1, 5)
    ):
        found.append(f"pg_cron {version} with background workers: one long job holds up all others")
    if observed.table:
        found += [
            f"{child} refers to {plan.environment.jobs.table} without an index: a cleanup scans it"
            for child in observed.table.unindexed_children
        ]
    return tuple(found)
