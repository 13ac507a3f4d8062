"""One tool as a subprocess: what it said, or why it said nothing."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from infra import durations
from infra.errors import InfraError

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

_RUNNING: Final[set[subprocess.Popen[str]]] = set()


class NoAnswer(InfraError):
    """A tool is not there, or did not end in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool left behind, without colours."""

    code: int
    out: str
    err: str


def find(name: str, hint: str) -> str:
    """The path of a program: beside this Python, or on PATH. Raises NoAnswer."""
    found = shutil.which(name, path=search_path())
    if found is None:
        raise NoAnswer(f"{name} is not installed", hint=hint)
    return found


def search_path() -> str:
    """PATH, with the programs of this Python first."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))


def run(
    command: Sequence[str], *, seconds: float, folder: Path, environment: Mapping[str, str]
) -> Answer:
    """Run a program without a terminal. Raises NoAnswer when it does not end in time.

    It has a session of its own, so that what it started ends with it; see ``end_all``.
    """
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**environment, "PATH": search_path()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        _RUNNING.add(process)
        try:
            out, err = process.communicate(timeout=seconds)
        except BaseException as error:
            _end(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise _late(command[0], seconds) from None
            raise
        finally:
            _RUNNING.discard(process)
    return Answer(process.returncode, _COLOUR.sub("", out), _COLOUR.sub("", err))


def end_all() -> None:
    """End what runs now: whoever waits for it in another thread gets what it said so far."""
    for process in tuple(_RUNNING):
        _end(process)


def _late(program: str, seconds: float) -> NoAnswer:
    name = Path(program).name
    limit = durations.human(timedelta(seconds=round(seconds)))
    return NoAnswer(f"{name} did not answer in {limit}", hint="--timeout 10m")


def _end(process: subprocess.Popen[str]) -> None:
    """End a program and all of its session's first group; it only looked, so nothing is lost."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def tail(text: str, lines: int = 3) -> str:
    """The last words of a log, in one line."""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(said[-lines:])
