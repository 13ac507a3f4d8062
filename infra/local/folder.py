"""The folder of a private cluster: short enough for a socket, closed to everybody else."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from infra.errors import InfraError
from infra.local.owner import Owner

# Only part of the socket's name: nothing listens on the network.
PORT = 5432
# sun_path holds 104 bytes on macOS and 108 on Linux, with a closing zero.
_FOLDER_LIMIT = 103 - len(f"/.s.PGSQL.{PORT}")


def prepare_folder(folder: Path | None, owner: Owner, *, keep: bool) -> Path:
    """Make the folder, closed to everybody but the server's user.

    Raises InfraError for a path too long for a socket, one that the server's user cannot reach,
    and (without ``keep``) a folder that holds something.
    """
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="jobwarden-", dir=_short_place(owner)))
    folder = folder.absolute()
    if not _socket_fits(folder):
        raise InfraError(
            f"the path is too long for a Unix socket: {folder}",
            hint=f"choose a folder whose path is at most {_FOLDER_LIMIT} bytes long",
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not owner.can_reach(folder.parent):
        raise InfraError(
            f"the server does not run as root, and its user cannot reach {folder}",
            hint="choose a folder below /tmp or /var/lib",
        )
    if not keep and any(folder.iterdir()):
        raise InfraError(
            f"a throw-away cluster needs an empty folder, and this one is not: {folder}",
            hint="leave the folder out, or name one that does not exist yet",
        )
    owner.own(folder)
    return folder


def unused_folder(owner: Owner) -> Path:
    """Return a path for a temporary folder that does not exist yet. It is not made here."""
    return _short_place(owner) / f"jobwarden-{secrets.token_hex(4)}"


def tail(log: Path, lines: int) -> str:
    """Return the last lines of a log; nothing where there is none yet."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _short_place(owner: Owner) -> Path:
    """Return a folder for temporary files that a socket path and the server's user can bear."""
    usual = Path(tempfile.gettempdir())
    fits = _socket_fits(usual / "jobwarden-12345678") and owner.can_reach(usual)
    return usual if fits else Path("/tmp")  # noqa: S108  (mkdtemp makes a private folder in it)


def _socket_fits(folder: Path) -> bool:
    return len(os.fsencode(folder)) <= _FOLDER_LIMIT
