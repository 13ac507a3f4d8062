"""From what pydantic found to faults a user can act on, and the rules that hold between keys."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from infra import dburl, identifiers
from infra.config import models
from infra.config.aws_faults import REFUSED
from infra.config.aws_models import Rds
from infra.config.block import Block
from infra.errors import Fault, RuleError

TOP: Final = "(top)"
_LONGEST: Final = 80
_KINDS: Final = {
    "bool_type": ("true or false", "write true or false without quotes"),
    "invalid_key": ("text as a key", "put the key in quotes"),
    "dict_type": ("a mapping (key: value)", "put keys below it, or leave it out"),
    "model_type": ("a mapping (key: value)", "put keys below it, or leave it out"),
    "int_type": ("a whole number", "write it as digits, without quotes"),
    "string_type": ("text", 'put it in quotes, as in "text"'),
    "tuple_type": ("a list", "begin each element with `- `"),
}


def of_pydantic(error: ValidationError) -> tuple[Fault, ...]:
    """Return one fault for each error, in the order of the models."""
    return tuple(_fault(detail) for detail in error.errors(include_url=False))


def between_keys(block: object) -> Iterator[Fault]:
    """Yield what is wrong between keys. ``block`` is raw: what is malformed is passed over."""
    jobs = as_mapping(as_mapping(block).get("jobs"))
    yield from _same("jobs.columns", "column", _filled(models.Columns, jobs.get("columns")))
    yield from _taken(_filled(models.Columns, jobs.get("columns")))
    yield from _same("jobs.states", "state", _filled(models.States, jobs.get("states")))
    yield from _repeated_names(as_mapping(block).get("schedules"))


def _taken(columns: dict[str, str]) -> Iterator[Fault]:
    """Names that our own table has for something else."""
    for key, name in columns.items():
        if name in models.OTHER_COLUMNS:
            yield Fault(
                f"jobs.columns.{key}",
                f"our table has a column {name} already, for something else",
                shown(name),
                f"any name but {', '.join(models.OTHER_COLUMNS)}",
                "name it differently",
            )


def _fault(detail: ErrorDetails) -> Fault:
    path = tuple(part for part in detail["loc"] if part != "[key]")
    where = ".".join(map(str, path)) or TOP
    rule = detail.get("ctx", {}).get("error")
    if isinstance(rule, RuleError):
        return Fault(where, rule.problem, shown(rule.got), rule.allowed, rule.hint or "")
    if detail["type"] == "extra_forbidden":
        return _unknown_key(where, path)
    if detail["type"] == "missing":
        allowed = "a value for this key"
        return Fault(where, "the key is missing", "nothing", allowed, f"add {path[-1]}")
    if detail["type"] == "literal_error":
        return _unknown_choice(where, detail)
    return _wrong_type(where, detail)


def _unknown_key(where: str, path: tuple[int | str, ...]) -> Fault:
    key = str(path[-1])
    model = models.model_at(path[:-1]) or models.Environment
    allowed = sorted(models.keys(model))
    if key in models.LATER_KEYS.get(model, ()):
        return Fault(
            where,
            "not supported by this version",
            shown(key),
            ", ".join(allowed),
            f"leave {key} out",
        )
    if model is Rds and key in REFUSED:
        problem, hint = REFUSED[key]
        return Fault(where, problem, shown(key), ", ".join(allowed), hint)
    near = difflib.get_close_matches(key, allowed, n=1)
    hint = f"did you mean {near[0]}?" if near else "take it out, or use one of the allowed keys"
    return Fault(where, "unknown key", shown(key), ", ".join(allowed), hint)


def _unknown_choice(where: str, detail: ErrorDetails) -> Fault:
    allowed = str(detail["ctx"]["expected"]).replace("'", "")
    value = detail["input"]
    near = difflib.get_close_matches(str(value), allowed.replace(" or ", ", ").split(", "), n=1)
    hint = f"did you mean {near[0]}?" if near else "use one of the allowed values"
    return Fault(where, "not one of the allowed values", shown(value), allowed, hint)


def _wrong_type(where: str, detail: ErrorDetails) -> Fault:
    plain = (detail["msg"], "correct the value")
    allowed, hint = _KINDS.get(detail["type"], plain)
    return Fault(where, "wrong type", shown(detail["input"]), allowed, hint)


def _same(path: str, what: str, values: Mapping[str, str]) -> Iterator[Fault]:
    owners: dict[str, list[str]] = {}
    for key, value in values.items():
        owners.setdefault(value, []).append(key)
    for value, keys in owners.items():
        if len(keys) > 1:
            yield Fault(
                path,
                f"{' and '.join(keys)} are the same {what}",
                shown(value),
                f"a {what} of its own for each",
                f"give {keys[-1]} another name",
            )


def _filled(model: type[Block], given: object) -> dict[str, str]:
    """Defaults and what was given over them; a malformed value has a fault of its own."""
    values: dict[str, str] = {}
    for key, name in models.keys(model).items():
        value = as_mapping(given).get(key, model.model_fields[name].default)
        if model is models.Columns:
            value = _column(value)
        if isinstance(value, str):
            values[key] = value
    return values


def _column(value: object) -> str | None:
    try:
        return identifiers.parse_column(value) if isinstance(value, str) else None
    except RuleError:
        return None


def _repeated_names(entries: object) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for index, entry in enumerate(entries if isinstance(entries, list | tuple) else ()):
        name = as_mapping(entry).get("name")
        if not isinstance(name, str):
            continue
        if name in first:
            yield Fault(
                f"schedules.{index}.name",
                f"the name is that of schedules.{first[name]} too",
                shown(name),
                "a name of its own for each schedule",
                "rename one of them",
            )
        first.setdefault(name, index)


def as_mapping(value: object) -> Mapping[str, object]:
    """A mapping as it is; nothing of what is malformed, which has a fault of its own."""
    return value if isinstance(value, Mapping) else {}


def shown(value: object) -> str:
    """Return a value fit for a message: as YAML would hold it, short, without a password."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str) and "://" in value:
        value = dburl.masked(value)
    text = json.dumps(value, ensure_ascii=False, default=str)
    # A lone surrogate could not be printed.
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 4] + '..."'
