"""One control group per box, to know all of its processes and to end them.

Without it, two boxes that are started from one group would both call theirs ``payload``, and one
PID 1 would see, and stop, the services of the other. It is also the only true list of what must
die: a killed ``systemd-nspawn`` leaves its box running.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from tools.boxes.shell import BoxError, is_alive, process_id

PREFIX = "jobwarden-box-"
PATIENCE_SECONDS = 1


def folders(name: str) -> list[Path]:
    """Return the box's group in each hierarchy that systemd uses (two on a hybrid machine)."""
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    roots = [x[1] for x in lines if x[2] == "cgroup2" or "name=systemd" in x[3].split(",")]
    return [Path(root) / f"{PREFIX}{name}" for root in roots]


def create(name: str) -> list[Path]:
    """Make the box's groups and hand them whatever controllers the machine delegates."""
    made = folders(name)
    for folder in made:
        folder.mkdir(exist_ok=True)
        offered = folder / "cgroup.controllers"
        if offered.exists():
            # Limits such as MemoryMax then hold inside the box; without them they are only noted.
            with suppress(OSError):
                wanted = " ".join(f"+{x}" for x in offered.read_text().split())
                (folder / "cgroup.subtree_control").write_text(wanted)
    return made


def members(name: str, inside: str = "") -> set[int]:
    """List the ids of a box's processes, as this machine sees them; of one part, where named."""
    found: set[int] = set()
    for folder in folders(name):
        for path in folder.rglob("cgroup.procs"):
            if inside in str(path.relative_to(folder)):
                with suppress(OSError):
                    found.update(int(pid) for pid in path.read_text().split())
    return found - {0}


def kill(name: str, supervisor: str | None = None, seconds: float = 10) -> None:
    """End every process of a box, like a power cut. Raises BoxError when some stay.

    ``supervisor``: who runs it. One that has only just begun is in no group of the box yet.
    The box itself goes first. What runs it then takes leave of it and ends by itself, so that no
    zombie is left to the machine; it is killed only when it takes its time.
    """
    if supervisor is not None and process_id(supervisor) not in members(name):
        _end(supervisor)
    begun = time.monotonic()
    while alive := members(name):
        waited = time.monotonic() - begun
        for pid in members(name, "payload") if waited < PATIENCE_SECONDS else alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if waited > seconds:
            message = f"box {name}: processes {sorted(alive)} outlive SIGKILL"
            raise BoxError(message, hint="look at them with `ps`; they wait for the disk or kernel")
        time.sleep(0.02)


def _end(who: str) -> None:
    """End one process, unless its id is somebody else's by now."""
    while is_alive(who):
        with suppress(ProcessLookupError):
            os.kill(process_id(who), signal.SIGKILL)
        time.sleep(0.01)


def remove(name: str, seconds: float = 5) -> None:
    """Remove the box's empty groups, the innermost first. Raises OSError when one stays in use."""
    begun = time.monotonic()
    for folder in folders(name):
        inner = sorted((x for x in folder.rglob("*") if x.is_dir()), reverse=True)
        for path in [*inner, folder]:
            while not _removed(path, patient=time.monotonic() - begun < seconds):
                time.sleep(0.02)


def _removed(path: Path, *, patient: bool) -> bool:
    """A group is in use until the kernel has buried the last process that died in it."""
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno != errno.EBUSY or not patient:
            raise
        return False
    return True
