"""Example files, the JSON Schema that editors read, and the way back to text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from infra import config, stackfile
from infra.errors import ConfigError

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
EXAMPLES = sorted(
    path
    for pattern in (
        "Pulumi.*.example.yaml",
        "examples/*/Pulumi.*",
        "tests/data/environments/*.yaml",
    )
    for path in ROOT.glob(pattern)
)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_there_are_examples() -> None:
    names = {name_of(path) for path in EXAMPLES}
    there = {"Pulumi.local.example.yaml", "examples/service/Pulumi.box.example.yaml"}

    assert names >= {*there, "tests/data/environments/minimal.yaml"}


def test_the_services_own_deploy_restarts_each_service_that_no_timer_runs() -> None:
    folder = ROOT / "examples" / "service"
    services = config.parse(stackfile.load(str(folder / "Pulumi.box.example.yaml")).values).services
    (line,) = re.findall(r'^UNITS = "(.+)"$', (folder / "deploy.py").read_text(), re.MULTILINE)
    units = {
        f"{name}@*.service" if each.instances else f"{name}.service"
        for name, each in services.items()
        if each.every is None
    }

    assert {unit.strip("'") for unit in line.split()} == units


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_an_example_is_a_right_environment_and_holds_to_the_schema(path: Path) -> None:
    document = YAML(typ="safe", pure=True).load(path)

    config.parse(stackfile.load(str(path)).values)
    assert _schema_faults(document) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_an_example_is_read_back_as_it_is_written(path: Path) -> None:
    environment = config.parse(stackfile.load(str(path)).values)

    written = environment.model_dump(mode="json", by_alias=True)

    assert config.parse(written) == environment
    assert _schema_faults({"config": {config.PREFIX + key: written[key] for key in written}}) == []


def test_an_environment_is_written_back_as_users_write_it() -> None:
    path = DATA / "environments" / "many-actions.yaml"
    environment = config.parse(stackfile.load(str(path)).values)

    written = json.loads(environment.model_dump_json(by_alias=True, exclude_unset=True))

    assert written["watchdog"]["actions"]["import"] == {"timeout": "never"}
    assert written["cleanup"]["actions"]["pdf_build"] == {"retention": "1m30s"}
    assert config.parse(written) == environment


@pytest.mark.parametrize(
    "block",
    [
        {"jobwarden:watchdg": {}},
        {"jobwarden:watchdog": {"timout": "10m"}},
        {"jobwarden:watchdog": {"timeout": 10}},
        {"jobwarden:watchdog": {"timeout": "soon"}},
        {"jobwarden:target": "rsd"},
        {"jobwarden:jobs": {"create": False}},
        {"jobwarden:jobs": {"columns": {"startedAt": "x"}}},
        {"jobwarden:schedules": [{"name": "a"}]},
        {"jobwarden:postgres": {"version": "12"}},
    ],
)
def test_the_schema_refuses_what_we_refuse(block: dict[str, object]) -> None:
    values = {key.removeprefix(config.PREFIX): value for key, value in block.items()}

    with pytest.raises(ConfigError):
        config.parse(values)
    assert _schema_faults({"config": block}) != []


def test_the_schema_leaves_other_keys_alone() -> None:
    document = {"encryptionsalt": "v1:x", "config": {"aws:region": "eu-central-1"}}

    assert _schema_faults(document) == []


def test_the_schema_is_itself_right_and_has_a_sentence_for_each_key() -> None:
    schema = config.json_schema()

    Draft202012Validator.check_schema(schema)
    blocks = [schema["properties"]["config"], *schema["$defs"].values()]
    for block in blocks:
        for key, rule in block["properties"].items():
            assert rule.get("description") or "$ref" in rule, key


def test_the_schema_shows_defaults_as_users_write_them() -> None:
    definitions = config.json_schema()["$defs"]

    assert definitions["Watchdog"]["properties"]["timeout"]["default"] == "10m"
    assert definitions["Jobs"]["properties"]["table"]["default"] == "public.jobs"


def _schema_faults(document: object) -> list[str]:
    validator = Draft202012Validator(config.json_schema())
    return [error.message for error in validator.iter_errors(document)]
