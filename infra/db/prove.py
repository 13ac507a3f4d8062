"""Prove that the runner may do what its schedules say, without doing it.

A command that lacks a right fails at the hour it fires, when nobody looks. So each is tried now,
as the runner and with the runner's search path: a query by EXPLAIN, which asks for the same rights
and runs nothing; a CALL by the rights on its procedure. The rest cannot be tried and is said so.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import errors

from infra import queries, sqlscan
from infra.checks import Problem
from infra.observed import RUNNER, Observed
from infra.plan import Plan
from infra.quoting import ident
from infra.sqlscan import Token

_EXPLAINABLE = {"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "VALUES", "TABLE"}
_VERBS = {"INSERT": "INSERT", "UPDATE": "SELECT, UPDATE", "DELETE": "SELECT, DELETE"}


@dataclass(frozen=True, slots=True)
class Proof:
    """``problems``: commands that will fail. ``warnings``: commands that could not be tried."""

    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]


def may_prove(observed: Observed) -> bool:
    """Whether this role may act for the runner, which the proof needs."""
    runner = observed.roles.get(RUNNER)
    return observed.server.superuser or bool(runner and runner.ours_to_set)


def prove(connection: psycopg.Connection, plan: Plan) -> Proof:
    """Try each schedule's command as the runner. Writes nothing. Raises psycopg.Error."""
    problems: list[Problem] = []
    warnings: list[str] = []
    for name, wanted in plan.schedules.items():
        found = _try(connection, wanted.command)
        if isinstance(found, str):
            warnings.append(f"schedule {name}: {found}")
        elif found:
            message, hint = found
            problems.append(Problem(f"schedule {name}", message, hint))
    return Proof(tuple(problems), tuple(warnings))


def _try(connection: psycopg.Connection, command: str) -> tuple[str, str] | str | None:
    """Tell what is wrong and the way out, or in one text why nobody knows; None: it may run."""
    tokens = tuple(token for token in sqlscan.statements(command)[0] if token.text != "(")
    verb = tokens[0].text
    if verb == "CALL":
        return _try_call(connection, _called(tokens))
    if verb in _EXPLAINABLE:
        return _try_query(connection, command, tokens)
    return f"{verb} cannot be tried without doing it; look at jobwarden status after its first run"


def _called(tokens: tuple[Token, ...]) -> tuple[str, str]:
    """The schema and the name in ``CALL schema.name(...)``; no schema: the runner's path."""
    names = [_name(token) for token in tokens[1:4]]
    return (names[0], names[2]) if names[1:2] == ["."] else ("pg_catalog", names[0])


def _name(token: Token) -> str:
    if token.kind == "quoted":
        return token.text[1:-1].replace('""', '"')
    return token.text.lower()


def _try_call(connection: psycopg.Connection, procedure: tuple[str, str]) -> tuple[str, str] | None:
    row = connection.execute(queries.MAY_CALL, [RUNNER, *procedure]).fetchone()
    there, may = row or (0, False)
    shown = ".".join(map(ident, procedure))
    if not there:
        return (
            f"there is no procedure {shown}",
            "make it, and write the command as schema.name(...)",
        )
    if may:
        return None
    grants = (
        f"GRANT USAGE ON SCHEMA {ident(procedure[0])} TO {RUNNER};\n"
        f"GRANT EXECUTE ON PROCEDURE {shown} TO {RUNNER};"
    )
    return f"{RUNNER} may not call {shown}", f"as its owner:\n{grants}"


def _try_query(
    connection: psycopg.Connection, command: str, tokens: tuple[Token, ...]
) -> tuple[str, str] | str | None:
    try:
        with connection.transaction(force_rollback=True):
            for text in queries.AS_RUNNER:
                connection.execute(text.encode())
            connection.execute(f"EXPLAIN {command}".encode())
    except errors.InsufficientPrivilege as error:
        text = error.diag.message_primary or str(error)
        return f"{RUNNER} may not run it: {text}", _grant(text, tokens)
    except (errors.LockNotAvailable, errors.QueryCanceled) as error:
        return f"could not be tried now: {error.diag.message_primary}"
    except (errors.ProgrammingError, errors.FeatureNotSupported) as error:
        return f"it would fail: {error.diag.message_primary}", "write each name as schema.name"
    return None


def _grant(text: str, tokens: tuple[Token, ...]) -> str:
    """The grant behind "permission denied for table x", as far as the words tell it."""
    kind, _, name = text.removeprefix("permission denied for ").partition(" ")
    if kind == "schema":
        return f"as its owner: GRANT USAGE ON SCHEMA {ident(name)} TO {RUNNER};"
    if kind in {"table", "view", "relation"}:
        right = _VERBS.get(tokens[0].text, "SELECT")
        return f"as its owner: GRANT {right} ON {_qualified(name, tokens)} TO {RUNNER};"
    return f"grant {RUNNER} what it needs, or leave it to a procedure with SECURITY DEFINER"


def _qualified(name: str, tokens: tuple[Token, ...]) -> str:
    for schema, dot, last in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if dot.text == "." and _name(last) == name:
            return f"{ident(_name(schema))}.{ident(name)}"
    return ident(name)
