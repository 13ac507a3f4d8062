"""What is rendered for ``shared_preload_libraries`` is what a real server reads."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infra import preload
from infra.local.cluster import Cluster

Missing = Callable[[str], NoReturn]

# No surrogate, which is no text, and no NUL and line break, which are refused.
NAMES = st.one_of(
    st.sampled_from(
        [
            *("pg_cron", "$libdir/pg_cron", "PG_CRON", "my lib", " pad ", "a,b", 'q"uote', '"'),
            *(
                "it's",
                "''",
                "back\\slash",
                "\\",
                "tab\there",
                "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
                "#",
            ),
        ]
    ),
    st.text(
        st.characters(exclude_characters="\0\r\n", exclude_categories=["Cs"]),
        min_size=1,
        max_size=12,
    ),
)
LISTS = st.lists(NAMES, min_size=1, max_size=5)
SLOW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FILES = ["plain", "my lib", "a,b", 'q"uote', "it's", "back\\slash", "UPPER", "dot.so", " pad "]


@pytest.fixture
def connection(empty_cluster: Cluster) -> Iterator[psycopg.Connection]:
    """A superuser's connection; what it writes with ALTER SYSTEM never comes into force."""
    with psycopg.connect(empty_cluster.url("postgres"), autocommit=True) as connection:
        yield connection
        connection.execute("ALTER SYSTEM RESET shared_preload_libraries")


@pytest.fixture
def conf(cluster: Cluster) -> Iterator[Path]:
    """A configuration file beside the cluster's own, which nothing else reads."""
    file = cluster.folder / "roundtrip.conf"
    yield file
    file.unlink(missing_ok=True)


@pytest.fixture
def libraries(
    cluster: Cluster, connection: psycopg.Connection, missing: Missing
) -> Iterator[list[str]]:
    """Files with difficult names, each of them a library that a server can load."""
    if not os.access("/proc/self/maps", os.R_OK):
        missing("Linux: /proc tells what a process has loaded")
    row = connection.execute(
        "SELECT setting || '/latin2_and_win1250.so' FROM pg_config() WHERE name = 'PKGLIBDIR'"
    ).fetchone()
    assert row is not None
    folder = cluster.folder / "libraries"
    folder.mkdir(mode=0o755)
    for name in FILES:
        shutil.copy(row[0], folder / name)
    yield [str(folder / name) for name in FILES]
    shutil.rmtree(folder)


def shown_by(cluster: Cluster, conf: Path) -> str:
    """What ``postgres -C`` prints: the server reads the file and starts nothing."""
    conf.chmod(0o644)
    argv = [cluster.server.program("postgres"), "-C", "shared_preload_libraries"]
    argv += ["-D", str(cluster.data), f"--config-file={conf}"]
    done = cluster.owner.run(argv, folder=cluster.folder)
    assert done.returncode == 0, done.stdout
    return done.stdout.removesuffix("\n")


@SLOW
@given(libs=LISTS)
def test_a_conf_line_is_read_back_the_same(cluster: Cluster, conf: Path, libs: list[str]) -> None:
    text = preload.render_list(libs)
    line = f"shared_preload_libraries = {preload.render_conf_value(text)}\n"
    conf.write_text(line, encoding="utf-8")
    assert shown_by(cluster, conf) == text
    assert list(preload.parse(shown_by(cluster, conf))) == libs


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "\t a,\n b \f", "'", "\\n", "x" * 900])
def test_any_text_survives_a_conf_line(cluster: Cluster, conf: Path, text: str) -> None:
    line = f"shared_preload_libraries = {preload.render_conf_value(text)}\n"
    conf.write_bytes(line.encode())
    assert "\n" not in line.removesuffix("\n")
    assert shown_by(cluster, conf).encode() == text.replace("\r\n", "\n").encode()


@SLOW
@given(libs=LISTS)
def test_alter_system_is_read_back_the_same(
    connection: psycopg.Connection, libs: list[str]
) -> None:
    written = preload.render_alter_system(libs)
    connection.execute(f"ALTER SYSTEM SET shared_preload_libraries = {written}".encode())
    row = connection.execute(
        "SELECT setting FROM pg_file_settings WHERE name = 'shared_preload_libraries'"
        " AND sourcefile ~ 'postgresql.auto.conf$'"
    ).fetchone()
    assert row is not None
    assert list(preload.parse(row[0])) == libs


def loaded(url: str, options: str, libraries: Sequence[str]) -> list[str]:
    """Which of the libraries the server has loaded for a session."""
    with psycopg.connect(url, options=options) as session:
        maps = Path(f"/proc/{session.info.backend_pid}/maps").read_text(encoding="utf-8")
    return [each for each in libraries if re.search(re.escape(each) + "$", maps, re.MULTILINE)]


def test_without_a_list_none_of_the_libraries_is_loaded(
    database: str, libraries: list[str]
) -> None:
    assert loaded(database, "", libraries) == []


def test_the_server_loads_each_element_of_a_rendered_list(
    database: str, libraries: list[str]
) -> None:
    text = preload.render_list(libraries)
    escaped = re.sub(r"([\\ ])", r"\\\1", text)
    assert loaded(database, f"-c session_preload_libraries={escaped}", libraries) == libraries


def test_the_server_loads_each_literal_of_an_alter_statement(
    connection: psycopg.Connection, database: str, libraries: list[str]
) -> None:
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]
    value = preload.render_alter_system(libraries)
    connection.execute(f"ALTER DATABASE {name} SET session_preload_libraries = {value}".encode())
    assert loaded(database, "", libraries) == libraries


@pytest.mark.parametrize("text", ["a,", ",a", "a,,b", '"a', '"a"b', ","])
def test_a_list_that_we_call_broken_is_broken_for_the_server(
    cluster: Cluster, database: str, text: str
) -> None:
    before = cluster.log.read_text(encoding="utf-8").count("invalid list syntax")
    psycopg.connect(database, options=f"-c session_preload_libraries={text}").close()
    after = cluster.log.read_text(encoding="utf-8").count("invalid list syntax")
    assert after == before + 1
