"""A reboot as a resource: reports what waits for one, or does it and proves that it helped.

It comes behind the database and its parameter group and before the final step. While something
waits, each ``up`` looks again, so whoever reboots, and whenever, the next ``up`` goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi import dynamic

from infra import rds
from infra.errors import InfraError
from infra.stack.provider import say, stop
from infra.stackvalues import PASSWORD, PREFIX

if TYPE_CHECKING:
    from infra.aws.reboot import Database, Member

_DECLARED = (
    *("kind", "identifier", "waitsFor", "database", "passwordSecret"),
    *("rebootWhenPending", "rebootWindow"),
)
_PRELOAD = "shared_preload_libraries"
Values = Mapping[str, Any]
_NOTHING: Values = {
    "pending": [],
    "requiresReboot": False,
    "command": "",
    "reason": "",
    "waiting": {},
}


class RebootProvider(dynamic.ResourceProvider):
    """Looks at a database, and reboots it where and when that is wanted."""

    serialize_as_secret_always = False  # it holds nothing
    region: str | None = None
    password: str | None = None

    @staticmethod
    def clock() -> datetime:
        """Return the time by the machine that runs the ``up``: the window goes by it."""
        return datetime.now(UTC)

    def configure(self, req: dynamic.ConfigureRequest) -> None:
        self.region = req.config.get("aws:region")
        self.password = req.config.get(PREFIX + PASSWORD)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult(props["identifier"], self._converge(props, {}))

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.DiffResult:
        changed = any(_olds.get(key) != _news.get(key) for key in _DECLARED)
        return dynamic.DiffResult(changes=changed or bool(_olds.get("requiresReboot")))

    def update(
        self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]
    ) -> dynamic.UpdateResult:
        return dynamic.UpdateResult(self._converge(_news, _olds))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """Look, and never reboot. A database that is gone has nothing to reboot."""
        from infra.aws.calls import GONE, AwsError

        try:
            members = self._database(props).settled_members()
        except AwsError as error:
            if error.code in GONE:
                return dynamic.ReadResult("", {})
            stop(error)
        waiting = props.get("waiting") or dict(props["waitsFor"])
        return dynamic.ReadResult(id_, {**_kept(props), **self._told(props, members, waiting)})

    def _converge(self, news: Values, olds: Values) -> dict[str, Any]:
        waiting = _waiting(news, olds)
        try:
            members = self._members(news)
            if any(member.pending for member in members) and self._may_reboot(news):
                done = self._database(news).reboot()
                say(f"rebooted: {', '.join(done)}")
                members = self._database(news).members()
            told = self._told(news, members, waiting)
            if not told["pending"]:
                told |= self._proof(news)
        except InfraError as error:
            stop(error)
        return {**_kept(news), **told}

    def _may_reboot(self, news: Values) -> bool:
        window = _window(news)
        return bool(news["rebootWhenPending"] or (window and rds.within(window, self.clock())))

    def _database(self, values: Values) -> Database:
        from infra.aws.reboot import Database

        return Database(values["kind"], values["identifier"], self.region)

    def _members(self, news: Values) -> tuple[Member, ...]:
        members = self._database(news).settled_members()
        for member in members:
            if member.source is not None:
                raise InfraError(
                    f"{member.name} is a replica of {member.source}: it takes no writes and runs no"
                    " schedules",
                    hint=f"give {member.source} this stack, or promote {member.name} first",
                )
        return members

    def _told(
        self, values: Values, members: tuple[Member, ...], waiting: Mapping[str, str]
    ) -> dict[str, Any]:
        pending = [member.name for member in members if member.pending]
        if not pending:
            return {**_NOTHING}
        command = self._database(values).command(members)
        what = ", ".join(f"{name} = {value}" for name, value in sorted(waiting.items()))
        reason = (
            f"{', '.join(pending)} must be rebooted before this is in force: {what}."
            f" {_way_out(_window(values), command, self.clock())}"
        )
        return {
            "pending": pending,
            "requiresReboot": True,
            "command": command,
            "reason": reason,
            "waiting": dict(waiting),
        }

    def _proof(self, news: Values) -> dict[str, Any]:
        """Ask the server itself. AWS may say `in-sync` before it has taken in a change."""
        from infra.db.connect import NoConnection
        from infra.preload import contains, parse
        from infra.stack.reach import reach

        try:
            with reach(news["database"], self.password, news["passwordSecret"]) as connection:
                row = connection.execute(f"SHOW {_PRELOAD}").fetchone()
        except NoConnection:
            return {"inForce": None}  # the final step says why it cannot be reached
        found = str(row[0]) if row else ""
        wanted = parse(news["waitsFor"].get(_PRELOAD, ""))
        missing = [name for name in wanted if not contains(found.lower(), name)]
        if not missing:
            return {"inForce": found}
        reason = (
            f"{news['identifier']} runs without {', '.join(missing)} ({_PRELOAD} is {found}),"
            " though AWS says that nothing is pending. Try: is its parameter group attached? Then"
            " reboot it and run pulumi up again"
        )
        return {"inForce": found, "requiresReboot": True, "reason": reason}


def _waiting(news: Values, olds: Values) -> dict[str, str]:
    """Return the static parameters that are new since they were last all in force."""
    before = olds.get("waitsFor", {})
    changed = {name: value for name, value in news["waitsFor"].items() if before.get(name) != value}
    return {**olds.get("waiting", {}), **changed} or dict(news["waitsFor"])


def _window(values: Values) -> rds.Window | None:
    text = values.get("rebootWindow")
    return rds.window(text) if text else None


def _way_out(window: rds.Window | None, command: str, now: datetime) -> str:
    by_hand = f"{command}; then pulumi up"
    if window is None:
        return f"Try: {by_hand}; or pulumi config set --path jobwarden:rds.rebootWhenPending true"
    if rds.within(window, now):
        return f"The window {window} UTC is open. Try: pulumi up, which reboots; or {by_hand}"
    return (
        f"The window {window} UTC is closed; it opens next at"
        f" {rds.opens(window, now):%Y-%m-%d %H:%M} UTC. Try: pulumi up while it is open, which"
        f" reboots; or {by_hand}"
    )


def _kept(values: Values) -> dict[str, Any]:
    """Return what is declared. No window is no key."""
    return {key: values[key] for key in _DECLARED if key in values}


@dataclass(frozen=True, slots=True)
class RebootArgs:
    """``waits_for``: the static parameters by name. ``kind``: instance or cluster."""

    kind: str
    identifier: pulumi.Input[str]
    waits_for: Mapping[str, pulumi.Input[str]]
    database: pulumi.Input[str]
    password_secret: pulumi.Input[str]
    reboot_when_pending: bool = False
    reboot_window: str | None = None


class Reboot(dynamic.Resource, module="jobwarden", name="Reboot"):
    """Whether a database waits for a reboot: ``reason`` says for what, ``command`` does it."""

    requiresReboot: pulumi.Output[bool]  # noqa: N815  # an output's name
    reason: pulumi.Output[str]
    command: pulumi.Output[str]

    def __init__(self, name: str, args: RebootArgs, opts: pulumi.ResourceOptions) -> None:
        found_out = dict.fromkeys((*_NOTHING, "inForce"))
        props = {
            "kind": args.kind,
            "identifier": args.identifier,
            "waitsFor": dict(args.waits_for),
            "database": args.database,
            "passwordSecret": args.password_secret,
            "rebootWhenPending": args.reboot_when_pending,
            "rebootWindow": args.reboot_window,
        }
        super().__init__(RebootProvider(), name, {**found_out, **props}, opts)
