"""What rules about autocast ask of regions: is one on, and which expression opens it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Region, Value

if TYPE_CHECKING:
    from dtlint.infer.facts import ModuleFacts

__all__ = ["FACTORIES", "is_on", "opened_around"]

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
