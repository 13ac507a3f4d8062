"""Throwaway Debian boxes with systemd as PID 1 and sshd, for tests. Nothing here is shipped.

A box is a cached Debian tree under a fresh overlay, booted by ``systemd-nspawn`` in a network of
its own. In reading order: ``shell`` runs programs, ``machine`` says what this machine lacks and
what it gives a box, ``image`` builds the cached trees, ``network`` and ``cgroups`` hold a box
apart, ``registry`` knows what exists and takes it away, ``box`` is what callers use.
"""

from tools.boxes.box import Box
from tools.boxes.image import RELEASES, build
from tools.boxes.machine import missing
from tools.boxes.registry import clean
from tools.boxes.shell import BoxError

__all__ = ["RELEASES", "Box", "BoxError", "build", "clean", "missing"]
