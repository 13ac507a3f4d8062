"""The final step as Pulumi resources: the SQL, the policy, and one for each schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi import dynamic

from infra.plan import Plan
from infra.stack import parts
from infra.stack.provider import PolicyProvider, Provider, ScheduleProvider, SqlProvider


class _Registered(dynamic.Resource):
    """What the provider finds out is an output; ``reason`` says why it is not registered."""

    registered: pulumi.Output[bool]
    reason: pulumi.Output[str]
    warnings: pulumi.Output[list[str]]

    def __init__(
        self,
        provider: Provider,
        name: str,
        inputs: Mapping[str, Any],
        outputs: tuple[str, ...],
        opts: pulumi.ResourceOptions,
    ) -> None:
        found_out = dict.fromkeys(("registered", "reached", "reason", "warnings", *outputs))
        super().__init__(provider, name, {**found_out, **inputs}, opts)


class Sql(_Registered, module="jobwarden", name="Sql"):
    """The schema, its functions, the guard and the indexes."""

    server: pulumi.Output[dict[str, Any] | None]

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        super().__init__(SqlProvider(), name, inputs, ("server",), opts)


class Policy(_Registered, module="jobwarden", name="Policy"):
    """The limits of all actions."""

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        super().__init__(PolicyProvider(), name, inputs, (), opts)


class Schedule(_Registered, module="jobwarden", name="Schedule"):
    """One schedule in pg_cron."""

    schedule: pulumi.Output[str]
    jobid: pulumi.Output[int | None]
    active: pulumi.Output[bool | None]
    next: pulumi.Output[str | None]

    def __init__(self, name: str, inputs: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        super().__init__(ScheduleProvider(), name, inputs, ("jobid", "active", "next"), opts)


@dataclass(frozen=True, slots=True)
class FinalStepArgs:
    """The plan of an environment.

    ``database`` where its URL is known only once it was made, ``password_secret`` the ARN of the
    secret with its password, ``after`` what must be there before.
    """

    plan: Plan
    database: pulumi.Input[str] | None = None
    password_secret: pulumi.Input[str] | None = None
    after: Sequence[pulumi.Resource] = ()


class FinalStep(pulumi.ComponentResource):
    """SQL first, then the policy, then the schedules; removed the other way round."""

    def __init__(
        self, name: str, args: FinalStepArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("jobwarden:stack:FinalStep", name, {}, opts)
        common = parts.common(args.plan.environment)
        if args.database is not None:
            common["database"] = args.database
        if args.password_secret is not None:
            common["passwordSecret"] = args.password_secret
        self.sql = Sql("sql", {**common, **parts.sql_inputs(args.plan)}, self._after(*args.after))
        self.policy = Policy(
            "policy", {**common, **parts.policy_inputs(args.plan)}, self._after(self.sql)
        )
        self.schedules = {
            schedule: Schedule(
                schedule,
                {**common, **parts.schedule_inputs(schedule, wanted)},
                self._after(self.policy),
            )
            for schedule, wanted in args.plan.schedules.items()
        }
        self.register_outputs({"registered": self.registered()})

    def resources(self) -> tuple[_Registered, ...]:
        """All of them, in the order in which they are applied."""
        return (self.sql, self.policy, *self.schedules.values())

    def registered(self) -> pulumi.Output[bool]:
        """True once everything is."""
        return pulumi.Output.all(*(it.registered for it in self.resources())).apply(all)

    def _after(self, *resources: pulumi.Resource) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=list(resources))
