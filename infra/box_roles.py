"""Logins of services in Postgres: named as the system's user, so that no password is needed.

The server asks the operating system who is at the other end of its socket ("peer"). A role that is
there is never altered but for a missing membership, and never dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, get_args

from infra.boxes import Box, BoxRole
from infra.changes import Change
from infra.checks import Problem
from infra.config.box_fields import DatabaseRole
from infra.config.box_models import Service
from infra.quoting import ident
from infra.unit_texts import user_of

GROUPS: Final[tuple[str, ...]] = get_args(DatabaseRole)
# Since then a membership says for itself whether its rights are inherited.
_SAYS_INHERIT: Final = 160000
_WHY: Final = "its user gets in by the socket, without a password"


@dataclass(frozen=True, slots=True)
class Roles:
    """What is to be done. ``sql`` makes it; ``users`` are those whose login then has to be tried.

    ``notes`` name rights that are left from an earlier environment.
    """

    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()
    sql: str = ""
    users: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def wanted(services: Mapping[str, Service]) -> dict[str, tuple[str, ...]]:
    """The login roles that services ask for, each with the groups it is to be in."""
    found: dict[str, tuple[str, ...]] = {}
    for name, service in services.items():
        if service.database_role:
            user = user_of(name, service)
            found[user] = tuple(dict.fromkeys([*found.get(user, ()), service.database_role]))
    return found


def groups(services: Mapping[str, Service], users: Iterable[str]) -> tuple[str, ...]:
    """The groups that some of the logins are in."""
    asked = wanted(services)
    return tuple(dict.fromkeys(group for user in users for group in asked[user]))


def decide(services: Mapping[str, Service], box: Box) -> Roles:
    """What makes the logins right. Needs a server; a standby gets its roles from its primary."""
    if box.server is None or box.standby:
        return Roles()
    asked, there, version = wanted(services), box.server.roles, box.server.version_num
    problems = tuple(_problems(asked, there, version))
    if problems:
        return Roles(problems=problems)
    missing = {
        user: tuple(
            group for group in groups if user not in there or group not in there[user].groups
        )
        for user, groups in asked.items()
    }
    due = {user: groups for user, groups in missing.items() if groups}
    statements = [text for user in due for text in _statements(user, due[user], there, version)]
    return Roles(
        changes=tuple(_change(user, asked[user], there.get(user)) for user in due),
        sql=_transaction(statements) if statements else "",
        users=tuple(due),
        notes=tuple(_left(services, asked, there)),
    )


def nobody(services: Mapping[str, Service], box: Box) -> str:
    """Which users are somebody's own and not there, with the way out; "" where none is missing.

    A deploy around ours may make them before its services are set up.
    """
    asked = {each.user for each in services.values() if each.database_role and each.user}
    made = {user_of(name, each) for name, each in services.items() if each.user is None}
    missing = sorted(asked - made - box.users)
    if not missing:
        return ""
    first = f"make it (adduser --system --group {missing[0]}), or leave `user` out of the service"
    names = ", ".join(missing)
    return f"a login is asked for user {names}, whom the box does not have. Try: {first}"


def _problems(
    asked: Mapping[str, tuple[str, ...]], there: Mapping[str, BoxRole], version: int
) -> Iterator[Problem]:
    for user, groups in asked.items():
        role = there.get(user)
        if role is None:
            continue
        if role.superuser:
            yield _unfit(user, "it is a superuser, and a service must not be one")
        elif not role.login:
            yield _unfit(user, "it cannot log in", f"{_alter(user)} LOGIN; or ")
        elif version < _SAYS_INHERIT and not role.inherits and not role.groups >= set(groups):
            yield _unfit(user, "it does not inherit rights", f"{_alter(user)} INHERIT; or ")


def _left(
    services: Mapping[str, Service],
    asked: Mapping[str, tuple[str, ...]],
    there: Mapping[str, BoxRole],
) -> Iterator[str]:
    """Of a user that is somebody's own, nobody here knows what else the role is for."""
    for user in own(services):
        for group in sorted(there[user].groups - set(asked[user])) if user in there else ():
            revoke = f"REVOKE {ident(group)} FROM {ident(user)}"
            yield f"role {user} is in {group} too, from before; {revoke} takes it away"


def own(services: Mapping[str, Service]) -> tuple[str, ...]:
    """The logins that are named by us."""
    named = {user_of(name, each) for name, each in services.items() if each.user is None}
    return tuple(user for user in wanted(services) if user in named)


def staying(services: Mapping[str, Service], box: Box) -> tuple[str, ...]:
    """What a removal says of the logins that are named by us and there."""
    there = [user for user in own(services) if box.server and user in box.server.roles]
    return tuple(
        f"role {user} stays; DROP ROLE {ident(user)} takes it away, once nobody needs it"
        for user in there
    )


def _alter(user: str) -> str:
    return f"have a superuser run ALTER ROLE {ident(user)}"


def _unfit(user: str, why: str, hint: str = "") -> Problem:
    return Problem(
        f"role {user}",
        f"a service is to log in as it, and {why}; it is not ours to change",
        f"{hint}give the service another `user`, or none",
    )


def _statements(
    user: str, groups: Iterable[str], there: Mapping[str, BoxRole], version: int
) -> Iterator[str]:
    if user not in there:
        yield f"CREATE ROLE {ident(user)} LOGIN"
    inherit = " WITH INHERIT TRUE" if version >= _SAYS_INHERIT else ""
    for group in groups:
        yield f"GRANT {ident(group)} TO {ident(user)}{inherit}"


def _transaction(statements: Iterable[str]) -> str:
    return "".join(f"{text};\n" for text in ("BEGIN", *statements, "COMMIT"))


def _change(user: str, groups: tuple[str, ...], role: BoxRole | None) -> Change:
    new = {"member of": ", ".join(groups)}
    if role is None:
        return Change("role", user, "create", None, new, _WHY)
    held = ", ".join(sorted(role.groups)) or None
    return Change("role", user, "update", {"member of": held}, new, "a membership is missing")
