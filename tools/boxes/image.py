"""The cached trees: a bare Debian per release, and a layer of packages fetched ahead of time.

The layer holds PostgreSQL and pg_cron as files in apt's cache, so that an install in a box costs
no download. Nothing of it is installed: every box starts bare.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from tools.boxes import machine
from tools.boxes.shell import BoxError, cache, locked, overlay, run

RELEASES = {"bookworm": 15, "trixie": 17}
INCLUDE = (
    "systemd", "systemd-sysv", "dbus", "openssh-server", "iproute2", "nftables", "python3-minimal",
    "sudo", "procps", "ca-certificates",
)  # fmt: skip
FETCHED = (
    "postgresql", "postgresql-{major}", "postgresql-{major}-cron", "python3-apt", "acl",
    "python3-venv", "prometheus-node-exporter",
)  # fmt: skip
USERS = ("admin", "nosudo")
# They would take the apt lock at a random moment of a test.
MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer")
# An archive drops old versions of its packages, so the layer is fetched again after a week. An
# image that was not used for as long goes, if its recipe is not this one.
WEEK_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Image:
    """A built image: the folder that holds its layers."""

    release: str
    folder: Path

    @property
    def base(self) -> Path:
        """The bare tree."""
        return self.folder / "base"

    @property
    def lower(self) -> str:
        """Both layers, as the overlay's option wants them: the upper one first."""
        return f"{self.folder / 'packages'}:{self.base}"


def build(release: str) -> Image:
    """Return the image of a release, built first where needed (about a minute, then cached).

    Raises BoxError on an unknown release, or when debootstrap or apt fail.
    """
    if release not in RELEASES:
        message = f"unknown release (got {release!r}; allowed: {', '.join(RELEASES)})"
        raise BoxError(message, hint="name the release by its code name, as in `bookworm`")
    image = Image(release, cache() / "images" / f"{release}-{_stamp()}")
    with locked(f"image-{release}"):
        if not image.base.exists():
            _build_base(image)
        if not _is_fresh(image.folder / "packages"):
            _build_packages(image)
        os.utime(image.folder)
    return image


def _stamp() -> str:
    """Name the recipe by what it says: a changed recipe has another name, and is built anew."""
    recipe = Path(__file__).read_bytes()
    return hashlib.sha256(recipe).hexdigest()[:12]


def _is_fresh(layer: Path) -> bool:
    return layer.exists() and time.time() - layer.stat().st_mtime < WEEK_SECONDS


def _build_base(image: Image) -> None:
    partial = image.folder / "base.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    mirror = machine.sources()[0].uri
    include = f"--include={','.join(INCLUDE)}"
    run("debootstrap", "--variant=minbase", include, image.release, partial, mirror, timeout=1800)
    _customise(partial)
    partial.rename(image.base)


def _customise(root: Path) -> None:
    """Turn the bare tree into the server a provider hands over: users, UTF-8, quiet timers."""
    for user in USERS:
        run("chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", user)
    sudoers = root / "etc/sudoers.d/admin"
    sudoers.write_text("admin ALL=(ALL:ALL) NOPASSWD: ALL\n")
    sudoers.chmod(0o440)
    (root / "etc/default/locale").write_text("LANG=C.UTF-8\n")
    for timer in MASKED:
        (root / "etc/systemd/system" / timer).symlink_to("/dev/null")
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()
    (root / "etc/machine-id").write_text("")
    (root / "etc/hostname").write_text("box\n")
    run("chroot", root, "apt-get", "clean")


def _build_packages(image: Image) -> None:
    """Fetch into a layer of its own, then put it in place of the old one.

    A box that runs on the old layer keeps it: what a mount holds open stays readable.
    """
    layer, partial = image.folder / "packages", image.folder / "packages.partial"
    shutil.rmtree(partial, ignore_errors=True)
    with overlay(str(image.base), partial / "upper", partial / "work", partial / "merged"):
        root = partial / "merged"
        machine.prepare(root, image.release)
        names = [name.format(major=RELEASES[image.release]) for name in FETCHED]
        run("chroot", root, "apt-get", "update")
        run("chroot", root, "apt-get", "install", "--yes", "--download-only", *names)
    if layer.exists():
        layer.rename(image.folder / f"packages.{int(time.time())}")
    (partial / "upper").rename(layer)
    layer.touch()
    shutil.rmtree(partial)


def remove_old(in_use: set[str]) -> tuple[str, ...]:
    """Remove images of other recipes and replaced layers that no box runs on. Returns names."""
    gone = []
    for folder in (cache() / "images").glob("*-*"):
        if str(folder) in in_use:
            continue
        if folder.name.endswith(_stamp()):
            stale = [x for x in folder.glob("packages.*") if x.name != "packages.partial"]
        else:
            stale = [] if _is_fresh(folder) else [folder]
        for path in stale:
            shutil.rmtree(path)
            gone.append(path.name)
    return tuple(gone)
