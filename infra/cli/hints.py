"""Makes the commands in a hint ready to be run: with the stack this command was about."""

from __future__ import annotations

import re
import sys

_OURS = re.compile(
    r"\bjobwarden (?:apply|boot|cleanup|plan|remove|status|sweep|run [\w@]+)\b(?! -s)"
)


def complete(text: str) -> str:
    """The text with ``-s STACK`` behind each command of ours that needs it."""
    stack = _stack(sys.argv[1:])
    return _OURS.sub(lambda found: f"{found[0]} -s {stack}", text) if stack else text


def _stack(words: list[str]) -> str | None:
    """The stack as it was given; None where the environment names it, for the next command too."""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word in {"-s", "--stack"}:
            return after or None
        if word.startswith("--stack="):
            return word.removeprefix("--stack=") or None
    return None
