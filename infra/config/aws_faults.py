"""The rules between keys of an RDS or Aurora database: what AWS would refuse, before anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from infra import rds
from infra.config.aws_models import Rds
from infra.config.models import Environment
from infra.errors import Fault, RuleError

TARGETS: Final = frozenset({"rds", "aurora"})
_ONLY: Final[Mapping[str, tuple[str, ...]]] = {
    "aurora": ("instances", "serverless", "instance_settings"),
    "rds": ("allocated_storage", "max_allocated_storage", "multi_az"),
}
# What AWS has, and what must not be done to a database with pg_cron.
REFUSED: Final[Mapping[str, tuple[str, str]]] = {
    "blueGreenUpdate": (
        "pg_cron must stay off on the green database of a blue/green deployment",
        "see docs/howto/rds.md, Blue/green",
    ),
    "replicateSourceDb": (
        "a replica takes no writes and runs no schedules",
        "register on its source; see docs/howto/rds.md, Replicas",
    ),
}


def of_aws(environment: Environment) -> Iterator[Fault]:
    """Yield what is wrong between the keys of an environment that is right in each."""
    if environment.target not in TARGETS:
        if environment.rds != Rds():
            allowed = "target rds or aurora"
            yield Fault("rds", "only for AWS", environment.target, allowed, "take rds out")
        return
    yield from _version(environment)
    yield from _ways_in(environment)
    yield from _network(environment)
    yield from _settings(environment)


def _version(environment: Environment) -> Iterator[Fault]:
    target, version, given = environment.target, environment.postgres.version, environment.rds
    if version is None:
        yield Fault(
            "postgres.version",
            "the version is missing: the parameter group's family follows from it",
            "nothing",
            "a major version",
            'write postgres: {version: "16"}',
        )
        return
    if given.family is not None:
        yield from _ruled("rds.family", rds.check_family, given.family, target, version)
    if given.engine_version and given.engine_version.partition(".")[0] != version:
        yield Fault(
            "rds.engineVersion",
            "the engine is of another major version than postgres.version",
            f'"{given.engine_version}"',
            f'"{version}" or "{version}.N"',
            "change both to upgrade",
        )


def _ways_in(environment: Environment) -> Iterator[Fault]:
    target, ours = environment.target, environment.rds
    other = "rds" if target == "aurora" else "aurora"
    for name in _ONLY[other]:
        key = Rds.model_fields[name].alias or name
        if getattr(ours, name) != getattr(Rds(), name):
            yield Fault(
                f"rds.{key}", f"not for target {target}", key, f"target {other}", f"take {key} out"
            )
    if environment.database_url and not ours.parameter_group_only:
        yield Fault(
            "databaseUrl",
            "the address is that of the database made here",
            '"..."',
            "databaseUrl with rds.parameterGroupOnly: true",
            "take databaseUrl out",
        )
    if not environment.postgres.cron.enabled:
        yield Fault(
            "postgres.cron.enabled",
            "AWS has no timer to do the work",
            "false",
            "true",
            "take it out",
        )
    yield from _reboots(ours)
    yield from _insights(environment)


def _reboots(ours: Rds) -> Iterator[Fault]:
    if ours.reboot_when_pending and ours.reboot_window:
        yield Fault(
            "rds.rebootWindow",
            "rds.rebootWhenPending: true reboots at any hour, in the window or not",
            f'"{ours.reboot_window}"',
            "rds.rebootWindow or rds.rebootWhenPending: true",
            "take rds.rebootWhenPending out to reboot in the window only",
        )


def _insights(environment: Environment) -> Iterator[Fault]:
    ours = environment.rds
    if ours.performance_insights and not rds.has_insights(ours.instance_class):
        yield Fault(
            "rds.performanceInsights",
            f"{ours.instance_class} has no Performance Insights",
            "true",
            "a class of size medium or larger",
            "leave performanceInsights out",
        )
    if (ours.instance_class == "db.serverless") != (ours.serverless is not None):
        yield Fault(
            "rds.serverless",
            "the limits of serverless v2 and its instance class go together",
            ours.instance_class,
            "both instanceClass: db.serverless and serverless, or neither",
            "write serverless: {minimum: 0.5, maximum: 4} beside instanceClass: db.serverless",
        )


def _network(environment: Environment) -> Iterator[Fault]:
    ours = environment.rds
    if ours.subnet_ids and ours.subnet_group:
        yield Fault(
            "rds.subnetGroup",
            "subnetIds are given too",
            ours.subnet_group,
            "one of the two",
            "take one out",
        )
    if len(ours.subnet_ids) == 1:
        yield Fault(
            "rds.subnetIds",
            "one subnet is not enough",
            "1",
            "2 or more, in different zones",
            "add a subnet of another zone",
        )
    if ours.security_group_ids and ours.allow_from:
        yield Fault(
            "rds.allowFrom",
            "securityGroupIds are given, and those are not ours to change",
            "a list",
            "allowFrom without securityGroupIds",
            "take one of the two out",
        )
    made_elsewhere = bool(ours.subnet_ids or ours.subnet_group)
    if made_elsewhere and not (ours.security_group_ids or ours.vpc_id):
        yield Fault(
            "rds.vpcId",
            "the security group must be in the VPC of the subnets",
            "nothing",
            "vpcId, or securityGroupIds",
            "add vpcId",
        )


def _settings(environment: Environment) -> Iterator[Fault]:
    postgres, ours = environment.postgres, environment.rds
    settings = dict(postgres.settings)
    yield from _ruled("postgres.preload", rds.libraries, postgres.preload)
    yield from _each("postgres.settings", settings)
    yield from _each("rds.instanceSettings", ours.instance_settings)
    for name, other in ours.parameters.items():
        where = f"rds.parameters.{name}"
        if name in settings or name.startswith("cron.") or name == rds.PRELOAD:
            yield _twice(where, name)
        else:
            yield from _ruled(where, rds.Parameter, name, other.value, other.static)
    for name in ours.instance_settings:
        if name.startswith("cron.") or name == rds.PRELOAD:
            yield _of_cluster(f"rds.instanceSettings.{name}", name)
    slots = "postgres.settings.max_worker_processes"
    yield from _ruled(slots, rds.check_slots, ours.instance_class, settings)
    yield from _ruled("postgres.settings", rds.check_allowed_extensions, settings)


def _each(where: str, settings: Mapping[str, str]) -> Iterator[Fault]:
    for name, value in settings.items():
        if name != rds.PRELOAD:
            yield from _ruled(f"{where}.{name}", rds.parameter, name, value)


def _twice(where: str, name: str) -> Fault:
    return Fault(
        where, f"{name} has another place", name, "other parameters",
        "use postgres.settings, postgres.preload or postgres.cron",
    )  # fmt: skip


def _of_cluster(where: str, name: str) -> Fault:
    return Fault(
        where,
        f"{name} belongs to the cluster's group: an instance's own group would win over it, and a "
        "failover would lose it",
        name,
        "settings that are an instance's own",
        "use postgres.preload, postgres.cron or postgres.settings",
    )


def _ruled(where: str, rule: Callable[..., object], *values: object) -> Iterable[Fault]:
    try:
        rule(*values)
    except RuleError as error:
        got = f'"{error.got}"'
        return (Fault(where, error.problem, got, error.allowed, error.hint or ""),)
    return ()
