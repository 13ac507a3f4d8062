"""What this machine lacks to boot boxes, and what it gives them: mirror, apt settings, DNS, CAs.

All of it is read when a box boots, so that no mirror is ever written down in the repository.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.boxes.shell import BoxError, run

# Program -> the Debian package that brings it.
PROGRAMS = {
    "systemd-nspawn": "systemd-container",
    "debootstrap": "debootstrap",
    "ip": "iproute2",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "mount": "mount",
}
# Facts of the machine's own apt that would be wrong or useless in another release.
NOT_COPIED = ("IndexTargets", "Changelogs", "CompressionTypes", "cdrom")
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
LOCAL_CAS = Path("/usr/local/share/ca-certificates")
# How the machine's pip reaches an index: what tools/newcomer lends, too. Folders stay here.
PIP_FILES = ("/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf")
FETCHING = re.compile(
    r"PIP_(?!FIND_LINKS$)\w+|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE"
    r"|(https?|no|all|HTTPS?|NO|ALL)_(proxy|PROXY)"
)
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True, slots=True)
class Source:
    """One archive: its address and which of its suites are used, as endings of the code name."""

    uri: str
    endings: tuple[str, ...]


def missing() -> tuple[str, ...]:
    """List what keeps this machine from booting boxes, each as a reason with its way out."""
    reasons = [] if os.geteuid() == 0 else ["not root (Try: sudo)"]
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        packages = " ".join(dict.fromkeys(PROGRAMS[name] for name in absent))
        reasons.append(f"no {', '.join(absent)} (Try: apt-get install -y {packages})")
    return tuple(reasons)


def require() -> None:
    """Raise BoxError when boxes cannot be booted here."""
    reasons = missing()
    if reasons:
        message = f"boxes cannot be booted here: {'; '.join(reasons)}"
        raise BoxError(message, hint="use a Debian machine, as root, with what is named above")


def sources(etc: Path = Path("/etc")) -> tuple[Source, ...]:
    """Read the Debian archives of the machine, the main one first.

    ``JOBWARDEN_BOX_MIRROR`` wins, for a machine that is not Debian. Raises BoxError without any.
    """
    chosen = os.environ.get("JOBWARDEN_BOX_MIRROR")
    if chosen:
        return (Source(chosen, ("", "-updates")),)
    release = _os_release(etc).get("VERSION_CODENAME", "")
    found: dict[str, list[str]] = {}
    for uri, suite, components in _entries(etc):
        if release and suite.startswith(release) and "main" in components:
            found.setdefault(uri, []).append(suite.removeprefix(release))
    known = {
        uri: [e for e in ends if e in ("", "-updates", "-security")] for uri, ends in found.items()
    }
    listed = [Source(uri, tuple(ends)) for uri, ends in known.items() if ends]
    listed.sort(key=lambda source: "" not in source.endings)
    if not listed or "" not in listed[0].endings:
        message = f"no Debian archive for {release or 'this release'} in {etc}/apt"
        raise BoxError(message, hint="set JOBWARDEN_BOX_MIRROR to the address of a Debian mirror")
    return tuple(listed)


def _os_release(etc: Path) -> dict[str, str]:
    lines = (etc / "os-release").read_text().splitlines()
    return {k: v.strip('"') for k, eq, v in (line.partition("=") for line in lines) if eq}


def _entries(etc: Path) -> list[tuple[str, str, list[str]]]:
    """All (address, suite, components) of the machine's apt, comments left out."""
    lists = [etc / "apt/sources.list", *sorted((etc / "apt/sources.list.d").glob("*.list"))]
    found = []
    for path in filter(Path.is_file, lists):
        for line in path.read_text().splitlines():
            if match := re.match(r"deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+(.+)", line.strip()):
                uri, suite, components = match.groups()
                found.append((uri.rstrip("/"), suite, components.partition("#")[0].split()))
    for path in sorted((etc / "apt/sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text()):
            found.extend(_deb822_entries(stanza))
    return found


def _deb822_entries(stanza: str) -> list[tuple[str, str, list[str]]]:
    text = "\n".join(line for line in stanza.splitlines() if not line.startswith("#"))
    pairs = re.findall(r"^([A-Za-z-]+):((?:.*)(?:\n[ \t].*)*)", text, re.MULTILINE)
    fields = {name.lower(): value.split() for name, value in pairs}
    if fields.get("enabled") == ["no"] or "deb" not in fields.get("types", []):
        return []
    components = fields.get("components", [])
    return [
        (uri.rstrip("/"), suite, components)
        for uri in fields.get("uris", [])
        for suite in fields.get("suites", [])
    ]


def prepare(root: Path, release: str) -> None:
    """Write into a box what the machine knows: archives, fetching by apt and pip, DNS, CAs."""
    apt = root / "etc/apt"
    (apt / "sources.list").unlink(missing_ok=True)
    (apt / "sources.list.d/debian.sources").write_text(render_sources(sources(), release))
    (apt / "apt.conf.d/00machine").write_text(_fetching())
    resolv = root / "etc/resolv.conf"
    resolv.unlink(missing_ok=True)
    resolv.write_text(_resolv_conf())
    (root / "etc/hosts").write_text(_hosts(root))
    _copy_cas(root)
    lend_pip(root)


def render_sources(archives: tuple[Source, ...], release: str) -> str:
    """Render one deb822 file for the archives, with the suites of the given release."""
    return "\n".join(
        "Types: deb\n"
        f"URIs: {archive.uri}\n"
        f"Suites: {' '.join(release + ending for ending in archive.endings)}\n"
        "Components: main\n"
        f"Signed-By: {KEYRING}\n"
        for archive in archives
    )


def _fetching() -> str:
    """What apt says about how the machine fetches: proxies, checks, CA files, languages."""
    dumped = run("apt-config", "dump").stdout.splitlines()
    skip = tuple(f"Acquire::{name}" for name in NOT_COPIED)
    kept = [x for x in dumped if x.startswith("Acquire::") and not x.startswith(skip)]
    return "".join(f"{line}\n" for line in kept if not line.endswith(' "";'))


def _resolv_conf() -> str:
    """Return name servers that a box can reach: a local stub on 127.0.0.53 is none."""
    uplink = Path("/run/systemd/resolve/resolv.conf")
    text = Path("/etc/resolv.conf").read_text()
    if re.search(r"^nameserver\s+127\.", text, re.MULTILINE) and uplink.exists():
        return uplink.read_text()
    return text


def _hosts(root: Path) -> str:
    """Return the box's own names, then what the machine knows of others (a mirror, say)."""
    name = (root / "etc/hostname").read_text().strip()
    lines = Path("/etc/hosts").read_text().splitlines()
    others = [
        x for x in lines if re.match(r"\s*[0-9a-f]", x) and not re.match(r"\s*(127\.|::1)", x)
    ]
    own = ["127.0.0.1 localhost", f"127.0.1.1 {name}", "::1 localhost ip6-localhost ip6-loopback"]
    return "".join(f"{line}\n" for line in own + others)


def _copy_cas(root: Path) -> None:
    files = [CA_BUNDLE, *LOCAL_CAS.glob("*.crt")]
    files += [Path(x) for x in re.findall(r'CAInfo "(/[^"]+)"', _fetching(), re.IGNORECASE)]
    for path in filter(Path.is_file, files):
        target = root / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def lend_pip(root: Path, pip_files: Sequence[str] = PIP_FILES) -> None:
    """Let the box's pip fetch as the machine's does. Variables go to where a login finds them."""
    for path in filter(Path.is_file, (Path(name).expanduser() for name in pip_files)):
        lines = path.read_text().splitlines(keepends=True)
        (root / "etc/pip.conf").write_text(
            "".join(line for line in lines if not re.match(r"\s*find-links", line))
        )
    lent = [
        f'{name}="{value}"\n'
        for name, value in os.environ.items()
        if FETCHING.fullmatch(name) and _fits(root, value)
    ]
    (root / "etc/environment").write_text("".join(lent))


def _fits(root: Path, value: str) -> bool:
    """Say whether a value means the same in the box: a path must be there, too."""
    return not value.startswith("/") or (root / value.lstrip("/")).exists()
