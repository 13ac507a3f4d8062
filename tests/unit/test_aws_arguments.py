"""What is refused before anything is declared; the list of libraries that is never cut short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pulumi_aws", reason="the group `managed` is not installed")


from infra.aws.cluster import Capacity
from infra.aws.database import DatabaseArgs, InstanceArgs
from infra.aws.network import Network, NetworkArgs
from infra.aws.parameters import GroupsArgs
from infra.aws.preloading import PreloadArgs
from infra.rds import Parameter
from tests.unit.pulumi_engine import checked

# A module of the SDK warns of itself while it is imported.
pytestmark = pytest.mark.filterwarnings("ignore:aws.ec2/encryptioncontrol:DeprecationWarning")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: NetworkArgs(subnet_ids=["a", "b"], subnet_group="c"), "Only one of"),
        (lambda: NetworkArgs(security_group_ids=["a"], allow_from=["b"]), "Only one of"),
        (lambda: Capacity(minimum=4, maximum=1), "below `minimum`"),
        (lambda: groups_args(members=["shared_preload_libraries"]), "both groups would set"),
        (lambda: groups_args(members=["cron.log_run"]), "both groups would set"),
        (lambda: groups_args(target="rds", members=["jit"]), "only Aurora has `members`"),
        (lambda: sizes(50, 20), "below `allocated_storage`"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused_first(
    wrong: Callable[[], object], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        wrong()


def groups_args(target: str = "aurora", members: Any = ()) -> GroupsArgs:
    return GroupsArgs(
        target,
        "aurora-postgresql16",
        PreloadArgs(["pg_cron"], "aurora-postgresql16", target),
        [],
        [Parameter(name, "1", static=True) for name in members],
    )


def sizes(least: int, most: int) -> InstanceArgs:
    network = Network.__new__(Network)
    common = DatabaseArgs("16", "db.t4g.medium", "group", network, "app", "postgres")
    return InstanceArgs(common, least, most)


def test_a_new_list_starts_from_the_default_of_its_family() -> None:
    assert checked({}, wanted=["pg_cron"]).inputs["text"] == "pg_stat_statements,pg_cron"
    assert checked({}, wanted=["pg_cron"], family="postgres18").inputs["text"] == (
        "pg_tle,pg_stat_statements,pg_cron"
    )


def test_a_list_keeps_what_it_had_and_its_order() -> None:
    olds = {"text": "pg_stat_statements,pg_cron", "wanted": ["pg_cron"]}

    later = checked(olds, wanted=["auto_explain", "pg_cron"]).inputs["text"]
    assert later == "pg_stat_statements,pg_cron,auto_explain"


def test_an_adopted_list_keeps_what_somebody_put_there() -> None:
    found = checked({}, wanted=["pg_cron"], existing="PGAUDIT,rdsutils,pg_stat_statements")

    assert found.inputs["text"] == "pgaudit,pg_stat_statements,pg_cron"


def test_a_library_that_is_not_declared_any_more_stays_unless_its_removal_is_allowed() -> None:
    olds = {"text": "pg_stat_statements,pgaudit,pg_cron", "wanted": ["pgaudit", "pg_cron"]}

    refused = checked(olds, wanted=["pg_cron"])
    allowed = checked(olds, wanted=["pg_cron"], allowRemoval=True)

    assert [failure.property for failure in refused.failures] == ["wanted"]
    assert "allowPreloadRemoval" in refused.failures[0].reason
    assert allowed.failures == []
    assert allowed.inputs["text"] == "pg_stat_statements,pg_cron"
