"""Where a database stands in the network: in given or made groups, never public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_aws import rds as aws_rds

from infra.aws.names import child_of, named

# What RDS and Aurora give to PostgreSQL where nobody asks for another.
PORT = 5432


@dataclass(frozen=True, slots=True)
class NetworkArgs:
    """Without ``security_group_ids`` a group is made that lets in ``allow_from`` and nobody else.

    Without subnets AWS takes the default VPC's.
    """

    vpc_id: str | None = None
    subnet_ids: Sequence[str] = ()
    subnet_group: str | None = None
    security_group_ids: Sequence[str] = ()
    allow_from: Sequence[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.subnet_ids and self.subnet_group:
            raise ValueError("Only one of `subnet_ids` or `subnet_group` can be provided.")
        if self.security_group_ids and self.allow_from:
            raise ValueError("Only one of `security_group_ids` or `allow_from` can be provided.")


class Network(pulumi.ComponentResource):
    """A subnet group and security groups."""

    subnet_group: pulumi.Output[str] | str | None
    security_groups: list[pulumi.Input[str]]

    def __init__(
        self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("jobwarden:aws:Network", name, {}, opts)
        self.subnet_group = self._subnets(name, args)
        self.security_groups = list(args.security_group_ids) or [self._guard(name, args)]
        self.register_outputs(
            {"subnetGroup": self.subnet_group, "securityGroups": self.security_groups}
        )

    def _subnets(self, name: str, args: NetworkArgs) -> pulumi.Output[str] | str | None:
        if not args.subnet_ids:
            return args.subnet_group
        group = aws_rds.SubnetGroup(
            named(name, "subnets"),
            subnet_ids=sorted(args.subnet_ids),
            tags=dict(args.tags) or None,
            opts=child_of(self, name, "subnets"),
        )
        return group.name

    def _guard(self, name: str, args: NetworkArgs) -> pulumi.Output[str]:
        from pulumi_aws import ec2  # noqa: PLC0415  # slow to import, and not always needed

        guard = ec2.SecurityGroup(
            named(name, "guard"),
            vpc_id=args.vpc_id,
            description="Who may reach the database, kept by jobwarden",
            tags=dict(args.tags) or None,
            opts=child_of(self, name, "guard"),
        )
        for source in args.allow_from:
            self._allow(name, source, guard.id)
        return guard.id

    def _allow(self, name: str, source: str, guard: pulumi.Output[str]) -> None:
        from pulumi_aws import vpc  # noqa: PLC0415  # as above

        kind = "referenced_security_group_id" if source.startswith("sg-") else "cidr_ipv4"
        who: dict[str, Any] = {kind: source}
        vpc.SecurityGroupIngressRule(
            named(name, f"allow-{source}"),
            security_group_id=guard,
            ip_protocol="tcp",
            from_port=PORT,
            to_port=PORT,
            **who,
            opts=child_of(self, name, f"allow-{source}"),
        )
