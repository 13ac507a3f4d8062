"""What a private cluster's own conf file says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from infra import preload

_LIBRARIES = "shared_preload_libraries"
_UNSAFE = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    # Files in the data folder, so that a killed server leaves nothing in shared memory.
    "dynamic_shared_memory_type": "mmap",
}


def conf_text(
    folder: Path, *, cron_database: str | None, durable: bool, extra: Mapping[str, str]
) -> str:
    """Return the file: our settings, then the caller's, which win over ours."""
    values = {
        "listen_addresses": "",
        "unix_socket_directories": _quoted(folder),
        "unix_socket_permissions": "0700",
        "timezone": "UTC",
        "log_timezone": "UTC",
        **({} if durable else _UNSAFE),
        **(_cron(folder, cron_database) if cron_database else {}),
        **extra,
    }
    if cron_database:
        values[_LIBRARIES] = preload.merge(extra.get(_LIBRARIES), ["pg_cron"]).text
    lines = (f"{name} = {preload.render_conf_value(value)}\n" for name, value in values.items())
    return "# Written at each start by jobwarden; changes here are lost.\n" + "".join(lines)


def _cron(folder: Path, database: str) -> dict[str, str]:
    """Let jobs connect over the private socket: nothing listens on localhost.

    Background workers would need no connection, but in pg_cron 1.4 one long job blocks all others.
    """
    return {"cron.database_name": database, "cron.host": str(folder)}


def _quoted(folder: Path) -> str:
    """Quote one element of a list setting."""
    name = str(folder).replace('"', '""')
    return f'"{name}"'
