"""Do gradients flow through a place of a program?"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.around import around
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["OFF", "is_gradient_off"]

OFF = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})
"""What switches gradients off, as a region and as a decorator."""


def is_gradient_off(node: ast.AST, flow: Flow) -> bool:
    """Does it stand under `with torch.no_grad()`, or in a function that is decorated so?"""
    for outer in around(node, flow.tree):
        if isinstance(outer, (ast.With, ast.AsyncWith)):
            given = [item.context_expr for item in outer.items]
        elif isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = outer.decorator_list
        else:
            continue
        if any(last_name(each) in OFF for each in given):
            return True
    return False
