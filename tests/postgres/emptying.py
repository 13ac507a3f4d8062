"""Takes a cluster back to empty between tests, without a restart."""

from __future__ import annotations

import time

import psycopg
from psycopg import sql

from infra.local.cluster import Cluster

_OTHER_SESSIONS = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
_OTHER_DATABASES = """
SELECT datname FROM pg_database
WHERE NOT datistemplate AND datname NOT IN ('postgres', 'app')
"""
_OTHER_ROLES = "SELECT rolname FROM pg_roles WHERE oid >= 16384"
_OTHER_SCHEMAS = """
SELECT nspname FROM pg_namespace AS n
WHERE nspname NOT IN ('public', 'information_schema') AND nspname !~ '^pg_'
  AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_namespace'::regclass
                  AND d.objid = n.oid AND d.deptype = 'e')
"""
# On pg_cron 1.4 the extension itself lies in public, so the schema cannot simply be dropped.
_IN_PUBLIC = """
SELECT i.type, i.identity FROM pg_depend AS d
CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS i
WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = 'public'::regnamespace
  AND d.deptype = 'n' AND d.classid <> 'pg_extension'::regclass
LIMIT 1
"""
_OWN_SETTINGS = "SELECT EXISTS (SELECT FROM pg_file_settings WHERE sourcefile ~ 'auto.conf$')"
_HAS_PG_CRON = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_cron')"
_LAUNCHERS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pg_cron launcher'"


def empty(cluster: Cluster) -> None:
    """Drop all that tests made: sessions, databases, settings, schemas, objects, roles, jobs."""
    with psycopg.connect(cluster.url("app"), autocommit=True) as connection:
        connection.execute("SET lock_timeout = '10s'; SET client_min_messages = 'warning'")
        connection.execute(_OTHER_SESSIONS)
        _drop_databases(connection)
        _reset_settings(connection)
        _drop_objects(connection)
        _drop_roles(connection)
        if _one(connection, _HAS_PG_CRON):
            connection.execute("DELETE FROM cron.job; DELETE FROM cron.job_run_details")


def set_extension(cluster: Cluster, *, present: bool) -> None:
    """Create or drop pg_cron in ``app``, then wait until its launcher is alive."""
    with psycopg.connect(cluster.url("app"), autocommit=True) as connection:
        if _one(connection, _HAS_PG_CRON) != present:
            connection.execute("CREATE EXTENSION pg_cron" if present else "DROP EXTENSION pg_cron")
        deadline = time.monotonic() + 15
        while not _one(connection, _LAUNCHERS):
            assert time.monotonic() < deadline, f"no pg_cron launcher:\n{cluster.log_tail()}"
            time.sleep(0.05)


def _drop_databases(connection: psycopg.Connection) -> None:
    for (name,) in connection.execute(_OTHER_DATABASES).fetchall():
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _reset_settings(connection: psycopg.Connection) -> None:
    connection.execute("ALTER DATABASE app RESET ALL")
    if _one(connection, _OWN_SETTINGS):
        connection.execute("ALTER SYSTEM RESET ALL")
        connection.execute("SELECT pg_reload_conf()")


def _drop_objects(connection: psycopg.Connection) -> None:
    for (name,) in connection.execute(_OTHER_SCHEMAS).fetchall():
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))
    while row := connection.execute(_IN_PUBLIC).fetchone():
        # The server's own words: a kind of object and its quoted identity.
        connection.execute(f"DROP {row[0]} IF EXISTS {row[1]} CASCADE".encode())


def _drop_roles(connection: psycopg.Connection) -> None:
    # All rights before the first role: one may have granted them to another.
    names = [name for (name,) in connection.execute(_OTHER_ROLES).fetchall()]
    for step in ("DROP OWNED BY {} CASCADE", "DROP ROLE {}"):
        for name in names:
            connection.execute(sql.SQL(step).format(sql.Identifier(name)))


def _one(connection: psycopg.Connection, query: str) -> object:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]
