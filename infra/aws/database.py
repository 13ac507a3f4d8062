"""An RDS instance: encrypted, private, backed up, its master's password kept by Secrets Manager."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_aws import rds as aws_rds

from infra.aws.names import child_of, named
from infra.aws.network import Network


@dataclass(frozen=True, slots=True)
class DatabaseArgs:
    """What an instance and a cluster have in common. ``database``: made at first, None for none.

    ``deletion_protection`` holds in Pulumi too, so that a destroy is refused before it has begun
    and a change that would replace the database is refused in the preview.
    """

    engine_version: str
    instance_class: str
    group: pulumi.Input[str]
    network: Network
    database: str | None
    username: str
    manage_password: bool = True
    identifier: str | None = None
    kms_key_id: str | None = None
    backup_retention: int = 7
    performance_insights: bool = True
    deletion_protection: bool = True
    final_snapshot: bool = True
    allow_major_version_upgrade: bool = False
    apply_immediately: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InstanceArgs:
    """An RDS instance; sizes in GiB."""

    common: DatabaseArgs
    allocated_storage: int
    max_allocated_storage: int | None = None
    multi_az: bool = False

    def __post_init__(self) -> None:
        most = self.max_allocated_storage
        if most is not None and most < self.allocated_storage:
            raise ValueError("`max_allocated_storage` is below `allocated_storage`.")


class Instance(pulumi.ComponentResource):
    """One instance, and its standby where ``multi_az``."""

    identifier: pulumi.Output[str]
    address: pulumi.Output[str]
    port: pulumi.Output[int]
    secret_arn: pulumi.Output[str]

    def __init__(
        self, name: str, args: InstanceArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("jobwarden:aws:Instance", name, {}, opts)
        common = args.common
        database = aws_rds.Instance(
            named(name, "database"),
            identifier=common.identifier,
            engine="postgres",
            instance_class=common.instance_class,
            allocated_storage=args.allocated_storage,
            max_allocated_storage=args.max_allocated_storage,
            storage_type="gp3",
            multi_az=args.multi_az,
            db_name=common.database,
            username=common.username,
            parameter_group_name=common.group,
            publicly_accessible=False,
            **holder(name, common),
            **insights(common),
            opts=child_of(self, name, "database", protect=common.deletion_protection),
        )
        self.identifier = database.identifier
        self.address = database.address
        self.port = database.port
        self.secret_arn = only_secret(database.master_user_secrets)
        self.register_outputs(
            {
                "identifier": self.identifier,
                "address": self.address,
                "port": self.port,
                "secretArn": self.secret_arn,
            }
        )


def holder(name: str, args: DatabaseArgs) -> dict[str, Any]:
    """Return the arguments that whatever holds the data has: an instance, or a cluster."""
    return {
        "engine_version": args.engine_version,
        "manage_master_user_password": args.manage_password or None,
        "master_user_secret_kms_key_id": args.kms_key_id if args.manage_password else None,
        "kms_key_id": args.kms_key_id,
        "storage_encrypted": True,
        "backup_retention_period": args.backup_retention,
        "copy_tags_to_snapshot": True,
        "deletion_protection": args.deletion_protection,
        "skip_final_snapshot": not args.final_snapshot,
        "final_snapshot_identifier": f"{args.identifier or name}-final"
        if args.final_snapshot
        else None,
        "db_subnet_group_name": args.network.subnet_group,
        "vpc_security_group_ids": args.network.security_groups,
        "allow_major_version_upgrade": args.allow_major_version_upgrade or None,
        "apply_immediately": args.apply_immediately or None,
        "tags": dict(args.tags) or None,
    }


def insights(args: DatabaseArgs) -> dict[str, Any]:
    """Return the arguments for Performance Insights, which keep 7 days without charge."""
    on = args.performance_insights
    return {
        "performance_insights_enabled": on,
        "performance_insights_retention_period": 7 if on else None,
    }


def only_secret(secrets: pulumi.Output[Any]) -> pulumi.Output[str]:
    """Return the ARN of the secret with the master's password; "" where AWS keeps none."""
    return secrets.apply(lambda found: found[0].secret_arn if found else "")
