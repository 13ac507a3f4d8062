"""One file for node_exporter's textfile collector: whole or not at all, nobody else's."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from infra.errors import InfraError, UsageError

_ENDING = ".prom"
# What each file of ours opens with; "# EOF" is all of one without a figure.
_OURS = (b"# TYPE jobwarden_", b"# EOF")
_READABLE = 0o644  # node_exporter runs as a user of its own
_MOST_LINKS = 40  # as Linux has it


class Textfile:
    """A file that may be written, which is found out before anything is asked.

    Raises UsageError for a name that node_exporter does not read, and InfraError for a place where
    no file of ours can stand.
    """

    def __init__(self, path: Path) -> None:
        if path.suffix != _ENDING:
            raise UsageError(
                f"--textfile: node_exporter would not read it (got {path}; allowed: *{_ENDING})",
                hint=f"--textfile {_better(path)}",
            )
        self.path = path
        try:
            self.path = self._followed(path)  # a link stays one
            self._check_folder()
            self._check_file()
        except OSError as error:
            raise self._fault(str(error.strerror)) from error

    def _followed(self, path: Path) -> Path:
        """Where links lead. One of somebody else's would let him choose what root writes."""
        for _ in range(_MOST_LINKS):
            if not path.is_symlink():
                return Path(os.path.realpath(path))
            if path.lstat().st_uid not in {0, os.geteuid()}:
                raise self._fault(f"{path} is a link that another user made")
            path = path.parent / path.readlink()
        raise self._fault("its links lead in a circle")

    def write(self, text: str) -> None:
        """Put ``text`` in the place of what is there, at once. Raises InfraError."""
        try:
            self._replace(text)
        except OSError as error:
            raise self._fault(str(error.strerror)) from error

    def _replace(self, text: str) -> None:
        # A name that no *.prom matches: half a file is never read.
        number, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        fresh = Path(name)
        try:
            with open(number, "w", encoding="utf-8") as file:  # noqa: PTH123 - it is open already
                file.write(text)
            fresh.chmod(_READABLE)
            fresh.replace(self.path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise

    def _check_folder(self) -> None:
        folder = self.path.parent
        if not folder.is_dir():
            raise self._fault(f"there is no folder {folder}")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise self._fault(f"this user may not write into {folder}")

    def _check_file(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_file():
            raise self._fault("what is there is no regular file")
        with self.path.open("rb") as file:
            head = file.read(64)
        if head and not head.startswith(_OURS):
            raise self._fault("what is there was not written by jobwarden metrics")

    def _fault(self, problem: str) -> InfraError:
        return InfraError(
            f"--textfile: the figures cannot be written: {problem}"
            f" (got {self.path}; allowed: a new file, or one of ours, in a folder that is there)",
            hint="name a file in the folder that node_exporter is started with"
            " (--collector.textfile.directory), as a user who may write there",
        )


def _better(path: Path) -> Path:
    if path.is_dir():
        return path / f"jobwarden{_ENDING}"
    return path.with_suffix(_ENDING)
