"""What each extension needs of a server: the one place where library rules are written down.

Sources: the ``DefineCustom*Variable`` calls in pg_cron's ``src/pg_cron.c`` from tag v1.0.0 to
v1.6.7; the Postgres manual for ``pg_stat_statements`` and ``auto_explain``; the AWS guides for RDS
and Aurora ("Scheduling maintenance with the PostgreSQL pg_cron extension"). The tests compare the
tables with ``pg_settings`` of a running server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Context = Literal["postmaster", "sighup", "superuser"]
Kind = Literal["text", "bool", "integer", "real", "enum", "timezone"]

_QUIET_LEVELS = (
    *("debug5", "debug4", "debug3", "debug2", "debug1", "debug"),
    *("info", "notice", "warning", "log"),
)
_LEVELS = (*_QUIET_LEVELS, "error", "fatal", "panic")


@dataclass(frozen=True, slots=True)
class SettingRule:
    """One setting of an extension.

    ``context`` is the column of that name in ``pg_settings``. ``since`` is the first version of
    the extension that has the setting, or None: all that are still in use. Before it, Postgres
    takes the value as a placeholder, shows it, and nothing obeys it. ``default`` is None where it
    depends on other settings. ``managed`` is False where RDS and Aurora do not let it be changed.
    """

    context: Context
    kind: Kind
    default: str | None = None
    since: str | None = None
    choices: tuple[str, ...] = ()
    managed: bool = True

    @property
    def static(self) -> bool:
        """Tell whether a change needs a restart (on RDS: ``pending-reboot``)."""
        return self.context == "postmaster"


@dataclass(frozen=True, slots=True)
class Extension:
    """One extension and its library, which have the same name.

    ``preload``: loaded from ``shared_preload_libraries``. ``create``: needs CREATE EXTENSION.
    ``first``: goes before all other libraries; ``or_fails``: elsewhere the server does not start.
    ``after``: libraries that must come before it.
    """

    name: str
    preload: bool
    create: bool
    first: bool = False
    or_fails: bool = False
    after: tuple[str, ...] = ()
    settings: Mapping[str, SettingRule] = field(default_factory=dict)


_PG_CRON = Extension(
    "pg_cron",
    preload=True,
    create=True,
    settings=MappingProxyType(
        {
            "cron.database_name": SettingRule("postmaster", "text", "postgres"),
            "cron.log_statement": SettingRule("postmaster", "bool", "on"),
            "cron.log_run": SettingRule("postmaster", "bool", "on", since="1.3"),
            # A user could set it in 1.4.0 and 1.4.1; since 1.4.2 it needs a restart.
            "cron.enable_superuser_jobs": SettingRule("postmaster", "bool", "on", since="1.4"),
            "cron.host": SettingRule("postmaster", "text", "localhost", managed=False),
            "cron.use_background_workers": SettingRule(
                "postmaster", "bool", "off", since="1.3", managed=False
            ),
            # At most 32 with client connections, at most 5 with background workers.
            "cron.max_running_jobs": SettingRule("postmaster", "integer"),
            "cron.log_min_messages": SettingRule(
                "sighup", "enum", "warning", since="1.4", choices=_LEVELS
            ),
            "cron.timezone": SettingRule("postmaster", "timezone", "GMT", since="1.5"),
            "cron.launch_active_jobs": SettingRule("sighup", "bool", "on", since="1.6"),
        }
    ),
)

_PG_STAT_STATEMENTS = Extension(
    "pg_stat_statements",
    preload=True,
    create=True,
    settings=MappingProxyType(
        {
            "pg_stat_statements.max": SettingRule("postmaster", "integer", "5000"),
            "pg_stat_statements.track": SettingRule(
                "superuser", "enum", "top", choices=("none", "top", "all")
            ),
            "pg_stat_statements.track_utility": SettingRule("superuser", "bool", "on"),
            "pg_stat_statements.track_planning": SettingRule(
                "superuser", "bool", "off", since="1.8"
            ),
            "pg_stat_statements.save": SettingRule("sighup", "bool", "on"),
        }
    ),
)

_AUTO_EXPLAIN = Extension(
    "auto_explain",
    preload=True,
    create=False,
    settings=MappingProxyType(
        {
            "auto_explain.log_min_duration": SettingRule("superuser", "integer", "-1"),
            "auto_explain.log_analyze": SettingRule("superuser", "bool", "off"),
            "auto_explain.log_buffers": SettingRule("superuser", "bool", "off"),
            "auto_explain.log_wal": SettingRule("superuser", "bool", "off"),
            "auto_explain.log_timing": SettingRule("superuser", "bool", "on"),
            "auto_explain.log_triggers": SettingRule("superuser", "bool", "off"),
            "auto_explain.log_verbose": SettingRule("superuser", "bool", "off"),
            "auto_explain.log_settings": SettingRule("superuser", "bool", "off"),
            "auto_explain.log_nested_statements": SettingRule("superuser", "bool", "off"),
            "auto_explain.log_format": SettingRule(
                "superuser", "enum", "text", choices=("text", "xml", "json", "yaml")
            ),
            "auto_explain.log_level": SettingRule(
                "superuser", "enum", "log", choices=_QUIET_LEVELS
            ),
            "auto_explain.sample_rate": SettingRule("superuser", "real", "1"),
        }
    ),
)

# Those that go first stand in this order: citus refuses to start behind a library with hooks, and
# timescaledb asks for the front. pg_stat_kcache reads what pg_stat_statements counts.
EXTENSIONS: Mapping[str, Extension] = MappingProxyType(
    {
        extension.name: extension
        for extension in (
            Extension("citus", preload=True, create=True, first=True, or_fails=True),
            Extension("timescaledb", preload=True, create=True, first=True),
            _PG_STAT_STATEMENTS,
            Extension("pg_stat_kcache", preload=True, create=True, after=("pg_stat_statements",)),
            _PG_CRON,
            _AUTO_EXPLAIN,
            Extension("pg_tle", preload=True, create=True),
            Extension("pgaudit", preload=True, create=True),
        )
    }
)

# RDS and Aurora put these around whatever the parameter group says. SHOW has them, a group never.
MANAGED_OWN = frozenset({"rdsutils", "rds_casts"})

# A value in a parameter group replaces the default of its family, so ours starts from the default.
# A new group shows what that is: postgres18 was seen with pg_tle, older families without.
_MANAGED_DEFAULT = ("pg_stat_statements",)
_MANAGED_DEFAULTS = MappingProxyType({"postgres18": ("pg_tle", "pg_stat_statements")})


def managed_default(family: str | None) -> tuple[str, ...]:
    """Return the libraries that a parameter group of ``family`` preloads when nobody set any."""
    return _MANAGED_DEFAULTS.get(family or "", _MANAGED_DEFAULT)


def find_setting(name: str) -> SettingRule | None:
    """Return the rule of an extension's setting, or None if no extension here has it."""
    extension = next((each for each in EXTENSIONS.values() if name in each.settings), None)
    return extension.settings[name] if extension else None
