"""The part of an environment that is about boxes and services."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from infra import config
from infra.errors import ConfigError

API: dict[str, Any] = {"command": "/x"}
LOGIN: dict[str, Any] = API | {"databaseRole": "jobwarden_readonly"}


def settings(value: object) -> dict[str, Any]:
    return {"postgres": {"settings": {"work_mem": value}}}


def parse(**keys: Any) -> config.Environment:
    return config.parse({"target": "box", **keys})


def test_a_box_and_a_service_are_read() -> None:
    environment = parse(
        boxes=[{"host": "db1", "cluster": "16/main", "allowRestart": True, "sshPort": 2222}],
        services={"worker": {"command": "/srv/w", "instances": 3, "environment": {"N": 5}}},
        postgres={
            "preload": ["auto_explain"],
            "settings": {"work_mem": "16MB", "cron.log_run": False},
        },
    )

    entry, service = environment.boxes[0], environment.services["worker"]
    assert (entry.host, entry.cluster, entry.allow_restart) == ("db1", "16/main", True)
    assert (entry.ssh_port, entry.ssh_user) == (2222, None)
    assert (service.instances, service.environment) == (3, {"N": "5"})
    assert service.drain == timedelta(seconds=30)
    assert environment.postgres.settings == {"work_mem": "16MB", "cron.log_run": "off"}
    assert environment.postgres.packages == "distribution"


def test_a_number_in_words_is_answered_in_ours() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(services={"worker": API | {"instances": "three"}})

    (fault,) = caught.value.faults
    assert (fault.problem, fault.allowed) == ("wrong type", "a whole number")


@pytest.mark.parametrize(
    ("keys", "path", "says"),
    [
        ({"boxes": [{"host": "h", "port": 70000}]}, "boxes.0.port", "65535"),
        ({"boxes": [{"host": "h", "cluster": "main"}]}, "boxes.0.cluster", "16/main"),
        ({"boxes": [{"host": "h", "cluster": "12/main"}]}, "boxes.0.cluster", "pg_lsclusters"),
        ({"boxes": [{"host": "h", "hots": "h"}]}, "boxes.0.hots", "did you mean host?"),
        ({"boxes": [{"host": "-oProxyCommand=x"}]}, "boxes.0.host", "a name or an address"),
        ({"services": {"a": {"command": "run me"}}}, "services.a.command", "absolute"),
        ({"services": {"a": {"command": "/x\n[Unit]"}}}, "services.a.command", "one line"),
        ({"services": {"A b": {"command": "/x"}}}, "services.A b", "a letter first"),
        ({"services": {"a": API | {"instances": 0}}}, "services.a.instances", "1 to 100"),
        ({"services": {"a": API | {"memoryMax": "lots"}}}, "services.a.memoryMax", "512M"),
        ({"services": {"a": {"command": "/x", "environment": {"A B": "1"}}}},
         "services.a.environment.A B", "DATABASE_URL"),
        ({"services": {"a": {"command": "/x", "drain": "soon"}}}, "services.a.drain", "90s"),
        ({"services": {"a": API | {"every": "0s"}}}, "services.a.every", "the time is zero"),
        ({"services": {"a": API | {"every": "1.5s"}}}, "services.a.every", "not a duration"),
        ({"services": {"a": API | {"every": 30}}}, "services.a.every", 'write "30s"'),
        ({"services": {"a": API | {"every": "30s", "instances": 2}}}, "services.a.every",
         "every or instances, not both"),
        ({"services": {"a": API | {"databaseRole": "jobwarden_owner"}}}, "services.a.databaseRole",
         "jobwarden_worker, jobwarden_alerts or jobwarden_readonly"),
        ({"services": {"a": LOGIN | {"environment": {"DATABASE_URL": "host=x password=open"}}}},
         "services.a.environment.DATABASE_URL", "take DATABASE_URL out here"),
        ({"services": {"a": LOGIN | {"secrets": ["A", "DATABASE_URL"]}}}, "services.a.secrets",
         "take DATABASE_URL out here"),
        *[({"services": {"a": LOGIN | {"user": user}}}, "services.a.user", "the name is taken")
          for user in ("jobwarden_owner", "jobwarden_runner", "jobwarden_worker", "public",
                       "none", "pg_monitor")],
        ({"postgres": {"settings": {"cron.log_rnu": "on"}}}, "postgres.settings.cron.log_rnu",
         "did you mean cron.log_run?"),
        ({"postgres": {"settings": {"shared_preload_libraries": "x"}}},
         "postgres.settings.shared_preload_libraries", "postgres.preload"),
        ({"postgres": {"settings": {"work mem": "1"}}}, "postgres.settings.work mem", "work_mem"),
        (settings(["1"]), "postgres.settings.work_mem", "one value"),
        (settings("1\n'"), "postgres.settings.work_mem", "one line"),
        ({"postgres": {"packages": "apt"}}, "postgres.packages", "pgdg"),
    ],
)  # fmt: skip
def test_each_fault_names_its_path_and_the_way_out(
    keys: dict[str, Any], path: str, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(**keys)

    assert [fault.path for fault in caught.value.faults] == [path]
    assert says in str(caught.value)
    assert "password=open" not in str(caught.value)


def test_faults_between_keys_come_with_the_others() -> None:
    wrong = {"every": "30s", "instances": 2, "databaseRole": "jobwarden_worker", "user": "none"}
    with pytest.raises(ConfigError) as caught:
        parse(services={"a": wrong, "b": {"command": "run me"}})

    paths = {fault.path for fault in caught.value.faults}
    assert paths == {"services.a.command", "services.a.every", "services.a.user",
                     "services.b.command"}  # fmt: skip


def test_two_long_names_do_not_share_a_user_unless_somebody_says_so() -> None:
    """A user's name is cut: each would read the other's secrets."""
    first, second = "incoming-webhooks-of-shop-a", "incoming-webhooks-of-shop-b"
    with pytest.raises(ConfigError) as caught:
        parse(services={first: API, second: API})

    assert [fault.path for fault in caught.value.faults] == [f"services.{second}"]
    assert f"jobwarden-incoming-webhooks-of-s, would be that of {first}" in str(caught.value)
    for alone in (API, API | {"user": "app"}):
        parse(services={first: alone, second: API | {"user": "app"}})


def test_a_login_and_a_timer_are_read() -> None:
    environment = parse(
        services={"m": LOGIN | {"every": "30s", "user": "prometheus", "environment": {"A": "1"}}}
    )

    service = environment.services["m"]
    assert (service.database_role, service.every) == ("jobwarden_readonly", timedelta(seconds=30))
