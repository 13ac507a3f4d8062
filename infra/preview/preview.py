"""All tools of all stacks at the same time, and one page from what they said."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

from infra import cells, page
from infra.errors import InfraError, UsageError
from infra.page import Page
from infra.preview import revision, running, tools
from infra.preview.needs import MANAGED, Need, need
from infra.rows import Part
from infra.severity import Policy

USUAL: Final = timedelta(minutes=2)
# Each is a process that waits for somebody else most of the time.
_AT_ONCE: Final = 16
_FINAL_STEP: Final = frozenset({"index", "object", "policy", "schedule", "sql"})
_SECRET: Final = re.compile(r"PASS|SECRET|TOKEN|API_?KEY|PRIVATE_KEY|ACCESS_KEY", re.IGNORECASE)
_SHORTEST: Final = 6
_IN_URL: Final = re.compile(r"://[^\s/@]*?:([^\s/]+)@")


@dataclass(frozen=True, slots=True)
class Wish:
    """What to preview. ``fail_on`` and ``labels`` come from the pull request, not from the file."""

    stacks: tuple[str, ...]
    limit: timedelta = USUAL
    base: str | None = None
    refresh: bool = False
    fail_on: str | None = None
    labels: tuple[str, ...] = ()


def preview(wish: Wish) -> Page:
    """Look, and judge. What cannot be looked at is a part with its reason.

    Raises UsageError when two stack files have the same name.
    """
    found = [_need(stack) for stack in dict.fromkeys(wish.stacks)]
    _refuse_namesakes(found)
    needs = [each for each in found if isinstance(each, Need)]
    broken = [each for each in found if isinstance(each, Part)]
    tasks = [task for each in needs for task in _tasks(each, wish)]
    parts = _together(tasks)
    return page.build(
        tuple(dict.fromkeys(each.name if isinstance(each, Need) else each.stack for each in found)),
        [*broken, *_joined(needs, parts)],
        policies=_policies(needs, wish),
        labels=wish.labels,
        secrets=secrets(needs),
        base=wish.base,
    )


def _refuse_namesakes(found: Iterable[Need | Part]) -> None:
    """Two files for one stack would be one table with the rows of both."""
    paths: dict[str, Path] = {}
    for each in found:
        if isinstance(each, Need) and paths.setdefault(each.name, each.path) != each.path:
            raise UsageError(
                f"two files are called {each.path.name} ({paths[each.name].parent} and"
                f" {each.path.parent})",
                hint="preview them one after the other",
            )


def _together(tasks: Sequence[tools.Task]) -> list[Part]:
    """Run all at the same time; whoever interrupts us need not wait for the slowest."""
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            running.end_all()
            raise


def _need(stack: str) -> Need | Part:
    try:
        return need(stack)
    except InfraError as error:
        name = Path(stack).name.removesuffix(".yaml").removeprefix("Pulumi.")
        reason = f"{error.message}. Try: {error.hint}" if error.hint else error.message
        return Part(name, "plan", reason=reason)


def _tasks(each: Need, wish: Wish) -> list[tools.Task]:
    seconds = wish.limit.total_seconds()
    if wish.base is not None:
        return [partial(revision.compare, each, wish.base)]
    tasks: list[tools.Task] = []
    if each.target == "box":
        tasks += [
            partial(tools.pyinfra, each, entry.host, seconds)
            for entry in each.plan.environment.boxes
        ]
    if each.target in MANAGED:
        tasks.append(partial(tools.pulumi, each, seconds, refresh=wish.refresh))
    if each.url is not None or each.target == "local":
        tasks.append(partial(tools.plan, each, seconds))
    return tasks


def _policies(needs: Iterable[Need], wish: Wish) -> list[Policy]:
    """The command line's ``--fail-on`` goes before the file's."""
    said = [each.policy for each in needs]
    return [replace(each, fail_on=wish.fail_on) for each in said] if wish.fail_on else said


def _joined(needs: Sequence[Need], parts: Sequence[Part]) -> list[Part]:
    return [part for each in needs for part in _of_stack(each, parts)]


def _of_stack(each: Need, parts: Sequence[Part]) -> list[Part]:
    """One voice for each change: the database knows best what is in it.

    A box's database is asked for its row counts only; its changes are pyinfra's.
    """
    own = [part for part in parts if part.stack == each.name]
    plan = next((part for part in own if part.tool == "plan"), None)
    if plan is None or len(own) == 1:
        return own
    if each.target == "box":
        counted = [replace(part, figures=plan.figures) for part in own if part.tool == "pyinfra"]
        return [*counted, *([replace(plan, changes=())] if plan.reason else [])]
    if plan.reason and not plan.changes:
        return own
    return [_without(part) if part.tool == "pulumi" else part for part in own]


def _without(part: Part) -> Part:
    """Without the final step, which the database was asked for."""
    kept = tuple(change for change in part.changes if change.kind not in _FINAL_STEP)
    return replace(part, changes=kept)


def secrets(needs: Iterable[Need]) -> tuple[str, ...]:
    """Values that may be on no page: of variables that look secret, and of services' secrets."""
    declared = {
        name
        for each in needs
        for service in each.plan.environment.services.values()
        for name in service.secrets
    }
    found = {
        value
        for name, value in os.environ.items()
        if (name in declared or _SECRET.search(name)) and len(value) >= _SHORTEST
    }
    urls = [value for name, value in os.environ.items() if name.startswith("DATABASE_URL")]
    found |= {match[1] for url in urls for match in _IN_URL.finditer(url)}
    return tuple(sorted(value for value in found if value != cells.HIDDEN))
