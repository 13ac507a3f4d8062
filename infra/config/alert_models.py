"""The part of an environment that is about alerts: who hears of which failure, and where."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from infra.config import box_fields, fields
from infra.config.block import Block
from infra.errors import RuleError

Choice = Literal["page", "notify", "ignore"]
Kind = Literal["webhook", "slack", "pagerduty"]


def _usual() -> dict[str, Choice]:
    return {"watchdog_timeout": "page", "validation_failed": "ignore"}


class Route(Block):
    """Where messages go. Addresses and keys are secret: the sender's environment holds them."""

    kind: Kind = Field(description="Format: JSON of ours, Slack's, or PagerDuty's Events API v2.")
    url_from: box_fields.VariableName | None = Field(
        None, description="Variable with the URL; PagerDuty has a usual one."
    )
    secret_from: box_fields.VariableName | None = Field(
        None, description="Variable with PagerDuty's routing key, or a webhook's bearer token."
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        lacking = "secretFrom" if self.kind == "pagerduty" else "urlFrom"
        given = self.secret_from if self.kind == "pagerduty" else self.url_from
        if given is None:
            raise RuleError(
                f"a route of kind {self.kind} needs {lacking}",
                got=self.kind,
                allowed="the name of an environment variable",
                hint=f"{lacking}: {'PAGERDUTY_KEY' if lacking == 'secretFrom' else 'ALERTS_URL'}",
            )
        return self


class Routes(Block):
    """The two routes a failure can take."""

    page: Route | None = Field(None, description="Wakes somebody.")
    notify: Route | None = Field(None, description="Is read in the morning.")


class Alerts(Block):
    """Who hears of which failure: by the code in the job's error, also per action."""

    default: Choice = Field("notify", description="For codes that are not named.")
    codes: dict[fields.Action, Choice] = Field(
        default_factory=_usual,
        description="Choice for a code.",
    )
    actions: dict[fields.Action, dict[fields.Action, Choice]] = Field(
        default_factory=dict, description="Choice for a code of one action, over the general one."
    )
    routes: Routes = Field(default_factory=Routes, description="Where messages go.")

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        """Hold that each choice that is made has a route, once there is any."""
        made = {self.default, *self.codes.values()}
        made |= {choice for codes in self.actions.values() for choice in codes.values()}
        routes = {"page": self.routes.page, "notify": self.routes.notify}
        lacking = sorted(name for name in made & routes.keys() if routes[name] is None)
        if lacking and any(routes.values()):
            raise RuleError(
                f"failures are sent to {lacking[0]}, and there is no such route",
                got=lacking[0],
                allowed="a route for each choice that is made",
                hint=f"add alerts.routes.{lacking[0]}, or set default, codes and actions to others",
            )
        return self
