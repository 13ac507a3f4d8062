"""The environment as Pulumi hands it over."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from infra import config, stackfile
from infra.errors import InfraError
from infra.stack import setting


def test_texts_become_the_values_of_the_file() -> None:
    found = setting.environment(
        {
            "aws:region": "eu-central-1",
            "jobwarden:target": "existing",
            "jobwarden:strict": "true",
            "jobwarden:watchdog": '{"timeout": "3m"}',
            "jobwarden:schedules": '[{"name": "a", "schedule": "@daily", "command": "SELECT 1"}]',
        },
        (),
        "test",
    )

    assert found.strict is True
    assert found.watchdog.timeout == timedelta(minutes=3)
    assert [schedule.name for schedule in found.schedules] == ["a"]


def test_the_password_of_pulumi_gets_no_further() -> None:
    key = "jobwarden:databasePassword"

    found = setting.environment({key: "hunter2"}, [key], "test")

    assert "hunter2" not in repr(found)


def test_another_secret_is_refused_without_its_value() -> None:
    key = "jobwarden:databaseUrl"

    with pytest.raises(InfraError, match="databaseUrl is encrypted") as refused:
        setting.environment({key: "postgresql://u:hunter2@h/db"}, [key], "test")

    assert "hunter2" not in str(refused.value)


def test_a_fault_names_the_file_of_the_stack() -> None:
    with pytest.raises(InfraError, match=r"^Pulumi\.prod\.yaml: 1 fault"):
        setting.environment({"jobwarden:taget": "local"}, (), "prod")


def test_the_command_line_passes_over_the_password_of_pulumi(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text("config:\n  jobwarden:databasePassword: {secure: v1:abc}\n")

    values = stackfile.load(str(file)).values

    assert config.parse(values).database_password == {"secure": "v1:abc"}


def test_a_password_in_plain_text_is_refused_without_its_value() -> None:
    with pytest.raises(InfraError, match="a password in plain text") as refused:
        config.parse({"databasePassword": "hunter2"})

    assert "config set --secret jobwarden:databasePassword" in str(refused.value)
    assert "hunter2" not in str(refused.value) + repr(refused.value)
