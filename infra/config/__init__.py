"""An environment: read from a plain mapping, every fault at once, each with its path.

``parse`` is the one way in. The mapping holds the keys of a stack file under ``jobwarden:``, with
that prefix off; where the file was read is not this module's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema

from infra.config import faults as found
from infra.config.aws_faults import of_aws
from infra.config.box_faults import of_services
from infra.config.fields import written
from infra.config.models import (
    ActionLimit,
    ActionRetention,
    Cleanup,
    Columns,
    CronSettings,
    Environment,
    Jobs,
    Postgres,
    States,
    Watchdog,
)
from infra.errors import ConfigError, Fault
from infra.identifiers import TableName

__all__ = [
    "PREFIX",
    "ActionLimit",
    "ActionRetention",
    "Cleanup",
    "Columns",
    "CronSettings",
    "Environment",
    "Jobs",
    "Postgres",
    "States",
    "TableName",
    "Watchdog",
    "json_schema",
    "parse",
]

PREFIX: Final = "jobwarden:"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def parse(mapping: object, source: str = "environment") -> Environment:
    """Return the environment that a mapping describes. ``source`` is named in the message.

    Raises ConfigError with every fault at once.
    """
    environment: Environment | None = None
    faults: list[Fault] = []
    try:
        environment = Environment.model_validate(mapping)
    except ValidationError as error:
        faults.extend(found.of_pydantic(error))
    known = {fault.path for fault in faults}
    between = (*found.between_keys(mapping), *of_services(mapping))
    faults += [fault for fault in between if fault.path not in known]
    if environment is not None:
        faults += of_aws(environment)
    if environment is None or faults:
        raise ConfigError(faults, source=source)
    return environment


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a stack file, for editors.

    Only keys under ``jobwarden:`` are held to it; others, such as ``aws:region``, are free.
    """
    block = Environment.model_json_schema(schema_generator=_ForEditors)
    return {
        "$schema": DIALECT,
        "title": "Stack file with a jobwarden environment",
        "type": "object",
        "properties": {
            "config": {
                "type": "object",
                "properties": _prefixed(block["properties"]),
                "patternProperties": {f"^(?!{PREFIX})": True},
                "additionalProperties": False,
            }
        },
        "$defs": block["$defs"],
    }


class _ForEditors(GenerateJsonSchema):
    """Without titles, since an editor shows the key; with defaults as users would write them."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - pydantic's
        return False

    def encode_default(self, dft: object) -> object:
        return super().encode_default(written(dft))


def _prefixed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {PREFIX + key: value for key, value in properties.items()}
