"""The record of a story as one JSON document, ``story.json``: enough to draw a picture of it.

All times are ISO 8601 with a zone, from one clock. ::

    {"place": "local" | "box", "system": "PostgreSQL 17.6 (Debian ...) ..., pg_cron 1.6",
     "began": T, "ended": T,
     "limit_seconds": 8, "sweep": "* * * * *",
     "workers": ["worker-1", ...],
     "jobs": [{"id", "action", "worker", "state": "done" | "failed",
               "code": null | "watchdog_timeout" | "validation_failed" | ...,
               "created": T, "started": T, "ended": T}],                 in the order of creation
     "mishaps": [{"what": "SIGKILL" | "hangs", "worker", "job", "action", "at": T}],
     "wakes": [{"worker", "at": T}],              the worker that hung goes on
     "outages": [{"what": "postgres" | "machine" | "alerts", "began": T, "ended": T}],
     "put_back": [ID, ...],                       held when the machine went down
     "sweeps": [{"started": T, "ended": T, "changed": N}],
     "events": [{"at": T, "job", "action", "code", "alert": ID | null}],
     "alerts": [{"id", "route", "code", "state", "attempts", "made": T, "ended": T, "jobs": N}],
     "answers": {"200": N, "202": N, "503": N, "none": N}}

It lies beside the report's page, ``story.html``. The variable JOBWARDEN_STORY_KEEP names a folder
that gets both, in a folder named as the place.

``worker``, ``started`` and ``ended`` of a job are those of its last claim: a job that was put back
has begun twice. A mishap's job ends when the sweep fails it; until then it is nobody's. ``answers``
counts what the clients got; "none" is a connection that was refused or broke.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tests.story.place import LIMIT_SECONDS, WATCHDOG, WORKERS, Place

QUERIES = {
    "jobs": "SELECT id::text, action, worker, status AS state, error ->> 'code' AS code,"
    " created_at AS created, started_at AS started, completed_at AS ended"
    " FROM jobs ORDER BY created_at",
    "sweeps": "SELECT started_at AS started, ended_at AS ended, changed"
    " FROM jobwarden.run WHERE kind = 'sweep' ORDER BY id",
    "events": "SELECT at, job_id AS job, action, code, alert FROM jobwarden.event ORDER BY id",
    "alerts": "SELECT id, route, code, state, attempts, made_at AS made, ended_at AS ended,"
    " (SELECT count(*) FROM jobwarden.event AS e WHERE e.alert = a.id) AS jobs"
    " FROM jobwarden.alert AS a ORDER BY id",
}
SYSTEM = """
SELECT version() || coalesce((SELECT ', pg_cron ' || extversion FROM pg_extension
                              WHERE extname = 'pg_cron'), '')
"""


def kept(place: Place) -> dict[str, Any]:
    """The part of the record that is in the database."""
    found: dict[str, Any] = {
        "place": place.name,
        "system": place.value(SYSTEM),
        "limit_seconds": LIMIT_SECONDS,
        "sweep": WATCHDOG["schedule"],
        "workers": list(WORKERS),
    }
    for name, query in QUERIES.items():
        found[name] = [row for (row,) in place.rows(f"SELECT to_jsonb(q) FROM ({query}) AS q")]
    return found


def text_of(value: object) -> str:
    """What JSON has no word for: a time."""
    assert isinstance(value, datetime), value
    return value.isoformat()
