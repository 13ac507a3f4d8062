"""The timers that do the work where no pg_cron does."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from infra import box_fallback
from infra.box_fallback import calendar
from infra.boxes import UnitState
from tests.unit import boxsamples

TIMES = {
    "*/5 * * * *": ("OnCalendar=*-*-* *:00,05,10,15,20,25,30,35,40,45,50,55:00 UTC",),
    "* * * * *": ("OnCalendar=*-*-* *:*:00 UTC",),
    "0 2 * * *": ("OnCalendar=*-*-* 02:00:00 UTC",),
    "@hourly": ("OnCalendar=*-*-* *:00:00 UTC",),
    "0 6 * * 1": ("OnCalendar=Mon *-*-* 06:00:00 UTC",),
    "15 4 * * 6-7": ("OnCalendar=Sun,Sat *-*-* 04:15:00 UTC",),
    "0 5 1-3 * 0": (
        "OnCalendar=*-*-01,02,03 05:00:00 UTC",
        "OnCalendar=Sun *-*-* 05:00:00 UTC",
    ),
    "0 0 29 2 *": ("OnCalendar=*-02-29 00:00:00 UTC",),
    "0 12 $ * *": ("OnCalendar=*-*~01 12:00:00 UTC",),
    "30 seconds": ("OnBootSec=30s", "OnUnitActiveSec=30s"),
}


@pytest.mark.parametrize(("schedule", "lines"), TIMES.items(), ids=TIMES)
def test_a_timer_fires_when_the_schedule_would(schedule: str, lines: tuple[str, ...]) -> None:
    assert calendar(schedule) == lines


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
@pytest.mark.parametrize("schedule", [each for each in TIMES if "seconds" not in each])
def test_systemd_understands_each_line(schedule: str) -> None:
    for line in calendar(schedule):
        command = ["systemd-analyze", "calendar", line.removeprefix("OnCalendar=")]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def decide(*, wanted: bool = True, **more: object) -> box_fallback.Fallback:
    own = [{"name": "täglich", "schedule": "@daily", "command": "CALL app.report();"}]
    target = boxsamples.target(schedules=own)
    box = boxsamples.box(**more)
    return box_fallback.decide(target.plan, box, "app", wanted=wanted, script="#!/bin/sh\n")


def test_each_schedule_has_a_timer_and_its_statement() -> None:
    found = decide()

    assert set(found.timers) == {
        "jobwarden-fallback-watchdog.timer",
        "jobwarden-fallback-cleanup.timer",
        "jobwarden-fallback-own-1.timer",
    }
    assert (found.statements or {})["own-1.sql"] == "CALL app.report()\n;\n"
    timer = (found.write or {})["jobwarden-fallback-own-1.timer"]
    assert "Persistent=true" in timer
    assert "täglich" in timer


def test_no_unit_takes_away_the_shared_memory_of_postgres() -> None:
    """RemoveIPC would, since these units run as the server's own user."""
    for name, text in (decide().write or {}).items():
        assert "RemoveIPC" not in text, name


def test_timers_that_run_as_they_should_need_nothing() -> None:
    first = decide()
    up = UnitState("loaded", "active", "waiting", "enabled", "", "success", 0)
    again = decide(
        files=dict(first.write or {}),
        units=dict.fromkeys(first.timers, up),
        fallback="#!/bin/sh\n",
    )

    assert again.changes == ()


def test_all_of_them_go_where_they_are_not_wanted() -> None:
    first = decide()
    found = decide(wanted=False, files={**(first.write or {}), "other.service": ""})

    assert set(found.remove) == set(first.write or {})
    assert found.statements == {}
    assert decide(wanted=False).changes == ()
