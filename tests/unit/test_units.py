"""Services as systemd units."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from infra import unit_texts, units
from infra.boxes import EnvFile, UnitState
from infra.config.box_models import Service
from infra.unit_texts import HARDENING, HEADER, Place
from infra.units import Units, Wanted
from tests.unit import boxsamples
from tests.unit.boxsamples import UP, converged

PLACE = Place("postgresql@15-main.service", "app")


def plan(**services: dict[str, Any]) -> Wanted:
    target = boxsamples.target(services=services)
    return units.plan(target.environment.services, PLACE, target.secrets)


def diff(wanted: Wanted, **more: Any) -> Units:
    return units.diff(wanted, converged(wanted, **more))


WORKER = plan(worker={"command": "/srv/worker", "instances": 2, "environment": {"A": "1"}})


def test_a_unit_is_pinned_byte_for_byte() -> None:
    """Another byte would restart the service on every box."""
    wanted = plan(
        worker={
            "command": "/srv/worker --rate 50% --name %i",
            "instances": 2,
            "memoryMax": "512M",
            "drain": "1m30s",
            "workingDirectory": "/srv",
            "writable": ["/srv/cache"],
        }
    )

    assert wanted.files == {
        "worker@.service": HEADER + "[Unit]\n"
        "Description=worker %i\n"
        "After=network.target postgresql@15-main.service\n"
        "Wants=postgresql@15-main.service\n"
        "StartLimitIntervalSec=60\n"
        "StartLimitBurst=5\n"
        "\n"
        "[Service]\n"
        "ExecStart=/srv/worker --rate 50%% --name %i\n"
        "User=jobwarden-worker\n"
        "Group=jobwarden-worker\n"
        "EnvironmentFile=/etc/jobwarden/worker.env\n"
        "Environment=INSTANCE=%i\n"
        "WorkingDirectory=/srv\n"
        "StateDirectory=jobwarden/worker\n"
        "ReadWritePaths=/srv/cache\n"
        "Restart=always\n"
        "RestartSec=1\n"
        "KillMode=mixed\n"
        "KillSignal=SIGTERM\n"
        "TimeoutStopSec=90\n"
        "OOMPolicy=stop\n"
        "MemoryMax=512M\n"
        "RemoveIPC=yes\n" + HARDENING + "\n[Install]\nWantedBy=multi-user.target\n"
    }


def test_a_user_who_is_there_already_keeps_his_shared_memory() -> None:
    wanted = plan(api={"command": "/srv/api", "user": "postgres"})

    assert "RemoveIPC" not in wanted.files["api.service"]
    assert wanted.users == ()


def test_variables_are_quoted_so_that_no_character_is_special() -> None:
    text = unit_texts.render_env({"A": 'say "hi" to $HOME \\ `x`', "B": ""})

    assert text == HEADER + 'A="say \\"hi\\" to \\$HOME \\\\ \\`x\\`"\nB=""\n'


def test_a_converged_box_needs_nothing() -> None:
    assert diff(WORKER) == Units(write={}, envs={})


@pytest.mark.parametrize(
    ("file", "restarted"),
    [("worker@.service", ("worker@1.service", "worker@2.service")), ("none", ())],
)
def test_only_what_changed_is_restarted(file: str, restarted: tuple[str, ...]) -> None:
    found = diff(
        WORKER, files={name: "old" if name == file else text for name, text in WORKER.files.items()}
    )

    assert found.restart == restarted


@pytest.mark.parametrize(
    "state",
    [
        UnitState("loaded", "failed", "failed", "enabled", "", "exit-code", 5),
        UnitState("loaded", "activating", "auto-restart", "enabled", "", "exit-code", 3),
        UnitState("loaded", "inactive", "dead", "enabled", "", "success", 0),
        UnitState("loaded", "active", "running", "disabled", "", "success", 0),
    ],
)
def test_a_unit_that_is_down_or_would_not_come_up_again_is_started(state: UnitState) -> None:
    found = diff(WORKER, units={"worker@1.service": UP, "worker@2.service": state})

    assert found.restart == ("worker@2.service",)
    assert found.write == {}


def test_what_a_deploy_did_not_come_to_restart_is_restarted_by_the_next() -> None:
    found = diff(WORKER, due=frozenset({"worker@2.service", "gone.service"}))

    assert found.restart == ("worker@2.service",)
    assert [(each.name, each.action) for each in found.changes] == [("worker@2.service", "update")]
    assert "before it was restarted" in found.changes[0].why


def test_variables_that_others_may_read_are_put_right() -> None:
    loose = EnvFile("644", "root", "jobwarden-worker", "0")
    found = diff(WORKER, envs={"worker": loose})

    assert set(found.envs or {}) == {"worker"}
    assert found.restart == ("worker@1.service", "worker@2.service")


def test_no_hash_of_a_secret_is_told_by_which_it_could_be_guessed() -> None:
    wanted = plan(api={"command": "/srv/api", "secrets": ["TOKEN"]})
    there = EnvFile("640", "root", "jobwarden-api", "0" * 64)
    found = (
        diff(wanted, envs={}),
        diff(wanted, envs={"api": there}),
        diff(WORKER, envs={"api": there}),
    )
    told = [
        each.to_json() for units in found for each in units.changes if each.name.endswith(".env")
    ]
    held = re.compile(r"[0-9a-f]{32}|sesame")

    assert [each["action"] for each in told if "api" in each["name"]] == [
        "create", "update", "delete",
    ]  # fmt: skip
    assert not held.search(json.dumps(told))
    assert "its values differ" in told[1]["why"]


def test_one_instance_less_is_stopped_and_the_others_are_left() -> None:
    fewer = plan(worker={"command": "/srv/worker", "instances": 1, "environment": {"A": "1"}})
    found = units.diff(fewer, converged(WORKER))

    assert (found.stop, found.restart, found.remove) == (("worker@2.service",), (), ())


def test_a_service_that_is_no_longer_named_goes_with_its_variables() -> None:
    found = units.diff(plan(), converged(WORKER))

    assert set(found.stop) == {"worker@1.service", "worker@2.service"}
    assert found.remove == ("worker@.service",)
    assert found.remove_envs == ("worker",)


def test_a_service_that_goes_is_not_to_come_up_after_a_boot_though_it_is_down() -> None:
    down = UnitState("loaded", "inactive", "dead", "enabled", "", "success", 0)
    found = units.diff(plan(), converged(WORKER, units={"worker@1.service": down}))

    assert found.stop == ("worker@1.service",)


def test_a_unit_of_somebody_else_is_never_touched() -> None:
    theirs = UnitState("loaded", "active", "running", "enabled", "/lib/x.service", "success", 0)
    found = units.diff(
        plan(ssh={"command": "/srv/x"}), boxsamples.box(units={"ssh.service": theirs})
    )

    assert "is not ours" in found.problems[0].message
    assert found.changes == ()


THEIRS = EnvFile("600", "ann", "ann", "0", ours=False)


@pytest.mark.parametrize("wanted", [plan(), WORKER], ids=["absent", "worker"])
def test_variables_of_somebody_else_are_never_removed(wanted: Wanted) -> None:
    there = converged(wanted).envs
    found = diff(wanted, envs={**there, "backup": THEIRS})

    assert found == Units(write={}, envs={})


def test_variables_of_somebody_else_are_never_overwritten() -> None:
    found = diff(WORKER, envs={"worker": THEIRS})

    assert "/etc/jobwarden/worker.env is there and is not ours" in found.problems[0].message
    assert (found.changes, found.envs) == ((), None)


def test_variables_are_unknown_while_a_secret_is_not_given() -> None:
    service = Service.model_validate({"command": "/srv/api", "secrets": ["TOKEN", "KEY"]})
    wanted = units.plan({"api": service}, PLACE, {"TOKEN": "open sesame"})
    found = diff(wanted, envs={"api": EnvFile("640", "root", "jobwarden-api", "0")})

    assert [(each.name, each.action, each.why) for each in found.changes] == [
        ("/etc/jobwarden/api.env", "unknown", "secret KEY not given")
    ]
    assert (found.envs, found.remove_envs, found.restart) == ({}, (), ())


def test_a_secret_is_in_no_change() -> None:
    wanted = plan(api={"command": "/srv/api", "secrets": ["TOKEN"]})
    found = units.diff(wanted, boxsamples.box())

    assert "open sesame" in wanted.envs["api"]
    assert "sesame" not in str([change.to_json() for change in found.changes])


def test_a_long_name_makes_a_user_that_linux_takes() -> None:
    assert (
        unit_texts.user_of("x" * 31, Service.model_validate({"command": "/x"}))
        == "jobwarden-" + "x" * 22
    )


def test_a_login_in_postgres_is_the_url_in_a_service_s_variables() -> None:
    place = Place("postgresql@15-main.service", "my app/ü", 5433, "/run/other")
    service = Service.model_validate(
        {"command": "/srv/api", "databaseRole": "jobwarden_worker", "environment": {"A": "1"}}
    )
    wanted = units.plan({"api": service}, place, {})

    assert wanted.envs["api"] == HEADER + (
        'A="1"\n'
        'DATABASE_URL="postgresql://jobwarden-api@/my%20app%2F%C3%BC?host=/run/other&port=5433"\n'
    )


def test_without_a_login_a_service_has_no_url() -> None:
    assert "DATABASE_URL" not in WORKER.envs["worker"]


TIMED = plan(metrics={"command": "/srv/m --all", "every": "1m30s", "drain": "5s"})
ONCE = plan(metrics={"command": "/srv/m --all"})
REST = UnitState("loaded", "inactive", "dead", "static", "/etc/systemd/system/x", "success", 0)


def timed(**service: UnitState) -> dict[str, UnitState]:
    """Units of a box whose timer is up; the service is at rest unless said."""
    return {"metrics.timer": UP, "metrics.service": service.get("service", REST)}


def test_a_timer_and_what_it_starts_are_pinned_byte_for_byte() -> None:
    assert TIMED.files == {
        "metrics.service": HEADER + "[Unit]\n"
        "Description=metrics\n"
        "After=network.target postgresql@15-main.service\n"
        "Wants=postgresql@15-main.service\n"
        "StartLimitIntervalSec=0\n"
        "\n"
        "[Service]\n"
        "Type=oneshot\n"
        "ExecStart=/srv/m --all\n"
        "User=jobwarden-metrics\n"
        "Group=jobwarden-metrics\n"
        "EnvironmentFile=/etc/jobwarden/metrics.env\n"
        "StateDirectory=jobwarden/metrics\n"
        "TimeoutStartSec=90\n"
        "KillMode=mixed\n"
        "KillSignal=SIGTERM\n"
        "TimeoutStopSec=5\n"
        "OOMPolicy=stop\n"
        "RemoveIPC=yes\n" + HARDENING,
        "metrics.timer": HEADER + "[Unit]\n"
        "Description=metrics, every 1m30s\n"
        "\n"
        "[Timer]\n"
        "OnBootSec=60\n"
        "OnUnitActiveSec=90\n"
        "AccuracySec=1s\n"
        "\n"
        "[Install]\n"
        "WantedBy=timers.target\n",
    }


@pytest.mark.parametrize(
    ("every", "boot", "limit"), [("1s", 1, 60), ("1m", 60, 60), ("1d", 60, 86400)]
)
def test_a_run_may_take_its_interval_and_comes_soon_after_a_boot(
    every: str, boot: int, limit: int
) -> None:
    files = plan(m={"command": "/m", "every": every}).files

    assert f"\nOnBootSec={boot}\n" in files["m.timer"]
    assert f"\nTimeoutStartSec={limit}\n" in files["m.service"]


@pytest.mark.parametrize(
    "state",
    [
        REST,
        UnitState("loaded", "activating", "start", "static", "", "success", 0),
        UnitState("loaded", "deactivating", "stop-sigterm", "static", "", "success", 0),
        UnitState("loaded", "failed", "failed", "static", "", "exit-code", 0),
    ],
    ids=["rests", "runs", "ends", "failed"],
)
def test_whatever_a_timer_s_run_is_at_a_deploy_changes_nothing(state: UnitState) -> None:
    assert diff(TIMED, units=timed(service=state)) == Units(write={}, envs={})


@pytest.mark.parametrize("file", ["metrics.service", "metrics.timer"])
def test_a_change_of_a_timer_or_of_its_service_starts_both_anew(file: str) -> None:
    found = diff(TIMED, units=timed(), files={**TIMED.files, file: "old"})

    assert (found.restart, found.stop, set(found.write or {})) == (("metrics.timer",), (), {file})


def test_new_variables_of_a_timer_s_service_make_it_run_at_once() -> None:
    found = diff(TIMED, units=timed(), envs={})

    assert found.restart == ("metrics.timer",)


def test_a_timer_whose_first_run_failed_is_tried_again_by_the_next_deploy() -> None:
    """The script sets it to come up after a boot only once a run has succeeded."""
    waits = UnitState("loaded", "active", "waiting", "disabled", "", "success", 0)
    found = diff(TIMED, units={**timed(), "metrics.timer": waits})

    assert found.restart == ("metrics.timer",)
    assert [change.why for change in found.changes] == [
        "not enabled: its first run failed, or somebody disabled it"
    ]


@pytest.mark.parametrize("state", ["inactive", "activating", "failed"])
def test_a_timer_that_is_no_longer_named_goes_with_what_it_starts(state: str) -> None:
    service = UnitState("loaded", state, "x", "static", "", "success", 0)
    found = units.diff(plan(), converged(TIMED, units=timed(service=service)))

    assert set(found.stop) == {"metrics.timer", "metrics.service"}
    assert found.remove == ("metrics.service", "metrics.timer")
    assert found.remove_envs == ("metrics",)


def test_a_service_that_becomes_a_timer_s_no_longer_comes_up_by_itself() -> None:
    found = units.diff(TIMED, converged(ONCE, units={"metrics.service": UP}))

    assert (found.stop, found.restart, found.remove) == (
        ("metrics.service",),
        ("metrics.timer",),
        (),
    )
    assert "a timer starts it from now on" in {change.why for change in found.changes}


def test_a_timer_goes_when_its_service_is_to_stay_up() -> None:
    found = units.diff(ONCE, converged(TIMED, units=timed()))

    assert (found.stop, found.restart, found.remove) == (
        ("metrics.timer",),
        ("metrics.service",),
        ("metrics.timer",),
    )


@pytest.mark.parametrize("unit", ["metrics.service", "metrics.timer"])
def test_neither_timer_nor_service_of_somebody_else_is_touched(unit: str) -> None:
    theirs = UnitState("loaded", "active", "waiting", "enabled", f"/lib/{unit}", "success", 0)
    found = units.diff(TIMED, boxsamples.box(units={unit: theirs}))

    assert [problem.subject for problem in found.problems] == [f"unit {unit}"]
    assert found.changes == ()


def test_systemd_is_asked_for_each_unit_that_could_be() -> None:
    services = {
        "a": Service.model_validate({"command": "/a", "instances": 2}),
        "b": Service.model_validate({"command": "/b", "every": "1s"}),
    }

    assert set(units.patterns(services)) == {
        "a@1.service", "a@2.service", "a@*.service", "b.timer", "b.service", "b@*.service",
    }  # fmt: skip
