"""The part of an environment that is about previews: what a reviewer must have agreed to."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from infra.config.block import Block
from infra.errors import RuleError

Threshold = Literal["destructive", "restarting", "harmless", "never"]
_LONGEST: Final = 50  # of GitHub


def _label(text: str) -> str:
    """Return a label's name as it is. Raises RuleError for one that no forge can have."""
    if not text.strip() or len(text) > _LONGEST or "," in text:
        raise RuleError(
            "no label is called so",
            got=text,
            allowed=f"1 to {_LONGEST} characters, no comma",
            hint="name a label such as jobwarden-approved",
        )
    return text


LabelName = Annotated[str, AfterValidator(_label)]


class Preview(Block):
    """Which changes fail the check of a pull request. A threshold holds for what is worse, too."""

    fail_on: Threshold = Field(
        "never", description="Changes of this severity, or a worse one, fail the check."
    )
    need_label: Threshold = Field(
        "never", description="Changes of this severity, or a worse one, need the label."
    )
    label: LabelName = Field(
        "jobwarden-approved", description="The label that a reviewer puts on the pull request."
    )
