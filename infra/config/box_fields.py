"""The kinds of value that a box and its services have, each with its rule.

A rule raises RuleError; pydantic collects it and ``config.faults`` adds the path.
"""

from __future__ import annotations

import difflib
import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from infra.errors import RuleError
from infra.extensions import EXTENSIONS, find_setting
from infra.preload import render_list

_GUC = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?")
_UNIT = re.compile(r"[a-z][a-z0-9_-]{0,30}")
_ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST = re.compile(r"[A-Za-z0-9@][A-Za-z0-9._:/@%-]*")
_SIZE = re.compile(r"[1-9][0-9]*[KMGT]?|infinity")
_OWNED: Final = {
    "shared_preload_libraries": "postgres.preload",
    "cron.database_name": "postgres.cron.database",
    "cron.timezone": "postgres.cron.timezone",
    "cron.use_background_workers": "nothing: it follows from the version of pg_cron",
    "cron.host": "nothing: it follows from the version of pg_cron",
}
_SETTING_ALLOWED: Final = "the name of a server setting, such as work_mem or cron.log_run"


def _port(value: int) -> int:
    if not 1 <= value <= 65535:
        hint = "PostgreSQL's own is 5432, that of ssh 22"
        raise RuleError("no such port", got=value, allowed="1 to 65535", hint=hint)
    return value


def _cluster(text: str) -> str:
    if not re.fullmatch(r"1[3-8]/[A-Za-z0-9][A-Za-z0-9_.-]*", text):
        raise RuleError(
            "this names no cluster",
            got=text,
            allowed="VERSION/NAME as `pg_lsclusters` prints them, such as 16/main",
            hint="run pg_lsclusters on the box",
        )
    return text


def _fits(pattern: re.Pattern[str], problem: str, allowed: str, hint: str) -> AfterValidator:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise RuleError(problem, got=text, allowed=allowed, hint=hint)
        return text

    return AfterValidator(check)


def _absolute(text: str) -> str:
    if not text.startswith("/") or _has_control(text) or " " in text:
        raise RuleError(
            "the path is not absolute, or has a blank in it",
            got=text,
            allowed="a path from / on, without blanks",
            hint="write /srv/app",
        )
    return text


def _command(text: str) -> str:
    if not text.startswith("/") or _has_control(text):
        raise RuleError(
            "systemd runs a command by its absolute path, on one line",
            got=text,
            allowed="/path/to/program and its arguments",
            hint="write /bin/sh -c '...' where a shell is needed",
        )
    return text


def _has_control(text: str) -> bool:
    return any(ord(char) < 32 or ord(char) == 127 for char in text)


def _no_nul(text: str) -> str:
    if "\0" in text:
        hint = "take the NUL out"
        raise RuleError("the value has a NUL character", got=text, allowed="any text", hint=hint)
    return text


def _library(text: str) -> str:
    render_list([text])
    return text


def _instances(value: int) -> int:
    if not 1 <= value <= 100:
        hint = "leave instances out for a single service"
        raise RuleError("no such number of instances", got=value, allowed="1 to 100", hint=hint)
    return value


def _setting_name(text: str) -> str:
    if text in _OWNED:
        raise RuleError(
            f"{text} has a key of its own",
            got=text,
            allowed="other settings",
            hint=f"use {_OWNED[text]}",
        )
    prefix = text.partition(".")[0] if "." in text else ""
    known = [name for each in EXTENSIONS.values() for name in each.settings]
    ours = {name.partition(".")[0] for name in known}
    if not _GUC.fullmatch(text) or (prefix in ours and find_setting(text) is None):
        near = difflib.get_close_matches(text, [*known, *_OWNED], n=1)
        hint = f"did you mean {near[0]}?" if near else "see the Postgres manual, or take it out"
        raise RuleError("no such setting", got=text, allowed=_SETTING_ALLOWED, hint=hint)
    return text


def _setting_value(value: object) -> str:
    """Take what YAML makes of a value; Postgres reads all of them as text."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str) and not _has_control(value):
        return value
    raise RuleError(
        "a setting has one value, on one line",
        got=value,
        allowed="text, a number, true or false",
        hint="put it in quotes",
    )


def _environment_value(value: object) -> object:
    """A variable's value is text; YAML makes numbers of some, and those are meant as written."""
    return str(value) if type(value) in {int, float} else value


DatabaseRole = Literal["jobwarden_worker", "jobwarden_alerts", "jobwarden_readonly"]
Port = Annotated[
    int,
    AfterValidator(_port),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 65535}),
]
Cluster = Annotated[str, AfterValidator(_cluster)]
Host = Annotated[
    str,
    _fits(_HOST, "this names no host", "a name or an address", "write db1.example.net"),
]
UnitName = Annotated[
    str,
    _fits(
        _UNIT,
        "this cannot name a service",
        "up to 31 of a-z, 0-9, _ and -, a letter first",
        "write worker",
    ),
]
User = Annotated[
    str,
    _fits(_UNIT, "this names no user", "up to 31 of a-z, 0-9, _ and -, a letter first", "app"),
]
VariableName = Annotated[
    str,
    _fits(
        _ENVIRONMENT,
        "this cannot name a variable",
        "letters, digits and _, no digit first",
        "write DATABASE_URL",
    ),
]
Memory = Annotated[
    str,
    _fits(_SIZE, "this is no amount of memory", "a number with K, M, G or T", "write 512M"),
]
VariableValue = Annotated[str, BeforeValidator(_environment_value), AfterValidator(_no_nul)]
AbsolutePath = Annotated[str, AfterValidator(_absolute)]
Command = Annotated[str, AfterValidator(_command)]
Library = Annotated[str, AfterValidator(_library)]
Instances = Annotated[int, AfterValidator(_instances)]
SettingName = Annotated[str, AfterValidator(_setting_name)]
SettingValue = Annotated[
    str,
    BeforeValidator(_setting_value),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]
