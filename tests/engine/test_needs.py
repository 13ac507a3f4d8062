"""What this tier needs of the machine, said once."""

from __future__ import annotations

from tests.engine.conftest import ABSENT, Missing
from tests.engine.project import why_no_pulumi


def test_the_packages_are_installed(missing: Missing) -> None:
    if ABSENT:
        missing(f"no {', '.join(ABSENT)} (Try: uv sync --group managed)")
    assert ABSENT == []


def test_pulumi_is_installed(missing: Missing) -> None:
    if reason := why_no_pulumi():
        missing(reason)
    assert why_no_pulumi() is None
