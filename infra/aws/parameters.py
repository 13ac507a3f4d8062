"""Parameter groups, with every parameter and how it is applied.

They are auto-named with a prefix, so that a new family's group is made before the old one goes: AWS
deletes no group that is in use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_aws import rds as aws_rds

from infra import rds
from infra.aws.names import child_of, named
from infra.aws.preloading import Preload, PreloadArgs
from infra.rds import Parameter


@dataclass(frozen=True, slots=True)
class GroupsArgs:
    """``parameters`` without ``shared_preload_libraries``, which ``preload`` gives.

    ``members``: parameters of the instances' own group of an Aurora cluster; none, no such group.
    """

    target: str
    family: str
    preload: PreloadArgs
    parameters: Sequence[Parameter]
    members: Sequence[Parameter] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        of_cluster = {rds.PRELOAD, *(each.name for each in self.parameters)}
        for each in self.members:
            if each.name in of_cluster or each.name.startswith("cron."):
                raise ValueError(
                    f"both groups would set `{each.name}`: an instance's own group wins, so put it "
                    "in `parameters` only"
                )
        if self.members and self.target != "aurora":
            raise ValueError("only Aurora has `members`, an instances' own group beside another")


class ParameterGroups(pulumi.ComponentResource):
    """The group that preloads pg_cron, and what else the server is told.

    Aurora: it is the cluster's group, so that whichever instance becomes the writer runs schedules.
    """

    name: pulumi.Output[str]
    family: str
    libraries: pulumi.Output[str]
    members: aws_rds.ParameterGroup | None

    def __init__(
        self, name: str, args: GroupsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("jobwarden:aws:ParameterGroups", name, {}, opts)
        self.family = args.family
        preload = Preload(named(name, "preload"), args.preload, child_of(self, name, "preload"))
        self.libraries = preload.text
        self.group = self._group(name, args)
        self.name = self.group.name
        self.members = self._members(name, args) if args.members else None
        self.register_outputs(
            {"name": self.name, "family": self.family, "libraries": self.libraries}
        )

    def _group(
        self, name: str, args: GroupsArgs
    ) -> aws_rds.ParameterGroup | aws_rds.ClusterParameterGroup:
        ordered = rds.in_order([*args.parameters, Parameter(rds.PRELOAD, "", static=True)])
        values = {each.name: pulumi.Output.from_input(each.value) for each in ordered}
        values[rds.PRELOAD] = self.libraries
        common: dict[str, Any] = {
            "name_prefix": f"{name}-",
            "family": args.family,
            "description": "pg_cron and settings, kept by jobwarden",
            "tags": dict(args.tags) or None,
            "opts": child_of(self, name, "parameters"),
        }
        if args.target == "aurora":
            return aws_rds.ClusterParameterGroup(
                named(name, "parameters"),
                parameters=[
                    aws_rds.ClusterParameterGroupParameterArgs(
                        name=each.name, value=values[each.name], apply_method=each.method
                    )
                    for each in ordered
                ],
                **common,
            )
        return aws_rds.ParameterGroup(
            named(name, "parameters"),
            parameters=[_parameter(each, values[each.name]) for each in ordered],
            **common,
        )

    def _members(self, name: str, args: GroupsArgs) -> aws_rds.ParameterGroup:
        return aws_rds.ParameterGroup(
            named(name, "members"),
            name_prefix=f"{name}-members-",
            family=args.family,
            description="settings of single instances, kept by jobwarden",
            parameters=[_parameter(each, each.value) for each in rds.in_order(args.members)],
            tags=dict(args.tags) or None,
            opts=child_of(self, name, "members"),
        )


def _parameter(
    parameter: Parameter, value: pulumi.Input[str]
) -> aws_rds.ParameterGroupParameterArgs:
    return aws_rds.ParameterGroupParameterArgs(
        name=parameter.name, value=value, apply_method=parameter.method
    )
