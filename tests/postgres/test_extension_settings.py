"""The table of settings says what a real server says."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from infra.cronexpr import parse_version
from infra.extensions import EXTENSIONS, SettingRule
from infra.local.cluster import Cluster

Shown = dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def statements_cluster(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster of its own, since these settings exist only where the library is preloaded."""
    options = {"shared_preload_libraries": "pg_stat_statements,auto_explain"}
    with Cluster.create(cluster.server, pg_cron=False, durable=False, settings=options) as other:
        yield other


def shown(url: str, prefix: str) -> Shown:
    """Context and default of each setting that the server has under a prefix."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT name, context, boot_val FROM pg_settings WHERE starts_with(name, %s)", [prefix]
        ).fetchall()
    return {name: (context, default) for name, context, default in rows}


def expected(rules: dict[str, SettingRule], actual: Shown) -> Shown:
    """What the table says; a default that depends on other settings is taken as it is."""
    return {
        name: (
            rule.context,
            actual.get(name, ("", ""))[1] if rule.default is None else rule.default,
        )
        for name, rule in rules.items()
    }


def test_pg_cron_has_these_settings_and_no_others(app: str) -> None:
    with psycopg.connect(app) as connection:
        row = connection.execute(
            "SELECT extversion FROM pg_extension WHERE extname = 'pg_cron'"
        ).fetchone()
    assert row is not None
    version = parse_version(row[0])
    rules = {
        name: rule
        for name, rule in EXTENSIONS["pg_cron"].settings.items()
        if rule.since is None or parse_version(rule.since) <= version
    }
    actual = shown(app, "cron.")
    assert actual == expected(rules, actual)


@pytest.mark.parametrize("name", ["pg_stat_statements", "auto_explain"])
def test_the_settings_of_the_others_are_those_of_the_server(
    statements_cluster: Cluster, name: str
) -> None:
    actual = shown(statements_cluster.url(), f"{name}.")
    rules = dict(EXTENSIONS[name].settings)
    # Later releases of Postgres add settings; none is taken away.
    assert {key: actual[key] for key in rules} == expected(rules, actual)
