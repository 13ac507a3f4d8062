"""How a schedule's role gets in where pg_cron connects as a client: by the socket, no password.

pg_cron before 1.5 connects as the server's own user. Debian lets that user in as ``postgres`` only,
so a block of ours in ``pg_ident.conf`` says that it may be the runner too, and a block in
``pg_hba.conf``, before the first ``local`` line, uses that map for the runner alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from infra import box_conf
from infra.boxes import Box
from infra.changes import Change
from infra.config import Environment
from infra.observed import RUNNER

BEGIN: Final = "# Jobwarden wrote this: begin"
END: Final = "# Jobwarden: end"
MAP: Final = "jobwarden"
_BLOCK = re.compile(rf"^{re.escape(BEGIN)}\n.*?^{re.escape(END)}\n", re.MULTILINE | re.DOTALL)
_FIRST_LOCAL = re.compile(r"^[ \t]*local\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Doors:
    """Both files as they should be; None: as they are."""

    hba: str | None = None
    ident: str | None = None
    changes: tuple[Change, ...] = ()


def decide(environment: Environment, box: Box, *, present: bool = True) -> Doors:
    """The blocks are there in one of pg_cron's two modes, and not in the other."""
    if box.server is None or box.chosen is None:
        return Doors()
    needed = (
        present
        and environment.postgres.cron.enabled
        and box.cron_version is not None
        and not box_conf.uses_workers(box.cron_version)
    )
    name = box_conf.database(environment).replace('"', '""')
    hba_line = f'local "{name}" {RUNNER} peer map={MAP}'
    ident_line = f"{MAP} {box.chosen.owner} {RUNNER}"
    hba = with_block(box.server.hba, hba_line if needed else None)
    ident = with_block(box.server.ident, ident_line if needed else None)
    why = "pg_cron connects as the schedule's role by the socket" if needed else "not needed"
    return Doors(
        hba=hba if hba != box.server.hba else None,
        ident=ident if ident != box.server.ident else None,
        changes=(
            *_change("pg_hba.conf", box.server.hba, hba, why),
            *_change("pg_ident.conf", box.server.ident, ident, why),
        ),
    )


def with_block(text: str, line: str | None) -> str:
    """The file with our block holding ``line``, or without it for None. The rest stays as it is."""
    block = f"{BEGIN}\n{line}\n{END}\n" if line is not None else ""
    if _BLOCK.search(text):
        return _BLOCK.sub(lambda _: block, text)
    if not block:
        return text
    first = _FIRST_LOCAL.search(text)
    if first:
        return text[: first.start()] + block + text[first.start() :]
    return (text if text.endswith("\n") or not text else text + "\n") + block


def _change(name: str, old: str, new: str, why: str) -> tuple[Change, ...]:
    if old == new:
        return ()
    before, after = inside(old), inside(new)
    action = "create" if before is None else "update" if after is not None else "delete"
    return (Change("file", name, action, before, after, why),)  # type: ignore[arg-type]


def inside(text: str) -> str | None:
    """The line of our block; None without one."""
    found = _BLOCK.search(text)
    return found[0].splitlines()[1] if found else None
