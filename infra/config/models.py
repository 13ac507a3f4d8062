"""The environment as values: pydantic models of every key a stack file may hold.

Each field carries its default and the sentence an editor shows. A model knows only its own
fields; what holds between fields is in ``config.faults``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Literal, get_args

from pydantic import ConfigDict, Field, Strict

from infra.config import box_fields, fields
from infra.config.alert_models import Alerts
from infra.config.aws_models import Rds
from infra.config.block import Block
from infra.config.box_models import BoxEntry, Service
from infra.config.preview_models import Preview
from infra.identifiers import TableName
from infra.schedules import OURS, Schedule

_WATCHDOG, _CLEANUP = OURS
_WHY: Final = "declared in the environment file"


class CronSettings(Block):
    """Where pg_cron keeps its schedules. None leaves the server's own setting alone."""

    database: fields.Database | None = Field(
        None, description="Value of cron.database_name: the database pg_cron lives in."
    )
    timezone: fields.TimeZone | None = Field(
        None, description="Value of cron.timezone (pg_cron 1.5 and later), such as Europe/Berlin."
    )
    enabled: bool = Field(
        default=True, description="On a box, false: no pg_cron; a systemd timer does the work."
    )


class Postgres(Block):
    """The server and the database that holds the jobs."""

    version: fields.Version | None = Field(None, description="Major version of PostgreSQL.")
    database: fields.Database | None = Field(None, description="Database that holds the jobs.")
    cron: CronSettings = Field(default_factory=CronSettings, description="Settings of pg_cron.")
    preload: Annotated[tuple[box_fields.Library, ...], Strict(strict=False)] = Field(
        (), description="Libraries to preload besides pg_cron."
    )
    settings: dict[box_fields.SettingName, box_fields.SettingValue] = Field(
        default_factory=dict, description="Settings of the server, such as work_mem: 16MB."
    )
    packages: Literal["distribution", "pgdg"] = Field(
        "distribution", description="On a box: whose packages to install, Debian's or PGDG's."
    )


# The columns of our own table that cannot be renamed (sql/10_adapter.sql).
OTHER_COLUMNS: Final = ("created_at", "payload", "result", "worker")


class Columns(Block):
    """The jobs table's column for each of ours. The names are real ones: unquoted and folded."""

    model_config = ConfigDict(alias_generator=None)

    id: fields.Column = Field("id", description="Primary key.")
    status: fields.Column = Field("status", description="State of the job.")
    action: fields.Column = Field("action", description="What the job does; limits go by it.")
    started_at: fields.Column = Field("started_at", description="When a worker began.")
    completed_at: fields.Column = Field("completed_at", description="When it ended.")
    error: fields.Column = Field("error", description="Why it failed, as jsonb.")


class States(Block):
    """The text in the status column for each state."""

    queued: fields.State = Field("queued", description="Waiting for a worker.")
    running: fields.State = Field("running", description="A worker has it.")
    done: fields.State = Field("done", description="Ended well.")
    failed: fields.State = Field("failed", description="Ended badly, or was rescued.")


class Jobs(Block):
    """The jobs table."""

    table: fields.Table = Field(
        TableName("public", "jobs"),
        description="name or schema.name; each part plain (folded as in SQL) or double-quoted.",
    )
    create: fields.Created = Field(default=True, description="Make the table when it is not there.")
    columns: Columns = Field(default_factory=Columns, description="Names of the columns.")
    states: States = Field(default_factory=States, description="Texts of the states.")
    guard: bool = Field(default=True, description="A finished job is final, by a trigger.")


class ActionLimit(Block):
    """The watchdog's rule for one action."""

    timeout: fields.TimeoutOrNever = Field(
        ..., description="How long such a job may run; never for no limit."
    )


class Watchdog(Block):
    """When the watchdog sweeps, and how long a job may run."""

    schedule: fields.CronText = Field(_WATCHDOG.schedule, description="When to sweep.")
    timeout: fields.Timeout = Field(
        timedelta(minutes=10), description="How long a job may run, such as 10m."
    )
    actions: dict[fields.Action, ActionLimit] = Field(
        default_factory=dict, description="Limits of single actions."
    )


class ActionRetention(Block):
    """The cleanup's rule for one action."""

    retention: fields.Retention = Field(
        ..., description="How long a finished job is kept; forever for no limit."
    )


