"""What goes wrong around an apply: a clear message, a way out, and nothing half-applied."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from infra.db import apply as applying
from infra.db.apply import Refused
from infra.db.connect import connect
from infra.errors import InfraError
from infra.local.cluster import Cluster
from infra.schedules import CLEANUP, WATCHDOG
from tests.postgres import place

REPOSITORY = Path(__file__).resolve().parents[2]
APPLY = """
from tests.postgres import place
result = place.apply({url!r}, **{environment!r})
print("registered" if result.registered else result.problems)
"""
NEWER = {"jobs": {"guard": False}, "watchdog": {"timeout": "1m"}, "schedules": [place.OWN]}


def _no_connection(url: str) -> InfraError:
    with pytest.raises(InfraError, match="no connection to") as caught, connect(url):
        pytest.fail("it connected")
    return caught.value


@contextmanager
def _applying(url: str, **environment: object) -> Iterator[subprocess.Popen[str]]:
    script = APPLY.format(url=url, environment=environment)
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        yield process
        if process.poll() is None:
            process.kill()


class TestNoWayIn:
    def test_a_server_that_is_down_is_named_with_what_to_check(self, tmp_path: Path) -> None:
        error = _no_connection(f"postgresql:///app?host={quote(str(tmp_path), safe='')}")

        assert error.hint == (
            "check that the server is up; its socket is for that machine: run it there,"
            " or name a host"
        )

    def test_a_wrong_database_is_named(self, cluster: Cluster) -> None:
        cluster.start()

        error = _no_connection(cluster.url("nowhere"))

        assert '"nowhere" does not exist' in error.message
        assert "psql -l" in str(error.hint)

    def test_a_wrong_role_is_named(self, cluster: Cluster) -> None:
        cluster.start()

        error = _no_connection(cluster.url("app", user="nobody_here"))

        assert "as the user of the URL" in str(error.hint)

    def test_another_database_than_the_environment_s_is_refused(self, app: str) -> None:
        with pytest.raises(Refused, match="names database jobs, and this is database app"):
            place.apply(app, postgres={"database": "jobs"})

        assert place.one(app, "SELECT to_regnamespace('jobwarden')") is None

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://u:hunter%ZZ2@h/d",
            "postgresql://u:hun ter2@h/d",
            "postgresql://u:hunter2@[::1/d",
            "postgresql://u:hunter2@h/d?foo=bar",
            "u:hunter2@h",
            "password=hunter2 nonsense",
            "postgresql://u:hunter2@nowhere.invalid/d",
            "postgresql://u:hunter2@h:99999/d",
        ],
    )
    def test_no_message_about_a_wrong_url_shows_the_password(self, url: str) -> None:
        error = _no_connection(url)

        assert "hunter" not in str(error)
        assert "ter2" not in str(error)
        assert error.hint

    @pytest.fixture
    def secret(self, plain_cluster: Cluster) -> Iterator[str]:
        """A role that must give its password."""
        plain_cluster.start()
        url = plain_cluster.url("app")
        place.run(url, "CREATE ROLE secret LOGIN PASSWORD 'right'")
        hba = plain_cluster.data / "pg_hba.conf"
        was = hba.read_text()
        hba.write_text("local all secret scram-sha-256\n" + was)
        place.run(url, "SELECT pg_reload_conf()")
        yield plain_cluster.url("app", user="secret")
        hba.write_text(was)
        place.run(url, "SELECT pg_reload_conf()", "DROP ROLE secret")

    def test_a_wrong_or_missing_password_says_where_to_look(
        self, secret: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PGPASSFILE", "/dev/null")
        monkeypatch.delenv("PGPASSWORD", raising=False)
        place.hold_until(lambda: self._refuses(secret), "the new rule")
        missing = _no_connection(secret)
        monkeypatch.setenv("PGPASSWORD", "wrong-one")
        wrong = _no_connection(secret)
        monkeypatch.setenv("PGPASSWORD", "right")
        with connect(secret) as connection:
            assert connection.info.user == "secret"

        assert "no password supplied" in missing.message
        assert "password authentication failed" in wrong.message
        assert missing.hint == wrong.hint == "check the user, and PGPASSWORD or the ~/.pgpass file"
        assert "wrong-one" not in str(wrong)

    def _refuses(self, url: str) -> bool:
        try:
            with connect(url):
                return False
        except InfraError:
            return True


class TestAnotherTableIsThere:
    def test_it_is_refused_and_not_a_byte_of_the_catalogs_changes(self, app: str) -> None:
        place.run(app, "CREATE TABLE jobs (id bigint PRIMARY KEY, name text)")
        before = place.stand(app)

        with pytest.raises(Refused) as caught:
            place.apply(app)

        assert "id is bigint (wanted uuid)" in str(caught.value)
        assert "create: false" in str(caught.value)
        assert place.stand(app) == before

    def test_a_missing_schema_is_refused_with_its_statement(self, app: str) -> None:
        before = place.stand(app)

        with pytest.raises(Refused, match='CREATE SCHEMA "work";'):
            place.apply(app, jobs={"table": "work.jobs"})

        assert place.stand(app) == before

    @pytest.mark.parametrize(
        "there",
        [
            "CREATE VIEW jobs AS SELECT 1 AS id",
            "CREATE TABLE jobs (id uuid) PARTITION BY HASH (id)",
            "CREATE MATERIALIZED VIEW jobs AS SELECT 1 AS id",
            "CREATE SEQUENCE jobs",
        ],
    )
    def test_what_is_no_table_is_refused(self, app: str, there: str) -> None:
        place.run(app, there)

        with pytest.raises(Refused, match="no ordinary table"):
            place.apply(app)

        assert place.one(app, "SELECT to_regnamespace('jobwarden')") is None


class TestAtOnce:
    def test_two_applies_both_succeed_and_one_makes_the_changes(self, bare_app: str) -> None:
        start = threading.Barrier(2)

        def work(_: int) -> tuple[bool, int]:
            start.wait()
            result = place.apply(bare_app)
            return result.registered, len(result.changes)

        with ThreadPoolExecutor(2) as pool:
            found = sorted(pool.map(work, range(2)))

        assert [registered for registered, _ in found] == [True, True]
        assert found[0][1] == 0
        assert found[1][1] > 0
        assert set(place.jobs(bare_app)) == {WATCHDOG, CLEANUP}

    def test_two_databases_of_one_cluster_share_the_roles_without_a_clash(
        self, cluster: Cluster, app: str, database: str
    ) -> None:
        for _ in range(3):
            start = threading.Barrier(2)

            def work(url: str, start: threading.Barrier = start) -> int:
                start.wait()
                return len(place.apply(url).changes)

            with ThreadPoolExecutor(2) as pool:
                assert all(pool.map(work, [app, database]))
            for url in (app, database):
                place.run(url, "DROP SCHEMA jobwarden CASCADE", "DROP TABLE jobs")
                place.run(cluster.url("app"), "DELETE FROM cron.job")

    def test_one_that_waits_too_long_says_for_whom(
        self, app: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(applying, "LOCK_SECONDS", 0.2)
        with psycopg.connect(app, autocommit=True) as other:
            other.execute("SELECT pg_advisory_lock(hashtext('jobwarden.apply'))")

            with pytest.raises(InfraError, match="another apply") as caught:
                place.apply(app)

            hint = str(caught.value.hint)
            query = hint[hint.index("SELECT") :]
            assert place.rows(app, query) == [(other.info.backend_pid,)]


class TestCutOff:
    @pytest.fixture
    def held(self, app: str) -> Iterator[psycopg.Connection]:
        """A writer that has not come to its end: an apply that must touch the table waits."""
        place.apply(app)
        place.run(app, "INSERT INTO jobs (action) VALUES ('a')")
        with psycopg.connect(app) as connection:
            connection.execute("UPDATE jobs SET payload = '{}'")
            yield connection
            connection.rollback()

    def test_ctrl_c_in_the_middle_leaves_nothing_half_applied(
        self, app: str, held: psycopg.Connection
    ) -> None:
        before = place.stand(app)
        with _applying(app, **NEWER) as process:
            place.hold_until(lambda: place.waits_for_lock(app), "an apply that waits")

            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=10)

        assert process.returncode != 0
        assert "KeyboardInterrupt" in said
        place.hold_until(lambda: not place.waits_for_lock(app), "the end of its session")
        assert place.stand(app) == before

        held.rollback()
        assert place.apply(app, **NEWER).registered
        assert place.drift(app, **NEWER) == []

    def test_a_lost_connection_says_so_and_leaves_nothing_half_applied(
        self, app: str, held: psycopg.Connection
    ) -> None:
        before = place.stand(app)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(place.apply, app, **NEWER)
            place.hold_until(lambda: place.waits_for_lock(app), "an apply that waits")
            place.run(
                app,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'jobwarden'",
            )
            with pytest.raises(InfraError) as caught:
                running.result(timeout=10)

        assert "nothing is half-applied. Run it again" in str(caught.value.hint)
        assert place.stand(app) == before
        held.rollback()
        assert place.apply(app, **NEWER).registered

    def test_a_table_that_stays_busy_ends_it_within_seconds(
        self, app: str, held: psycopg.Connection
    ) -> None:
        before = place.stand(app)

        with pytest.raises(InfraError, match="lock timeout") as caught:
            place.apply(app, **NEWER)

        assert "holds the jobs table" in str(caught.value.hint)
        assert place.stand(app) == before
        assert not held.closed

    def test_an_index_build_that_was_cut_off_is_healed(
        self, app: str, held: psycopg.Connection
    ) -> None:
        held.rollback()
        place.run(app, "DROP INDEX jobwarden_running_idx")
        held.execute("UPDATE jobs SET payload = '{}'")
        with _applying(app) as process:
            place.hold_until(lambda: place.waits_for_lock(app), "a build that waits")
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=10)
        valid = (
            "SELECT indisvalid FROM pg_index WHERE indexrelid = 'jobwarden_running_idx'::regclass"
        )
        place.hold_until(lambda: not place.waits_for_lock(app), "the end of its session")
        assert place.one(app, valid) is False
        held.rollback()

        (change,) = place.drift(app)
        assert (change.action, change.old) == ("update", "invalid")
        assert place.apply(app).registered
        assert place.one(app, valid) is True

    def test_a_cancelled_statement_is_not_called_a_lost_connection(
        self, app: str, held: psycopg.Connection
    ) -> None:
        assert not held.closed
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(place.apply, app, **NEWER)
            place.hold_until(lambda: place.waits_for_lock(app), "an apply that waits")
            place.run(
                app,
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'jobwarden'",
            )
            with pytest.raises(InfraError, match="57014") as caught:
                running.result(timeout=10)

        assert "connection was lost" not in str(caught.value.hint)
