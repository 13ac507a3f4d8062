"""Figures and checks as OpenMetrics text (https://openmetrics.io, version 1.0). Pure text.

It is Prometheus' older text format (0.0.4) too, which node_exporter reads: there ``# EOF`` is a
comment, and a series that comes twice spoils the whole file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

HELP = {
    "jobwarden_up": "1 when the database could be asked, 0 when not: then all else is left out.",
    "jobwarden_healthy": "1 when no check is critical.",
    "jobwarden_check": "1 for the level a check is at.",
    "jobwarden_drift": "Changes that an apply would make.",
    "jobwarden_running_jobs": "Jobs that run now.",
    "jobwarden_oldest_running_seconds": "Age of the oldest running job.",
    "jobwarden_running_limit_seconds": "How long a job of a running action may run.",
    "jobwarden_overdue_jobs": "Jobs past their limit that the next sweep takes, at most 1000.",
    "jobwarden_schedule_interval_seconds": "The longest time between two runs, as scheduled.",
    "jobwarden_last_success_timestamp_seconds": "When the last successful run ended.",
    "jobwarden_last_run_duration_seconds": "How long the last successful run took.",
    "jobwarden_last_run_changed_jobs": "Jobs the last successful run failed or deleted.",
    "jobwarden_last_run_poisoned_jobs": "Jobs the last successful run could not write.",
    "jobwarden_failures_last_hour": "Jobs that failed in the last hour, by code and action.",
    "jobwarden_oldest_waiting_alert_seconds": "Age of the oldest alert that is not delivered yet.",
    "jobwarden_dead_alerts_last_day": "Alerts of the last day that were given up.",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: a gauge's name, its labels, its value in the unit of the name."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


def render(samples: Iterable[Sample]) -> str:
    """All samples as gauges, grouped by name, in the order of HELP, ended by ``# EOF``.

    Of several samples of one series, such as three warnings, the first stands.
    """
    groups: dict[str, dict[str, float]] = {}
    for sample in samples:
        groups.setdefault(sample.name, {}).setdefault(_labels(sample.labels), sample.value)
    lines: list[str] = []
    for name, text in HELP.items():
        if name in groups:
            lines += [f"# TYPE {name} gauge", f"# HELP {name} {text}"]
            lines += [
                f"{name}{labels} {_number(value)}" for labels, value in sorted(groups[name].items())
            ]
    return "\n".join([*lines, "# EOF", ""])


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return (
        "{"
        + ",".join(f'{name}="{_escape(str(value))}"' for name, value in sorted(labels.items()))
        + "}"
    )


def _escape(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return "".join(sign if sign.isprintable() else f"\\\\x{ord(sign):02x}" for sign in text)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


DOWN = render([Sample("jobwarden_up", 0)])
