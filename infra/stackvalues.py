"""Values as Pulumi keeps them, whoever reads them: a stack file, or its own command line."""

from __future__ import annotations

import json
from typing import Final

PREFIX: Final = "jobwarden:"
# The one key that may be encrypted. Only `pulumi up` can read it.
PASSWORD: Final = "databasePassword"  # noqa: S105  # a key's name


def decoded(value: object) -> object:
    """``pulumi config set`` without --path writes every value as text; take its JSON."""
    text = value.strip() if isinstance(value, str) else ""
    if text not in {"true", "false"} and not text.startswith(("{", "[")):
        return value
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return value
