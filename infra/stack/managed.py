"""RDS and Aurora: an environment as components, up to where the final step can begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import pulumi

from infra import rds
from infra.aws.cluster import Capacity, Cluster, ClusterArgs
from infra.aws.database import DatabaseArgs, Instance, InstanceArgs
from infra.aws.network import Network, NetworkArgs
from infra.aws.parameters import GroupsArgs, ParameterGroups
from infra.aws.preloading import PreloadArgs
from infra.config import Environment
from infra.stack.rebooting import Reboot, RebootArgs

# The database every server has; AWS does not make it a second time.
_FIRST: Final = "postgres"


@dataclass(frozen=True, slots=True)
class Managed:
    """What was declared. ``database``: URL for the final step, None where there is nothing to ask.

    ``secret``: ARN of the secret with its password. ``after``: what the final step waits for.
    """

    database: pulumi.Output[str] | None
    secret: pulumi.Output[str] | None
    after: tuple[pulumi.Resource, ...]
    reasons: tuple[pulumi.Output[str], ...] = ()
    outputs: Mapping[str, Any] = field(default_factory=dict)


def declare(name: str, environment: Environment) -> Managed:
    """Declare the parameter group, and the database and its reboot where we make them."""
    parameters = _parameters(environment)
    groups = ParameterGroups(name, _groups(environment, parameters))
    outputs = {
        "parameterGroupName": groups.name,
        "parameterGroupFamily": groups.family,
        "preloadLibraries": groups.libraries,
        "cronDatabase": cron_database(environment),
    }
    if environment.rds.parameter_group_only:
        return _by_hand(environment, groups, outputs)
    made = _database(name, environment, groups)
    database = pulumi.Output.all(made.address, made.port).apply(
        lambda at: _url(environment, at[0], at[1])
    )
    reboot = _reboot(name, environment, made, groups, parameters, database)
    found = {
        "endpoint": made.address,
        "port": made.port,
        "masterUserSecretArn": made.secret_arn,
        "requiresReboot": reboot.requiresReboot,
        "rebootCommand": reboot.command,
    }
    return Managed(
        database, made.secret_arn, (made, reboot), (reboot.reason,), {**outputs, **found}
    )


def cron_database(environment: Environment) -> str:
    """Return the database pg_cron lives in: the one declared for it, else that of the jobs."""
    return environment.postgres.cron.database or jobs_database(environment)


def jobs_database(environment: Environment) -> str:
    """Return the database that holds the jobs."""
    postgres = environment.postgres
    return postgres.database or postgres.cron.database or _FIRST


def _parameters(environment: Environment) -> tuple[rds.Parameter, ...]:
    postgres, ours = environment.postgres, environment.rds
    return rds.in_order(
        [
            *(rds.Parameter(name, it.value, it.static) for name, it in ours.parameters.items()),
            *(rds.parameter(name, value) for name, value in postgres.settings.items()),
            *rds.cron_parameters(cron_database(environment), postgres.cron.timezone),
        ]
    )


def _members(environment: Environment) -> tuple[rds.Parameter, ...]:
    """Return what the instances' own group of an Aurora cluster holds."""
    settings = environment.rds.instance_settings
    return tuple(rds.parameter(name, value) for name, value in settings.items())


def _groups(environment: Environment, parameters: tuple[rds.Parameter, ...]) -> GroupsArgs:
    target, ours = environment.target, environment.rds
    family = rds.family(target, environment.postgres.version or "")
    return GroupsArgs(
        target=target,
        family=family,
        preload=PreloadArgs(
            wanted=rds.libraries(environment.postgres.preload),
            family=family,
            target=target,
            existing=ours.existing_preload,
            allow_removal=ours.allow_preload_removal,
        ),
        parameters=parameters,
        members=_members(environment),
        tags=ours.tags,
    )


def _by_hand(
    environment: Environment, groups: ParameterGroups, outputs: Mapping[str, Any]
) -> Managed:
    """Only the group: whoever owns the database attaches it, and reboots."""
    attach = groups.name.apply(lambda name: _attach(environment.target, name))
    given = environment.database_url
    database = pulumi.Output.from_input(given) if given else None
    reasons = () if given else (attach.apply(lambda command: f"nothing is registered: {command}"),)
    return Managed(database, None, (groups,), reasons, {**outputs, "attach": attach})


