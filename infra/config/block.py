"""What every block of an environment has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Block(BaseModel):
    """Values that never change, exact types, no unknown key, camelCase names."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel)
