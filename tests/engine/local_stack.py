"""The program of this repository on a stack of its own, and a look at what it did to a database."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from ruamel.yaml import YAML

from tests.engine.project import Project

PROGRAM = "from infra.stack import program\n\nprogram.run()\n"
NOWHERE = "postgresql://postgres@/app?host=/nowhere"
JOBS = "SELECT jobname, schedule, command, active FROM cron.job ORDER BY jobname"


class LocalStack(Project):
    """A stack whose environment is given as what stands under ``jobwarden:``."""

    def __init__(self, folder: Path, home: Path, **environment: Any) -> None:
        super().__init__(folder, home, {}, name="jobwarden")
        self.program(PROGRAM)
        self.declare(**environment)

    def declare(self, **environment: Any) -> None:
        """Write the stack file anew; what Pulumi keeps in it besides stays."""
        file = self.folder / "Pulumi.test.yaml"
        yaml = YAML()
        document = yaml.load(file) or {}
        secure = {
            key: value
            for key, value in (document.get("config") or {}).items()
            if isinstance(value, Mapping) and set(value) == {"secure"}
        }
        document["config"] = {f"jobwarden:{key}": environment[key] for key in environment} | secure
        yaml.dump(document, file)

    def killed_while(self, says: str, *arguments: str) -> None:
        """Run a command, and kill it and its plugins as soon as it says something."""
        process = subprocess.Popen(
            ["pulumi", *arguments, "--yes", "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )
        assert process.stdout is not None
        with process.stdout:
            said = any(says in line for line in process.stdout)
            for pid in _session(process.pid):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        assert said, f"pulumi ended without saying {says!r}"


class Database:
    """One database, looked at and meddled with by a superuser."""

    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for text in statements:
                connection.execute(text.encode())

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(query.encode()).fetchall()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Hold the lock of an apply, as another one at work would."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT pg_advisory_lock(hashtext('jobwarden.apply'))")
            yield

    def schedules(self) -> dict[str, tuple[Any, ...]]:
        """Return schedule, command and whether it is active, by name."""
        return {name: tuple(rest) for name, *rest in self.rows(JOBS)}

    def has(self, relation: str) -> bool:
        return self.rows(f"SELECT to_regclass('{relation}') IS NOT NULL") == [(True,)]


def _session(leader: int) -> list[int]:
    """Return the processes of a session. Each plugin has a process group of its own."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,sess="], capture_output=True, encoding="ascii", check=True
    )
    pairs = (line.split() for line in listed.stdout.splitlines())
    return [int(pid) for pid, session in pairs if session == str(leader)]


def words(text: str) -> str:
    """Return a text with its white space made single, so that wrapped lines read as one."""
    return re.sub(r"\s+", " ", text)
