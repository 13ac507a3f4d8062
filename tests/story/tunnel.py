"""An ssh connection that carries ports and sockets, and comes back when the box does."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from typing import Self


class Tunnel(threading.Thread):
    """Runs a command again whenever it ends, for the length of a ``with`` block."""

    def __init__(self, argv: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self._argv = argv
        self._over = threading.Event()
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._turn:
            self._over.set()
            if self._process:
                self._process.kill()
        self.join()

    def run(self) -> None:
        """Keep it up until the block ends."""
        quiet = subprocess.DEVNULL
        while not self._over.is_set():
            with self._turn:
                if self._over.is_set():
                    return
                self._process = subprocess.Popen(
                    self._argv, stdin=quiet, stdout=quiet, stderr=quiet
                )
            self._process.wait()
            self._over.wait(0.3)
