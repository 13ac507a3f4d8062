"""The file for node_exporter: whole or not at all, and nobody else's."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra import metrics
from infra.cli.textfile import Textfile
from infra.errors import InfraError, UsageError
from infra.metrics import Sample

TEXT = metrics.render([Sample("jobwarden_up", 1)])


def test_everybody_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        Textfile(tmp_path / "jobwarden.prom").write(TEXT)
    finally:
        os.umask(before)

    assert [path.name for path in tmp_path.iterdir()] == ["jobwarden.prom"]
    assert (tmp_path / "jobwarden.prom").read_text() == TEXT
    assert stat.S_IMODE((tmp_path / "jobwarden.prom").stat().st_mode) == 0o644


def test_who_has_the_old_file_open_reads_all_of_it(tmp_path: Path) -> None:
    file = Textfile(tmp_path / "jobwarden.prom")
    file.write(metrics.DOWN)
    with (tmp_path / "jobwarden.prom").open() as reader:
        first = reader.read(5)
        file.write(TEXT)
        rest = reader.read()

    assert first + rest == metrics.DOWN
    assert (tmp_path / "jobwarden.prom").read_text() == TEXT


def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Textfile(tmp_path / "jobwarden.prom")
    file.write(metrics.DOWN)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InfraError, match="No space left on device") as caught:
        file.write(TEXT)

    assert str(tmp_path / "jobwarden.prom") in str(caught.value)
    assert [path.read_text() for path in tmp_path.iterdir()] == [metrics.DOWN]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "jobwarden.prom"
    link.symlink_to(tmp_path / "there" / "real.prom")
    Textfile(link).write(TEXT)

    assert link.is_symlink()
    assert (tmp_path / "there" / "real.prom").read_text() == TEXT


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can play another user's link (Try: sudo)")
@pytest.mark.parametrize("there", [None, ""])
def test_a_link_of_another_user_s_leads_nowhere(tmp_path: Path, there: str | None) -> None:
    """Who may write into the folder would else make root write an empty or a missing file."""
    victim = tmp_path / "nologin"
    if there is not None:
        victim.write_text(there)
    theirs, ours = tmp_path / "theirs.prom", tmp_path / "ours.prom"
    theirs.symlink_to(victim)
    os.chown(theirs, 65534, 65534, follow_symlinks=False)
    ours.symlink_to(theirs)  # a link of ours to one of theirs is no better
    for link in (theirs, ours):
        with pytest.raises(InfraError, match=r"theirs\.prom is a link that another user made"):
            Textfile(link)

    assert (victim.read_text() if victim.exists() else None) == there


def test_links_in_a_circle_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.prom").symlink_to(tmp_path / "b.prom")
    (tmp_path / "b.prom").symlink_to("a.prom")
    with pytest.raises(InfraError, match="its links lead in a circle"):
        Textfile(tmp_path / "a.prom")


@pytest.mark.parametrize("before", ["", "# EOF\n", metrics.DOWN, TEXT])
def test_a_file_of_ours_is_replaced(tmp_path: Path, before: str) -> None:
    (tmp_path / "jobwarden.prom").write_text(before)
    Textfile(tmp_path / "jobwarden.prom").write(TEXT)

    assert (tmp_path / "jobwarden.prom").read_text() == TEXT


def test_a_file_of_somebody_else_stays(tmp_path: Path) -> None:
    theirs = tmp_path / "apt.prom"
    theirs.write_text("# HELP apt_upgrades_pending ...\n")
    with pytest.raises(InfraError, match="was not written by jobwarden metrics"):
        Textfile(theirs)

    assert theirs.read_text() == "# HELP apt_upgrades_pending ...\n"


def test_a_place_where_no_file_can_stand_is_told_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "dir.prom").mkdir()
    os.mkfifo(tmp_path / "pipe.prom")
    for path, problem in (
        (tmp_path / "nowhere" / "jobwarden.prom", f"there is no folder {tmp_path / 'nowhere'}"),
        (tmp_path / "dir.prom", "no regular file"),
        (tmp_path / "pipe.prom", "no regular file"),
    ):
        with pytest.raises(InfraError) as caught:
            Textfile(path)
        assert problem in caught.value.message
        assert f"got {path}; allowed: " in caught.value.message
        assert "--collector.textfile.directory" in str(caught.value.hint)


@pytest.fixture
def nobody() -> Iterator[None]:
    """Root may write everywhere, so root's tests are played by nobody."""
    before = os.getresuid()
    if before[1] == 0:
        os.setresuid(65534, 65534, 0)
    yield
    os.setresuid(*before)


@pytest.mark.usefixtures("nobody")
def test_a_folder_where_this_user_may_not_write_is_told() -> None:
    with pytest.raises(InfraError, match="this user may not write into /usr"):
        Textfile(Path("/usr/jobwarden.prom"))


def test_a_name_that_node_exporter_does_not_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"allowed: \*\.prom") as caught:
        Textfile(tmp_path / "jobwarden.txt")

    assert caught.value.hint == f"--textfile {tmp_path / 'jobwarden.prom'}"


def test_a_folder_is_answered_with_a_file_in_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        Textfile(tmp_path)

    assert caught.value.hint == f"--textfile {tmp_path / 'jobwarden.prom'}"
