"""A second run with nothing to change: our deploy beside an equivalent Ansible playbook.

    python bench/converge.py [bookworm|trixie] [--runs 6]

Both converge one throwaway box over ssh first; then they run in turn, each in its fastest setting:
Ansible with pipelining, ControlPersist and no facts, its master connection fresh for each run.
Prints medians and the ratio, pair by pair; exits 1 when ours takes more than 3 s, or is not 4 times
quicker. A run that changes anything ends it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.boxes import RELEASES, Box  # noqa: E402 - the checkout is put on the path first

MOST_SECONDS = 3.0
LEAST_RATIO = 4.0
STACK = """\
config:
  jobwarden:target: box
  jobwarden:postgres: {database: app, settings: {work_mem: 8MB}}
  jobwarden:services:
    api: {command: "/usr/bin/sleep infinity", environment: {PORT: 8080}}
    worker: {command: "/usr/bin/sleep infinity", instances: 2, environment: {QUEUE: default}}
"""


def main() -> int:
    """Boot, converge with both, measure, print. Returns 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release", nargs="?", default="bookworm", choices=sorted(RELEASES))
    parser.add_argument("--runs", type=int, default=6)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, Box.boot(asked.release) as box:
        folder = Path(name)
        playbook = Ansible(box, folder)
        deploy(box, folder, first=True)
        box.ssh("apt-get install -y -qq python3-apt acl", check=True)
        take_copies(box, folder)
        playbook.run(first=True)
        pairs = [(deploy(box, folder), playbook.run()) for _ in range(asked.runs + 1)][1:]
    return report(pairs)


def deploy(box: Box, folder: Path, *, first: bool = False) -> float:
    """Run our deploy and return its seconds. Raises when a later run changes anything."""
    (folder / "Pulumi.bench.yaml").write_text(STACK)
    environment = {**os.environ, "JOBWARDEN_STACK": str(folder / "Pulumi.bench.yaml")}
    command = [
        str(Path(sys.executable).with_name("pyinfra")), box.host, "deploy.py", "-y", "--json",
        "--ssh-user", "admin", "--ssh-port", str(box.port), "--ssh-key", str(box.key),
        "--data", f"ssh_known_hosts_file={box.known_hosts}",
        "--data", "ssh_strict_host_key_checking=yes", "--data", "allow_restart=true",
    ]  # fmt: skip
    began = time.perf_counter()
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(done.stderr)
    results = json.loads(done.stdout)["results"]
    changed = [each for each in results["operations"] if each["success"]] if not first else []
    if changed:
        raise SystemExit(f"a second run changed something: {changed}")
    return seconds


class Ansible:
    """An Ansible in an environment of its own."""

    def __init__(self, box: Box, folder: Path) -> None:
        self.box, self.folder = box, folder
        subprocess.run([sys.executable, "-m", "venv", folder / "ansible"], check=True)
        pip = folder / "ansible/bin/pip"
        subprocess.run([pip, "install", "--quiet", "ansible-core"], check=True)
        options = (
            f"-o ControlMaster=auto -o ControlPersist=60s -o UserKnownHostsFile={box.known_hosts}"
        )
        (folder / "ansible.cfg").write_text(
            "[defaults]\ngathering = explicit\nhost_key_checking = true\n"
            "interpreter_python = /usr/bin/python3\nretry_files_enabled = false\n"
            f"[ssh_connection]\npipelining = true\nssh_args = {options}\n"
        )
        (folder / "hosts").write_text(
            f"{box.host} ansible_port={box.port} ansible_user=admin"
            f" ansible_ssh_private_key_file={box.key}\n"
        )

    def run(self, *, first: bool = False) -> float:
        """Play the book and return the seconds. Raises when a later run changes anything."""
        major = RELEASES[self.box.record.release]
        hba = self.box.ssh(
            f"grep -h jobwarden_runner /etc/postgresql/{major}/main/pg_hba.conf"
        ).stdout.strip()
        shutil.rmtree(self.folder / "cp", ignore_errors=True)
        values = {"major": major, "copies": str(self.folder / "copies"), "hba": hba}
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.folder / "cp"),
        }
        command: list[str | Path] = [
            self.folder / "ansible/bin/ansible-playbook", "-i", self.folder / "hosts",
            ROOT / "bench/converge.yml", "-e", json.dumps(values),
        ]  # fmt: skip
        began = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        if not first and "changed=0" not in done.stdout:
            raise SystemExit(f"a second run of the playbook changed something: {done.stdout}")
        self.end_master()
        return seconds

    def end_master(self) -> None:
        """End the connection that was kept. Raises when there was none."""
        sockets = list((self.folder / "cp").iterdir())
        if not sockets:
            raise SystemExit("Ansible kept no connection: ControlPersist did not work")
        for socket in sockets:
            command = ["ssh", "-S", str(socket), "-O", "exit", self.box.host]
            subprocess.run(command, check=False, capture_output=True)


def take_copies(box: Box, folder: Path) -> None:
    """Take the files that our deploy wrote, so that both have the same in mind."""
    major = RELEASES[box.record.release]
    copies = folder / "copies"
    copies.mkdir()
    for name, path in {
        "conf": f"/etc/postgresql/{major}/main/conf.d/90-jobwarden.conf",
        "api.env": "/etc/jobwarden/api.env",
        "worker.env": "/etc/jobwarden/worker.env",
        "api.service": "/etc/systemd/system/api.service",
        "worker@.service": "/etc/systemd/system/worker@.service",
    }.items():
        (copies / name).write_text(box.ssh(f"cat '{path}'", check=True).stdout)


def report(pairs: list[tuple[float, float]]) -> int:
    """Print both sides, and say whether the goals are met."""
    ours, theirs = zip(*pairs, strict=True)
    ratios = [theirs / ours for ours, theirs in pairs]
    for name, values, unit in (
        ("ours", ours, "s"),
        ("ansible", theirs, "s"),
        ("ratio", ratios, ""),
    ):
        low, middle, high = min(values), statistics.median(values), max(values)
        print(f"{name:8} median {middle:.2f}{unit} [{low:.2f}-{high:.2f}] of {len(values)} runs")
    met = statistics.median(ours) <= MOST_SECONDS and statistics.median(ratios) >= LEAST_RATIO
    print(f"goal: at most {MOST_SECONDS:.0f} s and {LEAST_RATIO:.0f} times quicker: {met}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
