"""Take each box of a stack from bare Debian to this service: its code, its packages, then ours.

    JOBWARDEN_STACK=NAME pyinfra inventory.py examples/service/deploy.py -y

Plain pyinfra brings the code, and ``box()`` is all that Jobwarden does. A box that has this release
already is only looked at. A restart puts back what the workers hold.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from io import BytesIO, StringIO
from pathlib import Path

from pyinfra import host
from pyinfra.api import DeployError, deploy
from pyinfra.facts.files import FileContents
from pyinfra.facts.server import User
from pyinfra.operations import apt, files, pip, server

from infra import stackfile
from infra.box.deploy import box
from infra.errors import InfraError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HOME = "/srv/jobservice"
FIGURES = "/var/lib/prometheus/node-exporter"
UNITS = "api.service alerts.service 'worker@*.service'"


def uv(*command: str) -> bytes:
    """Run the uv that brought this checkout's packages."""
    program = shutil.which("uv", path=f"{ROOT}/.tooling/bin:{os.environ['PATH']}")
    if program is None:
        raise DeployError("there is no uv to pack the packages with. Try: make packages")
    done = subprocess.run(  # noqa: S603 - a program that was looked up
        [program, *command], cwd=ROOT, capture_output=True, check=False
    )
    if done.returncode:
        raise DeployError(f"uv {command[0]}: {done.stderr.decode()}")
    return done.stdout


def parts() -> dict[str, bytes]:
    """What a box needs besides the code, by file name. The same tree gives the same bytes."""
    try:
        stack = stackfile.load(os.environ.get("JOBWARDEN_STACK", "")).path
    except InfraError as error:
        raise DeployError(str(error)) from None
    choice = ("--no-default-groups", "--group", "service", "--no-emit-project", "--no-header")
    with tempfile.TemporaryDirectory() as folder:
        uv("build", "--quiet", "--wheel", "--out-dir", folder)
        (wheel,) = Path(folder).glob("*.whl")
        return {
            "stack.yaml": stack.read_bytes(),
            "packages.txt": uv("export", "--quiet", "--frozen", *choice),
            wheel.name: wheel.read_bytes(),
        }


def name_of(found: dict[str, bytes], code: Path) -> str:
    """Name a release by all that is in it, be it code or not."""
    paths = (path for path in code.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    contents = {**found, **{str(path.relative_to(code)): path.read_bytes() for path in paths}}
    hashes = [(name, hashlib.sha256(contents[name]).hexdigest()) for name in sorted(contents)]
    return hashlib.sha256(repr(hashes).encode()).hexdigest()


@deploy("Service")
def bring(found: dict[str, bytes]) -> None:
    """Put code, packages and the stack's file where the units look for them.

    From here until ``renew`` no release is on the box, neither this one nor the last: whoever goes
    back to the last one, after a run that failed, has it brought again.
    """
    files.file(name="Begin a release", path=f"{HOME}/release", present=False)
    apt.packages(
        name="Install venv and node_exporter",
        packages=["python3-venv", "prometheus-node-exporter"],
        no_recommends=True,
        update=True,
    )
    allow = "dpkg-statoverride --update --add prometheus prometheus 755"
    server.shell(
        name="Let node_exporter's user write figures",
        commands=[f"dpkg-statoverride --list {FIGURES} >/dev/null || {allow} {FIGURES}"],
    )
    files.sync(
        name="Copy the code",
        src=str(HERE / "jobservice"),
        dest=f"{HOME}/jobservice",
        exclude_dir="__pycache__",
        delete=True,
    )
    for name, content in found.items():
        files.put(name=f"Put {name}", src=BytesIO(content), dest=f"{HOME}/{name}")
    pip.venv(name="Make a venv", path=f"{HOME}/venv", python="python3")
    install = f"{HOME}/venv/bin/pip install --quiet"
    (wheel,) = (name for name in found if name.endswith(".whl"))
    server.shell(
        name="Install the packages",
        commands=[
            f"{install} --require-hashes -r {HOME}/packages.txt",
            f"{install} --no-deps --force-reinstall {HOME}/{wheel}",
        ],
    )


@deploy("Service")
def renew(release: str) -> None:
    """Let what runs take the new code. Written down last: a run that was cut off begins again."""
    server.shell(name="Restart the service", commands=[f"systemctl restart {UNITS}"])
    files.put(name="Write down the release", src=StringIO(f"{release}\n"), dest=f"{HOME}/release")


sudo = host.get_fact(User) != "root"
if host.data.get("state") == "absent":
    box()
    files.directory(name="Remove the service", path=HOME, present=False, _sudo=sudo)
    # node_exporter stays, and would show the last figures as today's.
    old = f"{FIGURES}/jobwarden.prom"
    files.file(name="Remove the figures", path=old, present=False, _sudo=sudo)
else:
    found = parts()
    release = name_of(found, HERE / "jobservice")
    is_new = host.get_fact(FileContents, path=f"{HOME}/release", _sudo=sudo) != [release]
    if is_new:
        bring(found=found, _sudo=sudo)
    box()
    if is_new:
        renew(release=release, _sudo=sudo)
