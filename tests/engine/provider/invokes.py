"""The functions a program asks before it makes anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from tests.engine.provider.clusters import Cluster
from tests.engine.provider.databases import Instance
from tests.engine.provider.kinds import RefusedError, client, refusal
from tests.engine.provider.values import Properties


def get_engine_version(asked: Properties) -> Properties:
    wanted = {"Engine": asked["engine"]}
    if version := asked.get("version"):
        wanted["EngineVersion"] = version
    if family := asked.get("parameterGroupFamily"):
        wanted["DBParameterGroupFamily"] = family
    if asked.get("defaultOnly"):
        wanted["DefaultOnly"] = True
    found = client("rds").describe_db_engine_versions(**wanted)["DBEngineVersions"]
    chosen = _one(
        found, "EngineVersion", asked.get("preferredVersions"), latest=asked.get("latest")
    )
    targets = [item["EngineVersion"] for item in chosen.get("ValidUpgradeTarget", [])]
    return {
        "engine": chosen["Engine"],
        "parameterGroupFamily": chosen["DBParameterGroupFamily"],
        "status": chosen.get("Status"),
        "validMajorTargets": targets,
        "validMinorTargets": [],
        "validUpgradeTargets": targets,
        "version": chosen["EngineVersion"],
        "versionActual": chosen["EngineVersion"],
    }


def get_orderable_db_instance(asked: Properties) -> Properties:
    wanted = {"Engine": asked["engine"]}
    if version := asked.get("engineVersion"):
        wanted["EngineVersion"] = version
    if name := asked.get("instanceClass"):
        wanted["DBInstanceClass"] = name
    answer = client("rds").describe_orderable_db_instance_options(**wanted)
    found = answer["OrderableDBInstanceOptions"]
    preferred = asked.get("preferredInstanceClasses")
    chosen = _one(found, "DBInstanceClass", preferred, latest=asked.get("engineLatestVersion"))
    return {
        "engine": chosen["Engine"],
        "engineVersion": chosen["EngineVersion"],
        "instanceClass": chosen["DBInstanceClass"],
        "licenseModel": chosen["LicenseModel"],
        "multiAzCapable": chosen["MultiAZCapable"],
        "storageType": chosen["StorageType"],
        "supportsPerformanceInsights": chosen["SupportsPerformanceInsights"],
        "supportsStorageEncryption": chosen["SupportsStorageEncryption"],
        "vpc": chosen["Vpc"],
    }


def get_vpc(asked: Properties) -> Properties:
    wanted: Properties = {"VpcIds": [asked["id"]]} if asked.get("id") else {}
    if asked.get("default"):
        wanted["Filters"] = [{"Name": "is-default", "Values": ["true"]}]
    vpc = _one(client("ec2").describe_vpcs(**wanted)["Vpcs"], "VpcId")
    return {"id": vpc["VpcId"], "cidrBlock": vpc["CidrBlock"], "default": vpc["IsDefault"]}


def get_subnets(asked: Properties) -> Properties:
    filters = [
        {"Name": item["name"], "Values": item["values"]} for item in asked.get("filters") or []
    ]
    found = client("ec2").describe_subnets(Filters=filters)["Subnets"]
    return {"ids": sorted(item["SubnetId"] for item in found), "id": "subnets"}


def get_secret_version(asked: Properties) -> Properties:
    answer = client("secretsmanager").get_secret_value(SecretId=asked["secretId"])
    return {
        "arn": answer["ARN"],
        "secretId": asked["secretId"],
        "secretString": answer["SecretString"],
        "versionId": answer["VersionId"],
    }


def get_instance(asked: Properties) -> Properties:
    name = asked["dbInstanceIdentifier"]
    live = client("rds").describe_db_instances(DBInstanceIdentifier=name)["DBInstances"][0]
    groups = [item["DBParameterGroupName"] for item in live["DBParameterGroups"]]
    extra = {"dbInstanceClass": live["DBInstanceClass"], "dbParameterGroups": groups}
    return {**Instance().outputs(live), **extra, "masterUsername": live["MasterUsername"]}


def get_cluster(asked: Properties) -> Properties:
    name = asked["clusterIdentifier"]
    live = client("rds").describe_db_clusters(DBClusterIdentifier=name)["DBClusters"][0]
    return Cluster().outputs(live)


def get_region(asked: Properties) -> Properties:
    name = asked.get("region") or client("rds").meta.region_name
    return {"id": name, "name": name, "region": name, "description": name}


def get_caller_identity(asked: Properties) -> Properties:
    del asked
    answer = client("sts").get_caller_identity()
    return {"accountId": answer["Account"], "arn": answer["Arn"], "userId": answer["UserId"]}


INVOKES: dict[str, Callable[[Properties], Properties]] = {
    "aws:ec2/getSubnets:getSubnets": get_subnets,
    "aws:ec2/getVpc:getVpc": get_vpc,
    "aws:index/getCallerIdentity:getCallerIdentity": get_caller_identity,
    "aws:index/getRegion:getRegion": get_region,
    "aws:rds/getCluster:getCluster": get_cluster,
    "aws:rds/getEngineVersion:getEngineVersion": get_engine_version,
    "aws:rds/getInstance:getInstance": get_instance,
    "aws:rds/getOrderableDbInstance:getOrderableDbInstance": get_orderable_db_instance,
    "aws:secretsmanager/getSecretVersion:getSecretVersion": get_secret_version,
}


def invoke(token: str, asked: Properties) -> Properties:
    """Answer a function. Raises RefusedError: unknown here, or no single answer."""
    if token not in INVOKES:
        raise RefusedError(f"the test provider knows no function {token}")
    try:
        return {"id": token, **INVOKES[token](asked)}
    except ClientError as error:
        raise refusal(f"invoking {token}", error) from error


def _one(
    found: list[Properties], key: str, preferred: Any = None, *, latest: Any = None
) -> Properties:
    for name in preferred or []:
        for item in found:
            if item[key] == name:
                return item
    if not found:
        raise RefusedError(f"no result for {key}: change the search")
    if len(found) > 1 and not latest:
        raise RefusedError(
            f"{len(found)} results for {key}: narrow the search, or ask for the latest"
        )
    return found[-1]
