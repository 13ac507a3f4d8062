from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from infra import preload
from infra.errors import RuleError

CASES = YAML(typ="safe").load(
    (Path(__file__).parents[1] / "data/cases/preload.yaml").read_text(encoding="utf-8")
)
REFUSED = [case for case in CASES if "error" in case]
MERGED = [case for case in CASES if "error" not in case]

# Any library name, and often one that the rules know or that needs quotes.
LIBRARIES = st.one_of(
    st.sampled_from(
        [
            *("pg_cron", "pg_stat_statements", "citus", "timescaledb", "pg_stat_kcache", "pg_tle"),
            *("$libdir/pg_cron", "auto_explain.so", "my lib", 'a"b', "a,b", " pad ", "pg_cron_x"),
        ]
    ),
    st.text(
        st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12
    ),
)
LISTS = st.lists(LIBRARIES, max_size=6)
WANTED = st.lists(st.sampled_from(["pg_cron", "pg_stat_statements", "auto_explain", "citus"]))


def merge(case: dict[str, Any]) -> preload.Merge:
    options = {key: case[key] for key in ("target", "family", "remove") if key in case}
    return preload.merge(case["current"], case["want"], **options)


@pytest.mark.parametrize("case", MERGED, ids=lambda case: case["name"])
def test_the_case_is_merged(case: dict[str, Any]) -> None:
    result = merge(case)
    assert result.same is case.get("same", False)
    assert result.text == case.get("text", case["current"])


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["name"])
def test_the_case_is_refused_with_its_reason(case: dict[str, Any]) -> None:
    with pytest.raises(RuleError) as refusal:
        merge(case)
    assert case["error"] in str(refusal.value)
    assert refusal.value.hint


@pytest.mark.parametrize("text", ["a,", ",a", "a,,b", '"a', '"a""', '"a"b', '""', 'a,"",b', ","])
def test_a_broken_list_says_that_no_library_would_be_loaded(text: str) -> None:
    with pytest.raises(RuleError, match="without any library"):
        preload.parse(text)


@pytest.mark.parametrize(
    ("text", "libs"),
    [
        (None, ()),
        ("", ()),
        (" \t\n", ()),
        ('a , "b c" ,"d""e", "f,g"', ("a", "b c", 'd"e', "f,g")),
        ("my lib,Upper", ("my lib", "Upper")),
        ('a"b', ('a"b',)),
        ('" a "', (" a ",)),
    ],
)
def test_a_list_is_read_as_postgres_reads_it(text: str | None, libs: tuple[str, ...]) -> None:
    assert preload.parse(text) == libs


@given(LISTS)
def test_what_is_rendered_is_read_back(libs: list[str]) -> None:
    assert list(preload.parse(preload.render_list(libs))) == libs


def merge_or_skip(libs: list[str], want: list[str], target: str) -> preload.Merge:
    try:
        return preload.merge(preload.render_list(libs), want, target=target)
    except RuleError:
        assume(False)  # noqa: FBT003 - a list that is refused is another test
        raise


@given(LISTS, WANTED, st.sampled_from(["box", "rds", "local"]))
def test_a_second_merge_changes_nothing(libs: list[str], want: list[str], target: str) -> None:
    first = merge_or_skip(libs, want, target)
    again = preload.merge(first.text, want, target=target)
    assert again == preload.Merge(first.text, same=True)


@given(LISTS, WANTED)
def test_a_merge_loses_nothing_and_keeps_the_order(libs: list[str], want: list[str]) -> None:
    result = list(preload.parse(merge_or_skip(libs, want, "box").text))
    there = iter(result)
    assert all(lib in there for lib in libs)  # `in` moves on: a subsequence
    assert len(result) <= len(libs) + len(set(want))


@given(LISTS, WANTED, st.sampled_from(["box", "rds"]))
def test_all_that_is_wanted_is_there_afterwards(
    libs: list[str], want: list[str], target: str
) -> None:
    result = merge_or_skip(libs, want, target)
    assert all(preload.contains(result.text, lib) for lib in want)
    there = preload.render_list(libs).lower()
    assert not any(preload.contains(there, lib) for lib in result.added)


