"""What Pulumi calls for each resource: the plan and the apply of the command line, on its share.

Pulumi runs this in a process of its own, which has the environment of the ``pulumi`` command. The
secret of the stack comes with the stack's configuration; it is no input, so it is in no diff.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from pulumi import dynamic

from infra.errors import InfraError
from infra.stackvalues import PASSWORD, PREFIX

if TYPE_CHECKING:
    from infra.checks import Problem
    from infra.db.apply import Result
    from infra.stack.parts import Part, Values

_COMMON = ("database", "databaseName", "passwordSecret", "registerFrom")
_LEFT_TO = {
    "boot": "nothing was registered: the application does it when it starts (registerFrom: boot)",
    "command": "nothing was registered: `jobwarden apply` does it (registerFrom: command)",
}
_WAY_OUT = (
    "make it reachable and run it again; or leave what is registered where it is:"
    " pulumi config set jobwarden:abandonOnDestroy true, pulumi up, then run it again"
)


class StackError(Exception):
    """What Pulumi shows of a failure: one line of what, one of what to do."""

    __module__ = "builtins"  # Pulumi prints the qualified name in front of the message.


class Provider(dynamic.ResourceProvider):
    """Common to all. A subclass says which part of a plan it carries."""

    serialize_as_secret_always = False  # it holds nothing: it is kept by its name
    declared: tuple[str, ...] = ()
    password: str | None = None
    strict = False
    abandon = False

    def part(self) -> Part:
        """The part of a plan that this resource is. Each kind of resource names its own."""
        raise NotImplementedError

    def configure(self, req: dynamic.ConfigureRequest) -> None:
        """Take what is no input: called once, in the provider's own process."""
        self.password = req.config.get(PREFIX + PASSWORD)
        self.strict = req.config.get(f"{PREFIX}strict") == "true"
        self.abandon = req.config.get(f"{PREFIX}abandonOnDestroy") == "true"

    def diff(
        self,
        id_: str,  # noqa: ARG002  # Pulumi's signature
        olds: dict[str, Any],
        news: dict[str, Any],
    ) -> dynamic.DiffResult:
        """Compare values, without a database. What is not registered yet is always a change."""
        changed = any(olds.get(key) != news.get(key) for key in (*_COMMON, *self.declared))
        waits = news.get("registerFrom") == "pulumi" and not olds.get("registered")
        return dynamic.DiffResult(changes=changed or waits)

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult(props.get("name", "jobwarden"), self._converge(props, {}))

    def update(self, id_: str, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.UpdateResult:
        if olds.get("reached") and olds.get("database") != news["database"]:
            say(
                f"{id_}: the database was {olds.get('database')}; what is registered there stays. "
                "Take it away with: jobwarden remove --database-url ..."
            )
        return dynamic.UpdateResult(self._converge(news, olds))

    def read(self, id_: str, props: dict[str, Any]) -> dynamic.ReadResult:
        """Look: what somebody edited by hand is the new state, what was dropped is gone."""
        from infra.db.connect import NoConnection

        if props.get("registerFrom") != "pulumi":
            return dynamic.ReadResult(id_, self._kept(props))
        try:
            outs = self._look(props)
        except NoConnection as error:
            if props.get("reached"):
                stop(error)
            outs = self._kept(props)
        except InfraError as error:
            stop(error)
        if outs is None:
            return dynamic.ReadResult("", {})
        return dynamic.ReadResult(id_, outs, {key: outs[key] for key in self._keys(outs)})

    def delete(self, id_: str, props: dict[str, Any]) -> None:
        from infra.db.connect import NoConnection

        if props.get("registerFrom") != "pulumi":
            return
        try:
            self._take_away(props)
        except NoConnection as error:
            if props.get("reached") and not self.abandon:
                stop(InfraError(f"{id_} was not removed: {error.message}", hint=_WAY_OUT))
            say(f"{id_} was left where it is: {error.message}")
        except InfraError as error:
            stop(error)

    def _converge(self, news: Values, olds: Values) -> dict[str, Any]:
        """Apply this share. Raises StackError for what must be mended, and for all when strict."""
        if left := _LEFT_TO.get(news["registerFrom"]):
            return self._outs(news, olds) | {"registered": False, "reason": left}
        from infra.db.connect import NoConnection

        try:
            outs = self._apply(news, olds)
        except NoConnection as error:
            outs = self._outs(news, olds) | {"registered": False, "reason": _one_line(error)}
        except InfraError as error:
            stop(error)
        if self.strict and (not outs["registered"] or outs["warnings"]):
            told = "; ".join(filter(None, [outs["reason"], *outs["warnings"]]))
            stop(InfraError(f"strict: {told}"))
        return outs

    def _apply(self, news: Values, olds: Values) -> dict[str, Any]:
        from infra.db.apply import apply_on
        from infra.diff_schedules import Wishes
        from infra.stack.reach import reach

        part = self.part()
        plan, share = part.plan(news), part.share(news)
        with reach(news["database"], self.password, news.get("passwordSecret")) as connection:
            if reason := self._too_early(connection, plan):
                return self._outs(news, olds) | {"registered": False, "reason": reason}
            result = apply_on(connection, plan, Wishes(), share)
        seen = part.seen(news, result.observed, result.after) or {}
        return self._outs(news, olds) | dict(seen) | _registered(result)

    def _look(self, props: Values) -> dict[str, Any] | None:
        """What is there of this resource; None where it is not."""
        from infra import checks
        from infra.db.observe import observe
        from infra.diff import diff
        from infra.stack.reach import reach

        part = self.part()
        plan, share = part.plan(props), part.share(props)
        with reach(props["database"], self.password, props.get("passwordSecret")) as connection:
            found = share.view(observe(connection, plan.environment))
        changes = share.of(diff(plan, found))
        seen = part.seen(props, found, changes)
        if seen is None:
            return None
        waits = checks.waiting(found) if plan.schedules else None
        problems = (waits,) if waits else checks.proof(plan, found) if plan.schedules else ()
        told = _told(problems) if problems else {"reason": _paused(changes)}
        return self._kept(props) | dict(seen) | self._hands(seen) | told

    def _hands(self, seen: Values) -> dict[str, Any]:
        """What only a refresh tells."""
        return {"pausedByHand": not seen["active"]} if "active" in seen else {}

    def _too_early(self, connection: Any, plan: Any) -> str:
        """Why this share cannot be applied before another one; "" where it can."""
        from infra.db.observe import observe

        if observe(connection, plan.environment).installed:
            return ""
        return "schema jobwarden is not there yet. Try: pulumi up --refresh"

    def _take_away(self, props: Values) -> None:
        """Remove this resource from its database. Raises NoConnection, InfraError."""

    def _keys(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(key for key in (*_COMMON, *self.declared) if key in values)

    def _kept(self, props: Values) -> dict[str, Any]:
        return {key: value for key, value in props.items() if not key.startswith("__")}

    def _outs(self, news: Values, olds: Values) -> dict[str, Any]:
        """The declared values, over what is known from before and stays true."""
        known = {
            key: value for key, value in self._kept(olds).items() if key not in self._keys(olds)
        }
        declared = {key: news[key] for key in self._keys(news)}
        return {"reached": False, "warnings": [], **known, **declared}


class SqlProvider(Provider):
    """The schema, its functions, the guard and the indexes. It goes as a whole, never a job."""

    declared = ("release", "jobs", "files", "indexes", "changedByHand")

    def part(self) -> Part:
        from infra.stack.parts import Sql

        return Sql()

    def _too_early(self, connection: Any, plan: Any) -> str:  # noqa: ARG002  # it is the first
        return ""

    def _take_away(self, props: Values) -> None:
        from infra.db.remove import remove_on
        from infra.stack.reach import reach

        with reach(props["database"], self.password, props.get("passwordSecret")) as connection:
            remove_on(connection, self.part().plan(props), really=True)


class PolicyProvider(Provider):
    """The limits of all actions. They go with the schema."""

    declared = ("actions",)

    def part(self) -> Part:
        from infra.stack.parts import Policy

        return Policy()


class ScheduleProvider(Provider):
    """One schedule, known by its name."""

    declared = ("name", "schedule", "command", "changedByHand", "pausedByHand")

    def check(self, olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        """Keep what the last refresh saw: a pause is no wish of the program's, and no change."""
        paused = olds.get("pausedByHand", False)
        return dynamic.CheckResult({**news, "pausedByHand": paused}, [])

    def part(self) -> Part:
        from infra.stack.parts import Schedule

        return Schedule()

    def _take_away(self, props: Values) -> None:
        from infra.db.apply import apply_on
        from infra.db.observe import observe
        from infra.diff_schedules import Wishes
        from infra.shares import end_of_schedule
        from infra.stack.parts import Schedule, without_schedules
        from infra.stack.reach import reach

        plan = without_schedules(Schedule().plan(props))
        with reach(props["database"], self.password, props.get("passwordSecret")) as connection:
            if not observe(connection, plan.environment).installed:
                return
            result = apply_on(connection, plan, Wishes(), end_of_schedule(props["name"]))
        for change in result.after:
            if self.abandon:
                say(f"schedule {change.name} was left where it is: {change.waits or change.why}")
                return
            raise InfraError(
                f"schedule {change.name} is still in cron.job: {change.waits or change.why}",
                hint="mend that and run it again",
            )


def _registered(result: Result) -> dict[str, Any]:
    told = _told(result.problems)
    if result.registered:
        told |= {"reason": _paused(result.after)}
    return {"reached": True, **told, "warnings": list(result.warnings)}


def _told(problems: tuple[Problem, ...]) -> dict[str, Any]:
    reasons = [f"{problem.message}. Try: {problem.hint}" for problem in problems]
    return {"registered": not problems, "reason": "; ".join(reasons)}


def _paused(changes: Any) -> str:
    return "; ".join(f"{it.name} is {it.why}" for it in changes if it.action == "paused")


def _one_line(error: InfraError) -> str:
    return ". Try: ".join(filter(None, [error.message, error.hint]))


def stop(error: InfraError) -> NoReturn:
    """End with the message alone: Pulumi prints a whole stack trace otherwise."""
    sys.tracebacklimit = 0
    raise StackError(str(error)) from None


def say(text: str) -> None:
    """Tell the user something that is neither a change nor a failure."""
    sys.stderr.write(f"jobwarden: {text}\n")
    sys.stderr.flush()
