"""An Aurora cluster and its instances. The first made is the writer; AWS may choose another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_aws import rds as aws_rds

from infra.aws.database import DatabaseArgs, holder, insights, only_secret
from infra.aws.names import child_of, named


@dataclass(frozen=True, slots=True)
class Capacity:
    """Limits of Aurora Serverless v2, in capacity units."""

    minimum: float
    maximum: float

    def __post_init__(self) -> None:
        if self.maximum < self.minimum:
            raise ValueError("`maximum` is below `minimum`.")


@dataclass(frozen=True, slots=True)
class ClusterArgs:
    """``members``: name of the instances' own parameter group, None for the engine's default."""

    common: DatabaseArgs
    instances: int = 1
    members: pulumi.Output[str] | None = None
    capacity: Capacity | None = None


class Cluster(pulumi.ComponentResource):
    """A cluster. Its address is the writer's."""

    identifier: pulumi.Output[str]
    address: pulumi.Output[str]
    port: pulumi.Output[int]
    secret_arn: pulumi.Output[str]

    def __init__(
        self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("jobwarden:aws:Cluster", name, {}, opts)
        cluster = self._cluster(name, args)
        writer = self._instance(name, args, cluster, 1, ())
        readers = [
            self._instance(name, args, cluster, number, (writer,))
            for number in range(2, args.instances + 1)
        ]
        self.instances = [writer, *readers]
        self.identifier = cluster.cluster_identifier
        self.address = cluster.endpoint
        self.port = cluster.port
        self.secret_arn = only_secret(cluster.master_user_secrets)
        self.register_outputs(
            {
                "identifier": self.identifier,
                "address": self.address,
                "port": self.port,
                "secretArn": self.secret_arn,
            }
        )

    def _cluster(self, name: str, args: ClusterArgs) -> aws_rds.Cluster:
        common = args.common
        more: dict[str, Any] = {}
        if common.allow_major_version_upgrade and args.members is not None:
            # An upgrade moves the instances too, and AWS takes their new group only with it.
            more["db_instance_parameter_group_name"] = args.members
        if args.capacity is not None:
            more["serverlessv2_scaling_configuration"] = (
                aws_rds.ClusterServerlessv2ScalingConfigurationArgs(
                    min_capacity=args.capacity.minimum, max_capacity=args.capacity.maximum
                )
            )
        return aws_rds.Cluster(
            named(name, "cluster"),
            cluster_identifier=common.identifier,
            engine=aws_rds.EngineType.AURORA_POSTGRESQL,
            database_name=common.database,
            master_username=common.username,
            db_cluster_parameter_group_name=common.group,
            **holder(name, common),
            **more,
            opts=child_of(self, name, "cluster", protect=common.deletion_protection),
        )

    def _instance(
        self,
        name: str,
        args: ClusterArgs,
        cluster: aws_rds.Cluster,
        number: int,
        after: Sequence[pulumi.Resource],
    ) -> aws_rds.ClusterInstance:
        """Declare one instance. The first to be there is the writer, so readers come after it."""
        common = args.common
        child = f"instance-{number}"
        return aws_rds.ClusterInstance(
            named(name, child),
            identifier=f"{common.identifier}-{number}" if common.identifier else None,
            cluster_identifier=cluster.id,
            engine=aws_rds.EngineType.AURORA_POSTGRESQL,
            instance_class=common.instance_class,
            db_parameter_group_name=args.members,
            publicly_accessible=False,
            promotion_tier=number - 1,
            apply_immediately=common.apply_immediately or None,
            tags=dict(common.tags) or None,
            **insights(common),
            opts=child_of(self, name, child, depends_on=list(after)),
        )
