"""Boxes for tests: ``box`` is each Debian in turn, shared by a module; ``boot`` makes fresh ones.

Booting needs root, debootstrap and systemd-nspawn. Without them these tests are skipped with the
reason, or fail with ``--require`` and in CI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NoReturn

import pytest

from tools.boxes import RELEASES, Box
from tools.boxes import missing as lacking

Boot = Callable[..., Box]
Missing = Callable[[str], NoReturn]


@pytest.fixture(scope="session")
def _able_to_boot(missing: Missing) -> None:
    reasons = lacking()
    if reasons:
        missing(f"boxes cannot be booted here: {'; '.join(reasons)}")


@pytest.fixture(scope="module", params=RELEASES)
def box(request: pytest.FixtureRequest, _able_to_boot: None) -> Iterator[Box]:
    """A box of each release, shared by the tests of one module: leave it as you found it."""
    with Box.boot(request.param) as booted:
        yield booted


@pytest.fixture
def boot(_able_to_boot: None) -> Iterator[Boot]:
    """Boot fresh boxes, ``boot("trixie")``; all are taken away after the test."""
    with ExitStack() as boxes:
        yield lambda release, **choices: boxes.enter_context(Box.boot(release, **choices))
