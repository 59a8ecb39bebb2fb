"""Encoders that make Python numbers of NumPy's, of one type alone: the others fall through to the error at their end."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.rule import Finding
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._names import last_name
from dtlint_rules._parts import receiver
from dtlint_rules._within import parents_in

if TYPE_CHECKING:
    from dtlint.infer.events import Call
    from dtlint.infer.scopes import FunctionInfo

__all__ = ["FOR_ONE_TYPE", "one_type_encoded"]

_MEANT = {"int64": ("integer", "int32"), "int32": ("integer", "int64"), "float64": ("floating", "float32")}
"""The types of NumPy that are asked for alone, with all of their kind, and one of these that is not let through."""
FOR_ONE_TYPE = tuple(f",{package}.{name})" for package in ("np", "numpy") for name in _MEANT)
"""How one of them is asked for alone, `isinstance(x, np.int64)`."""
_OF_NUMPY = frozenset(
    {
        *("integer", "signedinteger", "floating", "inexact", "number", "generic"),
        *("int8", "int16", "int32", "int64", "intc", "intp", "int_", "float16", "float32", "float64"),
    }
)
"""The types that a function may ask for, of which one alone is too few."""
_TAKING_ALL = frozenset({"Number", "Integral", "Real", "hasattr", "isscalar", "tolist"})
"""How else a function takes numbers of all types."""


def one_type_encoded(call: Call) -> Finding | None:
    """`if isinstance(x, np.int64): return int(x)`, where what is asked for nowhere ends in an error."""
    asked, function = call.node.args, call.flow.function
    if len(asked) != 2 or function is None or not isinstance(asked[0], ast.Name):
        return None
    path, name = path_of(asked[1]), asked[0].id
    kind = (path or "").rpartition(".")[2]
    if path not in (f"np.{kind}", f"numpy.{kind}") or kind not in _MEANT or not _is_encoder(function):
        return None
    if not any(parameter.arg == name for parameter in parameters(function.node)) or not _answers(call.node, name, call):
        return None
    named = [last_name(node) for node in own_nodes(function.node) if isinstance(node, (ast.Attribute, ast.Name))]
    if not _TAKING_ALL.isdisjoint(named) or sum(each in _OF_NUMPY for each in named) != 1:
        return None
    meant, other = _MEANT[kind]
    return Finding(
        call.node,
        f"Of NumPy's numbers, `{path}` alone is let through: `np.{other}` ends in the error below",
        help=f"Ask for `np.{meant}`",
    )


def _answers(test: ast.Call, name: str, call: Call) -> bool:
    """Is it the test of an `if` which returns the same number as one of Python?"""
    around = parents_in(call.flow.scope).get(test)
    if isinstance(around, ast.BoolOp) and isinstance(around.op, ast.Or):
        around = parents_in(call.flow.scope).get(around)
    if not isinstance(around, ast.If) or len(around.body) != 1:
        return False
    given = around.body[0].value if isinstance(around.body[0], ast.Return) else None
    if not isinstance(given, ast.Call):
        return False
    if last_name(given) in ("int", "float"):
        return len(given.args) == 1 and path_of(given.args[0]) == name
    held = receiver(given)
    return last_name(given) == "item" and held is not None and path_of(held) == name


def _is_encoder(function: FunctionInfo) -> bool:
    """Does what the function has no answer for raise TypeError: at its end, or from the encoder that it inherits?"""
    body = getattr(function.node, "body", None)
    last = body[-1] if isinstance(body, list) else None
    while isinstance(last, ast.If) and last.orelse:
        last = last.orelse[-1]
    if isinstance(last, ast.Raise):
        raised = last.exc.func if isinstance(last.exc, ast.Call) else last.exc
        return raised is not None and last_name(raised) in ("TypeError", "ValueError")
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Call):
        return False
    bases = function.owner.node.bases if function.owner is not None else []
    return last_name(last.value) == "default" and any("JSONEncoder" in last_name(base) for base in bases)
