"""Ends a throw-away server when the process that made it is gone, even by SIGKILL.

A small shell holds the reading end of a pipe whose writing end only we have. When we end, in
whatever way, the pipe closes: the shell sends SIGQUIT (Postgres's immediate shutdown) to its
process group and removes the folder. The server's programs are started in that group, so no
process id is ever looked up and none can be mistaken. The group is not the terminal's own, so
Ctrl-C does not reach it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

_WATCH = """
trap '' INT QUIT TERM HUP
read -r _
kill -QUIT 0
tries=0
while [ -e "$1" ] && [ "$tries" -lt 100 ]; do
  rm -rf "$1" 2>/dev/null || sleep 0.1
  tries=$((tries + 1))
done
"""


class Leash:
    """Holds a folder and the processes of one group for as long as we live."""

    def __init__(self, folder: Path) -> None:
        """Start the watching shell; from now on the folder goes when we go."""
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "jobwarden-leash", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            process_group=0,
        )

    @property
    def group(self) -> int:
        """The process group the server's programs belong in."""
        return self._shell.pid

    def pull(self) -> None:
        """End the processes and remove the folder now, as our own end would. Safe to call again."""
        if self._shell.stdin is not None:
            self._shell.stdin.close()
        self._shell.wait()
