"""Each tool, run and read: its changes, or the reason why it has none."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from infra import pulumi_plan
from infra.changes import Change
from infra.errors import InfraError
from infra.preview import database
from infra.preview.needs import Need
from infra.preview.running import Answer, find, run, tail
from infra.queries import FORESEEN_CAP
from infra.rows import Figures, Part, Taken, change_of

Task = Callable[[], Part]
_ROOT: Final = Path(__file__).resolve().parents[2]
_QUIET: Final = re.compile(r"Connected|Loaded fact|No changes|Success")
_HOST: Final = re.compile(r"^\s*\[(?P<host>[^\]]+)\]\s+(?P<said>.+)$", re.MULTILINE)


def plan(need: Need, seconds: float) -> Part:
    """``jobwarden plan`` in a process of its own, with the row counts."""
    environment = {**os.environ, "PYTHONPATH": _python_path()}
    environment.pop(database.VARIABLE, None)
    if need.url is not None:
        environment[database.VARIABLE] = need.url
    part = Part(need.name, "plan", default=need.default)
    try:
        answer = run(
            [sys.executable, "-m", database.__name__, str(need.path)],
            seconds=seconds,
            folder=Path.cwd(),
            environment=environment,
        )
    except InfraError as error:
        return replace(part, reason=_reason(error))
    said = _document(answer)
    if said is None or "error" in said:
        return replace(part, reason=said["error"] if said else tail(answer.err))
    return replace(
        part,
        changes=tuple(change_of(each) for each in said["changes"]),
        reason="; ".join(said["faults"]) or None,
        notes=tuple(said["notes"]),
        figures=_figures(said),
    )


def _python_path() -> str:
    return os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))


def _figures(said: Mapping[str, Any]) -> Figures:
    found = said["figures"]
    if found is None:
        return Figures(why=said["why"])
    return Figures(_taken(found["sweep"]), _taken(found["cleanup"]))


def _taken(counts: Mapping[str, tuple[int, int]]) -> dict[str, Taken]:
    return {
        name: Taken(now, then, max(now, then) >= FORESEEN_CAP)
        for name, (now, then) in counts.items()
    }


def pulumi(need: Need, seconds: float, *, refresh: bool) -> Part:
    """``pulumi preview --json``: it makes nothing, and with ``refresh`` it looks at the cloud."""
    part = Part(need.name, "pulumi", default=need.default)
    try:
        program = find("pulumi", "tools/install-pulumi, or put it on PATH")
        answer = run(
            [
                program, "preview", "--json", "--non-interactive", "--color", "never",
                "--stack", need.name, "--config-file", str(need.path),
                *(["--refresh"] if refresh else []),
            ],
            seconds=seconds,
            folder=need.folder,
            environment=os.environ,
        )  # fmt: skip
    except InfraError as error:
        return replace(part, reason=_reason(error))
    said = _document(answer)
    reason = _complaint(said or {}, answer) if answer.code != 0 or said is None else None
    try:
        changes = pulumi_plan.changes(said or {})
    except (AttributeError, KeyError, TypeError) as error:
        return replace(part, reason=f"pulumi said something else: {type(error).__name__} {error}")
    return replace(part, changes=changes, reason=reason, notes=_warnings(said or {}))


def _complaint(said: Mapping[str, Any], answer: Answer) -> str:
    """What Pulumi calls an error; else the end of what it printed."""
    told = [
        each["message"] for each in said.get("diagnostics") or () if each["severity"] == "error"
    ]
    words = [" ".join(text.removeprefix("error: ").split()) for text in told]
    return "; ".join(dict.fromkeys(words)) or tail(answer.err or answer.out) or "pulumi failed"


def _warnings(said: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"warning: {' '.join(each['message'].removeprefix('warning: ').split())}"
        for each in said.get("diagnostics") or ()
        if each["severity"] == "warning"
    )


def pyinfra(need: Need, host: str, seconds: float) -> Part:
    """``pyinfra --dry`` of one host: one that is away takes nothing from the others."""
    part = Part(need.name, "pyinfra", host, default=need.default)
    missing = [name for name in ("inventory.py", "deploy.py") if not (need.folder / name).is_file()]
    if missing:
        names = " and ".join(missing)
        return replace(
            part, reason=f"{names} not found beside {need.path.name}. Try: copy it there"
        )
    with tempfile.TemporaryDirectory(prefix="jobwarden-preview-") as folder:
        told = Path(folder) / "changes.jsonl"
        try:
            program = find("pyinfra", "uv sync --group box, or pip install 'jobwarden[box]'")
            answer = run(
                [
                    program, "inventory.py", "deploy.py", "--dry", "--json", "--limit", host,
                    "--data", f"changes={told}",
                ],
                seconds=seconds,
                folder=need.folder,
                environment=_dry(os.environ, need.path),
            )  # fmt: skip
        except InfraError as error:
            return replace(part, reason=_reason(error))
        lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    changes = tuple(change_of(json.loads(line)) for line in lines if line.endswith("}"))
    reason = None if answer.code == 0 else _refusal(answer.err, host)
    return replace(part, changes=_once(changes), reason=reason)


def _dry(environment: Mapping[str, str], stack: Path) -> dict[str, str]:
    """Without pyinfra's own variables, but for ssh: PYINFRA_YES would make nothing of ``--dry``."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith("PYINFRA_") or name.startswith("PYINFRA_SSH")
    }
    kept.pop("JOBWARDEN_CHANGES", None)
    python = {"PYTHONPATH": _python_path(), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**kept, **python, "JOBWARDEN_STACK": str(stack)}


def _once(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """Each change once: two stages may speak of the same."""
    found: list[Change] = []
    for change in changes:
        if change not in found:
            found.append(change)
    return tuple(found)


def _refusal(log: str, host: str) -> str:
    """What pyinfra said of a host last, or of itself."""
    said = [
        match["said"].strip()
        for match in _HOST.finditer(log)
        if match["host"] == host and not _QUIET.match(match["said"])
    ]
    lines = log.splitlines()
    tries = [line.strip() for line in lines if line.strip().startswith("Try: ")]
    errors = [line.partition("error: ")[2] for line in lines if "pyinfra error: " in line]
    return " ".join([*said[-2:], *tries[-1:]]) or "; ".join(errors) or tail(log) or "pyinfra failed"


def _document(answer: Answer) -> dict[str, Any] | None:
    """The JSON document of a tool; None where it printed something else."""
    start = answer.out.find("{")
    if start < 0:
        return None
    try:
        document = json.loads(answer.out[start:])
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _reason(error: InfraError) -> str:
    return f"{error.message}. Try: {error.hint}" if error.hint else error.message
