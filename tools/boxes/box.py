"""One box: booted, reached over ssh, rebooted, killed, taken away."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tools.boxes import cgroups, image, machine, network, registry
from tools.boxes.network import Network, choice
from tools.boxes.registry import Record
from tools.boxes.shell import BoxError, identity, is_alive, locked, mount_overlay, run

# Newer sshd answers no one for a while after a refused login, which a test of refusals must not
# pay for. Older sshd does not know the word.
SSHD = {"bookworm": "", "trixie": "PerSourcePenalties no\n"}


class Box:
    """A running box. Use it in a ``with`` block: the end of the block takes it away.

    ``host``, ``port``, ``user``, ``key`` (a private key file) and ``known_hosts`` (a file with the
    box's own host key) are all that an ssh client needs. Users: ``root``, ``admin`` (sudo without
    a password), ``nosudo``.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        self.user = "root"
        self._supervisor: subprocess.Popen[bytes] | None = None

    @classmethod
    def boot(
        cls, release: str, *, name: str | None = None, network: str | None = None,
        keep: bool = False,
    ) -> Self:  # fmt: skip
        """Boot a bare box and wait until systemd says that it runs (about 2 seconds).

        ``network`` is auto, private or shared (else ``JOBWARDEN_BOX_NETWORK``, else auto). ``keep``
        lets the box outlive this process. Raises BoxError; nothing is left behind then.
        """
        machine.require()
        registry.clean()
        built = image.build(release)
        chosen = choice(network)
        box = cls(_register(built, _name(release, name), chosen))
        try:
            box._furnish(built, chosen)
            box.start()
            if keep:
                box.record = box.record.change(owner=None)
        except BaseException:
            box.down()
            raise
        return box

    @classmethod
    def attach(cls, name: str) -> Self:
        """Return a box that runs already. Raises BoxError where there is none of that name."""
        record = registry.load(name)
        if record is None:
            raise BoxError(f"no box is called {name!r}", hint="see `tools/box list`")
        return cls(record)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    @property
    def name(self) -> str:
        """The box's name, and its host name."""
        return self.record.name

    @property
    def host(self) -> str:
        """The address on which the box answers ssh."""
        return self.record.network.host

    @property
    def port(self) -> int:
        """The port on which the box answers ssh."""
        return self.record.network.port

    @property
    def key(self) -> Path:
        """The private key that every user of the box accepts."""
        return self.record.folder / "key"

    @property
    def known_hosts(self) -> Path:
        """A known_hosts file that holds this box alone."""
        return self.record.folder / "known_hosts"

    @property
    def root(self) -> Path:
        """The box's file system, as seen from this machine."""
        return self.record.folder / "merged"

    def _furnish(self, built: image.Image, chosen: str) -> None:
        """Make the box's network and disk, and write down who may come in."""
        folder, wired = self.record.folder, self.record.network.private
        mount_overlay(built.lower, folder / "upper", folder / "work", self.root)
        (self.root / "etc/hostname").write_text(f"{self.name}\n")
        machine.prepare(self.root, built.release)
        if wired and (reason := self._connect(built, chosen)):
            self._share_network(built, reason)
        self._write_keys()

    def _connect(self, built: image.Image, chosen: str) -> str:
        """Make the private network. Returns why it is of no use here, or nothing."""
        try:
            network.create(self.name, self.record.network, built.base)
        except BoxError as error:
            if chosen == "private":
                raise
            return error.message
        space = network.namespace(self.name)
        if chosen == "private" or network.reaches_mirror(self.root, built.release, space):
            return ""
        # Without any way to the mirror, sharing the machine's network would win nothing.
        shared_is_better = network.reaches_mirror(self.root, built.release, None)
        return "the mirror cannot be reached through it" if shared_is_better else ""

    def _share_network(self, built: image.Image, reason: str) -> None:
        with locked("registry"):
            network.remove(self.name, self.record.network, built.base)
            self.record = self.record.change(network=_shared())
        print(
            f"box {self.name}: no network of its own ({reason}); it shares the machine's, "
            f"with ssh on 127.0.0.1:{self.port}",
            file=sys.stderr,
        )

    def _write_keys(self) -> None:
        ssh, host_key = self.root / "etc/ssh", self.root / "etc/ssh/ssh_host_ed25519_key"
        for path in (self.key, host_key):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.name, "-f", path)
        (ssh / "box_keys").write_text(self.key.with_suffix(".pub").read_text())
        where = self.host if self.port == 22 else f"[{self.host}]:{self.port}"
        public = host_key.with_suffix(".pub").read_text()
        self.known_hosts.write_text(f"{where} {public}")
        shares = not self.record.network.private
        listen = f"ListenAddress {self.host}\nPort {self.port}\n" if shares else ""
        (ssh / "sshd_config.d/10-box.conf").write_text(
            "HostKey /etc/ssh/ssh_host_ed25519_key\n"
            "AuthorizedKeysFile .ssh/authorized_keys /etc/ssh/box_keys\n"
            + listen
            + SSHD[self.record.release]
        )

    def start(self) -> None:
        """Switch the box on, and wait until it runs. Also after ``kill``, or once it is off."""
        self.kill()
        arguments = [
            f"--directory={self.root}", f"--machine={self.name}", "--boot", "--console=pipe",
            "--register=no", "--keep-unit", "--settings=no", "--resolv-conf=off", "--timezone=off",
            "--link-journal=no",
        ]  # fmt: skip
        if self.record.network.private:
            space = network.namespace(self.name)
            arguments.append(f"--network-namespace-path=/run/netns/{space}")
        groups = " ".join(str(folder) for folder in cgroups.create(self.name))
        with (self.record.folder / "console.log").open("ab") as console:
            # A session of its own: Ctrl-C reaches the caller first, who then takes the box away.
            self._supervisor = subprocess.Popen(
                [Path(__file__).with_name("supervise.sh"), *arguments],
                env={**os.environ, "BOX_CGROUPS": groups}, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=console, stderr=console,
            )  # fmt: skip
        self.record = self.record.change(supervisor=identity(self._supervisor.pid))
        self.wait_running()

    def wait_running(self, seconds: float = 60) -> None:
        """Wait until ssh answers and systemd says ``running``. Raises BoxError otherwise."""
        self._wait_for(self._answers, seconds, "answer ssh")
        state = self.ssh("systemctl is-system-running --wait", timeout=seconds).stdout.strip()
        if state != "running":
            failed = self.ssh("systemctl --failed --no-legend --plain").stdout.strip()
            message = f"box {self.name} is {state or 'unreachable'}: {failed}"
            raise BoxError(message, hint="read its journal: `tools/box ssh NAME journalctl -b`")

    def _wait_for(self, ready: Callable[[], bool], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.is_on() or time.monotonic() > deadline:
                message = f"box {self.name} did not {what}; its console: {self.console()[-1500:]}"
                raise BoxError(message, hint="boot it by hand with `tools/box up` and look inside")
            time.sleep(0.1)

    def _answers(self) -> bool:
        """Say whether sshd greets; a login is refused by PAM until the boot is far enough."""
        try:
            with socket.create_connection((self.host, self.port), timeout=1) as line:
                greets = line.recv(4) == b"SSH-"
        except OSError:
            return False
        return greets and self.ssh("true", timeout=20).returncode == 0

    def is_on(self) -> bool:
        """Say whether the box is switched on."""
        return is_alive(self.record.supervisor)

    def ssh_argv(self, user: str | None = None) -> list[str]:
        """Return the ssh command line up to the command: key, host key and port are all named."""
        return [
            "ssh", "-F", "none", "-i", str(self.key), "-p", str(self.port), "-l", user or self.user,
            "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5",
            "-o", f"UserKnownHostsFile={self.known_hosts}", "-o", "StrictHostKeyChecking=yes",
            "-o", "GlobalKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", self.host,
        ]  # fmt: skip

    def ssh(
        self, command: str, *, user: str | None = None, check: bool = False,
        stdin: str | None = None, timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run a shell command in the box. ``check`` raises BoxError when it fails."""
        return run(*self.ssh_argv(user), command, check=check, stdin=stdin, timeout=timeout)

    def reboot(self) -> None:
        """Reboot from inside, and wait until the next boot runs."""
        before = self.boot_id()
        self.ssh("systemctl reboot")
        self._wait_for(lambda: self.boot_id() not in ("", before), 60, "come back")
        self.wait_running()

    def boot_id(self) -> str:
        """Return the id of the boot that runs, or nothing while none answers."""
        return self.ssh("cat /proc/sys/kernel/random/boot_id", timeout=20).stdout.strip()

    def kill(self) -> None:
        """Cut the power. The disk stays: ``start`` switches the box on again."""
        cgroups.kill(self.name, self.record.supervisor)
        cgroups.remove(self.name)
        self._reap()

    def down(self) -> None:
        """Take the box away for good, whatever state it is in."""
        registry.destroy(self.name)
        self._reap()

    def _reap(self) -> None:
        """Take leave of the supervisor, where this process started it."""
        if self._supervisor:
            self._supervisor.wait(timeout=10)
            self._supervisor = None

    def journal(self, unit: str | None = None) -> str:
        """Return the journal of all boots, or one unit's part of it; also when the box is off."""
        chosen = f"--unit={unit}" if unit else "--all"
        if self.is_on():
            return self.ssh(f"journalctl --no-pager {shlex.quote(chosen)}").stdout
        where = "--directory=/var/log/journal"
        return run("chroot", self.root, "journalctl", "--no-pager", where, chosen).stdout

    def console(self) -> str:
        """Return what the box printed on its console."""
        path = self.record.folder / "console.log"
        return path.read_text(errors="replace") if path.exists() else ""


def _name(release: str, asked: str | None) -> str:
    name = asked or f"{release}-{secrets.token_hex(3)}"
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,38}[a-z0-9]", name):
        message = f"unfit name (got {name!r}; allowed: a-z, 0-9 and `-`, 2 to 40 characters)"
        raise BoxError(message, hint="a name is a host name, such as `db1`")
    return name


def _shared() -> Network:
    return network.shared({record.network.port for record in registry.records()})


def _register(built: image.Image, name: str, chosen: str) -> Record:
    """Write the box down before anything of it exists, with a network nobody else holds."""
    with locked("registry"):
        if registry.load(name):
            raise BoxError(f"a box is called {name!r} already", hint=f"`tools/box down {name}`")
        registry.note_forwarding()
        taken = {record.network.index for record in registry.records()}
        where = _shared() if chosen == "shared" else network.private(network.free_index(taken))
        owner = identity(os.getpid())
        record = Record(name, built.release, str(built.folder), where, owner)
        record.save()
    return record
