"""Run programs, name processes, take locks: the little that every other module needs."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.errors import InfraError


class BoxError(InfraError):
    """A box could not be built, booted, reached or taken away."""


def run(
    *argv: str | Path, check: bool = True, stdin: str | None = None, timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """Run a program and return what it said. Raises BoxError when it fails, unless told not to."""
    command = [str(part) for part in argv]
    source = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=timeout, **source
    )
    if check and done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        message = f"`{' '.join(command)}` ended with {done.returncode}: {said}"
        raise BoxError(message, hint="run that command by hand, as root, and read its answer")
    return done


def identity(pid: int) -> str:
    """Name a process for good: its id alone is used again after it ends or the machine reboots."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    started = stat.rpartition(")")[2].split()[19]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{pid}/{started}"


def process_id(who: str) -> int:
    """Return the id of the process that ``identity`` named."""
    return int(who.split("/")[1])


def is_alive(who: str | None) -> bool:
    """Say whether the process that ``identity`` named still runs (a zombie does not)."""
    if who is None:
        return False
    pid = process_id(who)
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in "ZX" and identity(pid) == who
    except (FileNotFoundError, ProcessLookupError):
        return False


def cache() -> Path:
    """Return the folder of images and running boxes; ``XDG_CACHE_HOME`` moves it."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "jobwarden" / "boxes"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold a lock against other processes. The kernel drops it when the holder dies."""
    folder = cache() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def overlay(lower: str, upper: Path, work: Path, merged: Path) -> Iterator[None]:
    """Mount an overlay for the time of a block."""
    mount_overlay(lower, upper, work, merged)
    try:
        yield
    finally:
        run("umount", merged)


def mount_overlay(lower: str, upper: Path, work: Path, merged: Path) -> None:
    """Mount ``upper`` over ``lower`` (one folder, or several joined by colons) at ``merged``."""
    for folder in (upper, work, merged):
        folder.mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    run("mount", "-t", "overlay", "jobwarden-box", "-o", options, merged)
