"""What rules ask of autocast regions: is one on, which expression opens it, and which casts for what a call leads to."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Region, Value, choices

if TYPE_CHECKING:
    from dtlint.infer.facts import ModuleFacts, Operation, Sighting

__all__ = ["FACTORIES", "casting_region", "is_on", "opened_around"]

FACTORIES = ("torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast")
"""What makes autocast regions, by qualified names."""


def is_on(region: Value | None) -> bool:
    """Is it a region that is on, or may be, and of which something is known?"""
    return isinstance(region, Region) and region.enabled is not False and region != Region(None, None, None)


def opened_around(facts: ModuleFacts, node: ast.AST) -> tuple[ast.With | ast.AsyncWith | None, ast.expr] | None:
    """The innermost `with` of its function that opens a region around a node, with the expression that makes it; None and
    the decorator, where that opens one."""
    function = facts.around.function(node)
    for one in facts.around.around(node):
        if isinstance(one, (ast.With, ast.AsyncWith)):
            for item in reversed(one.items):
                if isinstance(facts.value(item.context_expr), Region):
                    return one, item.context_expr
        if one is function:
            break
    decorators = function.decorator_list if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    return next(((None, made) for made in decorators if isinstance(facts.value(made), Region)), None)


def casting_region(facts: ModuleFacts, seen: Sighting[Operation], dtype: str) -> tuple[tuple[ast.expr, str], ...]:
    """A note at what opens the region around a call, where that region is what casts to a dtype at the operation to which the
    call leads: nothing shows it there."""
    region = seen.what.region
    if not seen.behind or not isinstance(region, Region) or region.enabled is not True or region.dtype != dtype:
        return ()
    opened = opened_around(facts, seen.node)
    if opened is None or region not in choices(facts.value(opened[1])):
        return ()
    return ((opened[1], f"autocast computes in {dtype} from here on"),)
