"""The kinds of value that an RDS or Aurora database has, each with its rule.

A rule raises RuleError; pydantic collects it and ``config.faults`` adds the path. Rules: the RDS
API reference, "CreateDBInstance" and "CreateDBCluster".
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from infra import rds
from infra.config.box_fields import SettingValue
from infra.errors import RuleError
from infra.preload import parse

_IDENTIFIER: Final = r"(?!.*--)[a-z][a-z0-9-]{0,62}(?<!-)"
_ENGINE_VERSION: Final = r"1[3-8](\.[0-9]{1,2})?"
_CLASS: Final = r"db\.[a-z0-9-]+(\.[a-z0-9-]+)?"
_USERNAME: Final = r"[a-z][a-z0-9_]{0,62}"
_GUC: Final = r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?"
_HOUR: Final = "([01][0-9]|2[0-3])"
_MINUTE: Final = "[0-5][0-9]"
_RESERVED: Final = frozenset({"admin", "rdsadmin", "rds_superuser"})


def _fits(pattern: str, problem: str, allowed: str, hint: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise RuleError(problem, got=text, allowed=allowed, hint=hint)
        return text

    return AfterValidator(check)


def _between(least: float, most: float, what: str, hint: str) -> AfterValidator:
    def check(number: float) -> float:
        if not least <= number <= most:
            raise RuleError(f"no such {what}", got=number, allowed=f"{least} to {most}", hint=hint)
        return number

    return AfterValidator(check)


def _username(text: str) -> str:
    if text in _RESERVED or text.startswith(("pg_", "jobwarden_")):
        raise RuleError(
            "this name is taken by AWS, by Postgres or by us",
            got=text,
            allowed="another name",
            hint="write postgres",
        )
    return text


def _source(text: str) -> str:
    """Take an address range or a security group, but never the whole world."""
    if re.fullmatch(r"sg-[0-9a-f]{8,17}", text):
        return text
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError:
        network = None
    if network is None or network.prefixlen == 0:
        raise RuleError(
            "this is everybody" if network else "this is neither a range nor a security group",
            got=text,
            allowed="an IPv4 range such as 10.0.0.0/16, or a security group such as sg-0a1b2c3d",
            hint="name the group of the application that reads the jobs",
        )
    return text


def _preload_text(text: str) -> str:
    parse(text)
    return text


def _window(text: str) -> str:
    return str(rds.window(text))


def _engine_version(value: object) -> object:
    """Take 16 for "16": YAML and ``pulumi config set --path`` write numbers."""
    return str(value) if type(value) in {int, float} else value


Identifier = Annotated[
    str,
    _fits(
        _IDENTIFIER,
        "this cannot name a database instance",
        "up to 63 of a-z, 0-9 and single -, a letter first",
        "write jobs-production",
    ),
]
EngineVersion = Annotated[
    str,
    BeforeValidator(_engine_version),
    _fits(_ENGINE_VERSION, "this is no engine version", '"16" or "16.10"', 'write "16"'),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}]}),
]
InstanceClass = Annotated[
    str,
    _fits(_CLASS, "this names no instance class", "db.LINE.SIZE", "write db.t4g.medium"),
]
Username = Annotated[
    str,
    _fits(_USERNAME, "this cannot name the master", "a-z, 0-9 and _", "write postgres"),
    AfterValidator(_username),
]
Storage = Annotated[
    int,
    _between(20, 65536, "size of storage (in GiB)", "20 is the least that gp3 has"),
]
Days = Annotated[int, _between(1, 35, "number of days", "7 is usual; 0 would turn backups off")]
Instances = Annotated[
    int, _between(1, 16, "number of instances", "1 for a writer alone, 2 for one reader too")
]
Capacity = Annotated[
    float,
    BeforeValidator(lambda value: float(value) if type(value) is int else value),
    _between(0.5, 256, "number of capacity units", "0.5 is the least"),
]
Subnet = Annotated[
    str, _fits(r"subnet-[0-9a-f]{8,17}", "this names no subnet", "subnet-...", "see the VPC")
]
SecurityGroup = Annotated[
    str, _fits(r"sg-[0-9a-f]{8,17}", "this names no security group", "sg-...", "see the VPC")
]
Vpc = Annotated[str, _fits(r"vpc-[0-9a-f]{8,17}", "this names no VPC", "vpc-...", "see the VPC")]
Source = Annotated[str, AfterValidator(_source)]
RebootWindow = Annotated[
    str,
    AfterValidator(_window),
    WithJsonSchema({"type": "string", "pattern": f"^{_HOUR}:{_MINUTE}-{_HOUR}:{_MINUTE}$"}),
]
PreloadText = Annotated[str, AfterValidator(_preload_text)]
ParameterName = Annotated[
    str,
    _fits(_GUC, "this cannot name a parameter", "lower case, as AWS lists it", "write io_method"),
]
ParameterValue = SettingValue
