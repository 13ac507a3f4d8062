"""What every tier shares: a missing need skips at home with its reason, and fails in CI."""

from __future__ import annotations

import os
import signal
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


def pytest_configure() -> None:
    """Take signals as usual, also below a job in the background, where some are ignored.

    What is ignored here would be ignored in every program that a test starts and sends a signal.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)


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
