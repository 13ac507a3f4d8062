"""Databases through the test provider, by real ``pulumi`` commands on small programs."""

from __future__ import annotations

import pytest

from tests.engine.account.server import Account
from tests.engine.project import Project, PulumiError

INSTANCE = """
    import pulumi_aws as aws
    from pulumi import export

    {extra}
    database = aws.rds.Instance(
        "jobs",
        engine="postgres",
        engine_version="{version}",
        instance_class="{instance_class}",
        allocated_storage=20,
        db_name="app",
        username="master",
        manage_master_user_password=True,
        skip_final_snapshot=True,
        {arguments}
    )
    export("endpoint", database.endpoint)
    export("secret", database.master_user_secrets[0].secret_arn)
"""


def instance(
    version: str = "16.10",
    instance_class: str = "db.t4g.micro",
    extra: str = "",
    arguments: str = "",
) -> str:
    return INSTANCE.format(
        version=version, instance_class=instance_class, extra=extra, arguments=arguments
    )


def test_an_instance_has_an_endpoint_a_secret_and_nothing_to_change(
    project: Project, account: Account
) -> None:
    project.program(instance())
    project.up()
    found = project.outputs()
    secret = account.client("secretsmanager").get_secret_value(SecretId=found["secret"])

    assert found["endpoint"] == "127.0.0.1:1"
    assert '"username": "master"' in secret["SecretString"]
    assert project.up().changes == {"same": 2}
    assert project.destroy().changes == {"delete": 2}
    assert account.client("rds").describe_db_instances()["DBInstances"] == []


def test_a_group_of_another_family_is_refused(project: Project, account: Account) -> None:
    account.client("rds").create_db_parameter_group(
        DBParameterGroupName="old", DBParameterGroupFamily="postgres15", Description="old"
    )
    project.program(instance(arguments='parameter_group_name="old",'))

    with pytest.raises(PulumiError, match="Please use a Parameter Group"):
        project.up()


def test_a_group_in_use_is_not_deleted(project: Project, account: Account) -> None:
    project.program("""
        from pulumi_aws import rds

        rds.ParameterGroup("jobs", name="jobs", family="postgres16")
    """)
    project.up()
    account.client("rds").create_db_instance(
        DBInstanceIdentifier="theirs",
        DBInstanceClass="db.t4g.micro",
        Engine="postgres",
        EngineVersion="16.10",
        AllocatedStorage=20,
        MasterUsername="master",
        ManageMasterUserPassword=True,
        DBParameterGroupName="jobs",
    )

    with pytest.raises(PulumiError, match="so the group cannot be deleted"):
        project.destroy()


def test_a_major_upgrade_needs_its_flag_and_brings_its_group(
    project: Project, account: Account
) -> None:
    own = 'group = aws.rds.ParameterGroup("jobs", family="{family}", name_prefix="jobs-")'
    attach = "parameter_group_name=group.name,"
    project.program(instance(extra=own.format(family="postgres16"), arguments=attach))
    project.up()
    newer = own.format(family="postgres17")
    project.program(instance("17.6", extra=newer, arguments=attach))
    with pytest.raises(PulumiError, match="AllowMajorVersionUpgrade flag must be present"):
        project.up()
    project.program(
        instance("17.6", extra=newer, arguments=attach + "allow_major_version_upgrade=True,")
    )
    project.up()

    live = account.client("rds").describe_db_instances()["DBInstances"][0]
    groups = account.client("rds").describe_db_parameter_groups()["DBParameterGroups"]
    assert live["EngineVersion"] == "17.6"
    assert [
        item["DBParameterGroupFamily"]
        for item in groups
        if not item["DBParameterGroupName"].startswith("default.")
    ] == ["postgres17"]


@pytest.mark.parametrize(
    ("version", "instance_class", "reason"),
    [
        ("16.99", "db.t4g.micro", "Cannot find version 16.99 for postgres"),
        ("16.10", "db.x9.huge", "DBInstanceClass=db.x9.huge, Engine=postgres"),
    ],
)
def test_what_aws_does_not_offer_is_refused(
    project: Project, version: str, instance_class: str, reason: str
) -> None:
    project.program(instance(version, instance_class))

    with pytest.raises(PulumiError, match=reason):
        project.up()


def test_a_program_can_ask_for_versions_classes_and_the_network(project: Project) -> None:
    project.program("""
        import pulumi_aws as aws
        from pulumi import export

        found = aws.rds.get_engine_version_output(engine="postgres", version="16", latest=True)
        offer = aws.rds.get_orderable_db_instance_output(
            engine="postgres",
            engine_version="16.10",
            preferred_instance_classes=["db.none.such", "db.t4g.small"],
        )
        vpc = aws.ec2.get_vpc(default=True)
        subnets = aws.ec2.get_subnets(filters=[{"name": "vpc-id", "values": [vpc.id]}])
        group = aws.rds.SubnetGroup("jobs", subnet_ids=subnets.ids)
        guard = aws.ec2.SecurityGroup("jobs", vpc_id=vpc.id)
        aws.vpc.SecurityGroupIngressRule(
            "jobs",
            security_group_id=guard.id,
            cidr_ipv4=vpc.cidr_block,
            ip_protocol="tcp",
            from_port=5432,
            to_port=5432,
        )
        export("family", found.parameter_group_family)
        export("version", found.version_actual)
        export("class", offer.instance_class)
        export("subnets", group.subnet_ids)
    """)
    first, again = project.up(), project.up()

    found = project.outputs()
    assert (found["family"], found["version"]) == ("postgres16", "16.10")
    assert found["class"] == "db.t4g.small"
    assert len(found["subnets"]) >= 2
    assert first.changes == {"create": 4}
    assert again.changes == {"same": 4}
    assert project.destroy().changes == {"delete": 4}


def test_an_input_that_the_provider_does_not_know_is_refused(project: Project) -> None:
    project.program(instance(arguments='character_set_name="UTF8",'))

    with pytest.raises(PulumiError, match="the test provider knows no characterSetName"):
        project.preview()


CLUSTER = """
    import pulumi_aws as aws
    from pulumi import export

    own = aws.rds.ClusterParameterGroup(
        "jobs",
        family="aurora-postgresql16",
        parameters=[
            {
                "name": "shared_preload_libraries",
                "value": "pg_stat_statements,pg_cron",
                "apply_method": "pending-reboot",
            }
        ],
    )
    cluster = aws.rds.Cluster(
        "jobs",
        engine="aurora-postgresql",
        engine_version="16.10",
        database_name="app",
        master_username="master",
        manage_master_user_password=True,
        db_cluster_parameter_group_name=own.name,
        skip_final_snapshot=True,
    )
    for name in ("one", "two"):
        aws.rds.ClusterInstance(
            name,
            identifier=name,
            cluster_identifier=cluster.id,
            engine="aurora-postgresql",
            instance_class="db.r7g.large",
        )
    export("endpoint", cluster.endpoint)
"""


def test_an_aurora_cluster_with_two_members_comes_and_goes(
    project: Project, account: Account
) -> None:
    project.program(CLUSTER)
    first, again = project.up(), project.up()
    live = account.client("rds").describe_db_clusters()["DBClusters"][0]

    assert first.changes == {"create": 5}
    assert again.changes == {"same": 5}
    assert {item["DBClusterParameterGroupStatus"] for item in live["DBClusterMembers"]} == {
        "in-sync"
    }
    assert project.refresh().changes == {"same": 5}
    assert project.destroy().changes == {"delete": 5}
