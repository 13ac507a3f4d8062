"""What a database needs around it: a subnet group, a security group and its rules."""

from __future__ import annotations

from typing import Any, ClassVar

from botocore.exceptions import ClientError

from tests.engine.provider.kinds import Field, Kind, client, missing, refusal, tags
from tests.engine.provider.values import Properties


class SubnetGroup(Kind):
    type_name = "aws:rds/subnetGroup:SubnetGroup"
    noun = "RDS DB Subnet Group"
    name, prefix, longest_name = "name", "namePrefix", 255
    defaults: ClassVar[Properties] = {"description": "Managed by Pulumi"}
    fields = (
        Field("description", "DBSubnetGroupDescription"),
        Field("name", "DBSubnetGroupName", replaces=True),
        Field("namePrefix", replaces=True),
        Field("subnetIds", "SubnetIds"),
        Field("tags"),
    )

    def create(self, inputs: Properties) -> str:
        name = str(inputs["name"])
        try:
            client("rds").create_db_subnet_group(**self.arguments(inputs), Tags=tags(inputs))
        except ClientError as error:
            raise refusal(f"creating {self.noun} ({name})", error) from error
        return name

    def read(self, identity: str) -> Properties | None:
        try:
            answer = client("rds").describe_db_subnet_groups(DBSubnetGroupName=identity)
        except ClientError as error:
            if missing(error):
                return None
            raise refusal(f"reading {self.noun} ({identity})", error) from error
        group = answer["DBSubnetGroups"][0]
        return {
            "arn": group["DBSubnetGroupArn"],
            "description": group["DBSubnetGroupDescription"],
            "name": group["DBSubnetGroupName"],
            "subnetIds": sorted(item["SubnetIdentifier"] for item in group["Subnets"]),
            "vpcId": group["VpcId"],
        }

    def same(self, key: str, old: Any, new: Any) -> bool:
        if key == "subnetIds" and isinstance(old, list) and isinstance(new, list):
            return sorted(old) == sorted(new)
        return super().same(key, old, new)

    def update(self, identity: str, old: Properties, new: Properties) -> None:
        del old
        try:
            client("rds").modify_db_subnet_group(**self.arguments(new))
        except ClientError as error:
            raise refusal(f"updating {self.noun} ({identity})", error, made=identity) from error

    def delete(self, identity: str, inputs: Properties) -> None:
        del inputs
        try:
            client("rds").delete_db_subnet_group(DBSubnetGroupName=identity)
        except ClientError as error:
            if not missing(error):
                raise refusal(f"deleting {self.noun} ({identity})", error) from error


class SecurityGroup(Kind):
    """A group without rules of its own; they are resources beside it."""

    type_name = "aws:ec2/securityGroup:SecurityGroup"
    noun = "EC2 Security Group"
    name, prefix, longest_name = "name", "namePrefix", 255
    defaults: ClassVar[Properties] = {"description": "Managed by Pulumi"}
    fields = (
        Field("description", "Description", replaces=True),
        Field("name", "GroupName", replaces=True),
        Field("namePrefix", replaces=True),
        Field("revokeRulesOnDelete"),
        Field("tags"),
        Field("vpcId", "VpcId", replaces=True),
    )

    def create(self, inputs: Properties) -> str:
        try:
            made = client("ec2").create_security_group(**self.arguments(inputs))
        except ClientError as error:
            raise refusal(f"creating {self.noun} ({inputs['name']})", error) from error
        return str(made["GroupId"])

    def read(self, identity: str) -> Properties | None:
        try:
            group = client("ec2").describe_security_groups(GroupIds=[identity])["SecurityGroups"][0]
        except ClientError as error:
            if missing(error):
                return None
            raise refusal(f"reading {self.noun} ({identity})", error) from error
        return {
            "arn": group.get("SecurityGroupArn"),
            "description": group["Description"],
            "name": group["GroupName"],
            "ownerId": group["OwnerId"],
            "vpcId": group["VpcId"],
        }

    def update(self, identity: str, old: Properties, new: Properties) -> None:
        """Only tags can change in place, and nothing here reads them."""

    def delete(self, identity: str, inputs: Properties) -> None:
        del inputs
        try:
            client("ec2").delete_security_group(GroupId=identity)
        except ClientError as error:
            if not missing(error):
                raise refusal(f"deleting {self.noun} ({identity})", error) from error


class IngressRule(Kind):
    type_name = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    noun = "VPC Security Group Rule"
    way: ClassVar[str] = "ingress"
    fields = (
        Field("cidrIpv4", replaces=True),
        Field("description", replaces=True),
        Field("fromPort", "FromPort", replaces=True),
        Field("ipProtocol", "IpProtocol", replaces=True),
        Field("referencedSecurityGroupId", replaces=True),
        Field("securityGroupId", replaces=True),
        Field("tags"),
        Field("toPort", "ToPort", replaces=True),
    )

    def create(self, inputs: Properties) -> str:
        permission = self.arguments(inputs)
        note = {"Description": inputs["description"]} if inputs.get("description") else {}
        if cidr := inputs.get("cidrIpv4"):
            permission["IpRanges"] = [{"CidrIp": cidr, **note}]
        if other := inputs.get("referencedSecurityGroupId"):
            permission["UserIdGroupPairs"] = [{"GroupId": other, **note}]
        authorize = getattr(client("ec2"), f"authorize_security_group_{self.way}")
        try:
            made = authorize(GroupId=inputs["securityGroupId"], IpPermissions=[permission])
        except ClientError as error:
            raise refusal(f"creating {self.noun}", error) from error
        return str(made["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    def read(self, identity: str) -> Properties | None:
        try:
            answer = client("ec2").describe_security_group_rules(SecurityGroupRuleIds=[identity])
        except ClientError as error:
            if missing(error):
                return None
            raise refusal(f"reading {self.noun} ({identity})", error) from error
        if not (rules := answer["SecurityGroupRules"]):
            return None
        return {"securityGroupId": rules[0]["GroupId"], "securityGroupRuleId": identity}

    def update(self, identity: str, old: Properties, new: Properties) -> None:
        """Only tags can change in place, and nothing here reads them."""

    def delete(self, identity: str, inputs: Properties) -> None:
        revoke = getattr(client("ec2"), f"revoke_security_group_{self.way}")
        try:
            revoke(GroupId=inputs["securityGroupId"], SecurityGroupRuleIds=[identity])
        except ClientError as error:
            if not missing(error):
                raise refusal(f"deleting {self.noun} ({identity})", error) from error


class EgressRule(IngressRule):
    type_name = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    way = "egress"
