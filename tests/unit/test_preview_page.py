"""The page of a preview: what a reviewer reads, and what nobody may read."""

from __future__ import annotations

import html
import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import cmarkgfm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import cells, config, page, severity
from infra.changes import Change
from infra.errors import ConfigError
from infra.page import Page
from infra.rows import Figures, Part, Taken
from infra.severity import Policy

DATA = Path(__file__).parents[1] / "data" / "preview"
SCHEDULE = Change(
    "schedule", "report", "delete", {"schedule": "0 6 * * 1", "command": "CALL a()"}, None
)
SHORTER = Change(
    "policy",
    "*",
    "update",
    {"timeout": "10m", "retention": "1d"},
    {"timeout": "3m", "retention": "1h"},
)
LIBRARIES = Change(
    "parameter",
    "shared_preload_libraries",
    "update",
    "pg_cron",
    "pg_cron,auto_explain",
    "needs a restart",
)
UNIT = Change(
    "file",
    "/etc/systemd/system/api.service",
    "update",
    "[Unit]\nMemoryMax=64M\n",
    "[Unit]\nMemoryMax=128M\n",
)
STARTED = Change("unit", "api.service", "update", "active (running)", "active", "its files changed")
SQL = Change("sql", "40_sweep", "update", "SELECT 1;\nSELECT 2;\n", "SELECT 1;\nSELECT ```3```;\n")
DRIFT = Change("object", "function human(interval)", "update", "a", "b", "somebody changed it")
INSTANCE = Change("resource", "rds/instance db", "update", {"tags": 1})
PAUSED = Change("schedule", "jobsStuckWatchdog", "paused", None, None, "paused by hand")


def built(*parts: Part, stacks: tuple[str, ...] = ("prod",), **more: Any) -> Page:
    return page.build(stacks, parts, **more)


def level_of(change: Change, **more: Any) -> str:
    [row] = severity.rows(Part("prod", "plan", changes=(change,), **more))
    return row.level


def rendered(markdown: str) -> str:
    """HTML as GitHub makes it; what it would strip is kept, so that a test sees it."""
    unsafe = cmarkgfm.cmark.Options.CMARK_OPT_UNSAFE
    return str(cmarkgfm.github_flavored_markdown_to_html(markdown, unsafe))


def shown(markdown: str) -> str:
    """What a reader sees: the text of the rendered page."""
    return html.unescape(re.sub(r"<[^>]+>", "", rendered(markdown)))


def everything() -> Page:
    figures = Figures({"*": Taken(0, 7)}, {"*": Taken(2, 10_000, more=True)})
    return built(
        Part("prod", "plan", changes=(SQL, SHORTER, DRIFT, SCHEDULE, PAUSED), figures=figures),
        Part("boxes", "pyinfra", "10.0.0.1", (LIBRARIES, UNIT, STARTED), notes=("warning: slow",)),
        Part("boxes", "pyinfra", "10.0.0.2", reason="Could not connect (port 22)"),
        stacks=("prod", "boxes"),
        policies=[
            Policy("prod", fail_on="destructive"),
            Policy("boxes", need_label="restarting", label="ok"),
        ],
    )


def test_the_page_is_its_golden_file(pytestconfig: pytest.Config) -> None:
    golden = DATA / "page.md"
    text = page.render(everything())
    if pytestconfig.getoption("--write-changes"):
        golden.write_text(text, encoding="utf-8")

    assert text == golden.read_text(encoding="utf-8")


def test_the_first_line_counts_everything() -> None:
    first = page.render(everything()).partition("\n")[0]

    assert first == (
        "**0 create, 6 update, 1 delete; 2 drift, 2 restart, 1 unreachable** in `prod`, `boxes`."
        " Worst: **destructive**."
    )


def test_the_order_in_which_the_tools_answer_does_not_matter() -> None:
    more = (Part("boxes", "pyinfra", place, reason="away") for place in ("10.0.0.4", "10.0.0.3"))
    parts = (*everything().parts, *more)
    pages = {
        page.render(page.build(("prod", "boxes"), order)) for order in itertools.permutations(parts)
    }

    assert len(pages) == 1


def test_nothing_to_change_is_one_line() -> None:
    same = Change("schedule", "jobsStuckWatchdog", "same")
    part = Part("prod", "plan", changes=(same,), notes=("warning: slow",))

    assert page.render(built(part)) == "**No changes** in `prod`.\n"
    assert page.render(built(part, base="origin/main")) == (
        "**No changes** in `prod` against `origin/main`.\n"
    )


