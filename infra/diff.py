"""The changes that take a server to the plan: empty where nothing is to be done."""

from __future__ import annotations

from collections.abc import Iterator

from infra import checks
from infra.changes import Change
from infra.diff_schedules import Wishes, diff_schedules
from infra.observed import Ledger, Observed
from infra.plan import EVERY_ACTION, Plan, limits_json


def diff(plan: Plan, observed: Observed, wishes: Wishes = Wishes()) -> tuple[Change, ...]:  # noqa: B008  # frozen
    """All changes, in the order in which an apply makes them; ``same`` schedules are listed too."""
    waits = checks.waiting(observed)
    changes = (
        *diff_indexes(plan, observed),
        *diff_sql(plan, observed),
        *diff_policy(plan, observed),
        *diff_extension(observed),
        *diff_schedules(plan, observed, wishes, waits.message if waits else None),
    )
    return tuple(
        change
        for change in changes
        if not wishes.in_place_only or _in_place(change, plan, observed)
    )


def _in_place(change: Change, plan: Plan, observed: Observed) -> bool:
    """Whether a boot may make it: an old replica that boots must not undo a newer apply."""
    if change.action == "delete":
        return False
    if change.kind == "index":
        return observed.table is None
    if change.kind in {"sql", "object"} and observed.ledger and change.action != "unknown":
        return observed.ledger.release <= plan.rendered.release
    return True


def diff_extension(observed: Observed) -> Iterator[Change]:
    """CREATE EXTENSION, where the server is ready for it and the role may."""
    if checks.waiting(observed) is None and observed.cron_installed_version is None:
        yield Change("extension", "pg_cron", "create", None, observed.cron_default_version)


def diff_sql(plan: Plan, observed: Observed) -> Iterator[Change]:
    """SQL files that are new or changed, and objects that somebody changed by hand."""
    if observed.installed and observed.ledger is None:
        yield Change(
            "sql",
            "jobwarden",
            "unknown",
            why=f"{observed.server.user} may not read schema jobwarden",
        )
        return
    recorded = observed.ledger.sources if observed.ledger else {}
    for name, text in plan.rendered.sources.items():
        old = recorded.get(name)
        if old != text:
            yield Change(
                "sql",
                name,
                "create" if old is None else "update",
                old,
                text,
                "ours changed" if old else "",
            )
    for name in sorted(set(recorded) - set(plan.rendered.sources)):
        yield Change(
            "sql", name, "delete", recorded[name], None, "the environment no longer wants it"
        )
    if observed.ledger:
        yield from _hand_made(observed.ledger)


def _hand_made(ledger: Ledger) -> Iterator[Change]:
    for name, was in sorted(ledger.objects.items()):
        found = ledger.actual.get(name)
        if found is None:
            yield Change("object", name, "create", None, was, "somebody dropped it")
        elif found != was:
            yield Change(
                "object", name, "update", found, was, "somebody changed it, or its rights, by hand"
            )


def diff_indexes(plan: Plan, observed: Observed) -> Iterator[Change]:
    """Our two indexes: on another table, missing, or left invalid by a build that was cut off."""
    found = observed.table.indexes if observed.table else {}
    for schema, name in observed.strays:
        why = "it is on a table that the environment does not name"
        yield Change("index", name, "delete", {"schema": schema}, None, why)
    for name, ddl in plan.rendered.indexes.items():
        if name not in found:
            yield Change("index", name, "create", None, ddl)
        elif not found[name]:
            yield Change("index", name, "update", "invalid", ddl, "an earlier build was cut off")


def diff_policy(plan: Plan, observed: Observed) -> Iterator[Change]:
    """Limits that are new, changed or no longer wanted; says how many running jobs they touch."""
    if observed.installed and observed.ledger is None:
        return
    found = observed.ledger.policy if observed.ledger else {}
    for action in [*plan.policy, *sorted(set(found) - set(plan.policy))]:
        old, new = found.get(action), plan.policy.get(action)
        if old == new:
            continue
        kind = "create" if old is None else "update" if new else "delete"
        yield Change(
            "policy",
            action,
            kind,  # type: ignore[arg-type]  # one of three literals
            limits_json(old) if old else None,
            limits_json(new) if new else None,
            _touched(action, plan, observed),
        )


def _touched(action: str, plan: Plan, observed: Observed) -> str:
    """How many jobs that run now the changed limit is for."""
    if observed.running is None:
        return ""
    if action != EVERY_ACTION:
        count = observed.running.get(action, 0)
    else:
        count = sum(jobs for name, jobs in observed.running.items() if name not in plan.policy)
    return f"holds at once for {count} running job{'s' if count != 1 else ''}"
