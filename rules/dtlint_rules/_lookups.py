"""What a name is bound to and nothing else, and whether that is a dtype of torch, looked up by its name: `getattr(torch, name)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint_rules._assignments import assignments
from dtlint_rules._functions import parameters
from dtlint_rules._meanings import written_dtype
from dtlint_rules._parts import same

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["gives_dtype", "only_value"]

_NO_DTYPE = (None, "auto")
"""What is handed on as it is where a dtype may be given."""


def only_value(name: str, flow: Flow) -> ast.expr | None:
    """All that a name is ever bound to, in the running function or else in the module; None where it is a parameter, or more
    than one thing."""
    scope: ast.AST = flow.scope
    if any(parameter.arg == name for parameter in parameters(scope)):
        return None
    bound = assignments(scope).get(name)
    if bound is None and _is_outermost(flow):
        bound = assignments(flow.tree).get(name)
    return bound[0][1] if bound is not None and len(bound) == 1 else None


def _is_outermost(flow: Flow) -> bool:
    """Does nothing stand between the running function and its module but a class?"""
    function = flow.function
    if function is None:
        return False
    return (function.node if function.owner is None else function.owner.node) in flow.tree.body


def gives_dtype(node: ast.expr) -> bool:
    """Is it a dtype that is looked up, or else None or "auto": `getattr(torch, name)`, `{"fp16": torch.float16}[name]`,
    `name if name in ("auto", None) else getattr(torch, name)`?"""
    if isinstance(node, ast.IfExp):
        return gives_dtype(node.orelse) and (gives_dtype(node.body) or _is_handed_on(node.body, node.test))
    if isinstance(node, ast.Call) and path_of(node.func) == "getattr":
        return len(node.args) == 2 and path_of(node.args[0]) == "torch" and not isinstance(node.args[1], ast.Constant)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Dict) and None not in map(written_dtype, node.value.values)
    return written_dtype(node) is not None


def _is_handed_on(node: ast.expr, test: ast.expr) -> bool:
    """Is it None or "auto", as a constant or by the test in front of it?"""
    if isinstance(node, ast.Constant):
        return node.value in _NO_DTYPE
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not same(test.left, node):
        return False
    listed = test.comparators[0]
    if isinstance(test.ops[0], ast.In) and isinstance(listed, (ast.List, ast.Tuple, ast.Set)):
        values = listed.elts
    elif isinstance(test.ops[0], (ast.Eq, ast.Is)):
        values = [listed]
    else:
        return False
    return all(isinstance(value, ast.Constant) and value.value in _NO_DTYPE for value in values)
