"""The part of an environment that is about boxes: servers of one's own, and their services."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field, Strict

from infra.config import box_fields as kinds
from infra.config import fields
from infra.config.block import Block


class BoxEntry(Block):
    """One box, reached over ssh. ``port`` and ``cluster`` choose the Postgres on it."""

    host: kinds.Host = Field(description="Name or address for ssh.")
    cluster: kinds.Cluster | None = Field(
        None, description="VERSION/NAME as pg_lsclusters prints them, where there are several."
    )
    port: kinds.Port | None = Field(None, description="Port of the cluster, to choose it by.")
    allow_restart: bool = Field(
        default=False, description="Restart Postgres when a change needs it."
    )
    ssh_user: kinds.User | None = Field(None, description="User for ssh; root, or one with sudo.")
    ssh_port: kinds.Port | None = Field(None, description="Port of ssh.")
    ssh_key: str | None = Field(None, description="File with the private key for ssh.")


class Service(Block):
    """A program that runs on each box, as a systemd unit; with ``instances`` as a template."""

    command: kinds.Command = Field(description="Absolute path of the program, and its arguments.")
    description: str | None = Field(None, description="What `systemctl status` shows.")
    instances: kinds.Instances | None = Field(
        None, description="How many of it run, as NAME@1, NAME@2 and so on."
    )
    every: fields.Timeout | None = Field(
        None, description="It runs, ends, and runs again this often, by a timer: 30s, 5m, 1d."
    )
    user: kinds.User | None = Field(
        None, description="User it runs as; without one, a system user of its own is made."
    )
    database_role: kinds.DatabaseRole | None = Field(
        None,
        description="Its user gets a login of the same name in Postgres, without a password, as a"
        " member of this role; DATABASE_URL leads there.",
    )
    working_directory: kinds.AbsolutePath | None = Field(None, description="Folder it starts in.")
    environment: dict[kinds.VariableName, kinds.VariableValue] = Field(
        default_factory=dict, description="Variables it gets. Nothing secret."
    )
    secrets: Annotated[tuple[kinds.VariableName, ...], Strict(strict=False)] = Field(
        (), description="Variables it gets from the environment of whoever deploys."
    )
    writable: Annotated[tuple[kinds.AbsolutePath, ...], Strict(strict=False)] = Field(
        (), description="Folders it may write to, besides its own under /var/lib/jobwarden."
    )
    memory_max: kinds.Memory | None = Field(
        None, description="Memory beyond which the kernel ends it, such as 512M."
    )
    drain: fields.Timeout = Field(
        timedelta(seconds=30), description="Time from SIGTERM to SIGKILL when it is stopped."
    )
