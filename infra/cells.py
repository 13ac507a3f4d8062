"""Values as Markdown shows them to a stranger's eye: harmless, masked, and long ones folded away.

Written for what GitHub and GitLab have in common: CommonMark, pipe tables, ``details``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from infra.changes import Change

HIDDEN: Final = "***"
LONGEST: Final = 60
_KEY: Final = re.compile(
    r"pass(word|wd|phrase)|secret|token|api_?key|private_?key|credential", re.IGNORECASE
)
_TEXT: Final = (
    (re.compile(r"(://[^\s:/@'\"]*:)[^\s@'\"]+(?=@)"), rf"\1{HIDDEN}"),
    (
        re.compile(
            r"(\b\w*(?:password|passwd|passphrase|secret|token|api_?key)\w*[\"']?\s*(?:=>?|:|\s)\s*)"
            r"(?:'(?:[^']|'')*'|\"[^\"]*\")",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}",
    ),
    (
        re.compile(r"(\b\w*(?:password|passwd|passphrase)=)[^\s'\"&;]+", re.IGNORECASE),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), HIDDEN),
    (re.compile(r"\b(?:gh[pousr]|github_pat|glpat)[_-]\w{16,}"), HIDDEN),
    (
        re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|\Z)", re.DOTALL),
        HIDDEN,
    ),
)
# Signs that Markdown or HTML would take for its own, or GitHub and GitLab for somebody's name, a
# number of theirs, a picture or a link.
_SIGN: Final = re.compile(r"[\\`*~\[\]<>|&@#!$%{}]|(?<!\w)_|_(?!\w)|:(?=//|\w+:)|(?<=www)\.")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def mask(value: Any, secrets: Iterable[str] = ()) -> Any:
    """Return a value without what is secret by its key, by its look, or because it is known."""
    known = sorted({text for text in secrets if text}, key=lambda text: (-len(text), text))
    return _masked(value, known)


def _masked(value: Any, known: list[str]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: HIDDEN
            if _KEY.search(str(key)) and isinstance(inner, str)
            else _masked(inner, known)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_masked(inner, known) for inner in value]
    if not isinstance(value, str):
        return value
    for secret in known:
        value = value.replace(secret, HIDDEN)
    for pattern, instead in _TEXT:
        value = pattern.sub(instead, value)
    return value


def text_of(value: Any) -> str:
    """A value as text, a mapping by its keys; control characters are spelled out."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", _spelled(value))


def _spelled(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {_inline(value[key])}" for key in sorted(value, key=str))
    if isinstance(value, list | tuple):
        return ", ".join(_inline(each) for each in value)
    return str(value)


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{key}: {_inline(value[key])}" for key in sorted(value, key=str)) + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_inline(each) for each in value) + "]"
    return _spelled(value)


def code(text: str) -> str:
    """A short text in one cell, letter for letter."""
    if not text:
        return ""
    if re.search(r"[|`\n\\]", text) or text != text.strip():
        return f"<code>{_entities(text)}</code>"
    return f"`{text}`"


def prose(text: str) -> str:
    """A sentence of ours or of a tool, in one line: nothing in it is markup or calls somebody."""
    return _entities(" ".join(_CONTROL.sub(" ", text).split()))


def _entities(text: str) -> str:
    return _SIGN.sub(lambda match: f"&#{ord(match[0])};", text).replace("\n", "<br>")


def differing(change: Change) -> tuple[Any, Any]:
    """Old and new; of two mappings only the keys that differ."""
    old, new = change.old, change.new
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return old, new
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return (
        {key: old[key] for key in keys if key in old},
        {key: new[key] for key in keys if key in new},
    )


def cell(value: Any) -> str:
    """A value in a table; a long one says how long it is, and stands folded below."""
    if value is None or value in ({}, ""):
        return ""
    text = text_of(value)
    lines = text.splitlines() or [""]
    if is_long(value):
        return f"{len(lines)} lines" if len(lines) > 1 else f"{len(text)} characters"
    return "<br>".join(code(line) for line in lines)


def is_long(value: Any) -> bool:
    """Whether a value is folded away."""
    lines = text_of(value).splitlines()
    most = 4 if isinstance(value, Mapping) else 1
    return len(lines) > most or any(len(line) > LONGEST for line in lines)


def folded(title: str, old: Any, new: Any) -> str:
    """Old and new as a diff that opens with a click."""
    lines = list(
        difflib.unified_diff(text_of(old).splitlines(), text_of(new).splitlines(), lineterm="", n=3)
    )[2:]
    body = "\n".join(lines)
    ticks = max((len(run) for run in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, ticks + 1)
    head = f"<details><summary>{_entities(title)}</summary>"
    return f"{head}\n\n{fence}diff\n{body}\n{fence}\n\n</details>"
