"""Database URLs: read as libpq reads them, and never with a password.

Rules: PostgreSQL manual, "Connection URIs". No message holds any part of a password.
"""

from __future__ import annotations

import re
import string
from typing import Final

from infra.errors import RuleError

_SCHEME = re.compile(r"(postgresql|postgres)://", re.ASCII)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
_BAD_CHARACTER = re.compile(r"[\x00-\x20\x7f]")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+(?:%25[^\]]+)?\]|[^:\[\]]*)(?::(?P<port>.*))?", re.DOTALL)
_SECRETS: Final = frozenset(
    {"oauth_client_secret", "password", "scram_client_key", "scram_server_key", "sslpassword"}
)
_ALLOWED: Final = "postgresql://user@host:port/database?option=value, without a password"
_MAX_PORT: Final = 65535
_UNRESERVED: Final = string.ascii_letters + string.digits + "-._~"


def check(text: str) -> str:
    """Return the URL as it is. Raises RuleError: not a URL, a bad part, or a password in it."""
    scheme = _SCHEME.match(text)
    if not scheme:
        raise _bad(text, "the database URL does not start with postgresql://", "write it as a URL")
    authority, path, query = _split(text[scheme.end() :])
    user, _, hosts = authority.rpartition("@")
    _refuse_password(text, user, query)
    if _BAD_CHARACTER.search(text):
        raise _bad(text, "the database URL has a space or a control character", "write it as %20")
    if _BAD_ESCAPE.search(text):
        raise _bad(text, "a % in the database URL starts no valid escape", "write % itself as %25")
    _check_hosts(text, hosts)
    if "@" in path or "/" in path:
        hint = "write / as %2F and @ as %40"
        raise _bad(text, "the database's name has a plain / or @", hint)
    _check_query(text, query)
    return text


def by_socket(user: str, database: str, folder: str, port: int) -> str:
    """Return the URL that leads to ``database`` as ``user`` by the socket in ``folder``."""
    where = f"host={_escaped(folder, also='/')}&port={port}"
    return f"postgresql://{_escaped(user)}@/{_escaped(database)}?{where}"


def masked(text: str) -> str:
    """Return the URL fit for a message: user, host and database stay, the rest is hidden."""
    scheme = _SCHEME.match(text)
    if not scheme:
        return "a text that is not such a URL"
    before, at, after = text[scheme.end() :].rpartition("@")
    user, colon, _ = before.partition(":")
    # A password may hold any sign, so all up to the last @ counts as part of it.
    shown = f"{user}{':***' if colon else ''}{at}" + after
    base, mark, _ = shown.partition("?")
    return scheme.group() + base + ("?..." if mark else "")


def _split(rest: str) -> tuple[str, str, str]:
    location, _, query = rest.partition("?")
    authority, _, path = location.partition("/")
    return authority, path, query


def _options(query: str) -> list[tuple[str, str, str]]:
    return [part.partition("=") for part in query.split("&")] if query else []


def _refuse_password(text: str, user: str, query: str) -> None:
    secret = next((name for name, _, _ in _options(query) if _unescaped(name) in _SECRETS), None)
    if secret or ":" in user:
        where = f"as {_unescaped(secret)}=" if secret else "before the @"
        raise _bad(
            text,
            f"the database URL has a password ({where})",
            "take it out; give it as PGPASSWORD, in ~/.pgpass or in a service file",
        )


def _check_hosts(text: str, hosts: str) -> None:
    for host in hosts.split(","):
        match = _HOST.fullmatch(host)
        if not match:
            raise _bad(text, "a host in the database URL is malformed", "write IPv6 as [::1]")
        port = match["port"]
        if port and not (re.fullmatch(r"[0-9]{1,5}", port) and 1 <= int(port) <= _MAX_PORT):
            hint = f"use a port from 1 to {_MAX_PORT}"
            raise _bad(text, "a port in the database URL is not one", hint)


def _check_query(text: str, query: str) -> None:
    for name, equals, value in _options(query):
        if not name or not equals or "=" in value:
            hint = "write each option as name=value, with & between them"
            raise _bad(text, "an option in the database URL has no name=value", hint)


def _escaped(text: str, also: str = "") -> str:
    """Escape all but what no part of a URL gives a meaning to."""
    plain = _UNRESERVED + also
    return "".join(chr(byte) if chr(byte) in plain else f"%{byte:02X}" for byte in text.encode())


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _bad(text: str, problem: str, hint: str) -> RuleError:
    return RuleError(problem, got=masked(text), allowed=_ALLOWED, hint=hint)