def test_citus_goes_before_timescaledb() -> None:
    assert preload.merge("timescaledb", ["citus"]).text == "citus,timescaledb"
    assert preload.merge(None, ["timescaledb", "pg_cron", "citus"]).text == (
        "citus,timescaledb,pg_cron"
    )


def test_timescaledb_may_stay_where_it_runs_today() -> None:
    result = preload.merge("pg_stat_statements,timescaledb", ["timescaledb", "pg_cron"])
    assert result.text == "pg_stat_statements,timescaledb,pg_cron"


def test_kcache_comes_behind_the_statements_it_reads() -> None:
    assert preload.merge(None, ["pg_stat_kcache", "pg_stat_statements"]).text == (
        "pg_stat_statements,pg_stat_kcache"
    )
    assert preload.merge("pg_stat_kcache", ["pg_stat_statements"]).text == (
        "pg_stat_statements,pg_stat_kcache"
    )


def test_an_upper_case_wish_is_refused_on_a_box() -> None:
    with pytest.raises(RuleError, match="PG_CRON"):
        preload.merge(None, ["PG_CRON"])


def test_a_wish_with_its_folder_is_the_same_library() -> None:
    assert preload.merge("pg_cron", ["$libdir/pg_cron", "pg_cron.so"]).same
    assert preload.merge(None, ["pg_cron.so", "pg_cron"]).text == "pg_cron.so"


def test_a_removal_that_is_allowed_takes_out_the_library_alone() -> None:
    result = preload.merge(
        "pg_stat_statements,pg_cron",
        ["pg_cron"],
        target="rds",
        remove=["pg_stat_statements"],
        allow_removal=True,
    )
    assert result == preload.Merge("pg_cron", same=False, removed=("pg_stat_statements",))


def test_a_removal_of_what_is_not_there_or_is_wanted_is_none() -> None:
    assert preload.merge("pg_cron", ["pg_cron"], remove=["pg_cron", "citus"]).same


def test_what_rds_shows_in_a_session_is_not_written_into_the_group() -> None:
    shown = "rdsutils,pg_stat_statements,pg_cron,rds_casts"
    result = preload.merge(shown, ["pg_cron"], target="rds")
    assert result == preload.Merge("pg_stat_statements,pg_cron", same=True)


def test_the_default_of_a_family_is_not_lost() -> None:
    result = preload.merge(None, ["pg_cron"], target="rds", family="postgres18")
    assert result.text == "pg_tle,pg_stat_statements,pg_cron"
    assert result.added == ("pg_cron",)


def test_a_default_that_is_enough_needs_no_writing() -> None:
    result = preload.merge(None, ["pg_stat_statements"], target="aurora")
    assert result == preload.Merge("pg_stat_statements", same=True)


def test_a_parameter_group_takes_no_quoted_name() -> None:
    with pytest.raises(RuleError, match="plain names"):
        preload.merge('"my lib"', ["pg_cron"], target="rds")


def test_contains_compares_whole_names() -> None:
    assert preload.contains('auto_explain, "$libdir/pg_cron.so"', "pg_cron")
    assert not preload.contains("pg_cron_extra", "pg_cron")
    assert not preload.contains(None, "pg_cron")


def test_a_conf_value_is_quoted_as_a_whole() -> None:
    assert preload.render_conf_value("a,b") == "'a,b'"
    assert preload.render_conf_value("it's\\\n") == r"'it''s\\\n'"


def test_alter_system_gets_one_literal_for_each_library() -> None:
    assert preload.render_alter_system(["pg_cron", "it's"]) == "'pg_cron', 'it''s'"
    assert preload.render_alter_system(["a\\b"]) == r"E'a\\b'"


@pytest.mark.parametrize(
    ("libs", "names"),
    [([], "empty list"), ([""], "name of a library"), (["a\nb"], "line break")],
)
def test_alter_system_refuses_what_would_stop_the_server(libs: list[str], names: str) -> None:
    with pytest.raises(RuleError, match=names):
        preload.render_alter_system(libs)


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 1024])
def test_what_is_no_name_is_never_rendered(name: str) -> None:
    with pytest.raises(RuleError, match="name of a library"):
        preload.render_list([name])
