"""The scripts for a box, run here with a box's commands played."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("pyinfra")

from infra import boxes
from infra.box.carrier import failure, script
from infra.boxes import Box, EnvFile
from infra.unit_texts import HEADER

OLD = "# Jobwarden wrote this.\nSuites: bullseye-pgdg\n"
NEW = "# Jobwarden wrote this.\nSuites: bookworm-pgdg\n"
REFUSED = "E: The repository 'https://apt.postgresql.org/pub/repos/apt' is not signed."
UNREACHED = "W: Failed to fetch https://apt.postgresql.org/pub/repos/apt/dists/x  Could not connect"
OTHER = "W: Failed to fetch https://mirror.example.net/dists/x  Could not connect"


class Apt:
    """A box on which ``apt-get update`` answers as is said; ``log`` is what was asked of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sources, self.key, self.log = (folder / name for name in ("sources", "key", "log"))
        self.key.write_text("a key")
        self.answer("", 0)
        self._command("chown", "exit 0")

    def _command(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def answer(self, text: str, code: int) -> None:
        """What an update says, and its exit code."""
        self._command(
            "apt-get",
            f'echo "$@" >>{self.log}\n'
            f'case "$*" in *update*) cat <<"END"\n{text}\nEND\nexit {code};; esac',
        )

    def install(self) -> str:
        """Install from PGDG; what the error says, "" without one."""
        given = {
            "PACKAGES": "postgresql-18", "SOURCES": NEW, "SOURCES_FILE": str(self.sources),
            "KEY_FILE": str(self.key), "VERSION": "18", "NAME": "main", "MAKE_CLUSTER": "",
            "APT_SECONDS": "1",
        }  # fmt: skip
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-s"], input=script("install", given), env={"PATH": path},
            text=True, capture_output=True, check=False,
        )  # fmt: skip
        return str(failure("db1", done.stderr.splitlines())) if done.returncode else ""


@pytest.fixture
def apt(tmp_path: Path) -> Apt:
    return Apt(tmp_path)


@pytest.mark.parametrize("said", ["", OTHER])
def test_a_source_that_apt_can_read_stays(apt: Apt, said: str) -> None:
    apt.answer(said, 0)

    assert apt.install() == ""
    assert apt.sources.read_text() == NEW
    assert "install postgresql-18" in apt.log.read_text()


def test_without_its_key_a_source_is_not_written(apt: Apt) -> None:
    apt.key.unlink()
    said = apt.install()

    assert f"{apt.key} is missing" in said
    assert "\nTry: put the key of apt.postgresql.org there" in said
    assert not apt.sources.exists()
    assert "update" not in apt.log.read_text()


@pytest.mark.parametrize(("answer", "code"), [(REFUSED, 100), (UNREACHED, 0)])
@pytest.mark.parametrize("before", [None, OLD], ids=["new", "update"])
def test_a_source_that_apt_cannot_read_is_taken_back(
    apt: Apt, before: str | None, answer: str, code: int
) -> None:
    if before:
        apt.sources.write_text(before)
    apt.answer(answer, code)
    said = apt.install()

    assert "which was taken back" in said
    assert answer in said
    assert "\nTry: see that the box reaches apt.postgresql.org" in said
    assert (apt.sources.read_text() if apt.sources.exists() else None) == before
    assert "postgresql-18" not in apt.log.read_text()


def test_an_apt_at_work_is_named_and_leaves_no_source(apt: Apt) -> None:
    apt.answer("E: Could not get lock /var/lib/apt/lists/lock.", 100)

    assert "apt is at work already" in apt.install()
    assert not apt.sources.exists()


def look(folder: Path) -> Box:
    """What ``look.sh`` says of a box whose variables are in a folder."""
    text = script("look", dict.fromkeys(("USERS", "UNITS"), ""))
    text = text.replace("/etc/jobwarden/", f"{folder}/")
    done = subprocess.run(["sh", "-s"], input=text, text=True, capture_output=True, check=True)
    return boxes.parse(done.stdout.splitlines())


def test_variables_without_our_mark_are_seen_as_foreign(tmp_path: Path) -> None:
    for name, text in {"api": HEADER, "theirs": "A=1\n", "none": ""}.items():
        (tmp_path / f"{name}.env").write_text(text + "B=2\n")
    (tmp_path / "folder.env").mkdir()
    found = look(tmp_path).envs

    assert {name: each.ours for name, each in found.items()} == {
        "api": True,
        "theirs": False,
        "none": False,
    }
    assert isinstance(found["api"], EnvFile)
    assert len(found["api"].sha256) == 64
