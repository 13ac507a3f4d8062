"""A private cluster: reachable only over its socket, and gone when it should be."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from infra.errors import InfraError
from infra.local import persistent
from infra.local.cluster import Cluster
from infra.local.servers import Server, find_server
from tests.postgres import emptying

REPOSITORY = Path(__file__).parents[2]
GONE_WITHIN_SECONDS = 10

MAKE_AND_WAIT = """
import sys, time
from infra.local.cluster import Cluster
from infra.local.servers import find_server
cluster = Cluster.create(find_server(), durable=False)
try:
    print(cluster.folder, cluster.pid(), flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("still there" if cluster.answers() else "gone", flush=True)
"""


@pytest.fixture
def server(cluster: Cluster) -> Server:
    """The server that the tier runs on."""
    return cluster.server


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """An empty folder with a short path, which the server's user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="jw-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


class TestPrivacy:
    def test_nothing_listens_on_the_network(self, cluster: Cluster) -> None:
        assert _ask(cluster.url(), "SHOW listen_addresses") == ""

    def test_the_folder_is_closed_to_others(self, cluster: Cluster) -> None:
        assert cluster.folder.stat().st_mode & 0o777 == 0o700

    @pytest.mark.skipif(os.geteuid() != 0, reason="not started as root")
    def test_root_steps_down_to_an_ordinary_user(self, cluster: Cluster) -> None:
        pid = cluster.pid()

        assert pid is not None
        assert Path(f"/proc/{pid}").stat().st_uid == cluster.owner.uid != 0

    @pytest.mark.skipif(os.geteuid() != 0, reason="not started as root")
    def test_an_ordinary_user_runs_it_as_himself(self, server: Server) -> None:
        nobody = pwd.getpwnam("nobody")

        def make() -> bool:
            os.setgroups([])
            os.setgid(nobody.pw_gid)
            os.setuid(nobody.pw_uid)
            with Cluster.create(server, durable=False) as mine:
                return mine.folder.stat().st_uid == nobody.pw_uid and mine.running()

        assert _in_a_fork(make)

    def test_the_callers_libpq_settings_do_not_leak_in(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PGDATA", "/nowhere")
        monkeypatch.setenv("PGOPTIONS", "-c work_mem=nonsense")
        monkeypatch.setenv("PGUSER", "somebody")

        with Cluster.create(server, durable=False) as mine:
            assert mine.running()


class TestCreate:
    def test_two_at_once_do_not_clash(self, server: Server, cluster: Cluster) -> None:
        with Cluster.create(server, durable=False) as second:
            assert _ask(second.url(), "SHOW data_directory") == str(second.data)
            assert _ask(cluster.url(), "SHOW data_directory") == str(cluster.data)

    def test_it_speaks_utc_and_utf8(self, cluster: Cluster) -> None:
        assert _ask(cluster.url(), "SHOW TimeZone") == "UTC"
        assert _ask(cluster.url(), "SHOW server_encoding") == "UTF8"

    def test_a_durable_one_flushes_to_disk(self, server: Server) -> None:
        with Cluster.create(server) as mine:
            assert _ask(mine.url(), "SHOW fsync") == "on"
            assert _ask(mine.url(), "SHOW synchronous_commit") == "on"

    def test_the_database_has_the_very_name_asked_for(self, server: Server) -> None:
        name = 'My "app"; DROP'

        with Cluster.create(server, database=name, durable=False) as mine:
            assert _ask(mine.url(name), "SELECT current_database()") == name
            assert _ask(mine.url(name), "SHOW cron.database_name") == name

    def test_it_holds_no_extension_and_no_role_of_ours(self, server: Server) -> None:
        with Cluster.create(server, durable=False) as mine:
            assert _ask(mine.url(), "SELECT string_agg(extname, ' ') FROM pg_extension") == (
                "plpgsql"
            )
            assert _ask(mine.url(), "SELECT count(*) FROM pg_roles WHERE oid >= 16384") == 0

    def test_settings_of_the_caller_win(self, server: Server) -> None:
        settings = {"work_mem": "5MB", "timezone": "Asia/Tokyo", "app.note": "it's \\ quoted"}

        with Cluster.create(server, settings=settings, durable=False) as mine:
            assert {name: _ask(mine.url(), f"SHOW {name}") for name in settings} == settings

    def test_pg_cron_is_added_to_the_callers_libraries(self, server: Server) -> None:
        settings = {"shared_preload_libraries": "auto_explain"}

        with Cluster.create(server, settings=settings, durable=False) as mine:
            assert _ask(mine.url(), "SHOW shared_preload_libraries") == "auto_explain,pg_cron"

    def test_without_pg_cron_nothing_is_preloaded(self, plain_app: str) -> None:
        assert _ask(plain_app, "SHOW shared_preload_libraries") == ""

    def test_a_server_without_pg_cron_is_refused_when_it_is_wanted(self, server: Server) -> None:
        bare = Server(server.version, server.bindir, has_pg_cron=False)

        with pytest.raises(InfraError, match=r"no pg_cron .*\nTry: install pg_cron for Postgres"):
            Cluster.create(bare)

    def test_a_failed_start_shows_the_log_and_leaves_nothing(
        self, server: Server, short_folder: Path
    ) -> None:
        folder = short_folder / "c"

        with pytest.raises(InfraError, match="did not start") as caught:
            Cluster.create(server, folder=folder, settings={"work_mem": "nonsense"})

        assert 'invalid value for parameter "work_mem": "nonsense"' in caught.value.message
        assert not folder.exists()

    def test_a_path_too_long_for_a_socket_is_refused(
        self, server: Server, short_folder: Path
    ) -> None:
        with pytest.raises(InfraError, match="too long for a Unix socket"):
            Cluster.create(server, folder=short_folder / ("x" * 90))

        assert list(short_folder.iterdir()) == []

    def test_a_temporary_folder_too_long_for_a_socket_is_passed_over(
        self, server: Server, short_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        long = short_folder / ("x" * 90)
        long.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(long))

        with Cluster.create(server, durable=False) as mine:
            assert mine.folder.parent == short_folder.parent

    @pytest.mark.skipif(os.geteuid() != 0, reason="not started as root")
    def test_a_folder_the_servers_user_cannot_reach_is_refused(
        self, server: Server, short_folder: Path
    ) -> None:
        short_folder.chmod(0o700)

        with pytest.raises(InfraError, match="its user cannot reach"):
            Cluster.create(server, folder=short_folder / "c")

    def test_a_folder_in_use_is_not_taken_and_stays(
        self, server: Server, short_folder: Path
    ) -> None:
        (short_folder / "mine").write_text("precious")

        with pytest.raises(InfraError, match="needs an empty folder"):
            Cluster.create(server, folder=short_folder)

        assert (short_folder / "mine").read_text() == "precious"

    def test_a_job_connects_over_the_private_socket(self, app: str, cluster: Cluster) -> None:
        _ask(app, "CREATE TABLE ran ()")
        _ask(app, "SELECT cron.schedule('@reboot', 'INSERT INTO ran DEFAULT VALUES')")

        cluster.restart()

        _wait_until(lambda: _ask(app, "SELECT count(*) FROM ran") == 1)
        assert _ask(app, "SELECT nodename FROM cron.job") == str(cluster.folder)


class TestLife:
    def test_data_is_there_after_stop_and_start(self, app: str, cluster: Cluster) -> None:
        _ask(app, "CREATE TABLE kept ()")
        before = cluster.pid()

        cluster.stop()

        assert not cluster.running()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(app)

        cluster.start()

        assert cluster.pid() not in (None, before)
        assert _ask(app, "SELECT count(*) FROM kept") == 0

    def test_starting_a_running_one_and_stopping_a_stopped_one_do_nothing(
        self, cluster: Cluster
    ) -> None:
        before = cluster.pid()
        cluster.start()
        assert cluster.pid() == before

        cluster.stop()
        cluster.stop()
        assert cluster.pid() is None
        cluster.start()

    def test_it_recovers_after_sigkill(self, app: str, cluster: Cluster) -> None:
        _ask(app, "CREATE TABLE kept ()")
        _ask(app, "CHECKPOINT")

        with psycopg.connect(app):
            cluster.kill()
            assert not cluster.running()
            cluster.start()

        assert "not properly shut down" in cluster.log_tail(40)
        assert _ask(app, "SELECT count(*) FROM kept") == 0

    def test_a_session_does_not_hold_up_a_fast_stop(self, app: str, cluster: Cluster) -> None:
        with psycopg.connect(app):
            cluster.stop(timeout=10)

        assert not cluster.running()
        cluster.start()

    def test_a_stop_that_does_not_happen_says_so(self, app: str, cluster: Cluster) -> None:
        with (
            psycopg.connect(app),
            pytest.raises(InfraError, match=r"did not stop in 1 s \(smart\)"),
        ):
            cluster.stop("smart", timeout=1)

        cluster.restart()

    def test_destroying_twice_does_no_harm(self, server: Server) -> None:
        mine = Cluster.create(server, durable=False)
        pid = mine.pid()

        mine.destroy()
        mine.destroy()

        assert not mine.folder.exists()
        assert not _exists(pid)

    def test_an_error_inside_the_block_leaves_nothing(self, server: Server) -> None:
        mine = Cluster.create(server, durable=False)
        pid = mine.pid()

        with pytest.raises(psycopg.errors.DivisionByZero), mine:
            _ask(mine.url(), "SELECT 1 / 0")

        assert not mine.folder.exists()
        assert not _exists(pid)


class TestTheParentsEnd:
    @pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
    def test_server_and_folder_are_gone_after_a_signal(self, end: signal.Signals) -> None:
        with _python(MAKE_AND_WAIT) as parent:
            folder, pid = _first_line(parent)

            parent.send_signal(end)

            assert parent.wait(GONE_WITHIN_SECONDS) == -end
            _wait_until(lambda: not _exists(pid) and not folder.exists())

    def test_a_parent_killed_during_initdb_leaves_nothing(self, short_folder: Path) -> None:
        with _python(MAKE_AND_WAIT, TMPDIR=str(short_folder)) as parent:
            _wait_until(lambda: any(short_folder.glob("*/data.new/base")))

            parent.kill()

            _wait_until(lambda: not any(short_folder.iterdir()))

    def test_ctrl_c_reaches_us_and_not_the_server(self) -> None:
        with _python(MAKE_AND_WAIT) as parent:
            folder, pid = _first_line(parent)

            os.killpg(parent.pid, signal.SIGINT)

            talk, _ = parent.communicate(timeout=GONE_WITHIN_SECONDS)
            assert talk == "still there\n"
            assert parent.returncode == 0
            assert not _exists(pid)
            assert not folder.exists()


class TestKept:
    def test_up_twice_is_the_same_durable_server(self, kept: Path) -> None:
        first = persistent.up(folder=kept).pid()

        assert first is not None
        second = persistent.up(folder=kept)
        assert second.pid() == first
        assert _ask(second.url(), "SHOW fsync") == "on"

    def test_data_outlives_down_and_up(self, kept: Path) -> None:
        url = persistent.up(folder=kept).url()
        _ask(url, "CREATE TABLE mine ()")

        assert persistent.down(folder=kept)
        assert persistent.status(folder=kept).pid is None
        persistent.up(folder=kept)

        assert _ask(url, "SELECT count(*) FROM mine") == 0

    def test_it_outlives_the_process_that_started_it(self, kept: Path) -> None:
        script = f"""
from pathlib import Path
from infra.local import persistent
print(persistent.up(folder=Path({str(kept)!r})).pid())
"""
        with _python(script) as parent:
            talk, _ = parent.communicate(timeout=60)

        status = persistent.status(folder=kept)
        assert status.pid == int(talk)
        assert _ask(str(status.url), "SELECT 1") == 1

    def test_status_tells_what_is_there(self, kept: Path) -> None:
        before = persistent.status(folder=kept)
        assert (before.exists, before.pid, before.url, before.server) == (False, None, None, None)

        cluster = persistent.up(folder=kept)

        after = persistent.status(folder=kept)
        assert (after.exists, after.pid, after.url) == (True, cluster.pid(), cluster.url())
        assert after.server == find_server()

    def test_down_with_nothing_there_is_no_error(self, kept: Path) -> None:
        assert not persistent.down(folder=kept)

    def test_purge_removes_the_data(self, kept: Path) -> None:
        persistent.up(folder=kept)

        assert persistent.down(folder=kept, purge=True)

        assert not kept.exists()

    def test_it_starts_again_after_a_crash(self, kept: Path) -> None:
        cluster = persistent.up(folder=kept)
        cluster.kill()

        assert persistent.status(folder=kept).pid is None
        assert persistent.up(folder=kept).running()

    @pytest.fixture
    def kept(self, short_folder: Path) -> Iterator[Path]:
        """The folder of a kept cluster that does not exist yet."""
        folder = short_folder / "state"
        yield folder
        persistent.down(folder=folder, purge=True)


def test_emptying_takes_away_whatever_a_test_left(app: str, cluster: Cluster) -> None:
    leave = """
        CREATE ROLE jobwarden_runner; CREATE SCHEMA "Jobs"; CREATE TABLE "Jobs"."T" (id int);
        ALTER TABLE "Jobs"."T" OWNER TO jobwarden_runner;
        CREATE TYPE public.state AS ENUM ('a'); CREATE TABLE public."Odd ; name" (s public.state);
        CREATE FUNCTION public.f(int) RETURNS int LANGUAGE sql RETURN 1;
        CREATE VIEW public.v AS SELECT public.f(1); GRANT ALL ON public.v TO jobwarden_runner;
        GRANT CONNECT ON DATABASE postgres TO jobwarden_runner;
        SELECT cron.schedule('x', '0 0 * * *', 'SELECT 1');
        ALTER DATABASE app SET work_mem = '5MB';
    """
    with psycopg.connect(app, autocommit=True) as connection:
        connection.execute(leave.encode())
        connection.execute("CREATE DATABASE left_over")
        connection.execute("ALTER SYSTEM SET work_mem = '6MB'")

    emptying.empty(cluster)

    count = """
        SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace)
             + (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace)
             + (SELECT count(*) FROM pg_type WHERE typnamespace = 'public'::regnamespace)
             + (SELECT count(*) FROM pg_namespace WHERE nspname = 'Jobs')
             + (SELECT count(*) FROM pg_roles WHERE oid >= 16384)
             + (SELECT count(*) FROM pg_database WHERE datname = 'left_over')
             + (SELECT count(*) FROM cron.job)
    """
    assert _ask(app, count) == 0
    assert _ask(app, "SELECT count(*) FROM pg_extension WHERE extname = 'pg_cron'") == 1
    _wait_until(lambda: _ask(app, "SHOW work_mem") == "4MB")


def test_the_state_folder_follows_the_environment() -> None:
    chosen = {"JOBWARDEN_STATE": "/somewhere/mine", "XDG_STATE_HOME": "/xdg"}

    assert persistent.state_folder(chosen) == Path("/somewhere/mine")
    assert persistent.state_folder({}, root=True) == Path("/var/lib/jobwarden/local")
    assert persistent.state_folder({"XDG_STATE_HOME": "/xdg"}, root=False) == Path(
        "/xdg/jobwarden/local"
    )
    assert persistent.state_folder({}, root=False) == (
        Path.home() / ".local" / "state" / "jobwarden" / "local"
    )


def test_the_url_carries_odd_names(cluster: Cluster) -> None:
    parts = urlsplit(cluster.url("a/b?c", user="o'neil@x"))

    assert (parts.netloc, parts.path) == ("o%27neil%40x@", "/a%2Fb%3Fc")


def _ask(url: str, query: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def _python(script: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def _first_line(parent: subprocess.Popen[str]) -> tuple[Path, int]:
    assert parent.stdout is not None
    folder, pid = parent.stdout.readline().split()
    return Path(folder), int(pid)


def _in_a_fork(work: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _exists(pid: int | None) -> bool:
    assert pid is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GONE_WITHIN_SECONDS
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
