"""What stands behind an instance's address, if anything does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Order:
    """A server that should be running: an instance, or an Aurora cluster by its writer."""

    name: str
    version: str
    database: str
    username: str
    password: str = field(repr=False)
    values: Mapping[str, str]


class DataPlane(Protocol):
    """Runs the servers. ``boot`` also reboots; ``reload`` gives dynamic values to a running one.

    ``reserve`` tells where a server will listen that is not there yet: a cluster has its address
    before its first instance.
    """

    def reserve(self, name: str) -> Endpoint: ...
    def boot(self, order: Order) -> Endpoint: ...
    def reload(self, name: str, values: Mapping[str, str]) -> None: ...
    def destroy(self, name: str) -> None: ...


class NoDataPlane:
    """Addresses lead nowhere: port 1 of this machine refuses every connection."""

    def reserve(self, name: str) -> Endpoint:
        del name
        return Endpoint("127.0.0.1", 1)

    def boot(self, order: Order) -> Endpoint:
        del order
        return Endpoint("127.0.0.1", 1)

    def reload(self, name: str, values: Mapping[str, str]) -> None:
        pass

    def destroy(self, name: str) -> None:
        pass
