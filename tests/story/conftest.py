"""A private cluster for this tier, and a fresh database with the example service in it."""

from __future__ import annotations

import importlib.util
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import httpx
import psycopg
import pytest

from infra.errors import InfraError
from infra.local.cluster import Cluster
from infra.local.servers import find_server
from tests.story.service import EXAMPLE, Service

Missing = Callable[[str], NoReturn]
# Programs that some tests run, by the Debian package that brings each.
PACKAGES = {
    "chromium": "chromium",
    "faketime": "faketime",
    "prometheus": "prometheus",
    "prometheus-node-exporter": "prometheus-node-exporter",
    "promtool": "prometheus",
}
NEEDS = ("fpdf", "psycopg_pool", "starlette", "uvicorn")


@pytest.fixture(scope="session")
def cluster(missing: Missing) -> Iterator[Cluster]:
    """A cluster without pg_cron: the tests sweep by themselves."""
    lacking = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if lacking:
        missing(f"no {', '.join(lacking)}: uv sync --inexact --group service")
    try:
        server = find_server()
    except InfraError as error:
        missing(str(error))
    # Tests kill the server: what was committed must have left its memory, if not reached the disk.
    settings = {"synchronous_commit": "on"}
    with Cluster.create(server, pg_cron=False, durable=False, settings=settings) as cluster:
        yield cluster


@pytest.fixture
def database(cluster: Cluster) -> str:
    """The URL of a fresh database."""
    return fresh_database(cluster)


@pytest.fixture(scope="module")
def standing(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, httpx.Client]]:
    """A service and its API for all tests of a module that leave nothing behind."""
    folder = tmp_path_factory.mktemp("standing")
    with Service(fresh_database(cluster), folder, {}) as service:
        yield service, service.start_api()


def fresh_database(cluster: Cluster) -> str:
    """Make an empty database; return its URL."""
    cluster.start()
    name = f"story_{secrets.token_hex(4)}"
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return cluster.url(name)


@pytest.fixture
def serve(database: str, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Makes the service for an environment given by its sections."""
    with ExitStack() as stack:

        def make(**sections: Any) -> Service:
            return stack.enter_context(Service(database, tmp_path, sections))

        yield make


@pytest.fixture
def service(serve: Callable[..., Service]) -> Service:
    """The service with the defaults; none of its processes runs yet."""
    return serve()


@pytest.fixture(scope="session")
def program(missing: Missing, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built worker."""
    go = shutil.which("go") or missing("no Go: install it, or run the Python worker only")
    built = tmp_path_factory.mktemp("go") / "worker"
    argv = [go, "build", "-o", str(built), "."]
    told = subprocess.run(
        argv, cwd=EXAMPLE / "worker-go", capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    return built


@pytest.fixture(scope="session")
def tool(missing: Missing) -> Callable[[str], str]:
    """Finds a program of PACKAGES; without it the test is skipped."""

    def found(name: str) -> str:
        return shutil.which(name) or missing(f"no {name}: apt-get install {PACKAGES[name]}")

    return found
