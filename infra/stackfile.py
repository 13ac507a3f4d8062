"""Stack files: the only reader of YAML. It returns what a file says under ``jobwarden:``.

YAML is read as version 1.2, so that ``on`` and ``no`` are text. Whether the values are right is
``config``'s business.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from infra.errors import InfraError
from infra.stackvalues import PASSWORD, PREFIX, decoded

FOLDER_VARIABLE: Final = "JOBWARDEN_STACKS"
_SPACES: Final = "indent with spaces; YAML takes no tabs there"
_QUOTE: Final = "put a value in quotes when it begins with *, @, & or % or holds `: ` or ` #`"


@dataclass(frozen=True, slots=True)
class StackFile:
    """One stack file. ``values`` are its keys under ``jobwarden:``, with that prefix off."""

    name: str
    path: Path
    values: dict[str, object]


def load(stack: str) -> StackFile:
    """Read a stack by its name or by its file's path.

    A name is looked for as ``Pulumi.<name>.yaml`` in the current folder, then in the folder that
    JOBWARDEN_STACKS names. Raises InfraError when there is no such file, or when it is not YAML,
    has a key twice, an encrypted value (but for databasePassword, which only Pulumi can read), or a
    key that is in the wrong place.
    """
    path = _find(stack)
    values = {name: decoded(value) for name, value in _ours(path, _parse(path)).items()}
    for where in _encrypted(values):
        if where == PASSWORD:
            continue
        raise InfraError(
            f"{path}: {PREFIX}{where} is encrypted, and is not read here (got secure: ..., "
            "allowed: plain values)",
            hint="take it out; give a password as PGPASSWORD or in ~/.pgpass",
        )
    return StackFile(_name_of(path), path, values)


def stacks() -> tuple[str, ...]:
    """Return the names of the stacks that are there, sorted."""
    files = (path for folder in _folders() for path in folder.glob("Pulumi.*.yaml"))
    return tuple(sorted({_name_of(path) for path in files}))


def name_of(stack: str) -> str:
    """The name of a stack that was given by its name or by its file's path."""
    return _name_of(Path(stack)) if _is_path(stack) else stack


def _is_path(stack: str) -> bool:
    return "/" in stack or stack.endswith((".yaml", ".yml"))


def _find(stack: str) -> Path:
    if _is_path(stack):
        candidates = [Path(stack)]
    else:
        candidates = [folder / f"Pulumi.{stack}.yaml" for folder in _folders()]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None:
        raise _missing(stack, candidates)
    return found


def _missing(stack: str, candidates: list[Path]) -> InfraError:
    looked = " or ".join(str(path) for path in candidates)
    there = ", ".join(stacks()) or "none"
    return InfraError(
        f"there is no stack {stack!r} (looked for {looked}; stacks that are there: {there})",
        hint=f"give one of them, a file's path, or set {FOLDER_VARIABLE} to the folder they are in",
    )


def _folders() -> tuple[Path, ...]:
    more = os.environ.get(FOLDER_VARIABLE)
    return (Path(), Path(more)) if more else (Path(),)


def _name_of(path: Path) -> str:
    return path.name.removesuffix(path.suffix).removeprefix("Pulumi.")


def _parse(path: Path) -> object:
    try:
        # Only the pure parser reads YAML 1.2; the one in C is of 1.1.
        return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InfraError(
            f"{path} cannot be read: {error.strerror}", hint="check its owner and its mode"
        ) from None
    except UnicodeDecodeError:
        raise InfraError(f"{path} is not UTF-8", hint="save it as UTF-8") from None
    except MarkedYAMLError as error:
        raise _not_yaml(path, error) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise InfraError(f"{path} is not YAML: {error}", hint=_QUOTE) from None


def _not_yaml(path: Path, error: MarkedYAMLError) -> InfraError:
    mark = error.problem_mark or error.context_mark
    where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
    problem = (error.problem or error.context or "not YAML").partition("\n")[0]
    hints = {"found duplicate key": "keep one of the two", r"found character '\t'": _SPACES}
    hint = next((hint for start, hint in hints.items() if problem.startswith(start)), _QUOTE)
    return InfraError(f"{where}: {problem}", hint=hint)


def _ours(path: Path, document: object) -> dict[str, object]:
    top = _mapping(path, "the file", document)
    for key in top:
        if str(key).startswith(PREFIX):
            raise InfraError(f"{path}: {key} is at the top level", hint="put it below `config:`")
    config = _mapping(path, "config", top.get("config"))
    for key in config:
        if ":" not in str(key):
            raise InfraError(
                f"{path}: config has the key {key!r} without a prefix",
                hint=f"write {PREFIX}{key}",
            )
    return {
        str(key).removeprefix(PREFIX): value
        for key, value in config.items()
        if str(key).startswith(PREFIX)
    }


def _mapping(path: Path, what: str, value: object) -> Mapping[object, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InfraError(
            f"{path}: {what} is not a mapping (got {type(value).__name__}, allowed: key: value)",
            hint=f"write `config:` and below it, indented, `{PREFIX}target: existing`",
        )
    return value


def _encrypted(values: Mapping[str, object]) -> Iterator[str]:
    """Paths of values as Pulumi encrypts them: a mapping with nothing but ``secure``."""
    seen: set[int] = set()
    waiting: list[tuple[str, object]] = list(values.items())
    while waiting:
        where, value = waiting.pop(0)
        # An anchor may hold itself.
        if id(value) in seen:
            continue
        if isinstance(value, Mapping):
            seen.add(id(value))
            if set(value) == {"secure"}:
                yield where
            waiting += [(f"{where}.{key}", inner) for key, inner in value.items()]
        elif isinstance(value, list):
            seen.add(id(value))
            waiting += [(f"{where}.{index}", inner) for index, inner in enumerate(value)]
