"""What waits for a reboot, and the reboot: readers first, then the writer, each awaited.

AWS says of each instance whether its groups are in force: `in-sync`, `applying` or
`pending-reboot`. No maintenance window and no other change reboots for them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from infra.aws.calls import AwsError, client, told

Kind = Literal["instance", "cluster"]

PENDING: Final = "pending-reboot"
APPLYING: Final = "applying"
WAIT_SECONDS: Final = 20 * 60.0
SETTLE_SECONDS: Final = 120.0
POLL_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Member:
    """One instance. ``groups``: the apply status of each of its parameter groups."""

    name: str
    writer: bool
    state: str
    groups: tuple[str, ...]
    source: str | None = None

    @property
    def pending(self) -> bool:
        return PENDING in self.groups

    @property
    def settled(self) -> bool:
        return APPLYING not in self.groups


@dataclass(frozen=True, slots=True)
class Database:
    """An instance, or a cluster by its identifier."""

    kind: Kind
    identifier: str
    region: str | None = None

    def members(self) -> tuple[Member, ...]:
        """Return its instances in the order they are to be rebooted. Raises AwsError."""
        rds = client("rds", self.region)
        with told(f"asking for the {self.kind} {self.identifier}"):
            found = _instance(rds, self.identifier) if self.kind == "instance" else None
            members = (found,) if found else tuple(_of_cluster(rds, self.identifier))
        return tuple(sorted(members, key=lambda member: (member.writer, member.name)))

    def settled_members(self) -> tuple[Member, ...]:
        """The same, once AWS has taken in the last change of the groups."""
        give_up = time.monotonic() + SETTLE_SECONDS
        while True:
            members = self.members()
            if all(it.settled for it in members) or time.monotonic() > give_up:
                return members
            time.sleep(POLL_SECONDS)

    def reboot(self) -> tuple[str, ...]:
        """Reboot what is pending, one after the other; return the names. Raises AwsError."""
        done: list[str] = []
        for member in self.settled_members():
            if not member.pending:
                continue
            try:
                self._reboot(member)
            except AwsError as error:
                raise _stopped(error, member, done, self.members_left(done)) from error
            done.append(member.name)
        return tuple(done)

    def members_left(self, done: Sequence[str]) -> tuple[str, ...]:
        """Return who is still pending, for a message; nobody where AWS does not answer."""
        try:
            return tuple(it.name for it in self.members() if it.pending and it.name not in done)
        except AwsError:
            return ()

    def command(self, members: Sequence[Member]) -> str:
        """Return the commands by which a person reboots what is pending, in the right order."""
        where = f" --region {self.region}" if self.region else ""
        return " && ".join(
            f"aws rds reboot-db-instance --db-instance-identifier {it.name}{where}"
            f" && aws rds wait db-instance-available --db-instance-identifier {it.name}{where}"
            for it in members
            if it.pending
        )

    def _reboot(self, member: Member) -> None:
        rds = client("rds", self.region)
        with told(f"rebooting {member.name}"):
            # Without failover: a standby that takes over would not have the new values either.
            rds.reboot_db_instance(DBInstanceIdentifier=member.name, ForceFailover=False)
        give_up = time.monotonic() + WAIT_SECONDS
        while True:
            now = next((it for it in self.members() if it.name == member.name), None)
            if now is not None and now.state == "available" and not now.pending:
                return
            if now is not None and now.state == "incompatible-parameters":
                raise _does_not_start(member.name)
            if time.monotonic() > give_up:
                state = now.state if now else "gone"
                raise AwsError(
                    f"{member.name} was rebooted and is {state} after {WAIT_SECONDS / 60:.0f} min",
                    hint="look at its events: aws rds describe-events --source-type db-instance",
                )
            time.sleep(POLL_SECONDS)


def _instance(rds: Any, identifier: str) -> Member:
    found = rds.describe_db_instances(DBInstanceIdentifier=identifier)["DBInstances"][0]
    return _member(found, writer=True)


def _of_cluster(rds: Any, identifier: str) -> Iterator[Member]:
    cluster = rds.describe_db_clusters(DBClusterIdentifier=identifier)["DBClusters"][0]
    for each in cluster["DBClusterMembers"]:
        name = each["DBInstanceIdentifier"]
        found = rds.describe_db_instances(DBInstanceIdentifier=name)["DBInstances"][0]
        status = str(each.get("DBClusterParameterGroupStatus", ""))
        yield _member(found, writer=bool(each["IsClusterWriter"]), above=(status,))


def _member(found: dict[str, Any], *, writer: bool, above: tuple[str, ...] = ()) -> Member:
    groups = (str(each["ParameterApplyStatus"]) for each in found.get("DBParameterGroups", ()))
    return Member(
        name=found["DBInstanceIdentifier"],
        writer=writer,
        state=found["DBInstanceStatus"],
        groups=(*groups, *above),
        source=found.get("ReadReplicaSourceDBInstanceIdentifier") or None,
    )


def _does_not_start(name: str) -> AwsError:
    return AwsError(
        f"{name} does not start with its parameters (incompatible-parameters)",
        hint="take back the last change of postgres.settings or postgres.preload and pulumi up",
    )


def _stopped(error: AwsError, member: Member, done: Sequence[str], left: Sequence[str]) -> AwsError:
    before = f"rebooted before: {', '.join(done)}; " if done else ""
    remain = f"still pending: {', '.join(left)}" if left else "nothing else is known to be pending"
    return AwsError(
        f"{error.message} ({before}{remain})",
        hint=error.hint or f"see to {member.name}, then run pulumi up again",
        code=error.code,
    )
