"""A stack of ours on a test account: the program of this repository, its values, the server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from tests.engine.account.server import Account
from tests.engine.instance import LocalPlane
from tests.engine.project import Project

PROGRAM = """
    from infra.stack import program

    program.run()
"""
RDS: Mapping[str, Any] = {
    "identifier": "jobs",
    "instanceClass": "db.t4g.medium",
    "username": "master",
    "allowFrom": ["10.0.0.0/16"],
}


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack on one account. ``name`` is that of the instance, or of the cluster."""

    project: Project
    account: Account
    plane: LocalPlane
    name: str = "jobs"

    def say(self, key: str, value: object) -> None:
        """Write a key of the environment."""
        text = value if isinstance(value, str) else json.dumps(value)
        self.project.config(f"jobwarden:{key}", text)

    def rds(self, **keys: object) -> None:
        """Write the block ``rds``: our usual one, and ``keys`` over it."""
        self.say("rds", {**RDS, "caFile": str(self.plane.ca_file), **keys})

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Ask the server by its back door, without the network."""
        with psycopg.connect(self.plane.url(self.name), autocommit=True) as there:
            found = there.execute(query.encode())
            return found.fetchall() if found.description else []

    def fire(self, schedule: str) -> None:
        """Do what pg_cron does when a schedule fires: its command, as its role."""
        [(role, command)] = self.ask(
            f"SELECT username, command FROM cron.job WHERE jobname = '{schedule}' AND active"
        )
        with psycopg.connect(self.plane.url(self.name), autocommit=True) as there:
            there.execute(f"SET SESSION AUTHORIZATION {role}".encode())
            there.execute(str(command).encode())

    def parameters(self, group: str, kind: str = "db") -> dict[str, str]:
        """Return what is set in a parameter group; ``kind`` is db or db_cluster."""
        key = {"db": "DBParameterGroupName", "db_cluster": "DBClusterParameterGroupName"}[kind]
        describe = getattr(self.account.client("rds"), f"describe_{kind}_parameters")
        found = describe(**{key: group, "Source": "user"})["Parameters"]
        return {item["ParameterName"]: item["ParameterValue"] for item in found}


def make_stack(
    folder: Path, home: Path, account: Account, plane: LocalPlane, target: str = "rds"
) -> Stack:
    """Return a stack with its environment written, nothing made yet."""
    project = Project(folder / "project", home, account.environment())
    project.program(PROGRAM)
    stack = Stack(project, account, plane)
    stack.say("target", target)
    stack.say("postgres", {"version": "15", "database": "app"})
    stack.rds()
    return stack
