"""Casts of lengths to half, which does not count as far: `lengths.to(torch.float16)`, `length = torch.tensor(n).to(x)`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import INTEGRAL, LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.infer.values import Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding
from dtlint_rules._assignments import source_of
from dtlint_rules._functions import own_nodes
from dtlint_rules._half import half_at
from dtlint_rules._names import last_name
from dtlint_rules._parts import receiver

if TYPE_CHECKING:
    from dtlint.infer.events import Call
    from dtlint.infer.values import Value

__all__ = ["cast_length"]

_LENGTH = re.compile(
    r"^(?:(?:seq|sequence|input|output|src|tgt|text|speech|audio|mel|token|prompt|encoder|encoder_out|x|y|wav)_)?"
    r"(?:len|lens|lengths?)$"
)
"""How whole numbers are called that tell how long the texts or sounds of a batch are. Those of edges and lenses are not whole."""
_TO_OTHER = frozenset({"to", "type_as"})
_OF_NUMBER = frozenset({"tensor", "full", "as_tensor"})
_KEPT = frozenset({"repeat", "expand", "unsqueeze", "view", "to", "type_as", "long", "int", "cuda", "cpu"})


def cast_length(call: Call) -> Finding | None:
    """A cast to half of what is called lengths; or to the dtype of the data of the size that is kept as a length."""
    subject = receiver(call.node)
    if subject is None:
        return None
    if _is_length((path_of(subject) or "").rpartition(".")[2], call.receiver):
        is_cast, dtypes = call.cast
        if not is_cast or not dtypes or not dtypes <= LOW_PRECISION:
            return None
        to = " or ".join(sorted(dtypes))
        return _found(call.node, f"`{ast.unparse(subject)}` is cast to {to}", dtypes == {"float16"})
    if call.method in _TO_OTHER and len(call.node.args) == 1 and not call.node.keywords and _is_kept_as_length(call):
        other, made = call.node.args[0], _made(subject)
        if not isinstance(other, ast.Name) or made is None or not _measures(made, other.id):
            return None
        if _may_be_half(other, call):
            return _found(call.node, f"The length of `{other.id}` is cast to the dtype of `{other.id}`", small=False)
    return None


def _is_length(name: str, value: Value) -> bool:
    """Is it a count by its name, or one of integers by what is known of it?"""
    if isinstance(value, Tensor) and value.dtypes:
        return value.dtypes <= INTEGRAL and name.endswith(("len", "lens", "length", "lengths"))
    return _LENGTH.search(name) is not None


def _may_be_half(other: ast.expr, call: Call) -> bool:
    """May what gives the dtype be half: was it not cast to float32 above?"""
    made = source_of(other, call.flow)
    if isinstance(made, ast.Call) and last_name(made) in ("float", "double"):
        return False
    return half_at(call.flow, call.args[0], dtype=None) is not None


def _found(node: ast.expr, what: str, small: bool) -> Finding:
    exact = "float16 is exact to 2048 only" if small else "bfloat16 is exact to 256 only"
    return Finding(node, f"{what}: {exact}", help="Keep lengths as integers", conditional=True)


def _is_kept_as_length(call: Call) -> bool:
    """`length = ...`, which is no factor: what is divided by it is rounded anyway."""
    statement = call.flow.statement
    if not isinstance(statement, ast.Assign) or statement.value is not call.node:
        return False
    path = path_of(statement.targets[0]) or ""
    return _LENGTH.search(path.rpartition(".")[2]) is not None and not any(
        path_of(part) == path
        for node in own_nodes(call.flow.scope)
        if isinstance(node, ast.BinOp)
        for part in nodes([node])
    )


def _made(node: ast.expr) -> ast.Call | None:
    """`torch.tensor(n)` of `torch.tensor(n).repeat(2)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEPT:
        node = node.func.value
    return node if isinstance(node, ast.Call) and last_name(node) in _OF_NUMBER else None


def _measures(made: ast.Call, name: str) -> bool:
    """Is it made of the sizes of that very tensor, `x.size(-1)`, `x.shape[1]`?"""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("size", "shape") and path_of(node.value) == name
        for argument in made.args
        for node in ast.walk(argument)
    )
