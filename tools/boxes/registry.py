"""What boxes exist, which of them nobody wants any more, and how one is taken away.

A box is a folder with a ``box.json``. It is written before anything else is made and is removed
last, so that whatever a killed run left behind is found by the next one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tools.boxes import cgroups, image, network
from tools.boxes.network import Network
from tools.boxes.shell import cache, is_alive, locked, run


@dataclass(frozen=True, slots=True)
class Record:
    """One box as it is written down. ``owner`` and ``supervisor`` are process identities.

    An owner of None means that the box was asked to outlive the command that booted it.
    """

    name: str
    release: str
    image: str
    network: Network
    owner: str | None = None
    supervisor: str | None = None

    @property
    def folder(self) -> Path:
        """Everything of this box: record, keys, console, overlay."""
        return running() / self.name

    @property
    def wanted(self) -> bool:
        """Whether somebody still counts on the box."""
        return is_alive(self.owner or self.supervisor)

    def save(self) -> None:
        """Write the record whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = self.folder / "box.json.new"
        fresh.write_text(json.dumps(asdict(self)))
        fresh.rename(self.folder / "box.json")

    def change(self, **fields: Any) -> Record:
        """Return the record with other values, written down already."""
        changed = replace(self, **fields)
        changed.save()
        return changed


def running() -> Path:
    """Return the folder of all boxes."""
    return cache() / "running"


def load(name: str) -> Record | None:
    """Return the record of a box, or None where there is none."""
    path = running() / name / "box.json"
    if not path.exists():
        return None
    data = json.loads(path.read_text())
    return Record(**{**data, "network": Network(**data["network"])})


def records() -> Iterator[Record]:
    """Yield every box there is, wanted or not."""
    for folder in sorted(running().glob("*")):
        record = load(folder.name)
        if record:
            yield record


def destroy(name: str) -> None:
    """Take a box away for good: processes, mount, network, files. Safe to repeat."""
    with locked("registry"):
        _destroy(name)


def _destroy(name: str) -> None:
    record = load(name)
    folder = running() / name
    cgroups.kill(name, record.supervisor if record else None)
    _unmount(folder / "merged")
    if record:
        network.remove(name, record.network, Path(record.image) / "base")
    cgroups.remove(name)
    shutil.rmtree(folder, ignore_errors=True)
    _restore_forwarding()


def _unmount(folder: Path) -> None:
    """Unmount now, or as soon as the last user lets go."""
    if folder.is_mount() and run("umount", folder, check=False).returncode:
        run("umount", "--lazy", folder)


def clean(*, everything: bool = False) -> tuple[str, ...]:
    """Remove the boxes that nobody wants, or all of them. Returns their names."""
    with locked("registry"):
        known = {record.name: record for record in records()}
        names = [x.name for x in sorted(running().glob("*"))]
        gone = [x for x in names if everything or x not in known or not known[x].wanted]
        for name in gone:
            _destroy(name)
        image.remove_old({record.image for record in records()})
    return tuple(gone)


def note_forwarding() -> None:
    """Remember, once, whether the machine forwards. Hold the registry's lock."""
    path, found = cache() / "forwarding.json", network.forwarding()
    if found and not path.exists():
        path.write_text(json.dumps(found))


def _restore_forwarding() -> None:
    """Put forwarding back as it was when the last private network is gone."""
    path = cache() / "forwarding.json"
    if path.exists() and not any(record.network.private for record in records()):
        with suppress(OSError):
            network.restore(*json.loads(path.read_text()))
        path.unlink()
