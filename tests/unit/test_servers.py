"""Which server is taken, and what is said when none fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.errors import InfraError
from infra.local import servers
from infra.local.servers import Server, find_server, inspect, install_hint

WITH_CRON_15 = Server(15, Path("/15/bin"), has_pg_cron=True, release="15.8", pg_cron_version="1.4")
PLAIN_16 = Server(16, Path("/16/bin"), has_pg_cron=False, release="16.4")
PLAIN_17 = Server(17, Path("/17/bin"), has_pg_cron=False, release="17.1")
WITH_CRON_14 = Server(14, Path("/14/bin"), has_pg_cron=True, release="14.9", pg_cron_version="1.4")
APT_IN_TWO_STEPS = (
    "sudo apt-get install postgresql, then postgresql-N-cron for the version N that this brought"
)
DNF = (
    "sudo dnf install postgresql17-server pg_cron_17 (from the PostgreSQL project's own repository)"
)


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Server]:
    """The servers that this machine seems to have."""
    there = [WITH_CRON_14, WITH_CRON_15, PLAIN_17, PLAIN_16]
    monkeypatch.setattr(servers, "installed", lambda: there)
    return there


@pytest.mark.usefixtures("found")
class TestChoice:
    def test_a_server_with_pg_cron_goes_before_a_newer_one_without(self) -> None:
        assert find_server() == WITH_CRON_15

    def test_the_newest_is_taken_when_pg_cron_does_not_matter(self) -> None:
        assert find_server(pg_cron=False) == PLAIN_17

    def test_a_version_asked_for_is_kept_to(self) -> None:
        assert find_server(16) == PLAIN_16

    def test_a_version_without_pg_cron_is_refused_when_pg_cron_is_needed(self) -> None:
        with pytest.raises(InfraError, match=r"no Postgres 16 with pg_cron") as caught:
            find_server(16, pg_cron=True)

        assert "Postgres 17.1, no pg_cron in /17/bin" in caught.value.message
        assert "16" in str(caught.value.hint)

    def test_a_version_that_is_not_there_is_refused(self) -> None:
        with pytest.raises(InfraError, match=r"no Postgres 13 is installed"):
            find_server(13)


def test_no_server_at_all_says_so_with_a_way_out(found: list[Server]) -> None:
    found.clear()

    with pytest.raises(InfraError, match=r"\(found: none\)\nTry: .*install"):
        find_server()


def test_the_missing_pg_cron_is_asked_for_the_installed_version(
    found: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    found[:] = [PLAIN_16]
    monkeypatch.setattr(servers, "_os_release", lambda: {"ID": "debian", "VERSION_ID": "12"})
    monkeypatch.setattr("sys.platform", "linux")

    with pytest.raises(InfraError) as caught:
        find_server(pg_cron=True)

    assert "apt-get install postgresql-16 postgresql-16-cron" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("platform", "release", "version", "hint"),
    [
        (
            "linux",
            {"ID": "debian", "VERSION_ID": "12"},
            None,
            "sudo apt-get install postgresql-15 postgresql-15-cron",
        ),
        (
            "linux",
            {"ID": "ubuntu", "ID_LIKE": "debian", "VERSION_ID": "24.04"},
            None,
            "sudo apt-get install postgresql-16 postgresql-16-cron",
        ),
        (
            "linux",
            {"ID": "linuxmint", "ID_LIKE": "ubuntu debian", "VERSION_ID": "22"},
            None,
            APT_IN_TWO_STEPS,
        ),
        (
            "linux",
            {"ID": "debian", "VERSION_ID": "13"},
            14,
            "sudo apt-get install postgresql-14 postgresql-14-cron",
        ),
        (
            "linux",
            {"ID": "rocky", "ID_LIKE": "rhel centos fedora"},
            17,
            DNF,
        ),
        ("darwin", {}, None, "brew install postgresql@17 pg_cron"),
        (
            "freebsd14",
            {},
            None,
            "install a Postgres server, 13 to 18, and pg_cron for that same version",
        ),
    ],
)
def test_the_hint_is_the_command_of_the_system(
    platform: str, release: dict[str, str], version: int | None, hint: str
) -> None:
    assert install_hint(platform, release, version) == hint


def test_root_needs_no_sudo() -> None:
    release = {"ID": "debian", "VERSION_ID": "13"}

    hint = install_hint("linux", release, root=True)

    assert hint == "apt-get install postgresql-17 postgresql-17-cron"


class TestInspect:
    def test_a_whole_server_with_pg_cron_is_described(self, tmp_path: Path) -> None:
        bindir = _fake_server(tmp_path, version="16.4 (Debian 16.4-1)", library="pg_cron.so")

        server = inspect(bindir)

        assert server == Server(16, bindir, has_pg_cron=True, release="16.4", pg_cron_version="1.6")
        assert str(server) == "Postgres 16.4, pg_cron 1.6"

    def test_the_library_of_macos_counts(self, tmp_path: Path) -> None:
        server = inspect(_fake_server(tmp_path, version="17.0", library="pg_cron.dylib"))

        assert server is not None
        assert server.has_pg_cron

    def test_a_library_with_a_longer_name_is_another_library(self, tmp_path: Path) -> None:
        server = inspect(_fake_server(tmp_path, version="17.0", library="pg_cron_extra.so"))

        assert server is not None
        assert not server.has_pg_cron
        assert str(server) == "Postgres 17.0, no pg_cron"

    def test_a_test_version_is_understood(self, tmp_path: Path) -> None:
        server = inspect(_fake_server(tmp_path, version="18beta2", library="x.so"))

        assert server is not None
        assert (server.version, server.release) == (18, "18beta2")

    def test_client_programs_alone_are_no_server(self, tmp_path: Path) -> None:
        bindir = _fake_server(tmp_path, version="16.4", library="pg_cron.so")
        (bindir / "initdb").unlink()

        assert inspect(bindir) is None


def test_versions_that_are_too_old_or_too_new_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("12.20", "13.1", "18.0", "19.0"):
        _fake_server(tmp_path / version, version=version, library="x.so")
    monkeypatch.setattr(servers, "_PLACES", (f"{tmp_path}/*/bin",))
    monkeypatch.setenv("PATH", "/nowhere")

    assert [server.version for server in servers.installed()] == [13, 18]


def test_the_pg_config_on_the_path_leads_to_its_server_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bindir = _fake_server(tmp_path / "16", version="16.1", library="x.so")
    monkeypatch.setenv("PATH", str(bindir), prepend=":")
    monkeypatch.setattr(servers, "_PLACES", (f"{tmp_path}/*/bin",))

    assert [server.bindir for server in servers.installed()] == [bindir]

    monkeypatch.setattr(servers, "_PLACES", ())

    assert [server.bindir for server in servers.installed()] == [bindir]


def _fake_server(root: Path, *, version: str, library: str) -> Path:
    bindir, lib, share = root / "bin", root / "lib", root / "share"
    for folder in (bindir, lib, share / "extension"):
        folder.mkdir(parents=True)
    (lib / library).touch()
    (share / "extension" / "pg_cron.control").write_text("default_version = '1.6'\n")
    answers = {"--bindir": bindir, "--pkglibdir": lib, "--sharedir": share}
    cases = "".join(f"{option}) echo '{answer}';;\n" for option, answer in answers.items())
    _script(bindir / "pg_config", f'case "$1" in\n{cases}esac')
    _script(bindir / "postgres", f"echo 'postgres (PostgreSQL) {version}'")
    for name in ("initdb", "pg_ctl", "pg_isready", "psql"):
        _script(bindir / name, "exit 0")
    return bindir


def _script(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
