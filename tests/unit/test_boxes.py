"""What a box answers, read."""

from __future__ import annotations

import base64
import json

import pytest

from infra import boxes
from infra.boxes import Box, BoxRole, Cluster, EnvFile


def coded(**found: str) -> list[str]:
    lines = {"end": "done", **{key.replace("__", ":"): value for key, value in found.items()}}
    return [f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in lines.items()]


def parse(**found: str) -> Box:
    return boxes.parse(coded(**found))


def test_a_box_without_anything_is_read() -> None:
    box = parse(os='ID=debian\nVERSION_CODENAME="bookworm"\n')

    assert (box.os_id, box.codename) == ("debian", "bookworm")
    assert (box.chosen, box.server, box.observed, box.conf) == (None, None, None, None)
    assert box.systemd is False


def test_clusters_are_read_as_pg_lsclusters_prints_them() -> None:
    text = (
        "15 main    5432 online          postgres /var/lib/postgresql/15/main /var/log/a.log\n"
        "16 standby 5433 online,recovery postgres /var/lib/postgresql/16/s    /var/log/b.log\n"
        "13 old     5434 down            postgres /var/lib/postgresql/13/old  /var/log/c.log\n"
        "Error: something else\n"
    )
    box = parse(clusters=text, chosen="16/standby")

    assert [each.title for each in box.clusters] == ["15/main", "16/standby", "13/old"]
    assert [each.online for each in box.clusters] == [True, True, False]
    assert box.chosen == Cluster(
        "16", "standby", 5433, "online,recovery", "postgres", "/var/lib/postgresql/16/s",
        "/var/log/b.log",
    )  # fmt: skip
    assert box.chosen.unit == "postgresql@16-standby.service"


def test_only_installed_packages_count() -> None:
    box = parse(
        packages="ii |postgresql-15|15.18-0\nun |postgresql-15-cron|\nrc |postgresql-13|13\n"
    )

    assert box.packages == {"postgresql-15": "15.18-0"}


def test_units_are_read_in_whatever_order_systemd_prints() -> None:
    text = (
        "Result=success\nNRestarts=2\nId=worker@1.service\nLoadState=loaded\nActiveState=active\n"
        "SubState=running\nFragmentPath=/etc/systemd/system/worker@.service\n"
        "UnitFileState=enabled\n\nId=x.timer\nLoadState=not-found\nActiveState=inactive\n"
    )
    box = parse(systemctl=text)

    assert box.units["worker@1.service"].running
    assert box.units["worker@1.service"].restarts == 2
    assert not box.units["x.timer"].running
    assert box.units["x.timer"].load == "not-found"


def test_files_of_ours_and_their_hashes_are_read() -> None:
    box = parse(unit__a="text", env__api="640 root jobwarden-api abc  -")

    assert box.files == {"a": "text"}
    assert box.envs == {"api": EnvFile("640", "root", "jobwarden-api", "abc")}
    assert box.due == frozenset()


def test_what_a_deploy_left_to_be_restarted_is_read() -> None:
    assert parse(due="api.service worker@1.service \n").due == {"api.service", "worker@1.service"}


def test_odd_characters_come_through() -> None:
    odd = "a|b\tc\\n 'q' \"d\" äöü \u2028 $(x) `y`\r"
    server = {
        "version_num": 150018, "in_recovery": False, "identifier": "1", "databases": [odd],
        "settings": {}, "files": [], "hba": odd, "ident": "",
        "roles": {
            odd: {"login": True, "superuser": False, "inherits": True, "groups": ["a", "b"]}
        },
    }  # fmt: skip
    box = parse(server=json.dumps(server))

    assert box.server is not None
    assert box.server.databases == (odd,)
    assert box.server.hba == odd
    groups = frozenset({"a", "b"})
    assert box.server.roles == {odd: BoxRole(True, False, True, groups)}  # noqa: FBT003


def test_bytes_that_are_no_text_do_not_stop_the_reading() -> None:
    lines = [*coded(), f"conf {base64.b64encode(bytes([255, 254])).decode()}"]

    assert boxes.parse(lines).conf == "\ufffd\ufffd"


@pytest.mark.parametrize("lines", [[], coded()[:-1], ["Last login: today"]])
def test_an_answer_that_was_cut_off_is_no_answer(lines: list[str]) -> None:
    with pytest.raises(ValueError, match="cut off"):
        boxes.parse(lines)
