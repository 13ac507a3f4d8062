"""The table of RDS parameters says of PostgreSQL's own what a real server says."""

from __future__ import annotations

import psycopg
import pytest

from infra import rds_facts

# A user may set it, and the guide of AWS lists it as static all the same.
STATIC_ON_AWS_ONLY = {"temp_file_limit"}
Shown = dict[str, tuple[str, str, str]]


@pytest.fixture
def shown(app: str) -> Shown:
    """Context, unit and type of each setting, by its name in lower case."""
    with psycopg.connect(app) as connection:
        rows = connection.execute(
            "SELECT lower(name), context, coalesce(unit, ''), vartype FROM pg_settings"
        ).fetchall()
    return {name: (context, unit, kind) for name, context, unit, kind in rows}


def test_what_needs_a_restart_is_static(shown: Shown) -> None:
    known = rds_facts.PARAMETERS.keys() & shown.keys()
    static = {name for name in known if rds_facts.PARAMETERS[name][0]}

    assert len(known) > 150
    assert static - STATIC_ON_AWS_ONLY == {name for name in known if shown[name][0] == "postmaster"}


def test_the_unit_is_that_of_the_server(shown: Shown) -> None:
    for name, (_, unit) in rds_facts.PARAMETERS.items():
        if name in shown:
            _, real, kind = shown[name]
            assert unit == (real or ("bool" if kind == "bool" else "")), name
