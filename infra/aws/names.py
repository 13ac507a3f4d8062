"""Options of child resources. A child that had another name, or no parent, is found by an alias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pulumi

# New name of a child (without its component's) to the names it had in earlier versions. A renamed
# child without its line here would be deleted and made again, database and all.
RENAMED: Final[Mapping[str, tuple[str, ...]]] = {}


def named(component: str, child: str) -> str:
    """Return a child's name: that of its component in front."""
    return f"{component}-{child}"


def child_of(
    parent: pulumi.Resource,
    component: str,
    child: str,
    renamed: Mapping[str, tuple[str, ...]] = RENAMED,
    **more: Any,
) -> pulumi.ResourceOptions:
    """Return the options every child has: its parent, and the names it had before.

    `pulumi import` puts a resource into the state without a parent: that is an alias too.
    """
    old = [pulumi.Alias(name=named(component, name)) for name in renamed.get(child, ())]
    imported = pulumi.Alias(name=named(component, child), parent=pulumi.ROOT_STACK_RESOURCE)
    return pulumi.ResourceOptions(parent=parent, aliases=[*old, imported], **more)
