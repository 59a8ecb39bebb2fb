"""Casts by methods that no tensor has: `x.as_type(y)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.values import Tensor, Unknown
from dtlint_rules._imports import imports, imports_torch
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name, names_in

if TYPE_CHECKING:
    from dtlint.infer.events import Call

__all__ = ["NO_METHODS", "gives", "is_no_method"]

NO_METHODS = {
    "as_type": "type_as",
    "asType": "type_as",
    "to_float": "float",
    "toFloat": "float",
    "to_half": "half",
    "to_bfloat16": "bfloat16",
    "to_double": "double",
}
"""What no tensor has, and what is meant by it."""
_OTHERS = frozenset(
    {"pyspark", "polars", "dask", "cudf", "vaex", "mlx", "jax", "tinygrad", "paddle", "mindspore", "datasets"}
)
"""Packages whose arrays and columns may have such methods."""


def is_no_method(call: Call) -> bool:
    """Is the method called on a tensor for certain, in a file that gives no such method to anything?"""
    name, function = call.method, call.node.func
    if not isinstance(function, ast.Attribute) or not imports_torch(call.flow.tree) or gives(call.flow.tree, name):
        return False
    if NO_METHODS[name] == "type_as":
        if len(call.node.args) != 1 or call.node.keywords or isinstance(call.node.args[0], ast.Starred):
            return False
    elif call.node.args or call.node.keywords:
        return False
    if type(call.receiver) is Tensor:
        return True
    if name != "as_type" or not isinstance(call.receiver, Unknown) or not _OTHERS.isdisjoint(imports(call.flow.tree)):
        return False
    return _is_computed_from(function.value, call.node.args[0])


def _is_computed_from(node: ast.expr, given: ast.expr) -> bool:
    """Is a name the very thing that something is computed from: `self.norm(x.float())` from `x`?"""
    if not isinstance(given, ast.Name):
        return False
    if isinstance(node, ast.Call):
        if last_name(node)[:1].isupper():
            return False  # an object of a class, which may have the method
        parts: list[ast.expr] = [*node.args, *(keyword.value for keyword in node.keywords)]
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    else:
        return False
    return any(given.id in names_in(part) for part in parts)


@kept
def gives(tree: ast.Module, name: str) -> bool:
    """Does a module define the method, or give it to a class that is there: `Tensor.as_type = as_type`?"""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            return True
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store) and last_name(node) == name:
            return True
        if (
            isinstance(node, ast.Call)
            and last_name(node) == "setattr"
            and any(isinstance(argument, ast.Constant) and argument.value == name for argument in node.args)
        ):
            return True
    return False
