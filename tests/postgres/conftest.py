"""Private clusters for this tier, and fixtures that hand each test an empty place in them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any, NoReturn

import psycopg
import pytest
from psycopg import sql

from infra.errors import InfraError
from infra.local.cluster import Cluster
from infra.local.servers import find_server
from tests.postgres import emptying
from tests.postgres.jobs import Jobs

Missing = Callable[[str], NoReturn]
Install = Callable[..., Jobs]


@pytest.fixture(scope="session")
def cluster(missing: Missing) -> Iterator[Cluster]:
    """A cluster with pg_cron preloaded; its launcher works in the database ``app``."""
    yield from _cluster(missing, pg_cron=True)


@pytest.fixture(scope="session")
def plain_cluster(missing: Missing) -> Iterator[Cluster]:
    """A cluster where pg_cron is not preloaded."""
    yield from _cluster(missing, pg_cron=False)


@pytest.fixture
def empty_cluster(cluster: Cluster) -> Cluster:
    """The cluster with nothing left of earlier tests but the extension in ``app``, if there."""
    cluster.start()
    emptying.empty(cluster)
    return cluster


@pytest.fixture
def app(empty_cluster: Cluster) -> str:
    """The URL of ``app``: empty, pg_cron created there, no job, the launcher alive."""
    emptying.set_extension(empty_cluster, present=True)
    return empty_cluster.url("app")


@pytest.fixture
def bare_app(empty_cluster: Cluster) -> str:
    """The URL of ``app``: empty, pg_cron preloaded but not created."""
    emptying.set_extension(empty_cluster, present=False)
    return empty_cluster.url("app")


@pytest.fixture
def plain_app(plain_cluster: Cluster) -> str:
    """The URL of ``app`` on the cluster without pg_cron: empty."""
    plain_cluster.start()
    emptying.empty(plain_cluster)
    return plain_cluster.url("app")


@pytest.fixture
def database(empty_cluster: Cluster) -> Iterator[str]:
    """The URL of a fresh, empty database beside ``app``. It has no pg_cron."""
    name = f"test_{secrets.token_hex(4)}"
    with psycopg.connect(empty_cluster.url("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield empty_cluster.url(name)
    empty_cluster.start()
    with psycopg.connect(empty_cluster.url("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def install(database: str) -> Iterator[Install]:
    """Installs our SQL in a fresh database, for an environment given by its sections."""
    with ExitStack() as stack:

        def install(**sections: Any) -> Jobs:
            return stack.enter_context(closing(Jobs(database, sections)))

        yield install


@pytest.fixture
def jobs(install: Install) -> Jobs:
    """A fresh database with our SQL and the defaults."""
    return install()


@pytest.fixture
def cron_jobs(app: str) -> Iterator[Jobs]:
    """The database that pg_cron works in, with our SQL and the defaults."""
    with closing(Jobs(app)) as jobs:
        yield jobs


def _cluster(missing: Missing, *, pg_cron: bool) -> Iterator[Cluster]:
    try:
        server = find_server(pg_cron=pg_cron or None)
    except InfraError as error:
        missing(str(error))
    with Cluster.create(server, pg_cron=pg_cron, durable=False) as cluster:
        yield cluster
