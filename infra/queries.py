"""The questions to our own functions, which the read-only role may ask. Texts only."""

from __future__ import annotations

HEALTH = 'SELECT h."check" AS name, h.level, h.detail, h.hint FROM jobwarden.health() AS h'
FIGURES = "SELECT f.name, f.labels, f.value FROM jobwarden.figures() AS f"
# As text, since a time may be infinite, or older than what Python can hold.
_UTC = (
    "CASE WHEN pg_catalog.isfinite({0}) THEN pg_catalog.to_char({0} AT TIME ZONE 'UTC',"
    ' \'YYYY-MM-DD"T"HH24:MI:SS"Z"\') ELSE {0}::text END'
)
STUCK = (
    f"SELECT s.id::text, s.action, {_UTC.format('s.started_at')} AS since,"
    ' jobwarden.human(s.timeout) AS "limit"'
    " FROM jobwarden.stuck(jobwarden.now(), %s) AS s"
)
EXPIRED = (
    f"SELECT e.id::text, e.action, {_UTC.format('e.completed_at')} AS since,"
    ' jobwarden.human(e.retention) AS "limit"'
    " FROM jobwarden.expired(jobwarden.now(), %s) AS e"
)
# What the next runs would take; an older release of ours has no such function.
MAY_FORESEE = (
    "SELECT coalesce(pg_catalog.has_function_privilege("
    "pg_catalog.to_regprocedure('jobwarden.would_take(jsonb, int)'), 'EXECUTE'), false)"
)
FORESEEN_CAP = 10_000
FORESEEN = (
    "SELECT w.kind, w.action, w.jobs"
    " FROM jobwarden.would_take(%s::pg_catalog.jsonb, %s::pg_catalog.int4) AS w"
)
LAST_RUN = (
    "SELECT r.kind, r.outcome, r.changed, r.skipped, r.poisoned, r.sqlstate, r.message,"
    " r.started_at, r.ended_at FROM jobwarden.run AS r WHERE r.kind = %s ORDER BY r.id DESC LIMIT 1"
)

# A dry run as the schedules' role: nothing is written, and nothing is waited for.
AS_RUNNER = (
    "SET TRANSACTION READ ONLY",
    "SET LOCAL lock_timeout = '1s'",
    "SET LOCAL statement_timeout = '5s'",
    "SET LOCAL ROLE jobwarden_runner",
    "SET LOCAL search_path = pg_catalog",
)
MAY_CALL = (
    "SELECT pg_catalog.count(*), pg_catalog.bool_or("
    "pg_catalog.has_schema_privilege(r.oid, n.oid, 'USAGE')"
    " AND pg_catalog.has_function_privilege(r.oid, p.oid, 'EXECUTE'))"
    " FROM pg_catalog.pg_proc AS p"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace"
    " JOIN pg_catalog.pg_roles AS r ON r.rolname = %s"
    " WHERE p.prokind = 'p' AND n.nspname = %s AND p.proname = %s"
)

# Alerts: what the sender asks, as a member of jobwarden_alerts.
LISTEN = "LISTEN jobwarden_event"
BEGIN_ALERTS = "SELECT jobwarden.begin_alerts()"
NEW_EVENTS = "SELECT e.id, e.action, e.code FROM jobwarden.new_events(%s) AS e"
FILE_EVENTS = "SELECT jobwarden.file_events(%s, %s, %s)"
CLAIM_ALERT = "SELECT a.* FROM jobwarden.claim_alert(%s) AS a"
SETTLE_ALERT = "SELECT jobwarden.settle_alert(%s, %s, %s, %s, %s)"
NEXT_ALERT = "SELECT jobwarden.next_alert()"

REPORT = "SELECT jobwarden.report(%s)"
