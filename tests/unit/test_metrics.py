"""Figures as OpenMetrics text."""

from __future__ import annotations

import re
from pathlib import Path

from infra import metrics
from infra.metrics import Sample

SQL = Path(__file__).parents[2] / "sql"
LINE = re.compile(
    r'[a-z_]+(\{[a-z]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z]+="(?:[^"\\\n]|\\["\\n])*")*\})? \S+'
)


def test_samples_are_grouped_under_one_type_and_one_help() -> None:
    text = metrics.render(
        [
            Sample("jobwarden_running_jobs", 2, {"action": "b"}),
            Sample("jobwarden_healthy", 1),
            Sample("jobwarden_running_jobs", 1.5, {"action": "a"}),
        ]
    )

    assert text.splitlines() == [
        "# TYPE jobwarden_healthy gauge",
        "# HELP jobwarden_healthy 1 when no check is critical.",
        "jobwarden_healthy 1",
        "# TYPE jobwarden_running_jobs gauge",
        "# HELP jobwarden_running_jobs Jobs that run now.",
        'jobwarden_running_jobs{action="a"} 1.5',
        'jobwarden_running_jobs{action="b"} 2',
        "# EOF",
    ]


def test_no_label_breaks_its_line() -> None:
    odd = 'a"b\\c\nd,e}'

    text = metrics.render([Sample("jobwarden_running_jobs", 1, {"action": odd})])

    line = text.splitlines()[2]
    assert LINE.fullmatch(line)
    assert 'action="a\\"b\\\\c\\nd,e}"' in line


def test_nothing_to_say_still_ends_the_document() -> None:
    assert metrics.render([]) == "# EOF\n"


def test_large_numbers_keep_their_seconds() -> None:
    sample = Sample("jobwarden_last_success_timestamp_seconds", 1764510000.25, {"kind": "sweep"})

    assert metrics.render([sample]).splitlines()[2].endswith(" 1764510000.25")


def test_every_figure_of_the_database_has_its_help() -> None:
    made = set(re.findall(r"'(jobwarden_[a-z_]+)'", (SQL / "70_figures.sql").read_text()))

    assert made
    assert made <= metrics.HELP.keys()


def test_a_series_that_comes_twice_is_written_once() -> None:
    check = Sample("jobwarden_check", 1, {"check": "pg_cron", "level": "critical"})

    assert metrics.render([check, check]).count('check="pg_cron"') == 1


def test_a_database_that_cannot_be_asked_leaves_one_figure() -> None:
    assert [line for line in metrics.DOWN.splitlines() if not line.startswith("#")] == [
        "jobwarden_up 0"
    ]