class Cleanup(Block):
    """When finished jobs go, and how long they are kept. A retention of None keeps for ever."""

    schedule: fields.CronText = Field(_CLEANUP.schedule, description="When to clean up.")
    retention: fields.Retention = Field(
        timedelta(hours=24), description="How long a finished job is kept, such as 24h, or forever."
    )
    actions: dict[fields.Action, ActionRetention] = Field(
        default_factory=dict, description="Retention of single actions."
    )


class ScheduleEntry(Block):
    """A schedule of the user's own."""

    name: fields.UserSchedule = Field(description="Its name in cron.job, up to 63 bytes.")
    schedule: fields.CronText = Field(description="When it fires, as pg_cron reads it.")
    command: fields.Command = Field(description="One SQL statement.")


class Environment(Block):
    """One environment: all that a stack file says under ``jobwarden:``."""

    target: Literal["local", "existing", "box", "rds", "aurora"] = Field(
        "existing",
        description="Where Postgres lives: a private cluster, any URL, boxes of your own, or AWS.",
    )
    database_url: fields.DatabaseUrl | None = Field(
        None, description="postgresql:// URL, never with a password."
    )
    postgres: Postgres = Field(
        default_factory=Postgres, description="The server and its databases."
    )
    jobs: Jobs = Field(default_factory=Jobs, description="The jobs table.")
    watchdog: Watchdog = Field(default_factory=Watchdog, description="Rescue of stuck jobs.")
    cleanup: Cleanup = Field(default_factory=Cleanup, description="Removal of finished jobs.")
    entries: Annotated[tuple[ScheduleEntry, ...], Strict(strict=False)] = Field(
        (), alias="schedules", description="Schedules of your own."
    )
    alerts: Alerts = Field(
        default_factory=Alerts, description="Who hears of which failure, by its code."
    )
    boxes: Annotated[tuple[BoxEntry, ...], Strict(strict=False)] = Field(
        (), description="Servers of your own, for `pyinfra inventory.py deploy.py`."
    )
    services: dict[box_fields.UnitName, Service] = Field(
        default_factory=dict, description="Programs that run on each box, as systemd units."
    )
    rds: Rds = Field(
        default_factory=Rds, description="For target rds and aurora: what to make on AWS."
    )
    preview: Preview = Field(
        default_factory=Preview, description="Which changes fail a preview, or need a label."
    )
    strict: bool = Field(default=False, description="Turn warnings into errors.")
    register_from: Literal["pulumi", "boot", "command"] = Field(
        "pulumi",
        description="Who makes the final step: pulumi up, the application's start, or jobwarden.",
    )
    abandon_on_destroy: bool = Field(
        default=False,
        description="Let pulumi destroy leave the schedules of a database it cannot reach.",
    )
    database_password: fields.Encrypted | None = Field(
        None,
        description="For pulumi up only: pulumi config set --secret jobwarden:databasePassword.",
    )

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """The user's own schedules, in the order of the file."""
        return tuple(
            Schedule(entry.name, entry.schedule, entry.command, _WHY) for entry in self.entries
        )


# Keys that other versions have: refused as such, not as a slip of the pen.
LATER_KEYS: Final[dict[type[Block], frozenset[str]]] = {
    Environment: frozenset(
        {
            "heartbeat",
        }
    ),
    Watchdog: frozenset({"heartbeat"}),
    ActionLimit: frozenset({"maxAttempts", "onTimeout"}),
}


def keys(model: type[Block]) -> dict[str, str]:
    """Return the keys of a model as users write them, each with its attribute."""
    return {field.alias or name: name for name, field in model.model_fields.items()}


def model_at(path: tuple[int | str, ...]) -> type[Block] | None:
    """Return the model of the block at a path, or None where no block can be."""
    model: type[Block] | None = Environment
    inside = False
    for part in path:
        if model is None:
            return None
        if inside:
            inside = False
            continue
        name = keys(model).get(str(part))
        if name is None:
            return None
        annotation = model.model_fields[name].annotation
        model = _block_in(annotation)
        inside = annotation is not model
    return model


def _block_in(annotation: object) -> type[Block] | None:
    if isinstance(annotation, type) and issubclass(annotation, Block):
        return annotation
    found = (_block_in(argument) for argument in get_args(annotation))
    return next((model for model in found if model), None)
