"""All SQL that is ever sent: ``sql/*.sql`` for one environment, and the statements of its changes.

Texts only. ``db`` carries them by psycopg, ``box`` by psql; neither writes SQL of its own.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from infra import sqltext_schedules
from infra.changes import Change
from infra.config import Environment
from infra.config.models import Jobs
from infra.observed import Observed
from infra.plan import ADAPTER, GRANTS, GUARD, Plan, Rendered
from infra.quoting import ident, interval, literal, qualified

RUNNING_INDEX = "jobwarden_running_idx"
TERMINAL_INDEX = "jobwarden_terminal_idx"

# Counts up with each release whose SQL differs, so that an older one does not undo a newer one.
RELEASE = 1

# Not in public, where 1.4 would go by itself: whoever drops that schema would drop all schedules.
_EXTENSION = "CREATE EXTENSION IF NOT EXISTS pg_cron WITH SCHEMA pg_catalog"

_DOLLARS = re.compile(r"\$[a-z]*\$")
_OURS = re.compile(r"\bjobwarden\.([a-z_]+)")

LOCK = "SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtext('jobwarden.apply'))"
UNLOCK = "SELECT pg_catalog.pg_advisory_unlock(pg_catalog.hashtext('jobwarden.apply'))"


@dataclass(frozen=True, slots=True)
class Statements:
    """What an apply runs: each of ``alone`` outside any transaction, then ``together`` in one."""

    alone: tuple[str, ...]
    together: tuple[str, ...]

    def __bool__(self) -> bool:
        """Tell whether there is anything to run."""
        return bool(self.alone or self.together)


@functools.cache
def source(name: str) -> str:
    """One file of ``sql/``, which is part of this package like its code."""
    return (folder() / f"{name}.sql").read_text(encoding="utf-8")


@functools.cache
def _numbered() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in folder().glob("[0-9][0-9]_*.sql")))


def folder() -> Path:
    """Inside the package where it was installed, beside it in a checkout."""
    here = Path(__file__).parent
    return next(place for place in (here / "sql", here.parent / "sql") if place.is_dir())


def render(environment: Environment, texts: Mapping[str, str] | None = None) -> Rendered:
    """The files in the order of application, with this environment's names in the adapter.

    ``texts``: other files than those of this package, by name.
    """
    jobs = environment.jobs
    names = _names(jobs)
    files = texts or {name: source(name) for name in _numbered()}
    wanted = [name for name in sorted(files) if name != GUARD or jobs.guard]
    return Rendered(
        release=RELEASE,
        sources={
            name: _filled(files[name], names) if name in {ADAPTER, GUARD} else files[name]
            for name in wanted
        },
        indexes=_indexes(names),
    )


def _names(jobs: Jobs) -> dict[str, str]:
    # The values themselves: a dump would write names as the environment file does, in quotes.
    columns, states = dict(jobs.columns), dict(jobs.states)
    return {
        "table": qualified(jobs.table.schema, jobs.table.name),
        "table_literal": literal(qualified(jobs.table.schema, jobs.table.name)),
        "schema": ident(jobs.table.schema),
        "queued_index": ident(
            f"{jobs.table.name.encode()[:50].decode(errors='ignore')}_queued_idx"
        ),
        **{key: ident(name) for key, name in columns.items()},
        **{key: literal(text) for key, text in states.items()},
    }


def _filled(text: str, names: Mapping[str, str]) -> str:
    """Put the names in. Bodies get another dollar quote where a name would end the usual one."""
    told = " ".join(names.values())
    for usual in set(_DOLLARS.findall(text)):
        if usual in told:
            others = (f"$jobwarden{number}$" for number in itertools.count())
            text = text.replace(usual, next(other for other in others if other not in told + text))
    return text.format_map(names)


def _indexes(names: dict[str, str]) -> dict[str, str]:
    """Partial, so that they stay small. By action, so that a sweep hops from one to the next."""
    running = "ON {table} ({action}, {started_at}, {id}) WHERE {status} = {running}"
    terminal = "ON {table} ({action}, {completed_at}, {id}) WHERE {status} IN ({done}, {failed})"
    return {RUNNING_INDEX: running.format_map(names), TERMINAL_INDEX: terminal.format_map(names)}


def observe(environment: Environment) -> str:
    """The one read-only round trip; its answer is for ``observed.parse``."""
    table = environment.jobs.table
    names = {"schema_name": literal(table.schema), "table_name": literal(table.name)}
    return _filled(source("observe"), names | {"objects": source("objects")})


def statements(plan: Plan, observed: Observed, changes: Iterable[Change]) -> Statements:
    """What makes ``changes``, but for what must wait. Nothing to make: nothing to run.

    Indexes of a table that holds rows are built beside its writers, outside any transaction.
    """
    writes = tuple(change for change in changes if change.writes)
    indexes = [change for change in writes if change.kind == "index"]
    sql = [change for change in writes if change.kind in {"sql", "object"}]
    together = [
        *_sources(plan, sql),
        *(() if observed.table else (text for each in indexes for text in _at_once(plan, each))),
        *(text for change in writes if change.kind == "policy" for text in _policy(plan, change)),
        *(_EXTENSION for change in writes if change.kind == "extension"),
        *sqltext_schedules.statements(plan, observed, writes),
        *(_record(plan) if sql else ()),
    ]
    alone = (
        [text for change in indexes for text in _rebuild(plan, change)] if observed.table else []
    )
    return Statements(tuple(alone), tuple(together))


def _sources(plan: Plan, changes: list[Change]) -> Iterator[str]:
    """The files to run: the changed ones and the grants; all of them where somebody's hand was in.

    The two files that touch the jobs table go together, and only when one of them changed, since
    they lock it for a moment.
    """
    if not changes:
        return
    names = {change.name for change in changes}
    everything = any(change.kind == "object" or change.action == "create" for change in changes)
    for name, text in plan.rendered.sources.items():
        adapter = name in {ADAPTER, GUARD} and names & {ADAPTER, GUARD}
        if everything or adapter or name in names or name == GRANTS:
            yield text


def _create_index(plan: Plan, name: str, how: str = "") -> str:
    return f"CREATE INDEX {how}IF NOT EXISTS {ident(name)} {plan.rendered.indexes[name]}"


def _at_once(plan: Plan, change: Change) -> Iterator[str]:
    if change.action == "delete":
        yield f"DROP INDEX IF EXISTS {qualified(change.old['schema'], change.name)}"
    else:
        yield _create_index(plan, change.name)


def _rebuild(plan: Plan, change: Change) -> Iterator[str]:
    if change.action == "delete":
        yield f"DROP INDEX CONCURRENTLY IF EXISTS {qualified(change.old['schema'], change.name)}"
        return
    if change.action == "update":
        schema = plan.environment.jobs.table.schema
        yield f"DROP INDEX CONCURRENTLY IF EXISTS {qualified(schema, change.name)}"
    yield _create_index(plan, change.name, "CONCURRENTLY ")


def _policy(plan: Plan, change: Change) -> Iterator[str]:
    wanted = plan.policy.get(change.name)
    if wanted is None:
        yield f"DELETE FROM jobwarden.policy WHERE action = {literal(change.name)}"
        return
    yield (
        "INSERT INTO jobwarden.policy (action, timeout, retention) VALUES "
        f"({literal(change.name)}, {interval(wanted.timeout)}, {interval(wanted.retention)}) "
        "ON CONFLICT (action) DO UPDATE"
        " SET timeout = excluded.timeout, retention = excluded.retention"
    )


def _record(plan: Plan) -> Iterator[str]:
    """Write down what was applied: the texts, and the fingerprints of what they made."""
    names = ", ".join(literal(name) for name in plan.rendered.sources)
    yield f"DELETE FROM jobwarden.source WHERE name NOT IN ({names})"
    for name, text in plan.rendered.sources.items():
        yield (
            f"INSERT INTO jobwarden.source (name, body, release) VALUES"
            f" ({literal(name)}, {literal(text)}, {plan.rendered.release}) "
            "ON CONFLICT (name) DO UPDATE SET body = excluded.body, release = excluded.release"
        )
    yield "DELETE FROM jobwarden.object"
    # Definitions are spelled by the path; a look sets the same one.
    yield "SET LOCAL search_path = pg_catalog"
    yield (
        "INSERT INTO jobwarden.object (kind, name, fingerprint)\n"
        f"SELECT o.kind, o.name, o.fingerprint FROM (\n{source('objects')}) AS o\n"
        "WHERE o.kind = 'trigger'"
        f" OR pg_catalog.split_part(o.name, '(', 1) IN ({', '.join(map(literal, _made(plan)))})"
    )


def _made(plan: Plan) -> list[str]:
    """The names in our schema that the files speak of. What else is there is not ours."""
    return sorted({name for text in plan.rendered.sources.values() for name in _OURS.findall(text)})
