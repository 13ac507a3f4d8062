"""The logins of services: which are made, which are refused, and what is left alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from infra import box_plan, box_removal, box_roles, script, units
from infra.box_decision import UNTIL_INSTALLED, Decision
from infra.box_roles import Roles
from infra.boxes import Box, BoxRole, Cluster
from infra.unit_texts import Place
from tests.unit import boxsamples
from tests.unit.boxsamples import MAIN, bare, box, server, setting, target

API: dict[str, Any] = {"command": "/srv/api", "databaseRole": "jobwarden_worker"}
WORKER = "jobwarden_worker"
READER = "jobwarden_readonly"


def role(
    *groups: str, login: bool = True, superuser: bool = False, inherits: bool = True
) -> BoxRole:
    return BoxRole(login, superuser, inherits, frozenset(groups))


def there(version: int = 150018, *, standby: bool = False, **roles: BoxRole) -> Box:
    """A box whose server has these roles, ``jobwarden_api`` standing for ``jobwarden-api``."""
    named = {name.replace("_", "-"): each for name, each in roles.items()}
    found = dataclasses.replace(server(), roles=named, version_num=version, in_recovery=standby)
    return box(server=found, users=frozenset({"app"}))


def decide(found: Box, **services: dict[str, Any]) -> Roles:
    return box_roles.decide(target(services=services).environment.services, found)


def test_a_service_with_a_database_role_gets_a_login_of_its_user_s_name() -> None:
    found = decide(there(), api=API)

    assert found.sql == (
        'BEGIN;\nCREATE ROLE "jobwarden-api" LOGIN;\n'
        'GRANT "jobwarden_worker" TO "jobwarden-api";\nCOMMIT;\n'
    )
    assert found.users == ("jobwarden-api",)
    assert [(each.kind, each.name, each.action) for each in found.changes] == [
        ("role", "jobwarden-api", "create")
    ]


def test_without_a_database_role_there_is_no_login() -> None:
    assert decide(there(), api={"command": "/srv/api"}) == Roles()


def test_a_login_that_is_there_and_a_member_needs_nothing() -> None:
    assert decide(there(jobwarden_api=role(WORKER)), api=API) == Roles()


def test_a_missing_membership_is_granted_and_the_role_is_not_made_again() -> None:
    found = decide(there(jobwarden_api=role(READER)), api=API)

    assert found.sql == 'BEGIN;\nGRANT "jobwarden_worker" TO "jobwarden-api";\nCOMMIT;\n'
    change = found.changes[0]
    assert (change.action, change.old, change.new) == (
        "update",
        {"member of": READER},
        {"member of": WORKER},
    )


def test_a_user_of_one_s_own_is_the_role_and_two_services_may_share_it() -> None:
    reads = {"command": "/srv/m", "databaseRole": READER, "user": "app"}
    found = decide(there(app=role(WORKER)), api=API | {"user": "app"}, metrics=reads)

    assert found.sql == 'BEGIN;\nGRANT "jobwarden_readonly" TO "app";\nCOMMIT;\n'
    assert found.users == ("app",)


@pytest.mark.parametrize(
    ("found", "says", "way_out"),
    [
        (role(WORKER, superuser=True), "it is a superuser", "give the service another `user`"),
        (role(WORKER, login=False), "it cannot log in", 'ALTER ROLE "jobwarden-api" LOGIN'),
        (role(inherits=False), "does not inherit", 'ALTER ROLE "jobwarden-api" INHERIT'),
    ],
    ids=["superuser", "no-login", "no-inherit"],
)
def test_a_role_that_is_unfit_is_named_and_nothing_is_changed(
    found: BoxRole, says: str, way_out: str
) -> None:
    decided = box_plan.services(target(services={"api": API}), there(jobwarden_api=found))

    assert (decided.script, decided.changes) == (None, ())
    assert says in decided.problems[0].message
    assert way_out in decided.problems[0].hint


def test_a_user_of_one_s_own_who_is_not_there_is_waited_for_and_named() -> None:
    wanted = target(services={"api": API | {"user": "nobody-yet"}, "own": API})
    found = box_plan.services(wanted, there())

    assert "user nobody-yet, whom the box does not have. Try: make it" in found.unknown
    assert found.script is None
    known = target(services={"api": API | {"user": "app"}, "own": API})
    assert box_plan.services(known, there()).unknown == ""


def test_the_user_of_another_service_is_made_in_the_same_deploy() -> None:
    shared = target(services={"own": API, "figures": API | {"user": "jobwarden-own"}})
    found = box_plan.services(shared, there())

    assert found.unknown == ""
    assert found.script is not None
    assert found.script.variables["NEW_USERS"] == "jobwarden-own"


def test_since_16_a_membership_inherits_whatever_the_role_does() -> None:
    found = decide(there(160000, jobwarden_api=role(inherits=False)), api=API)

    assert 'GRANT "jobwarden_worker" TO "jobwarden-api" WITH INHERIT TRUE;' in found.sql
    assert found.problems == ()


def test_rights_that_are_left_of_an_earlier_role_are_told_and_not_taken() -> None:
    found = decide(there(jobwarden_api=role(WORKER, READER)), api=API)

    assert (found.sql, found.changes) == ("", ())
    assert 'REVOKE "jobwarden_readonly" FROM "jobwarden-api"' in found.notes[0]


def test_what_else_a_role_of_the_user_s_own_may_do_is_nobody_s_business() -> None:
    found = decide(there(app=role(WORKER, READER)), api=API | {"user": "app"})

    assert found == Roles()


def test_a_standby_s_roles_are_its_primary_s() -> None:
    decided = box_plan.services(target(services={"api": API}), there(standby=True))

    assert decided.script is not None
    assert (decided.script.variables["ROLES"], decided.script.variables["TRY"]) == ("", "")
    assert "role" not in {change.kind for change in decided.changes}
    assert "DATABASE_URL" in decided.script.variables["ENV_0"]


def test_a_login_is_made_and_tried_before_its_service_starts() -> None:
    found = server(port=setting("5444"), unix_socket_directories=setting("/run/a, /tmp"))
    wanted = target(services={"api": API}, postgres={"database": 'a"b'})
    decided = box_plan.services(wanted, box(server=found))

    assert decided.script is not None
    given = decided.script.variables
    url = "postgresql://jobwarden-api@/a%22b?host=/run/a&port=5444"
    assert given["TRY"] == url
    assert f'DATABASE_URL="{url}"' in given["ENV_0"]
    assert given["LET_CONNECT"] == 'GRANT CONNECT ON DATABASE "a""b" TO "jobwarden_worker"'
    assert (given["OWNER"], given["DATA"]) == (MAIN.owner, MAIN.data)
    assert [change.kind for change in decided.changes][:2] == ["role", "user"]


def test_a_login_is_tried_again_while_its_service_has_no_variables() -> None:
    """The last deploy may have ended between the role and the proof."""
    wanted = target(services={"api": API})
    decided = box_plan.services(wanted, there(jobwarden_api=role(WORKER)))

    assert decided.script is not None
    assert decided.script.variables["ROLES"] == ""
    assert decided.script.variables["TRY"].startswith("postgresql://jobwarden-api@/app")


def test_a_membership_that_was_missing_restarts_nothing() -> None:
    wanted = target(services={"api": API})
    place = Place(MAIN.unit, "app", MAIN.port)
    converged = boxsamples.converged(units.plan(wanted.environment.services, place, {}))
    lost = dataclasses.replace(converged, server=there(jobwarden_api=role()).server)
    decided = box_plan.services(wanted, lost)

    assert decided.script is not None
    assert {change.kind for change in decided.changes} == {"role"}
    assert decided.script.variables["RESTART"] == ""
    assert decided.script.variables["TRY"].startswith("postgresql://jobwarden-api@/app")


def test_logins_are_unknown_while_no_server_tells_of_them() -> None:
    down = Cluster("15", "main", 5432, "down", "postgres", MAIN.data, "/log")
    wanted = target(services={"api": API})
    found = box_plan.services(wanted, box(chosen=down, server=None))

    assert box_plan.services(wanted, bare()) == Decision(unknown=UNTIL_INSTALLED)
    assert found.unknown.startswith("15/main does not answer")
    assert found.changes == ()


def test_a_login_is_foreseen_also_while_a_secret_is_not_given() -> None:
    wanted = target(services={"api": API | {"secrets": ["KEY"]}})
    found = box_plan.services(wanted, there())

    assert found.unknown.startswith("secret KEY not given")
    assert found.changes[0].name == "jobwarden-api"


def test_a_removal_says_which_logins_stay_and_names_none_that_is_not_ours() -> None:
    services = {"api": API, "own": API | {"user": "app"}, "new": API}
    found = there(jobwarden_api=role(WORKER), app=role(WORKER))
    nothing = script._nothing()  # noqa: SLF001 - the sample that the printed script starts from
    seen = dataclasses.replace(found, observed=nothing)
    decided = box_removal.sql(target(services=services), seen)

    assert decided.script is None
    assert len(decided.notes) == 1
    assert 'DROP ROLE "jobwarden-api"' in decided.notes[0]
