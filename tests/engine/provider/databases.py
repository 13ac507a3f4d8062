"""Databases: what their kinds share, and ``aws:rds:Instance``."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from botocore.exceptions import ClientError

from tests.engine.provider.kinds import Field, Kind, client, missing, refusal, tags
from tests.engine.provider.values import Properties

SHARED = (
    Field("allowMajorVersionUpgrade"),
    Field("applyImmediately"),
    Field("copyTagsToSnapshot", "CopyTagsToSnapshot"),
    Field("engine", "Engine", replaces=True),
    Field("engineVersion", "EngineVersion"),
    Field("kmsKeyId", "KmsKeyId", replaces=True),
    Field("tags"),
)
HOLDER = (
    Field("backupRetentionPeriod", "BackupRetentionPeriod"),
    Field("dbSubnetGroupName", "DBSubnetGroupName"),
    Field("deletionProtection", "DeletionProtection"),
    Field("enabledCloudwatchLogsExports", "EnableCloudwatchLogsExports"),
    Field("finalSnapshotIdentifier"),
    Field("iamDatabaseAuthenticationEnabled", "EnableIAMDatabaseAuthentication"),
    Field("manageMasterUserPassword", "ManageMasterUserPassword"),
    Field("port", "Port"),
    Field("skipFinalSnapshot"),
    Field("storageEncrypted", "StorageEncrypted", replaces=True),
    Field("vpcSecurityGroupIds", "VpcSecurityGroupIds"),
)
MEMBER = (
    Field("autoMinorVersionUpgrade", "AutoMinorVersionUpgrade"),
    Field("availabilityZone", "AvailabilityZone", replaces=True),
    Field("caCertIdentifier", "CACertificateIdentifier"),
    Field("identifier", "DBInstanceIdentifier", replaces=True),
    Field("identifierPrefix", replaces=True),
    Field("instanceClass", "DBInstanceClass"),
    Field("monitoringInterval", "MonitoringInterval"),
    Field("monitoringRoleArn", "MonitoringRoleArn"),
    Field("performanceInsightsEnabled", "EnablePerformanceInsights"),
    Field("performanceInsightsRetentionPeriod", "PerformanceInsightsRetentionPeriod"),
    Field("publiclyAccessible", "PubliclyAccessible"),
)
# AWS takes these when it creates something, and not when it changes it.
_ONCE = {"Engine", "KmsKeyId", "StorageEncrypted", "DBName", "DatabaseName", "MasterUsername"}
_ONCE |= {"AvailabilityZone", "EnableCloudwatchLogsExports", "DBClusterIdentifier", "EngineMode"}
_ONCE |= {"DBSubnetGroupName", "AvailabilityZones"}


class Database(Kind):
    """What the three kinds share. Their calls are ``create_<call>`` and so on."""

    call: ClassVar[str]
    key: ClassVar[str]

    def as_input(self, key: str, given: Any, live: Any) -> Any:
        """Keep ``16`` where the server says ``16.10``."""
        if key == "engineVersion" and live and str(live).startswith(f"{given}."):
            return given
        if key == "port":  # the data plane's own
            return given
        return super().as_input(key, given, live)

    def create(self, inputs: Properties) -> str:
        arguments = self.arguments(inputs)
        arguments.pop("AllowMajorVersionUpgrade", None)
        name = str(inputs[str(self.name)])
        try:
            made = self._do("create", **arguments, Tags=tags(inputs))[self.key]
        except ClientError as error:
            raise refusal(f"creating {self.noun} ({name})", error) from error
        return self.identity(made)

    def update(self, identity: str, old: Properties, new: Properties) -> None:
        before, after = self.arguments(old), self.arguments(new)
        changed = {
            key: value
            for key, value in after.items()
            if value != before.get(key) and key not in _ONCE
        }
        changed.update(self.upgrade(old, new))
        if not changed:
            return
        name = new[str(self.name)]
        flags = {"ApplyImmediately": bool(new.get("applyImmediately"))}
        if "EngineVersion" in changed and new.get("allowMajorVersionUpgrade"):
            flags["AllowMajorVersionUpgrade"] = True
        try:
            self._do("modify", **self.named(name), **changed, **flags)
        except ClientError as error:
            raise refusal(f"updating {self.noun} ({name})", error, made=identity) from error

    def delete(self, identity: str, inputs: Properties) -> None:
        name = inputs[str(self.name)]
        try:
            self._do("delete", **self.named(name), **self.last_snapshot(inputs))
        except ClientError as error:
            if not missing(error):
                raise refusal(f"deleting {self.noun} ({identity})", error) from error

    def read(self, identity: str) -> Properties | None:
        try:
            found = self.find(identity)
        except ClientError as error:
            if missing(error):
                return None
            raise refusal(f"reading {self.noun} ({identity})", error) from error
        return self.outputs(found[0]) if found else None

    def upgrade(self, old: Properties, new: Properties) -> Properties:
        """Return what must go along with an upgrade though it did not change."""
        del old, new
        return {}

    def last_snapshot(self, inputs: Properties) -> Properties:
        if name := inputs.get("finalSnapshotIdentifier"):
            return {"FinalDBSnapshotIdentifier": name}
        return {"SkipFinalSnapshot": bool(inputs.get("skipFinalSnapshot"))}

    def named(self, name: str) -> Properties:
        aws = next(item.aws for item in self.fields if item.name == self.name)
        return {str(aws): name}

    @abstractmethod
    def identity(self, made: Properties) -> str: ...

    @abstractmethod
    def find(self, identity: str) -> list[Properties]: ...

    @abstractmethod
    def outputs(self, live: Properties) -> Properties: ...

    def _do(self, verb: str, **arguments: Any) -> Any:
        return getattr(client("rds"), f"{verb}_{self.call}")(**arguments)


class Instance(Database):
    type_name = "aws:rds/instance:Instance"
    noun = "RDS DB Instance"
    name, prefix = "identifier", "identifierPrefix"
    call, key = "db_instance", "DBInstance"
    fields = (
        *SHARED,
        *HOLDER,
        *MEMBER,
        Field("allocatedStorage", "AllocatedStorage"),
        Field("backupWindow", "PreferredBackupWindow"),
        Field("dbName", "DBName", replaces=True),
        Field("deleteAutomatedBackups"),
        Field("iops", "Iops"),
        Field("maintenanceWindow", "PreferredMaintenanceWindow"),
        Field("maxAllocatedStorage", "MaxAllocatedStorage"),
        Field("multiAz", "MultiAZ"),
        Field("parameterGroupName", "DBParameterGroupName"),
        Field("password", "MasterUserPassword"),
        Field("storageThroughput", "StorageThroughput"),
        Field("storageType", "StorageType"),
        Field("username", "MasterUsername", replaces=True),
    )

    def upgrade(self, old: Properties, new: Properties) -> Properties:
        group = new.get("parameterGroupName")
        changed = old.get("engineVersion") != new.get("engineVersion")
        return {"DBParameterGroupName": group} if changed and group else {}

    def identity(self, made: Properties) -> str:
        return str(made["DbiResourceId"])

    def find(self, identity: str) -> list[Properties]:
        if not identity.startswith("db-"):  # an import names the instance, as for the real one
            answer = client("rds").describe_db_instances(DBInstanceIdentifier=identity)
            return list(answer["DBInstances"])
        wanted = [{"Name": "dbi-resource-id", "Values": [identity]}]
        return list(client("rds").describe_db_instances(Filters=wanted)["DBInstances"])

    def outputs(self, live: Properties) -> Properties:
        at = live["Endpoint"]
        return {
            **member_outputs(live),
            "address": at["Address"],
            "allocatedStorage": live["AllocatedStorage"],
            "dbName": live.get("DBName"),
            "deletionProtection": live.get("DeletionProtection"),
            "endpoint": f"{at['Address']}:{at['Port']}",
            "masterUserSecrets": secrets(live),
            "multiAz": live.get("MultiAZ"),
            "parameterGroupName": live["DBParameterGroups"][0]["DBParameterGroupName"],
            "port": at["Port"],
            "resourceId": live["DbiResourceId"],
            "status": live["DBInstanceStatus"],
            "storageEncrypted": live.get("StorageEncrypted"),
            "username": live["MasterUsername"],
        }


def member_outputs(live: Properties) -> Properties:
    return {
        "arn": live["DBInstanceArn"],
        "engine": live["Engine"],
        "engineVersion": live["EngineVersion"],
        "engineVersionActual": live["EngineVersion"],
        "identifier": live["DBInstanceIdentifier"],
        "instanceClass": live["DBInstanceClass"],
        "publiclyAccessible": live.get("PubliclyAccessible"),
    }


def secrets(live: Properties) -> list[Properties]:
    if not (secret := live.get("MasterUserSecret")):
        return []
    return [
        {
            "kmsKeyId": secret.get("KmsKeyId"),
            "secretArn": secret["SecretArn"],
            "secretStatus": secret["SecretStatus"],
        }
    ]
