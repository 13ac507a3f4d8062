"""Which tools a stack needs for its preview, and with what: read from its file, nothing asked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infra import config, sqltext, stackfile
from infra import plan as planning
from infra.plan import Plan
from infra.severity import Policy
from infra.stackfile import StackFile

MANAGED = frozenset({"rds", "aurora"})


@dataclass(frozen=True, slots=True)
class Need:
    """One stack: its plan, the folder of its tools, and the URL of its database if it has one.

    ``url`` is "" for libpq's own environment, None where there is no database to ask.
    """

    name: str
    path: Path
    folder: Path
    plan: Plan
    url: str | None

    @property
    def target(self) -> str:
        """Where its Postgres lives."""
        return self.plan.environment.target

    @property
    def policy(self) -> Policy:
        """What its file says of previews."""
        said = self.plan.environment.preview
        return Policy(self.name, said.fail_on, said.need_label, said.label)

    @property
    def default(self) -> Mapping[str, str]:
        """The limits of actions without any of their own."""
        return planning.limits_json(self.plan.policy[planning.EVERY_ACTION])


def need(stack: str) -> Need:
    """Read a stack. Raises InfraError with what is wrong with its file."""
    file = stackfile.load(stack)
    plan = build(file)
    return Need(file.name, file.path.resolve(), _folder(file.path), plan, _url(file.name, plan))


def build(file: StackFile, source: str | None = None) -> Plan:
    """The plan of a stack file. Raises ConfigError."""
    environment = config.parse(file.values, source=source or file.path.name)
    return planning.build(environment, sqltext.render(environment))


def _folder(path: Path) -> Path:
    """Where Pulumi.yaml, inventory.py and deploy.py are: beside the file, or here."""
    beside = path.resolve().parent
    return (
        beside
        if any((beside / name).is_file() for name in ("Pulumi.yaml", "deploy.py"))
        else Path.cwd()
    )


def variable(stack: str) -> str:
    """The variable with the URL of one stack's database, as its read-only role."""
    return f"DATABASE_URL_{re.sub(r'[^A-Za-z0-9]', '_', stack).upper()}"


def _url(name: str, plan: Plan) -> str | None:
    """The stack's own variable, its file; then, where the database is nobody else's, the usual one.

    DATABASE_URL names one database: it stands for a stack of target existing and no other.
    """
    environment = plan.environment
    known = os.environ.get(variable(name)) or environment.database_url
    if known or environment.target != "existing":
        return known
    return os.environ.get("DATABASE_URL", "")
