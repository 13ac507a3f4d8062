"""What every kind of resource has: inputs, a name, and the four deeds."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import boto3
from botocore.exceptions import ClientError

from tests.engine.provider.values import Properties

_PROVIDER_ONLY = {"region"}


@cache
def client(service: str) -> Any:
    """Return a boto3 client; the place, the region and the credentials are in the environment."""
    return boto3.client(service, region_name=os.environ.get("AWS_REGION"))


class RefusedError(Exception):
    """AWS said no. ``made`` is the id of what was there by then, if anything."""

    def __init__(self, message: str, made: str | None = None) -> None:
        super().__init__(message)
        self.made = made


def refusal(doing: str, error: ClientError, made: str | None = None) -> RefusedError:
    detail = error.response.get("Error", {})
    text = f"{doing}: {error.operation_name}: {detail.get('Code')}: {detail.get('Message')}"
    return RefusedError(text, made)


@dataclass(frozen=True, slots=True)
class Field:
    """One input: its name here, AWS's name (None: the provider's own), and whether it replaces."""

    name: str
    aws: str | None = None
    replaces: bool = False


class Kind(ABC):
    """A type of resource. ``noun`` is what the provider's errors call it."""

    type_name: str
    noun: str
    fields: ClassVar[tuple[Field, ...]]
    name: str | None = None
    prefix: str | None = None
    longest_name = 63
    defaults: ClassVar[Properties] = {}

    def known(self) -> set[str]:
        return {item.name for item in self.fields} | _PROVIDER_ONLY

    def replacing(self) -> set[str]:
        names = {item for item in (self.name, self.prefix) if item}
        return {item.name for item in self.fields if item.replaces} | names

    def arguments(self, inputs: Properties) -> dict[str, Any]:
        """Return the inputs that AWS takes as they are, by AWS's names."""
        pairs = ((item.aws, inputs.get(item.name)) for item in self.fields)
        return {aws: value for aws, value in pairs if aws and value is not None}

    def faults(self, inputs: Properties) -> list[tuple[str, str]]:
        """Return (input, reason) for what can be told without AWS."""
        unknown = sorted(set(inputs) - self.known())
        return [(name, f"{self.type_name}: the test provider knows no {name}") for name in unknown]

    def same(self, key: str, old: Any, new: Any) -> bool:
        del key
        return bool(old == new)

    def as_input(self, key: str, given: Any, live: Any) -> Any:
        """Return the live value in the words of the program, so that sameness shows as sameness."""
        return given if live is None or self.same(key, given, live) else live

    @abstractmethod
    def create(self, inputs: Properties) -> str: ...

    @abstractmethod
    def read(self, identity: str) -> Properties | None: ...

    @abstractmethod
    def update(self, identity: str, old: Properties, new: Properties) -> None: ...

    @abstractmethod
    def delete(self, identity: str, inputs: Properties) -> None: ...


def tags(inputs: Properties) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in sorted(inputs.get("tags", {}).items())]


def missing(error: ClientError) -> bool:
    """Tell whether the error only says that the thing is not there."""
    return "NotFound" in str(error.response.get("Error", {}).get("Code"))
