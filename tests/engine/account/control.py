"""The account's own memory beside moto's: who runs with which values, and where servers listen."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from moto.rds.models import DBCluster, DBInstance, DBInstanceClustered, RDSBackend

from infra.errors import InfraError
from tests.engine.account import booted as links
from tests.engine.account import facts, rules
from tests.engine.account.plane import DataPlane, Endpoint, NoDataPlane, Order


@dataclass(slots=True)
class Control:
    """Boots instances with the values of their groups. ``plane`` runs real servers, or none."""

    plane: DataPlane = field(default_factory=NoDataPlane)
    booted: links.Booted = field(default_factory=links.Booted)
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    # By instance or cluster; moto forgets what it was given.
    passwords: dict[str, str] = field(default_factory=dict, repr=False)

    def reserve(self, cluster: str) -> None:
        """Give a cluster its address; nobody listens there before it has an instance."""
        self.endpoints[cluster] = self.plane.reserve(cluster)

    def boot(self, database: DBInstance) -> None:
        """Start the instance, or reboot it: only now does it take static values."""
        name, backend = database.db_instance_identifier, database.backend
        group = own_group(database)
        self.booted.own[name] = links.Link(group, own_values(backend, group))
        if isinstance(database, DBInstanceClustered):
            above = database.cluster.parameter_group
            self.booted.cluster[name] = links.Link(above, cluster_values(backend, above))
            if not database.is_cluster_writer:
                self.endpoints.setdefault(name, Endpoint("127.0.0.1", 1))
                return
        order = self._order(database)
        try:
            self.endpoints[name] = self.endpoints[order.name] = self.plane.boot(order)
            database.status = "available"
        except InfraError:  # as when a value lets no server start
            database.status = "incompatible-parameters"

    def apply_now(
        self, backend: RDSBackend, kind: str, group: str, changed: dict[str, str | None]
    ) -> None:
        """Hand dynamic values to the instances that run with this group."""
        table = self.booted.cluster if kind == "cluster" else self.booted.own
        for name in links.apply_now(table, group, changed):
            database = backend.databases[name]
            if not isinstance(database, DBInstanceClustered) or database.is_cluster_writer:
                self.plane.reload(server_name(database), self.booted.running(name))

    def forget(self, database: DBInstance) -> None:
        name = database.db_instance_identifier
        self.booted.forget(name)
        self.endpoints.pop(name, None)
        if not isinstance(database, DBInstanceClustered) or database.is_cluster_writer:
            self.endpoints.pop(server_name(database), None)
            self.plane.destroy(server_name(database))

    def _order(self, database: DBInstance) -> Order:
        holder = database.cluster if isinstance(database, DBInstanceClustered) else database
        name = server_name(database)
        if secret := getattr(holder, "master_user_secret", None):
            password = json.loads(secret.secret.secret_string)["password"]
        else:
            password = self.passwords.get(name, "")
        given = getattr(holder, "database_name", None) or getattr(holder, "db_name", None)
        return Order(
            name=name,
            version=str(database.engine_version),
            database=str(given or "postgres"),
            username=str(holder.master_username),
            password=str(password),
            values=self.booted.running(database.db_instance_identifier),
        )

    def own_status(self, database: DBInstance) -> list[dict[str, str]]:
        """Return ``DBParameterGroups`` of an instance, as DescribeDBInstances shows it."""
        group = own_group(database)
        link = self.booted.own.get(database.db_instance_identifier)
        values = own_values(database.backend, group)
        status = link.status(group, values) if link else "in-sync"
        return [{"DBParameterGroupName": group, "ParameterApplyStatus": status}]

    def member_status(self, cluster: DBCluster) -> list[dict[str, object]]:
        """Return ``DBClusterMembers`` of a cluster, as DescribeDBClusters shows it."""
        values = cluster_values(cluster.backend, cluster.parameter_group)
        return [
            {
                "DBInstanceIdentifier": member.db_instance_identifier,
                "IsClusterWriter": member.is_cluster_writer,
                "PromotionTier": member.promotion_tier,
                "DBClusterParameterGroupStatus": link.status(cluster.parameter_group, values)
                if (link := self.booted.cluster.get(member.db_instance_identifier))
                else "in-sync",
            }
            for member in cluster.members
        ]


def own_group(database: DBInstance) -> str:
    return str(
        database.db_parameter_group_name
        or rules.default_group(str(database.engine), str(database.engine_version))
    )


def own_values(backend: RDSBackend, group: str) -> links.Values:
    return _values(backend.db_parameter_groups.get(group))


def cluster_values(backend: RDSBackend, group: str) -> links.Values:
    return _values(backend.db_cluster_parameter_groups.get(group))


def _values(group: object) -> links.Values:
    """Return what a user has set in a group; a default group, which moto may lack, is empty."""
    parameters = getattr(group, "parameters", {})
    return {
        name: str(parameter["ParameterValue"])
        for name, parameter in parameters.items()
        if parameter.get("ParameterValue") is not None
    }


def members(backend: RDSBackend, kind: str, group: str) -> list[str]:
    """Return the instances (or clusters) that a group is attached to."""
    if kind == "cluster":
        clusters = backend.clusters.values()
        return [item.db_cluster_identifier for item in clusters if item.parameter_group == group]
    databases = backend.databases.values()
    return [item.db_instance_identifier for item in databases if own_group(item) == group]


def ensure_default(backend: RDSBackend, engine: str, version: str) -> None:
    """Make moto know the default group, which is there in every account."""
    name = rules.default_group(engine, version)
    if name not in backend.db_parameter_groups:
        family = facts.family(engine, version)
        words = f"Default parameter group for {family}"
        backend.create_db_parameter_group(
            {
                "db_parameter_group_name": name,
                "db_parameter_group_family": family,
                "description": words,
            }
        )


def server_name(database: DBInstance) -> str:
    return str(database.db_cluster_identifier or database.db_instance_identifier)
