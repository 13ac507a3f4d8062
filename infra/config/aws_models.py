"""The part of an environment that is about RDS and Aurora: the keys under ``rds``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, Strict

from infra.config import aws_fields as kinds
from infra.config.block import Block


class OtherParameter(Block):
    """A parameter that our table does not know."""

    value: kinds.ParameterValue = Field(description="Its value, in the unit that AWS has.")
    static: bool = Field(description="Whether it needs a reboot, as describe-db-parameters says.")


class Serverless(Block):
    """Aurora Serverless v2, in capacity units. Used with instanceClass: db.serverless."""

    minimum: kinds.Capacity = Field(0.5, description="The least it keeps.")
    maximum: kinds.Capacity = Field(4.0, description="The most it takes.")


class Rds(Block):
    """A database of AWS: its parameter group, and the instance or cluster where we make it."""

    parameter_group_only: bool = Field(
        default=False, description="Make the parameter group; you attach it yourself."
    )
    family: str | None = Field(
        None, description="Family of the parameter group; follows from postgres.version."
    )
    engine_version: kinds.EngineVersion | None = Field(
        None, description="Full engine version, such as 16.10; without it AWS picks the minor."
    )
    identifier: kinds.Identifier | None = Field(
        None, description="Name of the instance or cluster; without it Pulumi makes one."
    )
    instance_class: kinds.InstanceClass = Field(
        "db.t4g.medium", description="Class of the instances."
    )
    instances: kinds.Instances = Field(1, description="Aurora: how many, the writer among them.")
    serverless: Serverless | None = Field(None, description="Aurora: limits of serverless v2.")
    allocated_storage: kinds.Storage = Field(20, description="RDS: GiB of storage.")
    max_allocated_storage: kinds.Storage | None = Field(
        None, description="RDS: GiB up to which it grows by itself."
    )
    multi_az: bool = Field(default=False, description="RDS: keep a standby in another zone.")
    username: kinds.Username = Field("postgres", description="Name of the master.")
    manage_password: bool = Field(
        default=True,
        description="Let Secrets Manager keep the master's password; of an adopted one: change it.",
    )
    kms_key_id: str | None = Field(None, description="ARN of the key for storage and secret.")
    vpc_id: kinds.Vpc | None = Field(None, description="VPC of the security group we make.")
    subnet_ids: Annotated[tuple[kinds.Subnet, ...], Strict(strict=False)] = Field(
        (), description="Subnets to make a subnet group of, in two zones or more."
    )
    subnet_group: str | None = Field(None, description="Name of a subnet group that is there.")
    security_group_ids: Annotated[tuple[kinds.SecurityGroup, ...], Strict(strict=False)] = Field(
        (), description="Security groups that are there; without them we make one."
    )
    allow_from: Annotated[tuple[kinds.Source, ...], Strict(strict=False)] = Field(
        (), description="Ranges or security groups that the group we make lets in."
    )
    backup_retention: kinds.Days = Field(7, description="Days that automatic backups are kept.")
    performance_insights: bool | None = Field(
        None, description="Performance Insights; on wherever the instance class has it."
    )
    deletion_protection: bool = Field(default=True, description="Let nobody delete it.")
    final_snapshot: bool = Field(default=True, description="Take a snapshot before it goes.")
    allow_major_version_upgrade: bool = Field(
        default=False, description="Let a new postgres.version upgrade the database in place."
    )
    apply_immediately: bool = Field(
        default=False, description="Make changes now, not in the next maintenance window."
    )
    parameters: dict[kinds.ParameterName, OtherParameter] = Field(
        default_factory=dict, description="Parameters that postgres.settings does not know."
    )
    instance_settings: dict[kinds.ParameterName, kinds.ParameterValue] = Field(
        default_factory=dict, description="Aurora: settings of the instances' own group."
    )
    existing_preload: kinds.PreloadText | None = Field(
        None, description="Of an adopted group: the shared_preload_libraries it has."
    )
    allow_preload_removal: bool = Field(
        default=False, description="Let a library leave shared_preload_libraries."
    )
    reboot_when_pending: bool = Field(
        default=False, description="Reboot when a parameter waits for it, readers first."
    )
    reboot_window: kinds.RebootWindow | None = Field(
        None, description="The same, but only in this time of the day, in UTC: 02:00-04:00."
    )
    ca_file: str | None = Field(
        None, description="File with the CA certificates of RDS, to check the server's with."
    )
    tags: dict[str, str] = Field(default_factory=dict, description="Tags of all that is made.")
