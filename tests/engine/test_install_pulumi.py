"""``tools/install-pulumi`` on machines that have this and lack that. Nothing is downloaded here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.engine.project import ROOT

PLAIN = [
    "sh",
    "sed",
    "cat",
    "cksum",
    "uname",
    "sort",
    "head",
    "mkdir",
    "rm",
    "mv",
    "cp",
    "ln",
    "chmod",
    "dirname",
]
FOUR = (
    *("pulumi", "pulumi-language-python", "pulumi-language-python-exec"),
    "pulumi-resource-pulumi-python",
)

# Takes the options of the real one, and makes four empty programs.
INSTALLER = """#!/bin/sh
set -e
[ "$1 $3 $5" = "--version --install-root --no-edit-path" ] || exit 1
mkdir -p "$4/bin"
echo "version $2" >"$4/arguments"
for name in pulumi pulumi-language-python pulumi-language-python-exec pulumi-resource-pulumi-python
do
  echo '#!/bin/sh' >"$4/bin/$name"
  chmod 755 "$4/bin/$name"
done
"""


class Machine:
    """A checkout and a PATH of its own: no curl and no Go unless a test puts one there."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "checkout"
        self.path = folder / "bin"
        self.cache = folder / "cache"
        self.path.mkdir()
        for name in PLAIN:
            found = shutil.which(name)
            assert found is not None
            (self.path / name).symlink_to(found)
        for part in ("install-pulumi", "pulumi-cli", "pulumi-python"):
            source, target = ROOT / "tools" / part, self.checkout / "tools" / part
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)

    def program(self, folder: Path, name: str, says: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (folder / name).chmod(0o755)

    def install(self) -> tuple[int, str]:
        done = subprocess.run(
            [self.checkout / "tools/install-pulumi"],
            env={"PATH": str(self.path), "HOME": "/nonexistent", "XDG_CACHE_HOME": str(self.cache)},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        return done.returncode, done.stderr

    def installed(self) -> list[str]:
        return sorted(file.name for file in self.checkout.glob(".tooling/pulumi/bin/*"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_good_pulumi_on_path_is_used_and_nothing_is_installed(machine: Machine) -> None:
    machine.program(machine.path, "pulumi", "v3.276.0")
    machine.program(machine.path, "pulumi-language-python")
    code, said = machine.install()

    assert (code, machine.installed()) == (0, [])
    assert "(v3.276.0) is good" in said


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("v3.199.9", "3.200 or newer is needed"),
        ("v2.300.0", "3.200 or newer is needed"),
        ("no such command", "3.200 or newer is needed"),
        ("v3.200.0", "pulumi-language-python is not beside it"),
    ],
)
def test_a_pulumi_that_will_not_do_is_named_with_the_reason(
    machine: Machine, version: str, reason: str
) -> None:
    machine.program(machine.path, "pulumi", version)
    _, said = machine.install()

    assert reason in said


@pytest.mark.parametrize("go", [None, "go1.19.8", "go1.26.5"])
def test_without_a_new_enough_go_it_says_what_is_needed(machine: Machine, go: str | None) -> None:
    if go:
        machine.program(machine.path, "go", go)
    code, said = machine.install()

    assert (code, machine.installed()) == (3, [])
    assert "needed: Go 1.26.6 or newer" in said
    assert f"got: {go.removeprefix('go') if go else 'none'}" in said
    assert "Try: " in said


def test_what_was_built_before_is_taken_from_the_cache(machine: Machine) -> None:
    fill_cache(machine)
    code, said = machine.install()
    again, word = machine.install()

    assert (code, machine.installed()) == (0, sorted(FOUR))
    assert "is ready" in said
    assert (again, word.count("\n")) == (0, 1)
    assert "is there" in word


def test_a_cache_of_other_versions_is_not_taken(machine: Machine) -> None:
    fill_cache(machine)
    with (machine.checkout / "tools/pulumi-cli/go.sum").open("a") as sums:
        sums.write("another module\n")
    code, _ = machine.install()

    assert (code, machine.installed()) == (3, [])


def test_a_folder_with_a_program_missing_is_made_again(machine: Machine) -> None:
    fill_cache(machine)
    machine.install()
    (machine.checkout / ".tooling/pulumi/bin/pulumi").unlink()
    code, _ = machine.install()

    assert (code, machine.installed()) == (0, sorted(FOUR))


def test_the_official_installer_writes_into_the_checkout_only(machine: Machine) -> None:
    script = machine.checkout / "their-installer"
    script.write_text(INSTALLER)
    (machine.path / "curl").write_text(
        f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncp \'{script}\' "$2"\n'
    )
    (machine.path / "curl").chmod(0o755)
    code, said = machine.install()

    assert (code, machine.installed()) == (0, sorted(FOUR))
    assert "version 3.276.0" in (machine.checkout / ".tooling/pulumi/arguments").read_text()
    assert "official installer: Pulumi v3.276.0" in said
    assert not machine.cache.exists()


def test_an_official_installer_that_fails_is_not_the_end(machine: Machine) -> None:
    machine.program(machine.path, "curl")
    (machine.path / "curl").write_text("#!/bin/sh\nexit 6\n")
    code, said = machine.install()

    assert code == 3
    assert "https://get.pulumi.com cannot be reached" in said


def fill_cache(machine: Machine) -> None:
    """Put four programs where a build would leave them, with the stamp of these go.mod files."""
    tools = machine.checkout / "tools"
    files = [
        tools / part / name
        for part in ("pulumi-cli", "pulumi-python")
        for name in ("go.mod", "go.sum")
    ]
    stamp = subprocess.run(
        ["cksum"], input=b"".join(map(Path.read_bytes, files)), capture_output=True, check=True
    ).stdout
    system = subprocess.run(["uname", "-sm"], capture_output=True, encoding="utf-8", check=True)
    place = machine.cache / f"jobwarden/pulumi-3.276.0-{'-'.join(system.stdout.split())}"
    for name in FOUR:
        machine.program(place / "bin", name)
    (place / "stamp").write_bytes(stamp)
