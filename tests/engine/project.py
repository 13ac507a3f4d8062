"""A Pulumi project in a folder of its own: the real command line, state in a file beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TOOLING = ROOT / ".tooling/pulumi/bin"
_SECONDS = 300


class PulumiError(AssertionError):
    """The command failed. ``output`` is all that it said."""

    def __init__(self, arguments: tuple[str, ...], output: str) -> None:
        self.output = output
        super().__init__(f"pulumi {' '.join(arguments)}\n{output}")


@dataclass(frozen=True, slots=True)
class Run:
    """What a command did. ``changes`` counts by operation: ``{"create": 2, "same": 1}``."""

    output: str
    changes: Mapping[str, int] = field(default_factory=dict)
    steps: tuple[Mapping[str, Any], ...] = ()

    def touched(self) -> dict[str, str]:
        """Return the operation of each resource that did not stay the same, by its name."""
        return {
            step["urn"].rpartition("::")[2]: step["op"]
            for step in self.steps
            if step["op"] != "same"
        }


def search_path() -> str:
    """Return a PATH with this Python's programs and the Pulumi that tools/install-pulumi left."""
    folders = (str(Path(sys.executable).parent), str(TOOLING), os.environ.get("PATH", ""))
    return os.pathsep.join(folders)


def why_no_pulumi() -> str | None:
    """Return the reason why there is no usable Pulumi here, or None."""
    program = shutil.which("pulumi", path=search_path())
    if program is None:
        return "no Pulumi CLI (Try: tools/install-pulumi)"
    if shutil.which("pulumi-language-python", path=search_path()) is None:
        return "no pulumi-language-python beside the Pulumi CLI (Try: tools/install-pulumi)"
    return None


def make_home(home: Path) -> Path:
    """Make a PULUMI_HOME whose only plugin is the test provider, under the SDK's version."""
    plugin = home / f"plugins/resource-aws-v{version('pulumi-aws')}/pulumi-resource-aws"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(
        f"#!/bin/sh\nPYTHONPATH='{ROOT}' exec '{sys.executable}' -m tests.engine.provider \"$@\"\n"
    )
    plugin.chmod(0o755)
    return home


class Project:
    """A program and its stack. Each command raises PulumiError unless it exits 0."""

    def __init__(
        self, folder: Path, home: Path, environment: Mapping[str, str], name: str = "engine"
    ) -> None:
        self.folder = folder
        state = folder / ".state"
        state.mkdir(parents=True)
        self._environment = {
            **{name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ},
            "PATH": search_path(),
            "PYTHONPATH": str(ROOT),
            "PULUMI_BACKEND_URL": state.as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": "engine",
            "PULUMI_HOME": str(home),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            **environment,
        }
        (folder / "Pulumi.yaml").write_text(f"name: {name}\nruntime: python\n")
        self.program("")
        self.pulumi("stack", "init", "test")

    def program(self, text: str) -> None:
        """Write the program that the next command runs."""
        (self.folder / "__main__.py").write_text(textwrap.dedent(text))

    def config(self, key: str, value: str, *, secret: bool = False) -> None:
        self.pulumi("config", "set", key, value, *(["--secret"] if secret else []))

    def environment(self, **changes: str) -> None:
        """Set variables for the commands to come."""
        self._environment.update(changes)

    def up(self, *arguments: str) -> Run:
        return self._watched("up", "--yes", "--skip-preview", *arguments)

    def refresh(self, *arguments: str) -> Run:
        return self._watched("refresh", "--yes", "--skip-preview", *arguments)

    def destroy(self, *arguments: str) -> Run:
        return self._watched("destroy", "--yes", "--skip-preview", *arguments)

    def preview(self, *arguments: str) -> Run:
        text = self.pulumi("preview", "--json", *arguments)
        plan = json.loads(text)
        return Run(text, plan.get("changeSummary", {}), tuple(plan.get("steps", ())))

    def preview_text(self, *arguments: str) -> str:
        """Return the diff as a person reads it."""
        return self.pulumi("preview", "--diff", *arguments)

    def outputs(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self.pulumi("stack", "output", "--json", "--show-secrets")
        )
        return found

    def state(self) -> str:
        """Return the whole state as the file holds it: no secret may be in it in the clear."""
        return self.pulumi("stack", "export")

    def pulumi(self, *arguments: str) -> str:
        """Run any command; return what it printed on stdout."""
        done = subprocess.run(
            ["pulumi", *arguments, "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            encoding="utf-8",
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise PulumiError(arguments, _readable(done.stdout) + done.stderr)
        return done.stdout

    def _watched(self, *arguments: str) -> Run:
        events = list(_events(self.pulumi(*arguments, "--json")))
        changes = next(
            event["summaryEvent"]["resourceChanges"] for event in events if "summaryEvent" in event
        )
        steps = [
            event["resourcePreEvent"]["metadata"] for event in events if "resourcePreEvent" in event
        ]
        return Run("".join(map(_said, events)), changes, tuple(steps))


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def _said(event: Mapping[str, Any]) -> str:
    """Return the words of an event; the engine's own debug talk is left out."""
    told = event.get("diagnosticEvent", {})
    return "" if told.get("severity") == "debug" else str(told.get("message", ""))


def _readable(text: str) -> str:
    """Return the words in a stream of events, or the text if it is not one."""
    if not text.startswith('{"sequence"'):
        return text
    return "".join(map(_said, _events(text)))
