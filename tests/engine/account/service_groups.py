"""Parameter groups of instances and clusters: the calls of the API, with what AWS refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from moto.core.responses import ActionResult
from moto.rds.exceptions import DBParameterGroupNotFoundError
from moto.rds.responses import RDSResponse

from tests.engine.account import facts, rules
from tests.engine.account.control import Control, members

_NAME = {"own": "DBParameterGroupName", "cluster": "DBClusterParameterGroupName"}


class GroupsService(RDSResponse):
    control: ClassVar[Control]

    def create_db_parameter_group(self) -> ActionResult:
        self._check_new("own")
        return super().create_db_parameter_group()

    def create_db_cluster_parameter_group(self) -> ActionResult:
        self._check_new("cluster")
        return super().create_db_cluster_parameter_group()

    def modify_db_parameter_group(self) -> ActionResult:
        parameters = self._check_change("own")
        result = super().modify_db_parameter_group()
        self._apply("own", parameters)
        return result

    def modify_db_cluster_parameter_group(self) -> ActionResult:
        parameters = self._check_change("cluster")
        result = super().modify_db_cluster_parameter_group()
        self._apply("cluster", parameters)
        return result

    def reset_db_parameter_group(self) -> ActionResult:
        return self._reset("own", self.backend.db_parameter_groups)

    def reset_db_cluster_parameter_group(self) -> ActionResult:
        return self._reset("cluster", self.backend.db_cluster_parameter_groups)

    def delete_db_parameter_group(self) -> ActionResult:
        self._check_gone("own")
        return super().delete_db_parameter_group()

    def delete_db_cluster_parameter_group(self) -> ActionResult:
        self._check_gone("cluster")
        return super().delete_db_cluster_parameter_group()

    def describe_db_parameter_groups(self) -> ActionResult:
        name = self.params.get(_NAME["own"])
        if name and name not in self.backend.db_parameter_groups:
            raise DBParameterGroupNotFoundError(name)
        return super().describe_db_parameter_groups()

    def describe_db_parameters(self) -> ActionResult:
        super().describe_db_parameters()
        group = self.backend.db_parameter_groups[self.params[_NAME["own"]]]
        return self._describe(group.parameters)

    def describe_db_cluster_parameters(self) -> ActionResult:
        super().describe_db_cluster_parameters()
        group = self.backend.db_cluster_parameter_groups[self.params[_NAME["cluster"]]]
        return self._describe(group.parameters)

    def _check_new(self, kind: str) -> None:
        rules.group_name(self.params[_NAME[kind]])
        rules.known_family(self.params["DBParameterGroupFamily"])

    def _check_change(self, kind: str) -> list[dict[str, str]]:
        rules.own_group(self.params[_NAME[kind]])
        parameters = [item.original_dict() for item in self.params.get("Parameters", [])]
        rules.changes(parameters)
        return parameters

    def _check_gone(self, kind: str) -> None:
        name = self.params[_NAME[kind]]
        rules.own_group(name)
        rules.unused_group(name, members(self.backend, kind, name))

    def _apply(self, kind: str, parameters: list[dict[str, str]]) -> None:
        """Hand on what was asked for at once; the rest waits in the group for a reboot."""
        now = {
            item["ParameterName"]: item.get("ParameterValue")
            for item in parameters
            if item["ApplyMethod"] == "immediate"
        }
        if now:
            self.control.apply_now(self.backend, kind, self.params[_NAME[kind]], now)

    def _reset(self, kind: str, groups: Mapping[str, Any]) -> ActionResult:
        name = self.params[_NAME[kind]]
        rules.own_group(name)
        group = groups[name]
        parameters = [item.original_dict() for item in self.params.get("Parameters", [])]
        if self.params.get("ResetAllParameters"):
            parameters = [
                {"ParameterName": known, "ApplyMethod": "pending-reboot"}
                for known in group.parameters
            ]
        rules.changes(parameters)
        for item in parameters:
            group.parameters.pop(item["ParameterName"], None)
        self._apply(kind, parameters)
        return ActionResult({_NAME[kind]: name})

    def _describe(self, own: Mapping[str, Mapping[str, str]]) -> ActionResult:
        """List every parameter there is, as AWS does, or those of one source."""
        listed = [_described(known, own.get(known.name)) for known in facts.PARAMETERS.values()]
        source = self.params.get("Source")
        return ActionResult({"Parameters": [i for i in listed if source in {None, i["Source"]}]})


def _described(known: facts.Parameter, own: Mapping[str, str] | None) -> dict[str, object]:
    value = own.get("ParameterValue") if own else None
    return {
        "ParameterName": known.name,
        "ParameterValue": known.default if value is None else value,
        "Source": "user" if value is not None else "system" if known.default else "engine-default",
        "ApplyType": known.apply_type,
        "ApplyMethod": own.get("ApplyMethod", "pending-reboot") if own else "pending-reboot",
        "AllowedValues": known.allowed,
        "IsModifiable": known.modifiable,
    }
