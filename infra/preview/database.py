"""The plan of one stack against its database, and the row counts: one document on stdout.

A process of its own, so that a server which never answers is ended like any other tool. It reads
only, so the read-only role is enough: ``python -m infra.preview.database STACK-FILE``. The URL is
in JOBWARDEN_PREVIEW_URL; without it the private cluster is meant.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import psycopg

from infra import checks, durations, queries, rights, stackfile
from infra.db.connect import connect
from infra.db.observe import observe
from infra.diff import diff
from infra.errors import InfraError
from infra.observed import Limits, Observed
from infra.plan import EVERY_ACTION, Plan
from infra.preview.needs import build

VARIABLE = "JOBWARDEN_PREVIEW_URL"
_OLD = "what is installed cannot count them yet; the next apply brings it"


def main(stack: str) -> int:
    """Print what was found. Exit code: 0, or 1 with ``{"error": ...}``."""
    try:
        document = ask(build(stackfile.load(stack)), _url())
    except InfraError as error:
        document = {"error": _one_line(error.message, error.hint)}
    json.dump(document, sys.stdout, default=str)
    return 1 if "error" in document else 0


def _url() -> str:
    if VARIABLE in os.environ:
        return os.environ[VARIABLE]
    from infra.local import persistent  # noqa: PLC0415  # only target local needs it

    state = persistent.status()
    if state.url is None:
        raise InfraError(
            "the private cluster of target local is not running", hint="jobwarden local up"
        )
    return state.url


def ask(plan: Plan, url: str) -> dict[str, Any]:
    """Compare and count, read-only. Raises InfraError when the server cannot be asked."""
    with connect(url) as connection:
        connection.execute("SET default_transaction_read_only = on")
        found = observe(connection, plan.environment)
        blind = rights.blind(found)
        if blind is not None:
            raise InfraError(blind.message, hint=blind.hint)
        waits = checks.waiting(found)
        return {
            "changes": [change.to_json() for change in diff(plan, found)],
            "faults": [_told(problem) for problem in checks.faults(plan, found)],
            "notes": [
                *([_told(waits)] if waits else []),
                *(f"warning: {text}" for text in checks.warnings(plan, found)),
            ],
            **_figures(connection, plan, found),
        }


def _told(problem: checks.Problem) -> str:
    return f"{problem.subject}: {_one_line(problem.message, problem.hint)}"


def _one_line(message: str, hint: str | None) -> str:
    return f"{message}. Try: {hint}" if hint else message


def _figures(connection: psycopg.Connection, plan: Plan, found: Observed) -> dict[str, Any]:
    """How many jobs the next runs take with the limits in force, and with the plan's."""
    in_force = found.ledger.policy if found.ledger else {}
    if not found.installed or in_force == plan.policy:
        return {"figures": None, "why": "nothing is installed yet"}
    may = connection.execute(queries.MAY_FORESEE).fetchone()
    if not may or not may[0]:
        return {"figures": None, "why": _OLD}
    rows = {*in_force, *plan.policy}
    now, then = _count(connection, in_force, rows), _count(connection, plan.policy, rows)
    pairs = {
        kind: {name: [now[kind][name], then[kind][name]] for name in rows}
        for kind in ("sweep", "cleanup")
    }
    return {"figures": pairs, "why": ""}


def _count(
    connection: psycopg.Connection, limits: Mapping[str, Limits], rows: set[str]
) -> dict[str, dict[str, int]]:
    """By kind and by the policy row that an action belongs to, on either side."""
    found: dict[str, dict[str, int]] = {"sweep": defaultdict(int), "cleanup": defaultdict(int)}
    policy = json.dumps({name: _json(each) for name, each in limits.items()})
    for kind, action, jobs in connection.execute(queries.FORESEEN, (policy, queries.FORESEEN_CAP)):
        found[kind][action if action in rows else EVERY_ACTION] += jobs
    return found


def _json(limits: Limits) -> dict[str, str | None]:
    return {"timeout": _length(limits.timeout), "retention": _length(limits.retention)}


def _length(limit: timedelta | None) -> str | None:
    return None if limit is None else f"{durations.seconds(limit)} seconds"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