def _attach(target: str, group: str) -> str:
    kind, key = ("db-cluster", "cluster-") if target == "aurora" else ("db-instance", "")
    modify = (
        f"aws rds modify-{kind} --{kind}-identifier NAME --db-{key}parameter-group-name {group}"
    )
    reboot = "aws rds reboot-db-instance --db-instance-identifier NAME"
    return f"attach the group and reboot: {modify} && {reboot}; then set databaseUrl"


def _database(name: str, environment: Environment, groups: ParameterGroups) -> Instance | Cluster:
    ours = environment.rds
    common = _common(environment, groups, _network(name, environment))
    if environment.target == "rds":
        sizes = (ours.allocated_storage, ours.max_allocated_storage)
        return Instance(name, InstanceArgs(common, *sizes, ours.multi_az))
    limits = ours.serverless
    members = groups.members.name if groups.members else None
    capacity = Capacity(limits.minimum, limits.maximum) if limits else None
    return Cluster(name, ClusterArgs(common, ours.instances, members, capacity))


def _network(name: str, environment: Environment) -> Network:
    ours = environment.rds
    if not (ours.security_group_ids or ours.allow_from):
        pulumi.log.warn(
            "nobody can reach the database: rds.allowFrom and rds.securityGroupIds are empty. "
            "Try: name the security group of the application in rds.allowFrom"
        )
    return Network(
        name,
        NetworkArgs(
            vpc_id=ours.vpc_id,
            subnet_ids=ours.subnet_ids,
            subnet_group=ours.subnet_group,
            security_group_ids=ours.security_group_ids,
            allow_from=ours.allow_from,
            tags=ours.tags,
        ),
    )


def _common(environment: Environment, groups: ParameterGroups, network: Network) -> DatabaseArgs:
    ours = environment.rds
    database, offered = jobs_database(environment), rds.has_insights(ours.instance_class)
    insights = ours.performance_insights
    return DatabaseArgs(
        engine_version=ours.engine_version or environment.postgres.version or "",
        instance_class=ours.instance_class,
        group=groups.name,
        network=network,
        database=None if database == _FIRST else database,
        username=ours.username,
        manage_password=ours.manage_password,
        identifier=ours.identifier,
        kms_key_id=ours.kms_key_id,
        backup_retention=ours.backup_retention,
        performance_insights=offered if insights is None else insights,
        deletion_protection=ours.deletion_protection,
        final_snapshot=ours.final_snapshot,
        allow_major_version_upgrade=ours.allow_major_version_upgrade,
        apply_immediately=ours.apply_immediately,
        tags=ours.tags,
    )


def _url(environment: Environment, host: str, port: int) -> str:
    """Return the URL, with TLS always; the server's certificate is checked where a CA is given."""
    ours = environment.rds
    tls = "sslmode=require"
    if ours.ca_file:
        tls = f"sslmode=verify-full&sslrootcert={quote(ours.ca_file)}"
    database = quote(jobs_database(environment), safe="")
    return f"postgresql://{ours.username}@{host}:{int(port)}/{database}?{tls}"


def _reboot(
    name: str,
    environment: Environment,
    made: Instance | Cluster,
    groups: ParameterGroups,
    parameters: tuple[rds.Parameter, ...],
    database: pulumi.Output[str],
) -> Reboot:
    every = (*parameters, *_members(environment))
    waits: dict[str, pulumi.Input[str]] = {it.name: it.value for it in every if it.static}
    args = RebootArgs(
        kind="instance" if environment.target == "rds" else "cluster",
        identifier=made.identifier,
        waits_for={**waits, rds.PRELOAD: groups.libraries},
        database=database,
        password_secret=made.secret_arn,
        reboot_when_pending=environment.rds.reboot_when_pending,
        reboot_window=environment.rds.reboot_window,
    )
    return Reboot(f"{name}-reboot", args, pulumi.ResourceOptions(depends_on=[made, groups]))
