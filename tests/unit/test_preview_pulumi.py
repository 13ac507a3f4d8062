"""What Pulumi says, read as changes. The documents are real ones, with less in them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from infra import pulumi_plan
from infra.changes import Change

DATA = Path(__file__).parents[1] / "data" / "preview"
SCHEDULE = "urn:pulumi:p::s::x$pulumi-python:dynamic/jobwarden:Schedule::jobsStuckWatchdog"


def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    return found


def found(document: dict[str, Any]) -> dict[tuple[str, str], Change]:
    return {(change.kind, change.name): change for change in pulumi_plan.changes(document)}


def schedule(op: str, old: dict[str, Any], new: dict[str, Any], **outputs: Any) -> dict[str, Any]:
    kind = SCHEDULE.split("::")[2].split("$")[1]
    before = {"type": kind, "custom": True, "inputs": old, "outputs": outputs}
    return {
        "op": op,
        "urn": SCHEDULE,
        "oldState": before,
        "newState": {"type": kind, "custom": True, "inputs": new},
    }


def test_a_changed_environment_has_its_old_and_new_values() -> None:
    changes = found(document("pulumi-changed"))

    assert {key: (it.action, it.old, it.new) for key, it in changes.items()} == {
        ("parameter", "shared_preload_libraries"): (
            "update",
            "pg_stat_statements,pg_cron",
            "pg_stat_statements,pg_cron,auto_explain",
        ),
        ("parameter", "work_mem"): ("create", None, "8192"),
        ("resource", "rds/instance jobwarden-database"): (
            "update",
            {"instanceClass": "db.t4g.medium"},
            {"instanceClass": "db.t4g.large"},
        ),
        ("restart", "jobs"): ("update", None, "shared_preload_libraries"),
        ("policy", "*"): (
            "update",
            {"timeout": "10m", "retention": "1d"},
            {"timeout": "3m", "retention": "1d"},
        ),
        ("schedule", "jobsStuckWatchdog"): (
            "update",
            {"schedule": "0 0 1 1 *"},
            {"schedule": "*/2 * * * *"},
        ),
    }


def test_what_a_refresh_found_changed_by_hand_is_said() -> None:
    changes = found(document("pulumi-changed"))

    assert changes["schedule", "jobsStuckWatchdog"].why == "somebody changed it by hand"
    assert not changes["policy", "*"].why.startswith("somebody")


def test_a_first_preview_makes_all_kinds_and_no_name_that_is_new_each_time() -> None:
    changes = found(document("pulumi-first"))

    assert {key[0] for key in changes} == {
        *("parameter", "resource", "sql", "index", "policy", "schedule")
    }
    assert {change.action for change in changes.values()} == {"create"}
    assert changes["parameter", "shared_preload_libraries"].new == "pg_stat_statements,pg_cron"
    rule = changes["resource", "vpc/securityGroupIngressRule jobwarden-allow-10.0.0.0/16"].new
    assert rule["securityGroupId"] == "known after the update"
    assert "name" not in changes["resource", "ec2/securityGroup jobwarden-guard"].new
    assert "name" not in changes["resource", "rds/parameterGroup jobwarden-parameters"].new


def test_what_the_engine_made_up_does_not_make_a_second_page() -> None:
    other = copy.deepcopy(document("pulumi-first"))
    for step in other["steps"]:
        inputs = step["newState"]["inputs"]
        if "jobwarden-guard" in step["urn"] and "name" in inputs:
            inputs["name"] = "jobwarden-guard-0000000"

    assert pulumi_plan.changes(other) == pulumi_plan.changes(document("pulumi-first"))
    assert other != document("pulumi-first")


def test_a_place_that_is_only_known_after_the_update_is_no_change_of_a_schedule() -> None:
    old = {"schedule": "* * * * *", "database": "postgresql://u@h/db"}
    new = {"schedule": "* * * * *", "database": pulumi_plan.UNKNOWN}

    assert pulumi_plan.changes({"steps": [schedule("update", old, new, registered=True)]}) == ()


def test_what_is_not_registered_yet_is_said() -> None:
    same = {"schedule": "* * * * *"}
    [change] = pulumi_plan.changes({"steps": [schedule("update", same, same, registered=False)]})

    assert (change.action, change.new) == ("update", "registered")


def test_a_schedule_paused_by_hand_is_said_although_pulumi_changes_nothing() -> None:
    same = {"schedule": "* * * * *"}
    [change] = pulumi_plan.changes({"steps": [schedule("same", same, same, active=False)]})

    assert (change.kind, change.action) == ("schedule", "paused")


def test_a_replaced_server_is_one_that_goes() -> None:
    urn = "urn:pulumi:p::s::aws:rds/instance:Instance::db"
    state = {"type": "aws:rds/instance:Instance", "custom": True}
    steps = [
        {
            "op": op,
            "urn": urn,
            "replaceReasons": ["username"],
            "oldState": {**state, "inputs": {"username": "a"}},
            "newState": {**state, "inputs": {"username": "b"}},
        }
        for op in ("create-replacement", "replace", "delete-replaced")
    ]
    [change] = pulumi_plan.changes({"steps": steps})

    assert (change.name, change.action) == ("rds/instance db", "delete")
    assert change.why == "replaced: this one goes and a new one is made (username)"


def test_a_document_without_steps_has_no_changes() -> None:
    assert pulumi_plan.changes({"config": {}}) == ()
