"""A network per box: a namespace, a veth pair and masquerading, so that ports never clash.

Where the machine cannot do that, or the box cannot reach the mirror through it, the box shares
the machine's network and its sshd listens on a port of its own on 127.0.0.1.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Container
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.boxes.machine import sources
from tools.boxes.shell import BoxError, run

CHOICES = ("auto", "private", "shared")
FIRST_SHARED_PORT = 2222
MOST_BOXES = 200
PROC = Path("/proc/sys/net/ipv4/conf")


@dataclass(frozen=True, slots=True)
class Network:
    """Where a box answers ssh. ``index`` names its link and subnet; None: the machine's network."""

    host: str
    port: int
    index: int | None = None

    @property
    def private(self) -> bool:
        """Whether the box has a network of its own."""
        return self.index is not None

    @property
    def link(self) -> str:
        """The machine's end of the box's cable."""
        return f"jwbox{self.index}"

    @property
    def subnet(self) -> str:
        """First three parts of the box's addresses: .1 is the machine, .2 the box."""
        return f"10.231.{self.index}"

    def as_dict(self) -> dict[str, object]:
        """Return what the registry keeps."""
        return asdict(self)


def choice(asked: str | None) -> str:
    """Return which network is wanted: as asked, else JOBWARDEN_BOX_NETWORK, else auto."""
    wanted = asked or os.environ.get("JOBWARDEN_BOX_NETWORK") or CHOICES[0]
    if wanted not in CHOICES:
        message = f"unknown network (got {wanted!r}; allowed: {', '.join(CHOICES)})"
        raise BoxError(message, hint="leave JOBWARDEN_BOX_NETWORK unset")
    return wanted


def private(index: int) -> Network:
    """Name the private network with this index, without making it."""
    return Network(f"10.231.{index}.2", 22, index)


def shared(taken: set[int]) -> Network:
    """Find a port on 127.0.0.1 that nobody listens on and no other box was given."""
    for port in range(FIRST_SHARED_PORT, FIRST_SHARED_PORT + MOST_BOXES):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if port not in taken and probe.connect_ex(("127.0.0.1", port)):
                return Network("127.0.0.1", port)
    message = f"no free port on 127.0.0.1 from {FIRST_SHARED_PORT} on"
    raise BoxError(message, hint="take boxes away with `tools/box clean`")


def namespace(name: str) -> str:
    """Return the name of a box's network namespace."""
    return f"jwbox-{name}"


def free_index(taken: Container[int | None]) -> int:
    """Return the lowest index that no box was given and no link of this machine uses."""
    for index in range(1, MOST_BOXES + 1):
        if index not in taken and not Path(f"/sys/class/net/{private(index).link}").exists():
            return index
    message = f"{MOST_BOXES} boxes are up already"
    raise BoxError(message, hint="take boxes away with `tools/box clean`")


def uplink() -> tuple[str, int] | None:
    """Return the device of the default route and its MTU in bytes, or None without a route."""
    routes = json.loads(run("ip", "-json", "-4", "route", "show", "default").stdout or "[]")
    if not routes:
        return None
    device = str(routes[0]["dev"])
    return device, int(Path(f"/sys/class/net/{device}/mtu").read_text())


def create(name: str, network: Network, nft_root: Path) -> None:
    """Make a private network. ``nft`` comes from the image, so the machine need not have it."""
    way_out = uplink()
    if way_out is None:
        raise BoxError("no default route", hint="connect the machine, or set JOBWARDEN_BOX_NETWORK")
    device, mtu = way_out
    space, link, subnet = namespace(name), network.link, network.subnet
    inside = ("ip", "-n", space)
    run("ip", "netns", "add", space)
    run("ip", "link", "add", link, "mtu", str(mtu), "type", "veth",
        "peer", "name", "eth0", "netns", space, "mtu", str(mtu))  # fmt: skip
    run("ip", "addr", "add", f"{subnet}.1/30", "dev", link)
    run("ip", "link", "set", link, "up")
    run(*inside, "addr", "add", f"{subnet}.2/30", "dev", "eth0")
    run(*inside, "link", "set", "lo", "up")
    run(*inside, "link", "set", "eth0", "up")
    run(*inside, "route", "add", "default", "via", f"{subnet}.1")
    for each in (device, link):
        (PROC / each / "forwarding").write_text("1")
    run("chroot", nft_root, "nft", "-f", "-", stdin=_rules(network))
    _let_through(network, "-I")


def _rules(network: Network) -> str:
    """Masquerade what leaves the box's subnet. A leftover of the same name is replaced."""
    table = f"ip {network.link}"
    return (
        f"add table {table}\ndelete table {table}\n"
        f"add table {table}\n"
        f"add chain {table} leaving {{ type nat hook postrouting priority srcnat; }}\n"
        f"add rule {table} leaving ip saddr {network.subnet}.0/30"
        f' oifname != "{network.link}" masquerade\n'
    )


def _let_through(network: Network, action: str) -> None:
    """Pass the box's packets where a firewall drops what is forwarded, as Docker's does."""
    if shutil.which("iptables"):
        for way in ("-i", "-o"):
            run("iptables", "-w", action, "FORWARD", way, network.link, "-j", "ACCEPT",
                check=action == "-I")  # fmt: skip


def remove(name: str, network: Network, nft_root: Path) -> None:
    """Take a private network away, whatever of it was made. Safe to repeat."""
    if not network.private:
        return
    _let_through(network, "-D")
    run("ip", "link", "delete", network.link, check=False)
    run("ip", "netns", "delete", namespace(name), check=False)
    if (nft_root / "usr/sbin/nft").exists():
        run("chroot", nft_root, "nft", "delete", "table", "ip", network.link, check=False)


def forwarding() -> tuple[str, str] | None:
    """Return the uplink and whether it forwards ("0" or "1"), to be put back by ``restore``."""
    way_out = uplink()
    return (way_out[0], (PROC / way_out[0] / "forwarding").read_text().strip()) if way_out else None


def restore(device: str, value: str) -> None:
    """Put back what ``forwarding`` returned, when the last private network is gone."""
    path = PROC / device / "forwarding"
    if path.exists():
        path.write_text(value)


def reaches_mirror(root: Path, release: str, space: str | None) -> bool:
    """Fetch the archive's index as the box would, with its apt settings, from its namespace."""
    address = f"{sources()[0].uri}/dists/{release}/InRelease"
    prefix = ["ip", "netns", "exec", space] if space else []
    quick = ("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10")
    helper = ("chroot", str(root), "/usr/lib/apt/apt-helper", *quick, "download-file")
    done = run(*prefix, *helper, address, "/srv/probe", check=False, timeout=60)
    (root / "srv/probe").unlink(missing_ok=True)
    return done.returncode == 0
