"""Run ``pyinfra ... deploy.py`` against a test box, as a user would, and read what it said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tools.boxes import RELEASES, Box

ROOT = Path(__file__).resolve().parents[2]
PYINFRA = str(Path(sys.executable).with_name("pyinfra"))


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its exit, its log, the stages that changed something, the changes as values."""

    code: int
    log: str
    document: dict[str, Any]
    changes: tuple[dict[str, Any], ...]

    @property
    def changed(self) -> list[str]:
        """Titles of the stages that changed something, or would."""
        assert self.document, self.log
        if self.document["results"] is None:
            stages = self.document["plan"]
            return [each["name"] for each in stages if each["hosts_with_change"]]
        return [each["name"] for each in self.document["results"]["operations"] if each["success"]]

    def on(self, host: str) -> Run:
        """The part of it that is about one host."""
        mine = tuple(change for change in self.changes if change["host"] == host)
        return Run(self.code, self.log, self.document, mine)

    def of(self, kind: str) -> dict[str, dict[str, Any]]:
        """The changes of a kind, by name."""
        return {each["name"]: each for each in self.changes if each["kind"] == kind}


class Deployer:
    """Deploys to one box; ``keys`` are what its stack file says, besides what is given to a run."""

    def __init__(
        self, box: Box, folder: Path, keys: Mapping[str, Any], program: Path = ROOT / "deploy.py"
    ) -> None:
        self.box, self.folder, self.keys, self.program = box, folder, dict(keys), program
        self.major = RELEASES[box.record.release]

    def run(
        self,
        *options: str,
        user: str = "admin",
        hosts: str | None = None,
        key: Path | None = None,
        environment: Mapping[str, str] | None = None,
        **keys: Any,
    ) -> Run:
        """Deploy with ``-y``; ``keys`` replace keys of the stack file."""
        return self.deploy(
            hosts or self.box.host,
            "--ssh-user", user, "--ssh-port", str(self.box.port),
            "--ssh-key", str(key or self.box.key),
            "--data", f"ssh_known_hosts_file={self.box.known_hosts}", *options,
            environment=environment, keys=keys,
        )  # fmt: skip

    def deploy(
        self,
        hosts: str,
        *options: str,
        environment: Mapping[str, str] | None = None,
        keys: Mapping[str, Any],
    ) -> Run:
        """The command itself, for hosts that the options say how to reach."""
        stack, changes = self.folder / "Pulumi.box.yaml", self.folder / "changes.jsonl"
        changes.unlink(missing_ok=True)
        values = {"target": "box", **self.keys, **keys}
        with stack.open("w") as out:
            YAML().dump({"config": {f"jobwarden:{k}": v for k, v in values.items()}}, out)
        confirm = [] if "--dry" in options else ["-y"]
        command = [
            PYINFRA, hosts, str(self.program), "--json", *confirm,
            "--data", "ssh_strict_host_key_checking=yes",
            "--data", f"changes={changes}", *options,
        ]  # fmt: skip
        return self._run(command, stack, changes, environment or {})

    def _run(self, command: list[str], stack: Path, changes: Path, more: Mapping[str, str]) -> Run:
        environment = {**os.environ, "JOBWARDEN_STACK": str(stack), **more}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
            timeout=300,
        )  # fmt: skip
        lines = changes.read_text().splitlines() if changes.exists() else []
        document = json.loads(done.stdout) if done.stdout.startswith("{") else {}
        return Run(done.returncode, done.stderr, document, tuple(map(json.loads, lines)))

    def dry(self, **keys: Any) -> Run:
        """What a deploy would do."""
        return self.run("--dry", **keys)

    def allowed(self, **keys: Any) -> Run:
        """Deploy, and restart Postgres where that is due."""
        return self.run("--data", "allow_restart=true", **keys)

    def sql(self, statement: str, database: str = "app", port: int = 5432) -> str:
        """Ask the box's Postgres as its superuser."""
        command = (
            f"cd / && runuser -u postgres -- psql -XAtq -p {port} -d {database} -v ON_ERROR_STOP=1"
        )
        done = self.box.ssh(command, stdin=statement)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def show(self, setting: str) -> str:
        """A setting in force."""
        return self.sql(f"SHOW {setting}", "postgres")
