"""Parameter groups through the test provider, by real ``pulumi`` commands on small programs."""

from __future__ import annotations

import pytest

from tests.engine.account.server import Account
from tests.engine.project import Project, PulumiError
from tests.engine.provider.groups import parts

GROUP = """
    from pulumi import export
    from pulumi_aws import rds

    group = rds.ParameterGroup(
        "jobs",
        name_prefix="jobs-",
        family="{family}",
        parameters=[
            {{
                "name": "shared_preload_libraries",
                "value": "{preload}",
                "apply_method": "{method}",
            }},
            {{"name": "work_mem", "value": "{work_mem}", "apply_method": "immediate"}},
        ],
    )
    export("group", group.name)
"""


def group(
    family: str = "postgres16",
    preload: str = "pg_stat_statements,pg_cron",
    method: str = "pending-reboot",
    work_mem: str = "4096",
) -> str:
    return GROUP.format(family=family, preload=preload, method=method, work_mem=work_mem)


def test_a_group_is_made_changed_and_left_alone(project: Project, account: Account) -> None:
    project.program(group())
    first = project.up()
    name = project.outputs()["group"]
    second = project.up()
    project.program(group(work_mem="8192"))
    third = project.up()

    assert first.changes == {"create": 2}
    assert name.startswith("jobs-")
    assert second.changes == {"same": 2}
    assert third.touched() == {"jobs": "update"}
    assert values(account, name) == {
        "shared_preload_libraries": "pg_stat_statements,pg_cron",
        "work_mem": "8192",
    }


def test_a_new_family_makes_a_new_group_before_the_old_one_goes(
    project: Project, account: Account
) -> None:
    project.program(group())
    project.up()
    project.program(group(family="postgres17"))
    account.calls.clear()
    project.up()

    made = account.calls.index("CreateDBParameterGroup")
    assert made < account.calls.index("DeleteDBParameterGroup")


def test_a_change_of_the_apply_method_alone_is_no_change(project: Project) -> None:
    text = group()
    project.program(text)
    project.up()
    project.program(text.replace('"apply_method": "immediate"', '"apply_method": "pending-reboot"'))

    assert project.preview().changes == {"same": 2}


def test_an_immediate_change_of_a_static_parameter_is_refused(project: Project) -> None:
    project.program(group(method="immediate"))

    with pytest.raises(PulumiError, match="cannot use immediate apply method for static parameter"):
        project.up()


def test_a_group_that_was_half_made_is_kept_and_finished(
    project: Project, account: Account
) -> None:
    project.program(group())
    account.fail("ModifyDBParameterGroup", "InvalidDBParameterGroupState")
    with pytest.raises(PulumiError, match="InvalidDBParameterGroupState"):
        project.up()
    again = project.up()

    assert again.touched() == {"jobs": "update"}
    assert account.counted()["CreateDBParameterGroup"] == 1
    assert values(account, project.outputs()["group"])["work_mem"] == "4096"


def test_an_unknown_parameter_is_refused(project: Project) -> None:
    project.program(group().replace("work_mem", "work_memory"))

    with pytest.raises(PulumiError, match="Could not find parameter with name: work_memory"):
        project.up()


def test_a_group_that_exists_already_is_refused(project: Project, account: Account) -> None:
    account.client("rds").create_db_parameter_group(
        DBParameterGroupName="taken", DBParameterGroupFamily="postgres16", Description="theirs"
    )
    project.program(group().replace('name_prefix="jobs-"', 'name="taken"'))

    with pytest.raises(PulumiError, match="DBParameterGroupAlreadyExists"):
        project.up()


def test_a_value_changed_by_hand_is_seen_by_refresh_and_put_right(
    project: Project, account: Account
) -> None:
    project.program(group())
    project.up()
    name = project.outputs()["group"]
    account.client("rds").modify_db_parameter_group(
        DBParameterGroupName=name,
        Parameters=[
            {"ParameterName": "work_mem", "ParameterValue": "64", "ApplyMethod": "immediate"}
        ],
    )
    seen = project.refresh()
    mended = project.up()

    assert seen.changes == {"same": 1, "update": 1}
    assert mended.touched() == {"jobs": "update"}
    assert values(account, name)["work_mem"] == "4096"


def test_a_group_dropped_by_hand_comes_back_after_refresh(
    project: Project, account: Account
) -> None:
    project.program(group())
    project.up()
    name = project.outputs()["group"]
    account.client("rds").delete_db_parameter_group(DBParameterGroupName=name)
    project.refresh()

    assert project.up().touched() == {"jobs": "create"}


def test_forty_five_parameters_are_sent_in_calls_of_twenty() -> None:
    sizes = [len(part) for part in parts([{"name": str(number)} for number in range(45)])]

    assert sizes == [20, 20, 5]


def values(account: Account, name: str) -> dict[str, str]:
    answer = account.client("rds").describe_db_parameters(DBParameterGroupName=name, Source="user")
    return {item["ParameterName"]: item["ParameterValue"] for item in answer["Parameters"]}