def test_an_environment_that_cannot_be_looked_at_is_said_and_takes_nothing_from_others() -> None:
    away = Part("away", "pulumi", reason="pulumi did not answer in 2 min. Try: --timeout 10m")
    text = page.render(
        built(Part("prod", "plan", changes=(SCHEDULE,)), away, stacks=("prod", "away"))
    )

    assert "- **Unreachable:** pulumi: pulumi did not answer in 2 min. Try: --timeout 10m" in text
    assert "| delete | `report` |" in text


@pytest.mark.parametrize(
    ("change", "level"),
    [
        (SCHEDULE, "destructive"),
        (SHORTER, "destructive"),
        (LIBRARIES, "restarting"),
        (STARTED, "restarting"),
        (replace(STARTED, why="it is not set to come up after a boot"), "restarting"),
        (replace(STARTED, old="failed (failed)", why="it was not running"), "harmless"),
        (Change("role", "jobwarden-api", "create", None, {"member of": "x"}), "harmless"),
        (SQL, "harmless"),
        (UNIT, "harmless"),
        (replace(LIBRARIES, old="a,pg_cron", new="pg_cron"), "destructive"),
        (replace(LIBRARIES, old="a, pg_cron", new="pg_cron,a"), "restarting"),
        (Change("parameter", "work_mem", "update", "4MB", "8MB", "needs a reload"), "harmless"),
        (Change("parameter", "port", "create", None, "9", "in force after a reboot"), "restarting"),
        (Change("resource", "rds/instance db", "delete", {}, {}, "replaced"), "destructive"),
        (replace(INSTANCE, new={"instanceClass": "x"}), "restarting"),
        (replace(INSTANCE, new={"tags": 2}), "harmless"),
        (Change("restart", "15/main", "update", None, "port"), "restarting"),
        (Change("unit", "api.service", "delete", "active", None), "destructive"),
        (Change("unit", "api.service", "create", None, "active"), "harmless"),
        (Change("index", "i", "delete", {"schema": "public"}, None), "harmless"),
    ],
)  # fmt: skip
def test_a_change_has_its_severity(change: Change, level: str) -> None:
    assert level_of(change) == level


@pytest.mark.parametrize(
    ("old", "new", "level"),
    [
        ("1d", "7d", "harmless"),
        ("1d", "forever", "harmless"),
        ("forever", "36500d", "destructive"),
        ("25h", "1d", "destructive"),
    ],
)
def test_a_shorter_retention_is_destructive(old: str, new: str, level: str) -> None:
    before, after = ({"timeout": "10m", "retention": each} for each in (old, new))

    assert level_of(Change("policy", "pdf", "update", before, after)) == level


def test_a_dropped_limit_of_an_action_is_judged_by_the_limit_that_holds_instead() -> None:
    kept = Change("policy", "pdf", "delete", {"timeout": "3m", "retention": "7d"}, None)

    assert level_of(kept, default={"timeout": "10m", "retention": "1d"}) == "destructive"
    assert level_of(kept, default={"timeout": "10m", "retention": "7d"}) == "harmless"


def test_a_shorter_timeout_is_destructive_only_where_it_ends_jobs() -> None:
    old, new = ({"timeout": each, "retention": "1d"} for each in ("10m", "3m"))
    change = Change("policy", "*", "update", old, new)

    assert level_of(change, figures=Figures({"*": Taken(1, 1)}, {})) == "harmless"
    assert level_of(change, figures=Figures({"*": Taken(1, 2)}, {})) == "destructive"


@pytest.mark.parametrize(
    ("figures", "told"),
    [
        (Figures(), "not known (no database was asked)"),
        (Figures(why="too old"), "not known (too old)"),
        (Figures({"other": Taken(0, 0)}, {}), "not known (no count of these jobs)"),
        (Figures({"*": Taken(9, 9, more=True)}, {}), "9 or more (as it is: 9) jobs"),
    ],
)
def test_a_shorter_timeout_that_nobody_could_count_fails_the_check(
    figures: Figures, told: str
) -> None:
    old, new = ({"timeout": each, "retention": "1d"} for each in ("10m", "3m"))
    part = Part(
        "prod", "plan", changes=(Change("policy", "*", "update", old, new),), figures=figures
    )
    [row] = severity.rows(part)
    longer = Change("policy", "*", "update", new, old)

    assert row.note == f"the next sweep fails: {told}"
    assert built(part, policies=[Policy("prod", "destructive")]).blocks == (
        "prod: a destructive change (failOn: destructive)",
    )
    assert level_of(longer, figures=figures) == "harmless"


