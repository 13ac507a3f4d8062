"""Services as systemd units."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from infra import unit_texts, units
from infra.boxes import Box, EnvFile, UnitState
from infra.config.box_models import Service
from infra.unit_texts import HARDENING, HEADER, Place
from infra.units import Units, Wanted
from tests.unit import boxsamples

UP = UnitState("loaded", "active", "running", "enabled", "/etc/systemd/system/x", "success", 0)
PLACE = Place("postgresql@15-main.service", "app")


def plan(**services: dict[str, Any]) -> Wanted:
    target = boxsamples.target(services=services)
    return units.plan(target.environment.services, PLACE, target.secrets)


def converged(wanted: Wanted, **more: Any) -> Box:
    """A box that has just what is wanted."""
    envs = {
        name: EnvFile("640", "root", wanted.groups[name], hashlib.sha256(text.encode()).hexdigest())
        for name, text in wanted.envs.items()
    }
    found = {
        "files": dict(wanted.files),
        "envs": envs,
        "units": dict.fromkeys(wanted.running, UP),
        "users": frozenset(wanted.users),
    }
    return boxsamples.box(**(found | more))


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


def test_variables_that_others_may_read_are_put_right() -> None:
    loose = EnvFile("644", "root", "jobwarden-worker", "0")
    found = diff(WORKER, envs={"worker": loose})

    assert set(found.envs or {}) == {"worker"}
    assert found.restart == ("worker@1.service", "worker@2.service")


def test_one_instance_less_is_stopped_and_the_others_are_left() -> None:
    fewer = plan(worker={"command": "/srv/worker", "instances": 1, "environment": {"A": "1"}})
    found = units.diff(fewer, converged(WORKER))

    assert (found.stop, found.restart, found.remove) == (("worker@2.service",), (), ())


def test_a_service_that_is_no_longer_named_goes_with_its_variables() -> None:
    found = units.diff(plan(), converged(WORKER))

    assert set(found.stop) == {"worker@1.service", "worker@2.service"}
    assert found.remove == ("worker@.service",)
    assert found.remove_envs == ("worker",)


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
