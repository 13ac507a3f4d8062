"""The OS user that runs a private server. Postgres refuses to run as root."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.errors import InfraError

_UNPRIVILEGED = ("postgres", "nobody")
_OTHERS_MAY_ENTER = 0o001


@dataclass(frozen=True, slots=True)
class Owner:
    """Who runs the server's programs. ``uid`` None: whoever runs this process."""

    uid: int | None = None
    gid: int | None = None

    @classmethod
    def current(cls) -> Owner:
        """Return this process's user, or an unprivileged one when that is root.

        Raises InfraError when we are root and the system knows no user to step down to.
        """
        if os.geteuid() != 0:
            return cls()
        for name in _UNPRIVILEGED:
            try:
                entry = pwd.getpwnam(name)
            except KeyError:
                continue
            return cls(entry.pw_uid, entry.pw_gid)
        raise InfraError(
            f"Postgres does not run as root, and there is no user {' or '.join(_UNPRIVILEGED)}",
            hint="run this as an ordinary user",
        )

    def own(self, folder: Path) -> None:
        """Give the folder to this user, and shut everybody else out."""
        folder.chmod(0o700)
        if self.uid is not None and self.gid is not None:
            os.chown(folder, self.uid, self.gid)

    def can_reach(self, folder: Path) -> bool:
        """Tell whether this user may pass through every folder above and into this one."""
        if self.uid is None:
            return True
        try:
            return all(
                place.stat().st_mode & _OTHERS_MAY_ENTER for place in (folder, *folder.parents)
            )
        except OSError:
            return False

    def popen(
        self, argv: Sequence[str], *, folder: Path, log: Path, group: int
    ) -> subprocess.Popen[bytes]:
        """Start a program in a process group, its talk going to the log."""
        with log.open("ab") as sink:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=clean_environment(folder),
                process_group=group,
                user=self.uid,
                group=self.gid,
                extra_groups=None if self.uid is None else [],
            )

    def run(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        group: int | None = None,
        say: str = "",
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end and return its code and talk (stderr joins stdout).

        ``say`` is what it reads. Without a group it gets a session of its own, so that Ctrl-C
        does not reach it.
        Raises InfraError when it cannot be started or takes more than ``timeout`` seconds.
        """
        try:
            return subprocess.run(
                argv,
                input=say,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                cwd=folder,
                env=clean_environment(folder),
                timeout=timeout,
                check=False,
                start_new_session=group is None,
                process_group=group,
                user=self.uid,
                group=self.gid,
                extra_groups=None if self.uid is None else [],
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InfraError(
                f"{argv[0]} did not run: {error}", hint="check that Postgres is installed whole"
            ) from error


def clean_environment(home: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for the server's programs: nobody's libpq settings, English talk."""
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(("PG", "LC_", "LANG")) and name != "TZ"
    }
    return {**kept, "HOME": str(home), "LC_ALL": "C"}
