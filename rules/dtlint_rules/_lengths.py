"""Casts of lengths to half, which does not count as far: `lengths.to(torch.float16)`, `length = torch.tensor(n).to(x)`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.rule import Finding
from dtlint_rules._names import last_name
from dtlint_rules._parts import receiver

if TYPE_CHECKING:
    from dtlint.infer.events import Call

__all__ = ["cast_length"]

_LENGTH = re.compile(r"(?:^|_)(?:lens?|lengths?|seq_?lens?|cu_seqlens)$")
"""How whole numbers are called that tell how long the texts or sounds of a batch are."""
_TO_OTHER = frozenset({"to", "type_as"})
_OF_NUMBER = frozenset({"tensor", "full", "as_tensor"})
_KEPT = frozenset({"repeat", "expand", "unsqueeze", "view", "to", "type_as", "long", "int", "cuda", "cpu"})


def cast_length(call: Call) -> Finding | None:
    """A cast to half of what is called lengths; or to the dtype of the data of the size that is kept as a length."""
    subject = receiver(call.node)
    if subject is None:
        return None
    if _LENGTH.search((path_of(subject) or "").rpartition(".")[2]) is not None:
        is_cast, dtypes = call.cast
        if not is_cast or not dtypes or not dtypes <= LOW_PRECISION:
            return None
        to = " or ".join(sorted(dtypes))
        return _found(call.node, f"`{ast.unparse(subject)}` is cast to {to}", dtypes == {"float16"})
    if call.method in _TO_OTHER and len(call.node.args) == 1 and not call.node.keywords and _is_kept_as_length(call):
        other, made = call.node.args[0], _made(subject)
        if isinstance(other, ast.Name) and made is not None and _measures(made, other.id):
            return _found(call.node, f"The length of `{other.id}` is cast to its dtype, which may be half", small=False)
    return None


def _found(node: ast.expr, what: str, small: bool) -> Finding:
    exact = (
        "float16 has every whole number up to 2048 only" if small else "bfloat16 has every whole number up to 256 only"
    )
    return Finding(node, f"{what}: {exact}, and longer ones are rounded", help="Leave lengths to be integers")


def _is_kept_as_length(call: Call) -> bool:
    """`length = ...`."""
    statement = call.flow.statement
    return (
        isinstance(statement, ast.Assign)
        and statement.value is call.node
        and _LENGTH.search((path_of(statement.targets[0]) or "").rpartition(".")[2]) is not None
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
