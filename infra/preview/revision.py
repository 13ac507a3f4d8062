"""A stack as another git ref has it: read from git, without any credential and without a server."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from infra import config, since_base, sqltext, stackfile
from infra import plan as planning
from infra.errors import InfraError
from infra.plan import Plan
from infra.preview.needs import Need
from infra.preview.running import NoAnswer, find, run, tail
from infra.rows import Figures, Part

_SECONDS: Final = 30.0
_NO_SERVER: Final = Figures(why="a comparison with a git ref asks no database")


def compare(need: Need, ref: str) -> Part:
    """What the working tree changes in the plan of a stack since ``ref``."""
    part = Part(need.name, "git", figures=_NO_SERVER, default=need.default)
    try:
        changes = since_base.between(plan_at(need.path, ref), need.plan)
    except InfraError as error:
        reason = f"{error.message}. Try: {error.hint}" if error.hint else error.message
        return replace(part, reason=reason)
    return replace(part, changes=changes)


def plan_at(path: Path, ref: str) -> Plan | None:
    """The plan of a stack file at ``ref``; None where it was not there.

    Raises InfraError for an unknown ref, or a file that is broken there.
    """
    folder = path.parent
    if (
        _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        is None
    ):
        raise InfraError(
            f"git knows no commit {ref!r} in {folder.name or folder}",
            hint="git fetch origin, or check out with all history (fetch-depth: 0)",
        )
    text = _git(folder, "show", f"{ref}:./{path.name}")
    if text is None:
        return None
    with tempfile.TemporaryDirectory(prefix="jobwarden-base-") as place:
        copy = Path(place) / path.name
        copy.write_text(text, encoding="utf-8")
        try:
            values = stackfile.load(str(copy)).values
            environment = config.parse(values, source=f"{ref}:{path.name}")
        except InfraError as error:
            said = error.message.replace(str(copy), f"{ref}:{path.name}")
            raise InfraError(said, hint=error.hint) from None
    return planning.build(environment, sqltext.render(environment, _sources(folder, ref)))


def _sources(folder: Path, ref: str) -> Mapping[str, str] | None:
    """Our SQL at ``ref`` where this repository holds it; None: it comes with the package."""
    top = _git(folder, "rev-parse", "--show-toplevel")
    home = sqltext.folder().resolve()
    if top is None or not home.is_relative_to(Path(top.strip()).resolve()):
        return None
    listed = _git(home, "ls-tree", "--name-only", ref, "./")
    names = [
        name for name in (listed or "").split() if name.endswith(".sql") and name[:2].isdigit()
    ]
    texts = {name.removesuffix(".sql"): _git(home, "show", f"{ref}:./{name}") for name in names}
    return {name: text for name, text in texts.items() if text is not None} or None


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says; None where it says no. Raises NoAnswer when there is no git at all."""
    program = find("git", "apt-get install git")
    answer = run([program, *arguments], seconds=_SECONDS, folder=folder, environment=os.environ)
    if "not a git repository" in answer.err or "dubious ownership" in answer.err:
        raise NoAnswer(tail(answer.err), hint="check out the repository with git, as this user")
    return answer.out if answer.code == 0 else None
