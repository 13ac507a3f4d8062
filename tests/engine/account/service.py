"""Instances, clusters and the catalogue: the calls of the API, with what AWS refuses."""

from __future__ import annotations

from moto.core.responses import ActionResult
from moto.rds.exceptions import RDSClientError
from moto.rds.models import DBInstanceClustered

from tests.engine.account import facts, rules
from tests.engine.account.control import ensure_default, own_group
from tests.engine.account.service_groups import GroupsService

_OWN, _CLUSTER = "DBParameterGroupName", "DBClusterParameterGroupName"
# An upgrade in place goes at most a few releases up; which pairs AWS offers is not our business.
_UPGRADES_SHOWN = 8


class Service(GroupsService):
    """The whole RDS API that tests use; what is not here is moto's own."""

    def create_db_instance(self) -> ActionResult:
        engine = self.params["Engine"]
        above = self.backend.clusters.get(self.params.get("DBClusterIdentifier") or "")
        wanted = above.engine_version if above else self.params.get("EngineVersion")
        version = rules.known_version(engine, wanted)
        rules.orderable(engine, version, self.params["DBInstanceClass"])
        self.params["EngineVersion"] = version
        ensure_default(self.backend, engine, version)
        self._check_group(_OWN, engine, version)
        self._note_password("DBInstanceIdentifier")
        result = super().create_db_instance()
        self.control.boot(self.backend.databases[self.params["DBInstanceIdentifier"]])
        return result

    def modify_db_instance(self) -> ActionResult:
        database = self.backend.describe_db_instances(self.params["DBInstanceIdentifier"])[0]
        engine, old = str(database.engine), str(database.engine_version)
        if isinstance(database, DBInstanceClustered):
            self.params.pop("EngineVersion", None)  # the cluster's business
        version = rules.known_version(engine, self.params.get("EngineVersion") or old)
        if self.params.get("EngineVersion"):
            self.params["EngineVersion"] = version
        group = self.params.get(_OWN) or own_group(database)
        left_behind = None if rules.is_default(group) or self.params.get(_OWN) else group
        allowed = bool(self.params.get("AllowMajorVersionUpgrade"))
        rules.upgrade(old, version, left_behind, allowed=allowed)
        if instance_class := self.params.get("DBInstanceClass"):
            rules.orderable(engine, version, instance_class)
        ensure_default(self.backend, engine, version)
        self._check_group(_OWN, engine, version)
        if rules.is_default(group):
            self.params[_OWN] = rules.default_group(engine, version)
        result = super().modify_db_instance()
        if version != old:
            self.control.boot(database)
        return result

    def reboot_db_instance(self) -> ActionResult:
        result = super().reboot_db_instance()
        self.control.boot(self.backend.databases[self.params["DBInstanceIdentifier"]])
        return result

    def delete_db_instance(self) -> ActionResult:
        name = self.params["DBInstanceIdentifier"]
        database = self.backend.describe_db_instances(name)[0]
        if not isinstance(database, DBInstanceClustered):
            self._check_snapshot()
        result = super().delete_db_instance()
        self.control.forget(database)
        return result

    def create_db_cluster(self) -> ActionResult:
        engine = self.params["Engine"]
        version = rules.known_version(engine, self.params.get("EngineVersion"))
        self.params["EngineVersion"] = version
        self.params.setdefault(_CLUSTER, rules.default_group(engine, version))
        self._check_group(_CLUSTER, engine, version)
        self._note_password("DBClusterIdentifier")
        self.control.reserve(self.params["DBClusterIdentifier"])
        return super().create_db_cluster()

    def modify_db_cluster(self) -> ActionResult:
        name = self.params["DBClusterIdentifier"]  # moto takes it out
        cluster = self.backend.describe_db_clusters(name)[0]
        old, engine = cluster.engine_version, cluster.engine
        version = rules.known_version(engine, self.params.get("EngineVersion") or old)
        if self.params.get("EngineVersion"):
            self.params["EngineVersion"] = version
        group = self.params.get(_CLUSTER) or cluster.parameter_group
        left_behind = None if rules.is_default(group) or self.params.get(_CLUSTER) else group
        allowed = bool(self.params.get("AllowMajorVersionUpgrade"))
        rules.upgrade(old, version, left_behind, allowed=allowed)
        if rules.is_default(group):
            self.params[_CLUSTER] = rules.default_group(engine, version)
        self._check_group(_CLUSTER, engine, version)
        own = self._check_members(cluster.members, engine, old, version)
        result = super().modify_db_cluster()
        if version != old:
            for member in self.backend.clusters[name].members:
                member.db_parameter_group_name = own
                self.control.boot(member)
        return result

    def delete_db_cluster(self) -> ActionResult:
        self._check_snapshot()
        return super().delete_db_cluster()

    def describe_db_engine_versions(self) -> ActionResult:
        wanted_engine, wanted = self.params.get("Engine"), self.params.get("EngineVersion")
        found = [
            _version(engine, version)
            for engine in facts.ENGINES
            if wanted_engine in {None, engine}
            for version in facts.versions(engine)
            if wanted in {None, version, facts.major(version)}
        ]
        if self.params.get("DefaultOnly") and found:
            default = facts.resolve(str(found[0]["Engine"]), wanted)
            found = [item for item in found if item["EngineVersion"] == default]
        family = self.params.get("DBParameterGroupFamily")
        kept = [item for item in found if family in {None, item["DBParameterGroupFamily"]}]
        return ActionResult({"DBEngineVersions": kept})

    def describe_orderable_db_instance_options(self) -> ActionResult:
        engine, wanted = self.params["Engine"], self.params.get("EngineVersion")
        chosen = self.params.get("DBInstanceClass")
        options = [
            _option(engine, version, name)
            for version in facts.versions(engine)
            if wanted in {None, version}
            for name in facts.classes(engine)
            if chosen in {None, name}
        ]
        return ActionResult({"OrderableDBInstanceOptions": options})

    def _note_password(self, key: str) -> None:
        if password := self.params.get("MasterUserPassword"):
            self.control.passwords[self.params[key]] = password

    def _check_group(self, key: str, engine: str, version: str) -> None:
        name = self.params.get(key)
        groups = (
            self.backend.db_parameter_groups
            if key == _OWN
            else self.backend.db_cluster_parameter_groups
        )
        if name is None:
            return
        if rules.is_default(name):
            family = rules.family_of_default(name)
        elif name in groups:
            family = str(getattr(groups[name], "family", None) or _family_of(groups[name]))
        else:
            raise RDSClientError("DBParameterGroupNotFound", f"DBParameterGroup not found: {name}")
        rules.fitting_group(name, family, engine, version)

    def _check_members(
        self, members: list[DBInstanceClustered], engine: str, old: str, version: str
    ) -> str | None:
        """Refuse a major upgrade that leaves a member with a group of the old release."""
        if facts.major(old) == facts.major(version):
            return None
        given = self.params.pop("DBInstanceParameterGroupName", None)
        for member in members:
            group = given or own_group(member)
            if not rules.is_default(group):
                family = str(self.backend.db_parameter_groups[group].family)
                rules.fitting_group(group, family, engine, version)
        return str(given) if given else None

    def _check_snapshot(self) -> None:
        if self.params.get("SkipFinalSnapshot") or self.params.get("FinalDBSnapshotIdentifier"):
            return
        raise RDSClientError(
            "InvalidParameterCombination",
            "FinalDBSnapshotIdentifier is required unless SkipFinalSnapshot is specified.",
        )


def _family_of(group: object) -> str:
    return str(getattr(group, "db_parameter_group_family", ""))


def _version(engine: str, version: str) -> dict[str, object]:
    above = [
        known
        for known in facts.versions(engine)
        if int(facts.major(known)) > int(facts.major(version))
    ]
    return {
        "Engine": engine,
        "EngineVersion": version,
        "MajorEngineVersion": facts.major(version),
        "DBParameterGroupFamily": facts.family(engine, version),
        "Status": "available",
        "ValidUpgradeTarget": [
            {"Engine": engine, "EngineVersion": known, "IsMajorVersionUpgrade": True}
            for known in above[-_UPGRADES_SHOWN:]
        ],
    }


def _option(engine: str, version: str, name: str) -> dict[str, object]:
    return {
        "Engine": engine,
        "EngineVersion": version,
        "DBInstanceClass": name,
        "LicenseModel": "postgresql-license",
        "StorageType": "aurora" if engine.startswith("aurora") else "gp3",
        "Vpc": True,
        "SupportsStorageEncryption": True,
        "SupportsPerformanceInsights": name not in {"db.t4g.micro", "db.t4g.small"},
        "MultiAZCapable": not engine.startswith("aurora"),
    }
