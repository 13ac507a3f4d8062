"""The logins of a box's services on a real server: what the look says of them, and what is made."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from infra import box_carry, box_roles, boxes, config
from infra.box_roles import Roles
from infra.boxes import Box
from infra.quoting import ident
from tests.postgres import place

WORKER, READER = "jobwarden_worker", "jobwarden_readonly"
LOGIN: dict[str, Any] = {"command": "/srv/api", "databaseRole": WORKER}
NAME = "jobwarden-api"


def look(url: str, **services: dict[str, Any]) -> tuple[config.Environment, Box]:
    """What a box's look says of the server at ``url``."""
    environment = config.parse({"target": "box", "services": services})
    document = json.dumps(place.one(url, box_carry.server_sql(environment)))
    found = {"server": document, "end": "done"}
    lines = [f"{key} {base64.b64encode(text.encode()).decode()}" for key, text in found.items()]
    return environment, boxes.parse(lines)


def decide(url: str, **services: dict[str, Any]) -> Roles:
    environment, box = look(url, **(services or {"api": LOGIN}))
    return box_roles.decide(environment.services, box)


@pytest.fixture
def url(app: str) -> str:
    """A database with ours in it."""
    place.apply(app)
    return app


@pytest.mark.parametrize(
    "before",
    [
        (),
        (f"CREATE ROLE {ident(NAME)} LOGIN",),
        (f"CREATE ROLE {ident(NAME)} LOGIN IN ROLE {READER}",),
    ],
    ids=["none", "no-member", "other-member"],
)
def test_once_made_a_login_needs_nothing(url: str, before: tuple[str, ...]) -> None:
    place.run(url, *before)
    found = decide(url)

    assert found.users == (NAME,)
    place.run(url, *found.sql.splitlines())
    again = decide(url)
    assert (again.sql, again.changes, again.problems) == ("", (), ())
    login = url.replace("postgres@", f"{NAME}@")
    assert place.one(login, "INSERT INTO jobs (action) VALUES ('a') RETURNING status") == "queued"
    assert bool(again.notes) == any(READER in statement for statement in before)


def test_a_role_that_does_not_inherit_is_mended_or_named(url: str) -> None:
    """Before PostgreSQL 16 a grant would change nothing, so each deploy would make it again."""
    place.run(url, f"CREATE ROLE {ident(NAME)} LOGIN NOINHERIT IN ROLE {WORKER}")
    found = decide(url)

    if place.one(url, "SHOW server_version_num") < "160000":
        assert "does not inherit" in found.problems[0].message
    else:
        place.run(url, *found.sql.splitlines())
        assert decide(url) == Roles()


@pytest.mark.parametrize("attribute", ["NOLOGIN", "LOGIN SUPERUSER"])
def test_a_role_that_no_service_may_be_is_seen_as_that(url: str, attribute: str) -> None:
    place.run(url, f"CREATE ROLE {ident(NAME)} {attribute}")
    found = decide(url)

    assert (len(found.problems), found.sql) == (1, "")


def test_the_look_tells_of_no_role_that_nobody_asked_for(url: str) -> None:
    place.run(url, "CREATE ROLE stranger LOGIN")
    server = look(url, api={"command": "/srv/api"})[1].server

    assert server is not None
    assert server.roles == {}
