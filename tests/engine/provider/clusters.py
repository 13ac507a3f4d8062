"""Aurora: ``aws:rds:Cluster`` and ``aws:rds:ClusterInstance``."""

from __future__ import annotations

from tests.engine.provider.databases import (
    HOLDER,
    MEMBER,
    SHARED,
    Database,
    member_outputs,
    secrets,
)
from tests.engine.provider.kinds import Field, client
from tests.engine.provider.values import Properties


class Cluster(Database):
    type_name = "aws:rds/cluster:Cluster"
    noun = "RDS Cluster"
    name, prefix = "clusterIdentifier", "clusterIdentifierPrefix"
    call, key = "db_cluster", "DBCluster"
    fields = (
        *SHARED,
        *HOLDER,
        Field("availabilityZones", "AvailabilityZones", replaces=True),
        Field("clusterIdentifier", "DBClusterIdentifier", replaces=True),
        Field("clusterIdentifierPrefix", replaces=True),
        Field("databaseName", "DatabaseName", replaces=True),
        Field("dbClusterParameterGroupName", "DBClusterParameterGroupName"),
        Field("dbInstanceParameterGroupName"),
        Field("engineMode", "EngineMode", replaces=True),
        Field("masterPassword", "MasterUserPassword"),
        Field("masterUsername", "MasterUsername", replaces=True),
        Field("preferredBackupWindow", "PreferredBackupWindow"),
        Field("preferredMaintenanceWindow", "PreferredMaintenanceWindow"),
        Field("serverlessv2ScalingConfiguration"),
    )

    def arguments(self, inputs: Properties) -> Properties:
        found = super().arguments(inputs)
        if scaling := inputs.get("serverlessv2ScalingConfiguration"):
            found["ServerlessV2ScalingConfiguration"] = {
                "MinCapacity": float(scaling["minCapacity"]),
                "MaxCapacity": float(scaling["maxCapacity"]),
            }
        return found

    def upgrade(self, old: Properties, new: Properties) -> Properties:
        if old.get("engineVersion") == new.get("engineVersion"):
            return {}
        pairs = {
            "DBClusterParameterGroupName": new.get("dbClusterParameterGroupName"),
            "DBInstanceParameterGroupName": new.get("dbInstanceParameterGroupName"),
        }
        return {key: value for key, value in pairs.items() if value}

    def identity(self, made: Properties) -> str:
        return str(made["DBClusterIdentifier"])

    def find(self, identity: str) -> list[Properties]:
        answer = client("rds").describe_db_clusters(DBClusterIdentifier=identity)
        return list(answer["DBClusters"])

    def outputs(self, live: Properties) -> Properties:
        return {
            "arn": live["DBClusterArn"],
            "clusterIdentifier": live["DBClusterIdentifier"],
            "clusterMembers": [item["DBInstanceIdentifier"] for item in live["DBClusterMembers"]],
            "clusterResourceId": live.get("DbClusterResourceId"),
            "databaseName": live.get("DatabaseName"),
            "dbClusterParameterGroupName": live["DBClusterParameterGroup"],
            "deletionProtection": live.get("DeletionProtection"),
            "endpoint": live["Endpoint"],
            "engineVersion": live["EngineVersion"],
            "engineVersionActual": live["EngineVersion"],
            "masterUserSecrets": secrets(live),
            "masterUsername": live["MasterUsername"],
            "port": live["Port"],
            "readerEndpoint": live.get("ReaderEndpoint"),
            "storageEncrypted": live.get("StorageEncrypted"),
        }


class ClusterInstance(Database):
    type_name = "aws:rds/clusterInstance:ClusterInstance"
    noun = "RDS Cluster Instance"
    name, prefix = "identifier", "identifierPrefix"
    call, key = "db_instance", "DBInstance"
    fields = (
        *SHARED,
        *MEMBER,
        Field("clusterIdentifier", "DBClusterIdentifier", replaces=True),
        Field("dbParameterGroupName", "DBParameterGroupName"),
        Field("dbSubnetGroupName", "DBSubnetGroupName"),
        Field("preferredMaintenanceWindow", "PreferredMaintenanceWindow"),
        Field("promotionTier", "PromotionTier"),
    )

    def last_snapshot(self, inputs: Properties) -> Properties:
        del inputs
        return {"SkipFinalSnapshot": True}

    def identity(self, made: Properties) -> str:
        return str(made["DBInstanceIdentifier"])

    def find(self, identity: str) -> list[Properties]:
        answer = client("rds").describe_db_instances(DBInstanceIdentifier=identity)
        return list(answer["DBInstances"])

    def outputs(self, live: Properties) -> Properties:
        answer = client("rds").describe_db_clusters(DBClusterIdentifier=live["DBClusterIdentifier"])
        members = {
            item["DBInstanceIdentifier"]: item
            for item in answer["DBClusters"][0]["DBClusterMembers"]
        }
        return {
            **member_outputs(live),
            "clusterIdentifier": live["DBClusterIdentifier"],
            "dbParameterGroupName": live["DBParameterGroups"][0]["DBParameterGroupName"],
            "dbiResourceId": live["DbiResourceId"],
            "endpoint": live["Endpoint"]["Address"],
            "port": live["Endpoint"]["Port"],
            "promotionTier": live.get("PromotionTier"),
            "writer": members[live["DBInstanceIdentifier"]]["IsClusterWriter"],
        }
