"""How the runner gets in where pg_cron connects as a client."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from infra import box_doors
from infra.box_doors import BEGIN, END, Doors, with_block
from tests.unit import boxsamples

LINE = 'local "app" jobwarden_runner peer map=jobwarden'
TEXTS = st.lists(
    st.sampled_from(["# a comment", "local all all peer", "host all all all scram", ""]), max_size=6
).map(lambda lines: "".join(f"{line}\n" for line in lines))


def decide(**more: object) -> Doors:
    return box_doors.decide(boxsamples.target().environment, boxsamples.box(**more))


def test_the_runner_may_come_in_before_the_rule_for_everybody() -> None:
    found = decide()

    assert found.hba is not None
    lines = found.hba.splitlines()
    assert lines[:5] == ["# comment", BEGIN, LINE, END, "local   all   postgres   peer"]
    assert found.ident is not None
    assert found.ident.endswith(f"{BEGIN}\njobwarden postgres jobwarden_runner\n{END}\n")


def test_what_was_written_changes_nothing_the_second_time() -> None:
    first = decide()
    there = dataclasses.replace(boxsamples.server(), hba=first.hba or "", ident=first.ident or "")

    assert decide(server=there) == Doors()


def test_background_workers_need_no_door() -> None:
    opened = decide()
    there = dataclasses.replace(boxsamples.server(), hba=opened.hba or "")
    found = decide(server=there, cron_version="1.6")

    assert found.hba == boxsamples.HBA
    assert [change.action for change in found.changes] == ["delete"]


def test_a_block_changed_by_hand_is_put_right_in_its_place() -> None:
    text = f"# one\n{BEGIN}\nlocal all all trust\n{END}\n# two\n"

    assert with_block(text, LINE) == f"# one\n{BEGIN}\n{LINE}\n{END}\n# two\n"


def test_a_database_name_is_quoted() -> None:
    environment = boxsamples.target(postgres={"database": 'a"b'}).environment
    found = box_doors.decide(environment, boxsamples.box())

    assert 'local "a""b" jobwarden_runner' in (found.hba or "")


@given(text=TEXTS)
def test_a_block_comes_and_goes_and_leaves_the_rest_as_it_was(text: str) -> None:
    there = with_block(text, LINE)

    assert with_block(there, LINE) == there
    assert with_block(there, None) == text
    assert there.count(BEGIN) == 1
