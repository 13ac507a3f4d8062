"""Parameter groups: ``aws:rds:ParameterGroup`` and ``aws:rds:ClusterParameterGroup``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from botocore.exceptions import ClientError

from tests.engine.provider.kinds import Field, Kind, client, missing, refusal, tags
from tests.engine.provider.values import UNKNOWN, Properties

AT_ONCE = 20


class ParameterGroup(Kind):
    type_name = "aws:rds/parameterGroup:ParameterGroup"
    noun = "RDS DB Parameter Group"
    name, prefix, longest_name = "name", "namePrefix", 255
    defaults: ClassVar[Properties] = {"description": "Managed by Pulumi"}
    fields: ClassVar[tuple[Field, ...]] = (
        Field("description", replaces=True),
        Field("family", replaces=True),
        Field("name", replaces=True),
        Field("namePrefix", replaces=True),
        Field("parameters"),
        Field("skipDestroy"),
        Field("tags"),
    )
    call = "db_parameter_group"
    listing = "db_parameters"
    key = "DBParameterGroup"

    def same(self, key: str, old: Any, new: Any) -> bool:
        """Compare parameters by name and value: AWS reads ``applyMethod`` back as it likes."""
        if key == "parameters" and isinstance(old, list) and isinstance(new, list):
            return _pairs(old) == _pairs(new)
        return super().same(key, old, new)

    def faults(self, inputs: Properties) -> list[tuple[str, str]]:
        found = super().faults(inputs)
        names = [str(item.get("name")) for item in inputs.get("parameters") or []]
        twice = sorted({name for name in names if name != UNKNOWN and names.count(name) > 1})
        return found + [("parameters", f"{name} is given more than once") for name in twice]

    def create(self, inputs: Properties) -> str:
        name = inputs["name"]
        try:
            self._do(
                "create",
                DBParameterGroupFamily=inputs["family"],
                Description=inputs["description"],
                Tags=tags(inputs),
                name=name,
            )
        except ClientError as error:
            raise refusal(f"creating {self.noun} ({name})", error) from error
        try:
            self._modify(name, inputs.get("parameters") or [])
        except ClientError as error:
            raise refusal(f"modifying {self.noun} ({name})", error, made=name) from error
        return str(name)

    def read(self, identity: str) -> Properties | None:
        try:
            group = self._do("describe", plural=True, name=identity)[f"{self.key}s"][0]
        except ClientError as error:
            if missing(error):
                return None
            raise refusal(f"reading {self.noun} ({identity})", error) from error
        return {
            "arn": group[f"{self.key}Arn"],
            "description": group["Description"],
            "family": group["DBParameterGroupFamily"],
            "name": identity,
            "parameters": list(self._own_values(identity)),
        }

    def update(self, identity: str, old: Properties, new: Properties) -> None:
        before = {item["name"]: item for item in old.get("parameters") or []}
        after = {item["name"]: item for item in new.get("parameters") or []}
        changed = [
            item
            for name, item in after.items()
            if name not in before or before[name]["value"] != item["value"]
        ]
        gone = [item for name, item in before.items() if name not in after]
        try:
            self._modify(identity, changed)
            self._reset(identity, gone)
        except ClientError as error:
            raise refusal(f"modifying {self.noun} ({identity})", error, made=identity) from error

    def delete(self, identity: str, inputs: Properties) -> None:
        if inputs.get("skipDestroy"):
            return
        try:
            self._do("delete", name=identity)
        except ClientError as error:
            if not missing(error):
                raise refusal(f"deleting {self.noun} ({identity})", error) from error

    def _modify(self, name: str, parameters: Sequence[Properties]) -> None:
        for part in parts(sorted(parameters, key=lambda item: str(item["name"]))):
            self._do(
                "modify",
                name=name,
                Parameters=[
                    {**_named(item), "ParameterValue": str(item["value"])} for item in part
                ],
            )

    def _reset(self, name: str, parameters: Sequence[Properties]) -> None:
        for part in parts(parameters):
            self._do("reset", name=name, Parameters=[_named(item) for item in part])

    def _own_values(self, name: str) -> Iterator[Properties]:
        describe = getattr(client("rds"), f"describe_{self.listing}")
        answer = describe(**{f"{self.key}Name": name, "Source": "user"})
        for item in sorted(answer["Parameters"], key=lambda item: str(item["ParameterName"])):
            yield {
                "applyMethod": item["ApplyMethod"],
                "name": item["ParameterName"],
                "value": item["ParameterValue"],
            }

    def _do(self, verb: str, *, name: str, plural: bool = False, **arguments: Any) -> Any:
        method = getattr(client("rds"), f"{verb}_{self.call}{'s' if plural else ''}")
        return method(**{f"{self.key}Name": name}, **arguments)


class ClusterParameterGroup(ParameterGroup):
    type_name = "aws:rds/clusterParameterGroup:ClusterParameterGroup"
    noun = "RDS Cluster Parameter Group"
    call = "db_cluster_parameter_group"
    listing = "db_cluster_parameters"
    key = "DBClusterParameterGroup"
    fields = tuple(item for item in ParameterGroup.fields if item.name != "skipDestroy")


def _named(item: Properties) -> dict[str, str]:
    return {
        "ParameterName": item["name"],
        "ApplyMethod": item.get("applyMethod") or "immediate",
    }


def _pairs(parameters: list[Properties]) -> list[tuple[str, str]]:
    return sorted((str(item.get("name")), str(item.get("value"))) for item in parameters)


def parts(parameters: Sequence[Properties]) -> Iterator[tuple[Properties, ...]]:
    for start in range(0, len(parameters), AT_ONCE):
        yield tuple(parameters[start : start + AT_ONCE])