def test_a_policy_fails_the_check_or_asks_for_a_label() -> None:
    part = Part("prod", "plan", changes=(SCHEDULE,))

    def blocks(policy: Policy, *labels: str) -> tuple[str, ...]:
        return built(part, policies=[policy], labels=labels).blocks

    assert blocks(Policy("prod")) == ()
    assert blocks(Policy("other", "destructive")) == ()
    assert blocks(Policy("prod", "restarting")) == (
        "prod: a destructive change (failOn: restarting)",
    )
    assert blocks(Policy("prod", "never", "destructive", "ok")) == (
        "prod: a destructive change needs the label ok",
    )
    assert blocks(Policy("prod", "never", "destructive", "ok"), "else", "ok") == ()


@pytest.mark.parametrize("label", ["", " ", "x" * 51, "a,b"])
def test_a_label_that_no_forge_can_have_is_refused(label: str) -> None:
    with pytest.raises(ConfigError, match=r"preview\.label: no label is called so"):
        config.parse({"preview": {"label": label}})


def test_the_environment_says_what_fails_the_check() -> None:
    said = config.parse({"preview": {"failOn": "destructive", "needLabel": "restarting"}}).preview

    assert (said.fail_on, said.need_label) == ("destructive", "restarting")
    assert config.parse({}).preview.fail_on == "never"


@pytest.mark.parametrize(
    "value",
    [
        "postgresql://u:hunter2@host/db",
        "SELECT dblink('host=h password=hunter2 user=u')",
        "ALTER ROLE u PASSWORD 'hunter2'",
        {"masterPassword": "hunter2"},
        {"deep": [{"apiKey": "hunter2"}]},
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
        "known to be secret: hunter2",
    ],
)
def test_a_secret_is_on_no_page(value: object) -> None:
    change = Change(
        "resource", f"of {value}", "update", value, {"x": value}, str(value), str(value)
    )
    part = Part("prod", "pulumi", changes=(change,), reason=str(value), notes=(str(value),))
    found = built(part, secrets=["hunter2"])

    assert "hunter2" not in page.render(found) + str(found.to_json())
    assert cells.mask(value) != value or value == "known to be secret: hunter2"


def test_what_is_no_secret_stays() -> None:
    for value in ("CALL jobwarden.sweep()", "postgresql://u@h/db", {"managePassword": True}, ["a"]):
        assert cells.mask(value) == value


@given(st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs")), min_size=1))
def test_a_cell_shows_a_text_letter_for_letter(text: str) -> None:
    table = f"| a | b |\n| --- | --- |\n| {cells.code(text)} | end |\n"
    answer = rendered(table)
    found = re.findall(r"<td>(.*?)</td>", answer, re.DOTALL)

    assert len(found) == 2
    assert html.unescape(re.sub(r"</?code>", "", found[0])) == cells.text_of(text)


@given(st.text(max_size=60))
def test_a_sentence_of_a_tool_is_never_markup(text: str) -> None:
    answer = rendered(f"| a |\n| --- |\n| x{cells.prose(text)}x |\n")

    assert set(re.findall(r"</?(\w+)", answer)) <= {"table", "thead", "tbody", "tr", "th", "td"}


def test_nobody_is_called_and_no_issue_is_linked() -> None:
    assert "@" not in cells.prose("ask @admin about #12")
    assert shown(cells.prose("ask @admin about #12 & <b>it</b>")).strip() == (
        "ask @admin about #12 & <b>it</b>"
    )


def test_a_fence_in_a_text_does_not_end_the_fold() -> None:
    text = cells.folded("x", "a\n```\n</details>", "b\n````\n")
    answer = rendered(text)

    assert "-a\n-```\n-&lt;/details&gt;\n+b\n+````" in answer


def test_a_page_that_is_too_long_loses_its_folds_first_and_says_so() -> None:
    many = tuple(
        Change("sql", f"{number:03}", "create", None, "SELECT 1;\n" * 50) for number in range(300)
    )
    full = built(Part("prod", "plan", changes=many))
    cut = page.render(full, page.COMMENT)

    assert len(page.render(full)) > page.COMMENT >= len(cut)
    assert cut.splitlines()[0] == page.render(full).splitlines()[0]
    assert "<details>" not in cut
    assert "**This page was cut.**" in cut
    assert len(page.render(full, 2_000)) <= 2_000
