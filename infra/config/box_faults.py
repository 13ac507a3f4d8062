"""The rules between keys of a service: what could not be one unit, or one login, on a box."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, get_args

from infra.config.box_fields import DatabaseRole
from infra.config.faults import as_mapping, shown
from infra.errors import Fault

URL: Final = "DATABASE_URL"
# What PostgreSQL keeps for itself ("CREATE ROLE"), and what is ours.
_TAKEN: Final = (
    *("jobwarden_owner", "jobwarden_runner"),
    *get_args(DatabaseRole),
    *("public", "none"),
)
_OWN: Final = "jobwarden-"
_LONGEST_USER: Final = 32  # as Linux has it


def user_named(service: str) -> str:
    """Return the user of a service that names none."""
    return f"{_OWN}{service}"[:_LONGEST_USER]


def of_services(block: object) -> Iterator[Fault]:
    """Yield what is wrong between keys. ``block`` is raw: what is malformed is passed over."""
    services = as_mapping(as_mapping(block).get("services"))
    yield from _one_user(services)
    for name, given in services.items():
        service, path = as_mapping(given), f"services.{name}"
        if service.get("databaseRole") is not None:
            yield from _two_urls(path, service)
            yield from _no_role(path, service.get("user"))
        if service.get("every") is not None and service.get("instances") is not None:
            yield Fault(
                f"{path}.every",
                "a service that a timer runs is one, and has no instances",
                shown(service["every"]),
                "every or instances, not both",
                "take every out, or write one service for each",
            )


def _one_user(services: Mapping[str, object]) -> Iterator[Fault]:
    """By accident, two services would read each other's secrets and have each other's login."""
    first: dict[str, str] = {}
    for name, given in services.items():
        if as_mapping(given).get("user") is not None:
            continue
        user = user_named(name)
        if user in first:
            yield Fault(
                f"services.{name}",
                f"its user, {user}, would be that of {first[user]} too",
                shown(name),
                f"names that differ in their first {_LONGEST_USER - len(_OWN)} characters",
                "shorten the name, or give the service a `user`",
            )
        first.setdefault(user, name)


def _two_urls(path: str, service: Mapping[str, object]) -> Iterator[Fault]:
    """The value is not shown: it may hold a password that has no business there."""
    secrets = service.get("secrets")
    places = {
        f"{path}.environment.{URL}": URL in as_mapping(service.get("environment")),
        f"{path}.secrets": isinstance(secrets, list | tuple) and URL in secrets,
    }
    for place in (place for place, given in places.items() if given):
        yield Fault(
            place,
            f"databaseRole gives the service its {URL}, and here is another",
            URL,
            f"databaseRole, or a {URL} of your own",
            f"take {URL} out here, or take databaseRole out",
        )


def _no_role(path: str, user: object) -> Iterator[Fault]:
    if isinstance(user, str) and (user in _TAKEN or user.startswith("pg_")):
        yield Fault(
            f"{path}.user",
            "with databaseRole a login of this name is made, and the name is taken",
            shown(user),
            f"any name but {', '.join(_TAKEN)} and those that begin with pg_",
            "name another user, or leave user out",
        )
