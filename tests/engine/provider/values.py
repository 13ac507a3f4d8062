"""Values as the engine sends them, and back."""

from __future__ import annotations

import math
from typing import Any

from google.protobuf import json_format, struct_pb2

# The engine writes this for a value that only `up` will know.
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
Properties = dict[str, Any]


def unpack(sent: struct_pb2.Struct) -> Properties:
    """Return plain values, whole numbers as int, without the engine's own ``__`` keys."""
    plain = json_format.MessageToDict(sent)
    return {key: _whole(value) for key, value in plain.items() if not key.startswith("__")}


def pack(values: Properties) -> struct_pb2.Struct:
    return json_format.ParseDict(
        {key: value for key, value in values.items() if value is not None}, struct_pb2.Struct()
    )


def has_unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(has_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(has_unknown(item) for item in value)
    return bool(value == UNKNOWN)


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        return int(value)
    return value
