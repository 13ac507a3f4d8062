"""``shared_preload_libraries`` of a parameter group, as a resource that remembers what it was.

A value in a parameter group replaces the engine's whole list, so what falls out of it is lost at
some later, unrelated reboot. The merge needs the list as it was; Pulumi's state has it. It is made
in ``check``, which runs in a preview too, so a removal is refused there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi import dynamic

_DECLARED = ("text", "wanted", "family", "allowRemoval")


@dataclass(frozen=True, slots=True)
class PreloadArgs:
    """``existing``: the list of an adopted group, None for a new one. ``target``: rds or aurora."""

    wanted: Sequence[str]
    family: str
    target: str
    existing: str | None = None
    allow_removal: bool = False


def merged(olds: Mapping[str, Any], news: Mapping[str, Any]) -> str:
    """Return the list: what it was, in its order, then what is wanted.

    Raises RuleError for a library that was declared before and is not any more, unless allowed.
    """
    from infra.extensions import managed_default  # noqa: PLC0415  # only in the provider
    from infra.preload import merge  # noqa: PLC0415

    wanted = [*managed_default(news["family"]), *news["wanted"]]
    dropped = [lib for lib in olds.get("wanted", ()) if lib not in news["wanted"]]
    return merge(
        olds.get("text") or news.get("existing"),
        wanted,
        target=news["target"],
        family=news["family"],
        remove=dropped,
        allow_removal=bool(news["allowRemoval"]),
    ).text


class PreloadProvider(dynamic.ResourceProvider):
    """Makes nothing anywhere: the parameter group has the value."""

    serialize_as_secret_always = False  # it holds nothing

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> dynamic.CheckResult:
        from infra.errors import RuleError  # noqa: PLC0415

        try:
            text = merged(_olds, news)
        except RuleError as error:
            return dynamic.CheckResult(news, [dynamic.CheckFailure("wanted", str(error))])
        return dynamic.CheckResult({**news, "text": text}, [])

    def create(self, props: dict[str, Any]) -> dynamic.CreateResult:
        return dynamic.CreateResult("shared_preload_libraries", props)

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> dynamic.DiffResult:
        changed = any(_olds.get(key) != _news.get(key) for key in _DECLARED)
        return dynamic.DiffResult(changes=changed)

    def update(
        self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]
    ) -> dynamic.UpdateResult:
        return dynamic.UpdateResult(_news)


class Preload(dynamic.Resource, module="jobwarden", name="Preload"):
    """The list of libraries of one parameter group; ``text`` as the group has it."""

    text: pulumi.Output[str]

    def __init__(self, name: str, args: PreloadArgs, opts: pulumi.ResourceOptions) -> None:
        props = {
            "wanted": list(args.wanted),
            "family": args.family,
            "target": args.target,
            "existing": args.existing,
            "allowRemoval": args.allow_removal,
            "text": None,
        }
        super().__init__(PreloadProvider(), name, props, opts)
