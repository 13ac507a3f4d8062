"""Which database a command speaks to, and what its messages are called."""

from __future__ import annotations

import json
import socket

import pytest

from infra import config, plan, sqltext
from infra.cli.alerts import _source
from infra.cli.setting import database
from infra.plan import Plan

ASKED = ("DATABASE_URL", "PGDATABASE", "PGSERVICE")


@pytest.fixture(autouse=True)
def _nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ASKED:
        monkeypatch.delenv(name, raising=False)


def wanted(target: str, **keys: object) -> Plan:
    environment = config.parse({"target": target, **json.loads(json.dumps(keys))})
    return plan.build(environment, sqltext.render(environment))


def test_on_a_box_the_stack_names_the_database() -> None:
    assert database(wanted("box", postgres={"database": "a/b"}), None) == "postgresql:///a%2Fb"


@pytest.mark.parametrize("name", ["PGDATABASE", "PGSERVICE"])
def test_libpqs_own_environment_goes_before_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "other")

    assert database(wanted("box"), None) == ""


def test_a_url_goes_before_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql:///theirs")

    assert database(wanted("box"), None) == "postgresql:///theirs"
    assert database(wanted("box"), "postgresql:///given") == "postgresql:///given"


def test_a_server_elsewhere_is_libpqs_matter_as_ever() -> None:
    assert database(wanted("existing"), None) == ""


def test_a_message_from_a_box_says_which_box() -> None:
    here = socket.gethostname()

    assert _source("/srv/app/Pulumi.production.yaml", "box") == f"production on {here}"
    assert _source("production", "existing") == "production"
