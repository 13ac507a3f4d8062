"""The program that ``pulumi up`` runs: reads the environment and declares the resources.

It asks no database: a preview works without one. What the provider could not register is a warning
with its reason, and the next ``up`` tries again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pulumi
from pulumi.runtime import get_config_env, get_config_secret_keys_env

from infra import plan, sqltext
from infra.config import Environment
from infra.errors import InfraError
from infra.stack import setting
from infra.stack.resources import FinalStep, FinalStepArgs, Schedule

ON_AWS: Final = frozenset({"rds", "aurora"})


def run() -> None:
    """Declare everything. Raises pulumi.RunError with what to mend, before anything is made."""
    try:
        found = setting.environment(
            get_config_env(), get_config_secret_keys_env(), pulumi.get_stack()
        )
        _refuse_boxes(found)
        _declare(found)
    except InfraError as error:
        raise pulumi.RunError(str(error)) from None


def _declare(environment: Environment) -> None:
    what = plan.build(environment, sqltext.render(environment))
    args = _on_aws(environment, what) if environment.target in ON_AWS else FinalStepArgs(what)
    if args is not None:
        step = FinalStep("jobwarden", args)
        _warn(step)
        _export(step, environment)


def _on_aws(environment: Environment, what: plan.Plan) -> FinalStepArgs | None:
    """Declare the database first; None where there is none to take a final step on."""
    from infra.stack.managed import declare  # pulumi_aws takes a while to import

    made = declare("jobwarden", environment)
    pulumi.Output.all(*made.reasons).apply(_say)
    for name, value in made.outputs.items():
        pulumi.export(name, value)
    if made.database is None:
        pulumi.export("registered", value=False)
        return None
    return FinalStepArgs(what, made.database, made.secret, made.after)


def _refuse_boxes(environment: Environment) -> None:
    if environment.target == "box":
        raise InfraError(
            "boxes are not Pulumi's business (got target: box; allowed here: any other)",
            hint=f"JOBWARDEN_STACK={pulumi.get_stack()} pyinfra inventory.py deploy.py",
        )


def _warn(step: FinalStep) -> None:
    """One warning for each reason, however many resources share it."""
    told = [it.reason.apply(lambda reason: reason or "") for it in step.resources()]
    pulumi.Output.all(*told).apply(_say)
    more = [it.warnings.apply(lambda texts: texts or []) for it in step.resources()]
    pulumi.Output.all(*more).apply(lambda lists: _say([text for texts in lists for text in texts]))


def _say(texts: Sequence[str]) -> None:
    for text in dict.fromkeys(filter(None, texts)):
        pulumi.log.warn(text)


def _export(step: FinalStep, environment: Environment) -> None:
    pulumi.export("registerFrom", environment.register_from)
    pulumi.export("registered", step.registered())
    pulumi.export("server", step.sql.server)
    pulumi.export("schedules", {name: _schedule(it) for name, it in step.schedules.items()})


def _schedule(resource: Schedule) -> dict[str, pulumi.Output[Any]]:
    """The next run is as of the last up or refresh that had to do with the schedule."""
    return {
        "schedule": resource.schedule,
        "jobid": resource.jobid,
        "active": resource.active,
        "registered": resource.registered,
        "next": resource.next,
    }
