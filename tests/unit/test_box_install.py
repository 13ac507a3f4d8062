"""What is installed on a box, and which of its clusters is meant."""

from __future__ import annotations

from typing import Any

import pytest

from infra import box_install
from infra.box_install import KEY, Install
from infra.boxes import Box, Cluster
from tests.unit import boxsamples
from tests.unit.boxsamples import MAIN

NEWER = Cluster("16", "main", 5433, "online", "postgres", "/var/lib/postgresql/16/main", "/log")


def decide(box: Box, entry: dict[str, Any] | None = None, **postgres: Any) -> Install:
    wanted = boxsamples.target(entry=entry, postgres=postgres)
    return box_install.decide(wanted.environment, wanted.entry, box)


@pytest.mark.parametrize(
    ("system", "codename", "major"),
    [
        ("debian", "bookworm", "15"),
        ("debian", "trixie", "17"),
        ("ubuntu", "jammy", "14"),
        ("ubuntu", "noble", "16"),
    ],
)
def test_a_bare_box_gets_what_its_release_brings(system: str, codename: str, major: str) -> None:
    found = decide(boxsamples.bare(os_id=system, codename=codename))

    assert found.packages == (f"postgresql-{major}", f"postgresql-{major}-cron")
    assert (found.version, found.name) == (major, "main")
    assert [change.kind for change in found.changes] == ["package", "package", "cluster"]


def test_a_box_that_has_it_all_needs_nothing() -> None:
    assert decide(boxsamples.box()).changes == ()


def test_an_existing_cluster_gets_the_pg_cron_of_its_own_major() -> None:
    box = boxsamples.box(packages={"postgresql-15": "15", "postgresql-16-cron": "1.6"})

    assert decide(box).packages == ("postgresql-15-cron",)


def test_without_pg_cron_its_package_is_not_asked_for() -> None:
    assert decide(boxsamples.bare(), cron={"enabled": False}).packages == ("postgresql-15",)


def test_two_clusters_without_a_choice_are_an_error_that_lists_both() -> None:
    problem = decide(boxsamples.box(clusters=(MAIN, NEWER), chosen=None)).problems[0]

    assert "15/main (port 5432), 16/main (port 5433)" in problem.message
    assert "cluster: 15/main" in problem.hint


def test_a_cluster_named_in_full_is_made_where_it_is_not_there() -> None:
    box = boxsamples.box(chosen=None)
    found = decide(box, {"cluster": "16/jobs"}, packages="pgdg")

    assert (found.version, found.name) == ("16", "jobs")
    assert "postgresql-16" in found.packages


@pytest.mark.parametrize("entry", [{"port": 5999}, {"cluster": "15/main", "port": 5999}])
def test_a_port_that_no_cluster_has_is_an_error(entry: dict[str, Any]) -> None:
    problem = decide(boxsamples.box(chosen=None), entry).problems[0]

    assert "5999" in problem.message
    assert "15/main (port 5432)" in problem.message


def test_another_version_beside_an_existing_cluster_is_not_made_by_the_way() -> None:
    problem = decide(boxsamples.box(chosen=None), version="16", packages="pgdg").problems[0]

    assert "no cluster is 16; the box has 15/main" in problem.message
    assert "cluster: 16/main" in problem.hint


def test_a_version_that_the_release_does_not_bring_needs_pgdg() -> None:
    problem = decide(boxsamples.bare(), version="18").problems[0]

    assert "brings PostgreSQL 15, not 18" in problem.message
    assert "postgres.packages: pgdg" in problem.hint
    assert decide(boxsamples.bare(), version="18", packages="pgdg").problems == ()


def test_a_source_of_somebody_else_is_never_overwritten() -> None:
    theirs = "Types: deb\nURIs: https://mirror.example.net\n"
    found = decide(boxsamples.box(sources=theirs), packages="pgdg")

    assert "jobwarden-pgdg.sources is there and is not ours" in found.problems[0].message
    assert (found.sources, found.changes) == (None, ())
    assert decide(boxsamples.box(sources=theirs)).problems == ()


def test_a_source_of_ours_is_brought_up_to_date() -> None:
    old = "# Jobwarden wrote this.\nSuites: bullseye-pgdg\n"
    found = decide(boxsamples.box(sources=old), packages="pgdg")

    assert [change.action for change in found.changes] == ["update"]


def test_a_release_we_do_not_know_asks_for_the_version() -> None:
    problem = decide(boxsamples.bare(codename="forky")).problems[0]

    assert problem.subject == "postgres.version"


def test_another_system_is_refused() -> None:
    problem = decide(boxsamples.bare(os_id="fedora", codename="")).problems[0]

    assert "got fedora; allowed: debian, ubuntu" in problem.message


def test_the_source_of_pgdg_is_pinned() -> None:
    """What apt reads: it cannot be reached from every machine that runs these tests."""
    found = decide(boxsamples.bare(), version="18", packages="pgdg")

    assert found.sources == (
        "# Jobwarden wrote this.\n"
        "Types: deb\n"
        "URIs: https://apt.postgresql.org/pub/repos/apt\n"
        "Suites: bookworm-pgdg\n"
        "Components: main\n"
        f"Signed-By: {KEY}\n"
    )
    assert decide(boxsamples.box(sources=found.sources), packages="pgdg").sources is None
