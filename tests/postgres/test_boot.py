"""The final step from an application's start: quick, quiet, and never in the way."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from infra.db.boot import Booted, boot
from infra.errors import InfraError
from infra.local.cluster import Cluster
from infra.schedules import CLEANUP, WATCHDOG
from tests.postgres import place, talk
from tests.postgres.copies import copy_of

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    return _stack(tmp_path)


@pytest.fixture(autouse=True)
def _info(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.INFO, "jobwarden.boot"):
        yield


def _stack(folder: Path, more: str = "") -> Path:
    path = folder / "Pulumi.here.yaml"
    path.write_text(f"config:\n  jobwarden:target: existing\n{more}")
    return path


def _boot(stack: Path, url: str, **options: bool) -> Booted:
    return boot(str(stack), database_url=url, **options)


def _lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def _through(folder: Path) -> str:
    return f"postgresql://postgres@/app?host={quote(str(folder), safe='')}"


def test_a_first_boot_registers_and_a_second_changes_nothing(
    app: str, stack: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert _boot(stack, app).outcome == "changed"
    before = place.stand(app)

    assert _boot(stack, app).outcome == "unchanged"

    assert place.stand(app) == before
    assert set(place.jobs(app)) == {WATCHDOG, CLEANUP}
    assert [level for level, _ in _lines(caplog)] == ["INFO", "INFO"]


def test_an_unchanged_boot_is_one_connection_and_one_round_trip(
    app: str, stack: Path, cluster: Cluster
) -> None:
    _boot(stack, app)
    with talk.counted(cluster.folder) as (folder, counter):
        booted = _boot(stack, _through(folder))

    assert booted.outcome == "unchanged"
    assert counter.connections == 1
    assert counter.round_trips == 1


def test_a_plan_is_one_connection_and_one_round_trip(app: str, cluster: Cluster) -> None:
    place.apply(app)
    with talk.counted(cluster.folder) as (folder, counter):
        assert place.drift(_through(folder)) == []

    assert (counter.connections, counter.round_trips) == (1, 1)


def test_twenty_boots_at_once_make_one_set_of_schedules(app: str, stack: Path) -> None:
    script = f"""
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stdout)
from infra.db.boot import boot
boot({str(stack)!r}, database_url={app!r})
"""
    boots = [
        subprocess.Popen(
            [sys.executable, "-c", script], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
        )
        for _ in range(20)
    ]
    said = [process.communicate(timeout=120)[0] for process in boots]

    assert [process.returncode for process in boots] == [0] * 20
    assert all(text.startswith("INFO ") and text.count("\n") == 1 for text in said), said
    assert sum("changed: " in text for text in said) == 1
    assert set(place.jobs(app)) == {WATCHDOG, CLEANUP}
    assert place.drift(app) == []


class TestItStopsNobody:
    def test_a_server_that_is_down_is_one_warning(
        self, stack: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert _boot(stack, _through(tmp_path)).outcome == "failed"

        ((level, message),) = _lines(caplog)
        assert level == "WARNING"
        assert "check that the server is up" in message
        assert "\n" not in message

    def test_strict_raises_what_would_have_been_logged(self, stack: Path, tmp_path: Path) -> None:
        with pytest.raises(InfraError, match="no connection to"):
            _boot(stack, _through(tmp_path), strict=True)

    def test_a_listener_that_says_nothing_costs_five_seconds(self, stack: Path) -> None:
        with talk.silent() as folder:
            begun = time.monotonic()
            booted = _boot(stack, _through(folder))
            took = time.monotonic() - begun

        assert booted.outcome == "failed"
        assert "timeout" in booted.message
        assert 4 < took < 7

    def test_two_silent_hosts_cost_no_more_than_one(self, stack: Path) -> None:
        with talk.silent() as first, talk.silent() as second:
            begun = time.monotonic()
            booted = _boot(stack, _through(first) + "," + quote(str(second), safe=""))
            took = time.monotonic() - begun

        assert booted.outcome == "failed"
        assert took < 7

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("config:\n  jobwarden:tagret: rds\n", "tagret"),
            ("config: [", "Pulumi.x.yaml:1:"),
            ("config:\n  jobwarden:target: existing\n  jobwarden:strict: 7\n", "strict"),
        ],
    )
    def test_a_faulty_stack_file_is_one_warning(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, said: str
    ) -> None:
        path = tmp_path / "Pulumi.x.yaml"
        path.write_text(text)

        assert _boot(path, "postgresql://x@/y").outcome == "failed"

        ((level, message),) = _lines(caplog)
        assert level == "WARNING"
        assert said in message

    def test_without_pg_cron_it_waits_with_the_fix_in_one_line(
        self, plain_app: str, stack: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert _boot(stack, plain_app).outcome == "waiting"

        ((level, message),) = _lines(caplog)
        assert level == "WARNING"
        assert "shared_preload_libraries = 'pg_cron'" in message
        with pytest.raises(InfraError, match="shared_preload_libraries"):
            _boot(stack, plain_app, strict=True)

    def test_a_standby_is_left_alone(self, app: str, stack: Path, cluster: Cluster) -> None:
        _boot(stack, app)
        with copy_of(cluster, standby=True) as copy:
            booted = _boot(stack, copy.url("app"))

        assert booted.outcome == "failed"
        assert "standby" in booted.message

    def test_a_role_with_few_rights_is_told_and_changes_nothing(
        self, app: str, stack: Path
    ) -> None:
        _boot(stack, app)
        place.run(app, "CREATE ROLE plain LOGIN")
        before = place.stand(app)

        booted = _boot(stack, app.replace("postgres@", "plain@"))

        assert booted.outcome == "failed"
        assert "lacks rights" in booted.message
        assert place.stand(app) == before

    def test_a_table_held_by_somebody_ends_it_in_time(self, app: str, stack: Path) -> None:
        _boot(stack, app)
        with psycopg.connect(app) as other:
            other.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
            begun = time.monotonic()
            booted = _boot(stack, app)

        assert booted.outcome == "failed"
        assert time.monotonic() - begun < 8


class TestInPlaceOnly:
    def test_an_old_replica_prunes_and_resumes_nothing(self, app: str, tmp_path: Path) -> None:
        old = _stack(tmp_path, "  jobwarden:jobs: {guard: false}\n")
        environment = {
            "schedules": [place.OWN],
            "watchdog": {"actions": {"a": {"timeout": "1m"}}},
        }
        place.apply(app, **environment)
        jobid = place.jobs(app)["mine"]["jobid"]
        place.run(app, f"SELECT cron.alter_job({jobid}, active := false)")

        assert _boot(old, app).outcome == "unchanged"

        assert not place.jobs(app)["mine"]["active"]
        assert place.one(app, "SELECT count(*) FROM jobwarden.policy") == 2
        guard = "SELECT count(*) FROM pg_trigger WHERE tgname = 'jobwarden_guard'"
        assert place.one(app, guard) == 1

    def test_the_next_apply_has_the_last_word(self, app: str, tmp_path: Path) -> None:
        old = _stack(tmp_path, '  jobwarden:watchdog: {schedule: "*/3 * * * *"}\n')
        place.apply(app)
        assert _boot(old, app).outcome == "changed"

        result = place.apply(app)

        (change,) = result.changes
        assert (change.old, change.new) == (
            {"schedule": "*/3 * * * *"},
            {"schedule": "*/5 * * * *"},
        )

    def test_sql_of_a_newer_release_stays(self, app: str, stack: Path) -> None:
        _boot(stack, app)
        place.run(app, "UPDATE jobwarden.source SET release = 999, body = body || '-- newer'")
        before = place.stand(app)

        assert _boot(stack, app).outcome == "unchanged"
        assert place.stand(app) == before

    def test_no_index_is_built_on_a_table_that_is_there(self, app: str, stack: Path) -> None:
        _boot(stack, app)
        place.run(app, "DROP INDEX jobwarden_running_idx")

        _boot(stack, app)

        assert place.one(app, "SELECT to_regclass('jobwarden_running_idx')") is None
        place.apply(app)
        assert place.one(app, "SELECT to_regclass('jobwarden_running_idx')") is not None
