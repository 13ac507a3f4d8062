"""Who wins: our file among the others that a Postgres reads.

Order of precedence, as Postgres has it:

1. the main file line by line, with the files of ``conf.d`` by name at the line of ``include_dir``;
2. ``postgresql.auto.conf``, which ALTER SYSTEM writes;
3. the command line.

Ours is a file in ``conf.d``, so whatever comes later wins, and is reported with its way out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from infra import preload
from infra.boxes import CONF_NAME, Box, FileLine
from infra.checks import Problem

LIBRARIES: Final = "shared_preload_libraries"


def in_force(box: Box, name: str) -> str | None:
    """The value in force; None where the server has no such setting."""
    return box.server.setting(name) if box.server else None


def _others(box: Box, name: str) -> list[FileLine]:
    """Lines of files that are not ours, the winning one last."""
    if box.server is None or box.chosen is None:
        return []
    return [line for line in box.server.files if line.name == name and line.file != box.chosen.conf]


def others_value(box: Box, name: str) -> str | None:
    """What would be in force without our file; None where nobody set it."""
    if _on_command_line(box, name):
        return in_force(box, name)
    lines = _others(box, name)
    return lines[-1].value if lines else None


def _on_command_line(box: Box, name: str) -> bool:
    found = box.server.settings.get(name) if box.server else None
    return found is not None and found.source == "command line"


def losers(wanted: Mapping[str, str], box: Box) -> Iterator[Problem]:
    """Settings of ours that something else wins over, each with the way to take it out."""
    for name, value in wanted.items():
        if _on_command_line(box, name):
            if not _agrees(name, value, in_force(box, name)):
                yield _command_line(box, name)
            continue
        later = [line for line in _others(box, name) if _wins(line, box)]
        if later and not _agrees(name, value, later[-1].value):
            yield _beaten(name, later[-1])


def _agrees(name: str, wanted: str, found: str | None) -> bool:
    if name != LIBRARIES:
        return found == wanted
    return all(preload.contains(found, lib) for lib in preload.parse(wanted))


def _wins(line: FileLine, box: Box) -> bool:
    """Whether a line is read after our file."""
    path = line.file or ""
    folder, _, file = path.rpartition("/")
    if file == "postgresql.auto.conf":
        return True
    if box.chosen and folder == f"{box.chosen.folder}/conf.d":
        return file > CONF_NAME
    include = include_line(box)
    return file == "postgresql.conf" and include is not None and (line.line or 0) > include


def include_line(box: Box) -> int | None:
    """The line of the main file that reads ``conf.d``."""
    for text in box.includes.splitlines():
        number, _, rest = text.partition(":")
        folder = rest.split("#")[0].replace("include_dir", "").strip(" \t='\"").rstrip("/")
        if folder == "conf.d" or (box.chosen and folder == f"{box.chosen.folder}/conf.d"):
            return int(number)
    return None


def _beaten(name: str, line: FileLine) -> Problem:
    if (line.file or "").endswith("postgresql.auto.conf"):
        hint = f"as a superuser: ALTER SYSTEM RESET {name}; then deploy again"
        if name == LIBRARIES:
            hint += " (our file holds its libraries too)"
    else:
        hint = f"take line {line.line} out of {line.file}, then deploy again"
    return Problem(name, f"{line.file} sets it to '{line.value}' and wins over our file", hint)


def _command_line(box: Box, name: str) -> Problem:
    folder = box.chosen.folder if box.chosen else ""
    return Problem(
        name,
        f"the server's command line sets it to '{in_force(box, name)}' and wins over any file",
        f"take `{name}` out of pg_ctl_options in {folder}/pg_ctl.conf, then deploy again",
    )
