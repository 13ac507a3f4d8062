"""The closing word of a run: what each tier did, and why one was skipped.

A test that has something to show records it as the property ``told``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import PurePosixPath

import pytest

OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line a tier: a folder under ``tests/`` is a tier."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for outcome in OUTCOMES:
        for report in terminalreporter.stats.get(outcome, []):
            tier = _tier(report.nodeid)
            counts[tier][outcome] += 1
            if outcome == "skipped":
                reasons[tier][_reason(report)] += 1
            for name, text in report.user_properties if outcome in {"passed", "failed"} else ():
                if name == "told":
                    terminalreporter.section(tier)
                    terminalreporter.line(str(text))
    terminalreporter.section("tiers")
    for tier, count in sorted(counts.items()):
        numbers = ", ".join(f"{number} {outcome}" for outcome, number in count.items())
        terminalreporter.line(f"{tier}: {numbers}")
        for reason, number in reasons[tier].most_common():
            terminalreporter.line(f"  skipped {number}: {reason}")


def _tier(nodeid: str) -> str:
    parts = PurePosixPath(nodeid.split("::", maxsplit=1)[0]).parts
    return parts[1] if len(parts) > 2 else parts[0]


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ").splitlines()[0]
