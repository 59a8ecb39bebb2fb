"""The autocast region that a function begins in: that of its caller, of an assumption, or one that a decorator opens."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import NONE, TOP, Function, Partial, Region, Value
from dtlint.infer.models.amp import IN_REGION

if TYPE_CHECKING:
    from dtlint.dtypes.assumption import Assumption
    from dtlint.infer.context import Context
    from dtlint.infer.interproc.functions import FunctionDefinition
    from dtlint.infer.interproc.program import Program

__all__ = ["enter_region", "region_under"]

_ANY_REGION = Region(None, None, None)


def enter_region(ctx: Context, definition: FunctionDefinition) -> None:
    """The region that a function begins in: that of its caller, unless a decorator may open one."""
    region = _decorating(ctx, definition)
    off = isinstance(region, Region) and region.enabled is False
    ctx.set_ambient("region", TOP if region is None or off else _ANY_REGION)
    ctx.set_ambient("opened", NONE if region in (None, _ANY_REGION) else region)  # one that may be there is not in view


def region_under(assumption: Assumption) -> Value:
    """The autocast region around what is called under an assumption."""
    return NONE if assumption.region is None else Region(*assumption.region)


def _decorating(ctx: Context, definition: FunctionDefinition) -> Region | None:
    """The region that a decorator opens around a function, or may open; None: it begins in that of its caller."""
    node = definition.node
    if isinstance(node, ast.Lambda) or not node.decorator_list:
        return None
    owner = definition.owner
    modules: Program = ctx.modules  # type: ignore[assignment]
    namespace = modules.address_of(definition.module) if owner is None else owner.definition.namespace
    bound = ctx.store.read(namespace, node.name)
    if isinstance(bound, Function) and bound.definition is definition:
        return None
    if isinstance(bound, Partial) and bound.callee == IN_REGION:
        return bound.args[0] if isinstance(bound.args[0], Region) else _ANY_REGION
    return None if not definition.decorators.isdisjoint(_PLAIN) else _ANY_REGION


_PLAIN = frozenset({"property", "cached_property", "setter", "getter", "staticmethod", "classmethod", "overload"})
