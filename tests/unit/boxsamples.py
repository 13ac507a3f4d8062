"""Boxes as they could be found, for the tests of what is decided from them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

from infra import config, plan, sqltext
from infra.box_decision import Target
from infra.boxes import Box, BoxServer, Cluster, EnvFile, FileLine, ServerSetting, UnitState
from infra.config.box_models import BoxEntry
from infra.units import Wanted

MAIN = Cluster("15", "main", 5432, "online", "postgres", "/var/lib/postgresql/15/main", "/log")
CONF = f"{MAIN.folder}/postgresql.conf"
AUTO = f"{MAIN.data}/postgresql.auto.conf"
HBA = "# comment\nlocal   all   postgres   peer\nlocal   all   all   peer\nhost all all all scram\n"
IDENT = "# MAPNAME SYSTEM-USERNAME PG-USERNAME\n"


UP = UnitState("loaded", "active", "running", "enabled", "/etc/systemd/system/x", "success", 0)


def line(name: str, value: str, file: str = CONF, number: int = 10) -> FileLine:
    """A line of a configuration file."""
    return FileLine(name, value, file, number, applied=True, error=None)


def setting(
    value: str, *, pending: bool = False, source: str = "configuration file", context: str = ""
) -> ServerSetting:
    """A setting in force; ``context`` is postmaster unless said."""
    return ServerSetting(value, source, context or "postmaster", pending)


def server(*lines: FileLine, **settings: ServerSetting) -> BoxServer:
    """A running server; ``settings`` by name with ``__`` for a dot."""
    given = {name.replace("__", "."): value for name, value in settings.items()}
    return BoxServer(
        version_num=150018,
        in_recovery=False,
        identifier="7001",
        databases=("postgres", "app"),
        settings={
            "shared_preload_libraries": setting("", source="default"),
            "unix_socket_directories": setting("/var/run/postgresql"),
            "max_worker_processes": setting("8"),
        }
        | given,
        files=lines,
        hba=HBA,
        ident=IDENT,
        roles={},
    )


def box(**more: Any) -> Box:
    """A Debian 12 with PostgreSQL 15 and pg_cron 1.4.2 installed, and nothing of ours."""
    found = Box(
        os_id="debian",
        codename="bookworm",
        packages={"postgresql-15": "15.18", "postgresql-15-cron": "1.4.2"},
        sources=None,
        clusters=(MAIN,),
        chosen=MAIN,
        conf=None,
        includes="820:include_dir = 'conf.d'\t\t\t# include files\n",
        libraries=frozenset({"pg_cron.so", "auto_explain.so", "pg_stat_statements.so"}),
        cron_version="1.4-1",
        proof=None,
        server=server(),
        server_error="",
        observed=None,
        observed_error="",
        systemd=True,
        files={},
        units={},
        fallback=None,
        envs={},
        users=frozenset(),
    )
    return dataclasses.replace(found, **more)


def converged(wanted: Wanted, **more: Any) -> Box:
    """A box whose services are just what is wanted."""
    envs = {
        name: EnvFile("640", "root", wanted.groups[name], hashlib.sha256(text.encode()).hexdigest())
        for name, text in wanted.envs.items()
    }
    found = {
        "files": dict(wanted.files),
        "envs": envs,
        "units": dict.fromkeys(wanted.running, UP),
        "users": frozenset(wanted.users),
    }
    return box(**(found | more))


def bare(**more: Any) -> Box:
    """A Debian 12 without any Postgres."""
    nothing: dict[str, Any] = {
        "packages": {},
        "clusters": (),
        "chosen": None,
        "includes": "",
        "libraries": frozenset(),
        "cron_version": None,
        "server": None,
    }
    return box(**(nothing | more))


def target(
    *, allow_restart: bool = True, entry: dict[str, Any] | None = None, **keys: Any
) -> Target:
    """What is wanted of the box ``db1``."""
    environment = config.parse({"target": "box", **json.loads(json.dumps(keys))})
    return Target(
        environment=environment,
        plan=plan.build(environment, sqltext.render(environment)),
        entry=BoxEntry.model_validate({"host": "db1", **(entry or {})}),
        secrets={"TOKEN": "open sesame"},
        allow_restart=allow_restart,
        fallback_script="#!/bin/sh\n",
    )
