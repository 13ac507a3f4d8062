"""The environment of a stack, from Pulumi's own configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from infra import config
from infra.config import Environment
from infra.errors import InfraError
from infra.stackvalues import PASSWORD, PREFIX, decoded


def environment(settings: Mapping[str, Any], secret_keys: Iterable[str], stack: str) -> Environment:
    """Read what is said under ``jobwarden:``. Raises ConfigError, and InfraError for a secret.

    ``secret_keys`` are those that Pulumi decrypted: none of their values gets any further.
    """
    secrets = set(secret_keys)
    values: dict[str, object] = {}
    for key, value in settings.items():
        if not key.startswith(PREFIX):
            continue
        name = key.removeprefix(PREFIX)
        values[name] = _concealed(stack, name) if key in secrets else decoded(value)
    return config.parse(values, source=f"Pulumi.{stack}.yaml")


def _concealed(stack: str, name: str) -> dict[str, str]:
    if name == PASSWORD:
        return {"secure": "kept by Pulumi"}
    raise InfraError(
        f"Pulumi.{stack}.yaml: {PREFIX}{name} is encrypted (got secure: ..., allowed: plain values;"
        f" only {PREFIX}{PASSWORD} may be)",
        hint=f"write it in plain text, and a password as {PREFIX}{PASSWORD}",
    )
