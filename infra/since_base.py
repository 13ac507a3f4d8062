"""What a changed environment file, or changed SQL, changes in the plan: two plans, nobody asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from infra import preload
from infra.changes import Change
from infra.config import Environment
from infra.extensions import find_setting
from infra.plan import Plan, limits_json
from infra.rows import LIBRARIES

# Said by rows of their own; previews are no infrastructure.
_OWN_ROWS: Final = frozenset({"watchdog", "cleanup", "schedules", "services", "preview"})
_OWN_KEYS: Final = frozenset({"postgres.preload", "postgres.settings", "rds.parameters"})


def between(old: Plan | None, new: Plan) -> tuple[Change, ...]:
    """The changes from one plan to the other. No old one: the stack is new."""
    return (
        *_pairs("schedule", _schedules(old), _schedules(new)),
        *_pairs("policy", _limits(old), _limits(new)),
        *_pairs("sql", dict(old.rendered.sources) if old else {}, new.rendered.sources),
        *_libraries(old, new),
        *_parameters(old, new),
        *_services(old, new),
        *_others(old, new),
    )


def _pairs(kind: Any, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for name in dict.fromkeys([*new, *old]):
        before, after = old.get(name), new.get(name)
        if before != after:
            action: Any = "create" if before is None else "delete" if after is None else "update"
            yield Change(kind, name, action, before, after)


def _schedules(plan: Plan | None) -> dict[str, Any]:
    found = plan.schedules if plan else {}
    return {
        name: {"schedule": each.schedule, "command": each.command} for name, each in found.items()
    }


def _limits(plan: Plan | None) -> dict[str, Any]:
    return {name: limits_json(each) for name, each in (plan.policy if plan else {}).items()}


def _libraries(old: Plan | None, new: Plan) -> Iterator[Change]:
    """What is declared; what else a server loads stays as it is."""
    before, after = _declared(old), _declared(new)
    if before != after:
        action: Any = "update" if before else "create"
        yield Change("library", LIBRARIES, action, before, after, "needs a restart")


def _declared(plan: Plan | None) -> str | None:
    if plan is None:
        return None
    postgres = plan.environment.postgres
    cron = ["pg_cron"] if postgres.cron.enabled else []
    return preload.render_list(tuple(dict.fromkeys([*postgres.preload, *cron])))


def _parameters(old: Plan | None, new: Plan) -> Iterator[Change]:
    for change in _pairs("parameter", _settings(old), _settings(new)):
        rule = find_setting(change.name)
        why = "needs a restart" if rule and rule.static else ""
        yield Change("parameter", change.name, change.action, change.old, change.new, why)


def _settings(plan: Plan | None) -> dict[str, str]:
    if plan is None:
        return {}
    environment = plan.environment
    managed = {name: each.value for name, each in environment.rds.parameters.items()}
    return {**environment.postgres.settings, **managed}


def _services(old: Plan | None, new: Plan) -> Iterator[Change]:
    for change in _pairs("unit", _units(old), _units(new)):
        why = "its files changed" if change.action == "update" else ""
        yield Change("unit", change.name, change.action, change.old, change.new, why)


def _units(plan: Plan | None) -> dict[str, Any]:
    services = plan.environment.services if plan else {}
    return {
        name: _flat(each.model_dump(mode="json", by_alias=True)) for name, each in services.items()
    }


def _others(old: Plan | None, new: Plan) -> Iterator[Change]:
    """Every other key, by its path in the file."""
    before = _keys(old.environment) if old else {}
    yield from _pairs("setting", before, _keys(new.environment) if old else {})


def _keys(environment: Environment) -> dict[str, Any]:
    values = environment.model_dump(mode="json", by_alias=True)
    flat = _flat({key: value for key, value in values.items() if key not in _OWN_ROWS})
    return {
        path: value
        for path, value in flat.items()
        if not any(path == key or path.startswith(f"{key}.") for key in _OWN_KEYS)
    }


def _flat(values: Any, path: str = "") -> dict[str, Any]:
    """A value for each leaf; one that is nothing is left out."""
    if isinstance(values, Mapping):
        pairs: list[tuple[str, Any]] = [(str(key), value) for key, value in values.items()]
    elif isinstance(values, list) and any(isinstance(each, Mapping) for each in values):
        pairs = [(str(number), value) for number, value in enumerate(values)]
    else:
        return {} if values is None else {path: values}
    found: dict[str, Any] = {}
    for key, value in pairs:
        found |= _flat(value, f"{path}.{key}" if path else key)
    return found
