"""The test boxes themselves: real systemd, apart from each other, and gone afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.boxes import RELEASES, Box, BoxError, clean
from tools.boxes.cgroups import folders, members
from tools.boxes.machine import Source, lend_pip, render_sources, sources
from tools.boxes.network import namespace, uplink
from tools.boxes.registry import load

Boot = Callable[..., Box]
# A server that says its box's name to whoever connects, and a client: bare Debian has no more.
SERVE = """
import socket
server = socket.create_server(("127.0.0.1", 5432))
while True:
    line = server.accept()[0]
    line.sendall(open("/etc/hostname", "rb").read())
    line.close()
"""
ASK = """
import socket, time
for attempt in range(50):
    try:
        print(socket.create_connection(("127.0.0.1", 5432)).recv(99).decode().strip())
        break
    except OSError:
        time.sleep(0.1)
"""


def traces(box: Box) -> list[str]:
    """Everything a box left on this machine: files, mount, processes, groups, network."""
    mounts = Path("/proc/self/mounts").read_text()
    found = {
        "folder": box.record.folder.exists(),
        "mount": str(box.root) in mounts,
        "processes": bool(members(box.name)),
        "groups": any(folder.exists() for folder in folders(box.name)),
        "namespace": Path("/run/netns", namespace(box.name)).exists(),
        "link": Path("/sys/class/net", box.record.network.link).exists(),
    }
    return [what for what, there in found.items() if there]


def test_a_box_runs_systemd_as_pid_1(box: Box) -> None:
    assert box.ssh("cat /proc/1/comm").stdout == "systemd\n"
    assert f"VERSION_CODENAME={box.record.release}\n" in box.ssh("cat /etc/os-release").stdout


def test_a_box_runs_without_a_failed_unit(box: Box) -> None:
    assert box.ssh("systemctl is-system-running").stdout == "running\n"
    assert box.ssh("systemctl --failed --no-legend").stdout == ""


def test_admin_has_sudo_and_nosudo_has_none(box: Box) -> None:
    assert box.ssh("sudo -n id -un", user="admin").stdout == "root\n"
    refused = box.ssh("sudo -n id -un", user="nosudo")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "password is required" in refused.stderr


def test_a_box_installs_packages_from_the_mirror(box: Box) -> None:
    box.ssh("apt-get update -qq && apt-get install -y -qq hello", check=True)
    assert box.ssh("hello").stdout == "Hello, world!\n"


def test_a_box_starts_without_postgres_but_with_its_packages_at_hand(box: Box) -> None:
    major = RELEASES[box.record.release]
    assert box.ssh("command -v psql pg_lsclusters").stdout == ""
    install = f"apt-get install -y -q --no-download --download-only postgresql-{major}-cron"
    at_hand = box.ssh(install)
    assert "Download complete" in at_hand.stdout, at_hand.stderr


def test_text_is_utf_8_in_every_session(box: Box) -> None:
    assert box.ssh("locale charmap", user="admin").stdout == "UTF-8\n"


def test_the_host_key_is_checked(box: Box, tmp_path: Path) -> None:
    stranger = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", stranger], check=True)
    argv = box.ssh_argv()
    forged = tmp_path / "known_hosts"
    forged.write_text(f"{box.host} {stranger.with_suffix('.pub').read_text()}")
    wrong = [arg.replace(str(box.known_hosts), str(forged)) for arg in argv]
    refused = subprocess.run([*wrong, "true"], check=False, capture_output=True, text=True)
    assert refused.returncode == 255
    assert "Host key verification failed" in refused.stderr


def test_two_boxes_use_the_same_port_and_never_meet(boot: Boot) -> None:
    old, new = boot("bookworm"), boot("trixie")
    for each in (old, new):
        each.ssh("cat >/srv/serve.py", stdin=SERVE, check=True)
        each.ssh("systemd-run --quiet --unit=web python3 /srv/serve.py", check=True)
    names = [each.ssh("python3 -", stdin=ASK).stdout.strip() for each in (old, new)]
    assert names == [old.name, new.name]
    new.ssh("systemctl stop web", check=True)
    assert old.ssh("systemctl is-active web").stdout == "active\n"


def test_a_box_is_gone_after_its_block(boot: Boot) -> None:
    box = boot("bookworm")
    assert set(traces(box)) >= {"folder", "mount", "processes", "groups"}
    box.down()
    assert traces(box) == []


def test_a_box_is_gone_after_a_failure_in_its_block(boot: Boot) -> None:
    box = boot("trixie")
    with pytest.raises(ZeroDivisionError), box:
        assert 1 / 0
    assert traces(box) == []


def test_a_box_whose_boot_fails_leaves_nothing(boot: Boot, monkeypatch: pytest.MonkeyPatch) -> None:
    caught = []

    def refuse(box: Box) -> None:
        caught.append(box)
        raise KeyboardInterrupt

    monkeypatch.setattr(Box, "wait_running", refuse)
    with pytest.raises(KeyboardInterrupt):
        boot("bookworm")
    assert traces(caught[0]) == []


def test_the_box_of_a_killed_run_is_removed_by_the_next(boot: Boot) -> None:
    kept = boot("bookworm")
    script = (
        "import os, signal\n"
        "from tools.boxes import Box\n"
        "print(Box.boot('bookworm').name, flush=True)\n"
        f"os.kill(os.getpid(), {int(signal.SIGKILL)})\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", script], check=False, stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert child.returncode == -signal.SIGKILL
    orphan = Box.attach(child.stdout.strip())
    assert orphan.is_on()
    assert orphan.name in clean()
    assert traces(orphan) == []
    assert kept.ssh("true").returncode == 0


def test_forwarding_is_put_back_after_the_last_box(boot: Boot) -> None:
    way_out = uplink()
    if way_out is None:
        pytest.skip("this machine has no default route")
    switch = Path("/proc/sys/net/ipv4/conf", way_out[0], "forwarding")
    clean()
    note = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    others = (note / "jobwarden/boxes/forwarding.json").exists()
    before = switch.read_text()
    box = boot("bookworm", network="private")
    assert switch.read_text() == "1\n"
    box.down()
    assert switch.read_text() == ("1\n" if others else before)


def test_a_reboot_keeps_the_disk_and_starts_anew(boot: Boot) -> None:
    box = boot("bookworm")
    first = box.boot_id()
    box.ssh("echo kept > /var/lib/note; echo lost > /run/note", check=True)
    box.reboot()
    assert box.boot_id() not in ("", first)
    assert box.ssh("cat /var/lib/note /run/note").stdout == "kept\n"


def test_a_power_cut_ends_every_process_and_the_disk_stays(boot: Boot) -> None:
    box = boot("trixie")
    box.ssh("systemd-run --quiet sleep infinity; echo kept > /var/lib/note", check=True)
    box.kill()
    assert not box.is_on()
    assert members(box.name) == set()
    assert "systemd" in box.journal()
    box.start()
    assert box.ssh("cat /var/lib/note").stdout == "kept\n"


def test_boxes_on_the_machines_network_get_ports_of_their_own(boot: Boot) -> None:
    boxes = [boot(release, network="shared") for release in RELEASES]
    assert [each.host for each in boxes] == ["127.0.0.1", "127.0.0.1"]
    assert len({each.port for each in boxes}) == len(boxes)
    names = [each.ssh("cat /etc/hostname").stdout.strip() for each in boxes]
    assert names == [each.name for each in boxes]


def test_an_unknown_release_is_refused_before_anything_is_made(boot: Boot) -> None:
    with pytest.raises(BoxError, match=r"got 'buster'; allowed: bookworm, trixie"):
        boot("buster", name="never")
    assert load("never") is None


def etc(folder: Path, **files: str) -> Path:
    """A folder that looks like /etc of a bookworm machine with these apt lists."""
    lists = folder / "apt/sources.list.d"
    lists.mkdir(parents=True)
    (folder / "os-release").write_text('ID=debian\nVERSION_CODENAME="bookworm"\n')
    for name, text in files.items():
        (lists / name.replace("_", ".")).write_text(text)
    return folder


def test_archives_are_read_from_deb822_without_comments_and_strangers(tmp_path: Path) -> None:
    text = (
        "Types: deb\n# http://old.example/debian\nURIs: http://main.example/debian\n"
        "Suites: bookworm bookworm-updates\nComponents: main\n\n"
        "Types: deb\nURIs: http://sec.example/debian-security/\nSuites: bookworm-security\n"
        "Components: main\n\n"
        "Types: deb\nEnabled: no\nURIs: http://off.example/debian\nSuites: bookworm\n"
        "Components: main\n\n"
        "Types: deb\nURIs: http://node.example\nSuites: nodistro\nComponents: main\n"
    )
    found = sources(etc(tmp_path, debian_sources=text))
    assert found == (
        Source("http://main.example/debian", ("", "-updates")),
        Source("http://sec.example/debian-security", ("-security",)),
    )
    rendered = render_sources(found, "trixie")
    assert "Suites: trixie trixie-updates\n" in rendered
    assert "Suites: trixie-security\n" in rendered
    assert "bookworm" not in rendered


def test_archives_are_read_from_one_line_lists(tmp_path: Path) -> None:
    text = (
        "# deb http://old.example/debian bookworm main\n"
        "deb [arch=amd64 signed-by=/k.gpg] http://main.example/debian bookworm main contrib\n"
        "deb http://vendor.example/apt vendor-bookworm main\n"
        "deb-src http://main.example/debian bookworm main\n"
    )
    found = sources(etc(tmp_path, debian_list=text))
    assert found == (Source("http://main.example/debian", ("",)),)


def test_a_machine_without_a_debian_archive_is_told_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(BoxError, match="Try: set JOBWARDEN_BOX_MIRROR"):
        sources(etc(tmp_path))


def test_pip_in_a_box_fetches_as_the_machines_does_and_looks_for_no_folder_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/there.crt").touch()
    (tmp_path / "pip.conf").write_text(
        "[global]\nfind-links = /opt/x\nindex-url = https://i.test/\n"
    )
    for name, value in {
        "PIP_RETRIES": "7",
        "PIP_FIND_LINKS": "/opt/x",
        "PIP_CERT": "/etc/there.crt",
        "CURL_CA_BUNDLE": "/etc/elsewhere.crt",
        "https_proxy": "http://p.test:1",
        "PIPER": "no",
    }.items():
        monkeypatch.setenv(name, value)
    lend_pip(root, [str(tmp_path / "pip.conf")])
    lent = (root / "etc/environment").read_text().splitlines()

    assert (root / "etc/pip.conf").read_text() == "[global]\nindex-url = https://i.test/\n"
    assert {'PIP_RETRIES="7"', 'PIP_CERT="/etc/there.crt"', 'https_proxy="http://p.test:1"'} <= set(
        lent
    )
    assert not [x for x in lent if x.startswith(("PIP_FIND_LINKS", "CURL_CA_BUNDLE", "PIPER"))]
