"""The questions to our own functions, which the read-only role may ask. Texts only."""

from __future__ import annotations

HEALTH = 'SELECT h."check" AS name, h.level, h.detail, h.hint FROM jobwarden.health() AS h'
FIGURES = "SELECT f.name, f.labels, f.value FROM jobwarden.figures() AS f"
STUCK = (
    'SELECT s.id::text, s.action, s.started_at AS since, jobwarden.human(s.timeout) AS "limit"'
    " FROM jobwarden.stuck(jobwarden.now(), %s) AS s"
)
EXPIRED = (
    'SELECT e.id::text, e.action, e.completed_at AS since, jobwarden.human(e.retention) AS "limit"'
    " FROM jobwarden.expired(jobwarden.now(), %s) AS e"
)
LAST_RUN = (
    "SELECT r.kind, r.outcome, r.changed, r.skipped, r.poisoned, r.sqlstate, r.message,"
    " r.started_at, r.ended_at FROM jobwarden.run AS r WHERE r.kind = %s ORDER BY r.id DESC LIMIT 1"
)
