"""Stands for Pulumi's engine in tests of components: takes down what is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pytest
from pulumi.runtime import mocks, rpc

from infra import config
from infra.aws.preloading import PreloadProvider
from infra.stack.managed import declare

PRELOAD = "pulumi-python:dynamic/jobwarden:Preload"


@dataclass
class Recorded:
    """One declared resource."""

    kind: str
    name: str
    inputs: dict[str, Any]
    parent: str
    aliases: list[str]
    depends: list[str]


@dataclass
class Engine:
    """Stands for the engine: what was declared, and what a name has become."""

    declared: list[Recorded] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def of(self, kind: str) -> Recorded:
        [found] = self.all_of(kind)
        return found

    def all_of(self, kind: str) -> list[Recorded]:
        return [each for each in self.declared if each.kind == kind]


class _Mocks(mocks.Mocks):
    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        known = dict(args.inputs)
        known.setdefault("name", f"{args.inputs.get('namePrefix', args.name)}1")
        if args.typ == PRELOAD:
            provider: Any = PreloadProvider()
            known = provider.check({}, known).inputs
        known |= {
            "identifier": known.get("identifier", "made-up"),
            "clusterIdentifier": known.get("clusterIdentifier", "made-up"),
            "address": "jobs.example.net",
            "endpoint": "jobs.example.net",
            "port": 5432,
            "masterUserSecrets": [{"secretArn": "arn:secret"}]
            if known.get("manageMasterUserPassword")
            else [],
        }
        return f"{args.name}-id", known

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], None]:
        raise AssertionError(f"nothing is asked while declaring: {args.token}")


def recorded(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Return the engine that the programs of a test will talk to."""
    engine = Engine()
    register: Any = mocks.MockMonitor.RegisterResource
    read: Any = rpc.deserialize_properties

    def note(monitor: Any, request: Any) -> Any:
        made = register(monitor, request)
        inputs = read(request.object)
        engine.declared.append(
            Recorded(
                request.type,
                request.name,
                inputs,
                request.parent,
                [it.spec.name for it in request.aliases if it.spec.noParent],
                list(request.dependencies),
            )
        )
        return made

    monkeypatch.setattr(mocks.MockMonitor, "RegisterResource", note)
    monkeypatch.setattr(pulumi.log, "warn", engine.warnings.append)
    return engine


def run(program: Callable[[], object]) -> None:
    """Run a program to its end, with every Output known."""
    mocks.set_mocks(_Mocks(), preview=False)
    until_done: Any = pulumi.runtime.test
    until_done(program)()


def declared(target: str, postgres: Any = None, **rds: Any) -> None:
    block = {
        "target": target,
        "postgres": {"version": "16", "database": "app", **(postgres or {})},
        "rds": rds,
    }
    environment = config.parse(block)

    def program() -> None:
        declare("jobwarden", environment)

    run(program)


def checked(olds: dict[str, Any], **news: Any) -> Any:
    """Ask the provider of the list of libraries, as the engine does before anything is made."""
    usual = {"family": "postgres16", "target": "rds", "existing": None, "allowRemoval": False}
    provider: Any = PreloadProvider()
    return provider.check(olds, {**usual, **news})
