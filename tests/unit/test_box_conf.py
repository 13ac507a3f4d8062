"""Our one configuration file: what is in it, who wins over it, and what must restart."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from infra import box_conf
from infra.box_conf import HEADER, Conf
from infra.boxes import Box
from tests.unit import boxsamples
from tests.unit.boxsamples import AUTO, CONF, MAIN, line, server, setting

CRON = {"database": "app"}


def decide(box: Box, **postgres: Any) -> Conf:
    return box_conf.decide(boxsamples.target(postgres=CRON | postgres).environment, box)


def values(conf: Conf) -> dict[str, str]:
    return box_conf.written(conf.text)


def with_server(*lines: Any, **settings: Any) -> Box:
    return boxsamples.box(server=server(*lines, **settings))


def test_the_file_is_pinned_byte_for_byte() -> None:
    """Another byte would make a change on every box, and with some settings a restart."""
    assert decide(boxsamples.box()).text == HEADER + (
        "shared_preload_libraries = 'pg_cron'\n"
        "cron.database_name = 'app'\n"
        "cron.use_background_workers = 'off'\n"
        "cron.host = '/var/run/postgresql'\n"
    )


def test_pg_cron_1_5_and_later_uses_background_workers() -> None:
    conf = decide(boxsamples.box(cron_version="1.6"))

    assert values(conf)["cron.use_background_workers"] == "on"
    assert "cron.host" not in values(conf)


def test_what_was_written_changes_nothing_the_second_time() -> None:
    first = decide(boxsamples.box(), settings={"work_mem": "16MB", "search_path": "a'b\\c"})
    there = server(
        *(line(name, value, MAIN.conf) for name, value in values(first).items()),
        shared_preload_libraries=setting("pg_cron"),
    )
    second = decide(
        boxsamples.box(conf=first.text, server=there),
        settings={"work_mem": "16MB", "search_path": "a'b\\c"},
    )

    assert (second.changes, second.problems, second.waiting) == ((), (), ())
    assert second.text == first.text


class TestLibraries:
    def test_what_others_preload_stays_and_comes_first(self) -> None:
        box = with_server(
            line("shared_preload_libraries", "pg_stat_statements"),
            shared_preload_libraries=setting("pg_stat_statements"),
        )

        assert values(decide(box))["shared_preload_libraries"] == "pg_stat_statements,pg_cron"

    def test_a_list_that_is_right_already_is_left_where_it_is(self) -> None:
        text = ' pg_stat_statements , "pg_cron" '
        box = with_server(
            line("shared_preload_libraries", text), shared_preload_libraries=setting(text)
        )
        conf = decide(box)

        assert "shared_preload_libraries" not in values(conf)
        assert "shared_preload_libraries" not in conf.waiting

    def test_one_that_somebody_adds_later_to_the_main_file_joins_ours(self) -> None:
        ours = HEADER + "shared_preload_libraries = 'pg_cron'\n"
        box = dataclasses.replace(
            with_server(
                line("shared_preload_libraries", "auto_explain"),
                line("shared_preload_libraries", "pg_cron", MAIN.conf, 3),
                shared_preload_libraries=setting("pg_cron"),
            ),
            conf=ours,
        )

        assert values(decide(box))["shared_preload_libraries"] == "pg_cron,auto_explain"

    def test_a_similar_name_is_another_library(self) -> None:
        box = with_server(line("shared_preload_libraries", "pg_cron_extra"))

        assert values(decide(box))["shared_preload_libraries"] == "pg_cron_extra,pg_cron"

    def test_a_list_the_server_could_not_start_with_is_reported(self) -> None:
        conf = decide(with_server(line("shared_preload_libraries", "PG_CRON")))

        assert "names of libraries have case" in conf.problems[0].message

    def test_without_pg_cron_ours_leaves_and_that_of_others_stays(self) -> None:
        ours = HEADER + "shared_preload_libraries = 'auto_explain,pg_cron'\n"
        box = dataclasses.replace(
            with_server(line("shared_preload_libraries", "auto_explain")), conf=ours
        )
        kept = with_server(line("shared_preload_libraries", "pg_cron"))

        assert values(decide(box, cron={"enabled": False})) == {
            "shared_preload_libraries": "auto_explain"
        }
        assert decide(kept, cron={"enabled": False}).text == ""


class TestWhoWins:
    def test_alter_system_does_and_is_named_with_the_exact_fix(self) -> None:
        box = with_server(
            line("shared_preload_libraries", "auto_explain", AUTO, 3),
            shared_preload_libraries=setting("auto_explain"),
        )
        conf = decide(box)

        assert values(conf)["shared_preload_libraries"] == "auto_explain,pg_cron"
        problem = conf.problems[0]
        assert AUTO in problem.message
        assert "ALTER SYSTEM RESET shared_preload_libraries;" in problem.hint

    def test_the_command_line_does(self) -> None:
        there = setting("auto_explain", source="command line")
        problem = decide(with_server(shared_preload_libraries=there)).problems[0]

        assert "command line" in problem.message
        assert f"{MAIN.folder}/pg_ctl.conf" in problem.hint

    @pytest.mark.parametrize(
        ("file", "number", "wins"),
        [
            (CONF, 819, False),
            (CONF, 821, True),
            (f"{MAIN.folder}/conf.d/10-first.conf", 1, False),
            (f"{MAIN.folder}/conf.d/99-last.conf", 1, True),
            (AUTO, 1, True),
        ],
    )
    def test_a_line_that_is_read_later_does(self, file: str, number: int, wins: bool) -> None:
        conf = decide(with_server(line("cron.database_name", "other", file, number)))

        assert [problem.subject for problem in conf.problems] == (
            ["cron.database_name"] if wins else []
        )
        assert not wins or f"line {number}" in conf.problems[0].hint or file == AUTO

    def test_a_later_line_that_says_the_same_is_no_problem(self) -> None:
        assert decide(with_server(line("cron.database_name", "app", AUTO))).problems == ()

    @pytest.mark.parametrize("includes", ["", "3:include_dir 'other.d'\n"])
    def test_a_conf_d_that_is_not_read_is_reported(self, includes: str) -> None:
        conf = decide(boxsamples.box(includes=includes))

        assert "does not read conf.d" in conf.problems[0].message
        assert "include_dir = 'conf.d'" in conf.problems[0].hint

    @pytest.mark.parametrize(
        "includes", ["3:include_dir 'conf.d'", f"3:  include_dir='{MAIN.folder}/conf.d/' # x"]
    )
    def test_conf_d_may_be_spelt_in_other_ways(self, includes: str) -> None:
        assert decide(boxsamples.box(includes=includes)).problems == ()

    def test_a_file_of_that_name_that_is_not_ours_is_never_overwritten(self) -> None:
        conf = decide(boxsamples.box(conf="work_mem = '1GB'\n"))

        assert conf.text == "work_mem = '1GB'\n"
        assert conf.changes == ()
        assert "not ours" in conf.problems[0].message


class TestRestart:
    def test_what_the_server_says_is_pending_waits_whoever_changed_it(self) -> None:
        conf = decide(with_server(shared_buffers=setting("128MB", pending=True)))

        assert "shared_buffers" in conf.waiting

    def test_another_spelling_of_the_same_list_does_not(self) -> None:
        box = with_server(
            line("shared_preload_libraries", "a, pg_cron"),
            shared_preload_libraries=setting("a,pg_cron", pending=True),
        )

        assert "shared_preload_libraries" not in decide(box).waiting

    def test_a_library_that_is_not_loaded_waits_though_nothing_is_written(self) -> None:
        ours = HEADER + "shared_preload_libraries = 'pg_cron'\n"
        box = dataclasses.replace(
            with_server(line("shared_preload_libraries", "pg_cron", MAIN.conf)), conf=ours
        )

        assert "shared_preload_libraries" in decide(box).waiting

    def test_a_setting_that_a_reload_brings_does_not(self) -> None:
        box = with_server(work_mem=setting("4MB", context="user"))
        conf = decide(box, settings={"work_mem": "8MB"})

        assert "work_mem" not in conf.waiting
        assert {c.name: c.why for c in conf.changes}["work_mem"] == "needs a reload"

    def test_a_value_that_is_in_force_already_does_not(self) -> None:
        box = with_server(
            shared_preload_libraries=setting("pg_cron"),
            cron__database_name=setting("app"),
            cron__use_background_workers=setting("off"),
            cron__host=setting("/var/run/postgresql"),
        )

        assert decide(box).waiting == ()


def test_workers_are_raised_only_where_jobs_would_find_none() -> None:
    few = {"max_worker_processes": setting("4")}
    short = boxsamples.box(
        cron_version="1.6", server=server(line("max_worker_processes", "4"), **few)
    )
    enough = boxsamples.box(cron_version="1.6")

    assert values(decide(short))["max_worker_processes"] == "8"
    assert "max_worker_processes" not in values(decide(enough))
    raised = decide(enough, settings={"cron.max_running_jobs": 20})
    assert values(raised)["max_worker_processes"] == "23"


def test_a_time_zone_that_pg_cron_would_ignore_is_refused() -> None:
    zone = {"cron": {"timezone": "Europe/Berlin"}}
    old, new = boxsamples.box(), boxsamples.box(cron_version="1.6")

    assert "has no time zone" in decide(old, **zone).problems[0].message
    assert "cron.timezone" not in values(decide(old, **zone))
    assert values(decide(new, **zone))["cron.timezone"] == "Europe/Berlin"


def test_without_ours_the_settings_of_it_are_what_changes() -> None:
    ours = HEADER + "shared_preload_libraries = 'pg_cron'\nwork_mem = '8MB'\n"
    box = dataclasses.replace(with_server(shared_preload_libraries=setting("pg_cron")), conf=ours)
    conf = box_conf.absent(box)

    assert conf.text == ""
    assert {change.name: change.action for change in conf.changes} == {
        "shared_preload_libraries": "delete",
        "work_mem": "delete",
    }
    assert "shared_preload_libraries" in conf.waiting
