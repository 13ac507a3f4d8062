"""What every tier shares: a missing need skips at home with its reason, and fails in CI."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

import pytest

from infra.errors import InfraError
from infra.local.servers import find_server

Missing = Callable[[str], NoReturn]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        action="store_true",
        help="fail, not skip, when a test's need is missing (always so when CI=true)",
    )
    parser.addoption(
        "--write-changes",
        action="store_true",
        help="rewrite the golden files; look at the diff before you commit it",
    )


def pytest_report_header() -> str:
    try:
        return f"postgres: {find_server()}"
    except InfraError as error:
        return f"postgres: {error.message}"


@pytest.fixture(scope="session")
def missing(pytestconfig: pytest.Config) -> Missing:
    """Call it with the reason when something a test needs is not there."""

    def end(reason: str) -> NoReturn:
        if pytestconfig.getoption("--require") or os.environ.get("CI") == "true":
            pytest.fail(f"a need is missing: {reason}", pytrace=False)
        pytest.skip(reason)

    return end
