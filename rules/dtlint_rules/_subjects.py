"""What an op is applied to, whether it is called as a function of torch or as a method of the tensor.

As a function an op takes its tensor first; as a method it is called on it, and every other operand moves up by one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from dtlint.infer.names import path_of
from dtlint.infer.values import UNKNOWN
from dtlint_rules._effects import TORCH
from dtlint_rules._parts import keyword, receiver

if TYPE_CHECKING:
    from dtlint.infer.events import Call
    from dtlint.infer.values import Value

__all__ = ["ABSENT", "Operand", "flat", "is_function", "joined", "operand"]


class Operand(NamedTuple):
    """An argument, or what a method is called on."""

    node: ast.expr
    value: Value


ABSENT = (None, UNKNOWN)
"""What stands for an operand that is not given, where its parts are asked for: `node, value = operand(call) or ABSENT`."""


def is_function(call: Call) -> bool:
    """Is it a function of torch, `torch.sum(x)`, whose first argument is what `x.sum()` is called on?"""
    return call.target.startswith("torch.") and not call.target.startswith("torch.Tensor.")


def operand(call: Call, position: int = 0, name: str = "input") -> Operand | None:
    """An operand by its position in the function, where the tensor comes first, or its keyword; None if it is not given."""
    if not is_function(call):
        if position == 0:
            node = receiver(call.node)
            return None if node is None else Operand(node, call.receiver)
        position -= 1
    given, value = call.argument_node(position, name), call.argument(position, name)
    return None if given is None else Operand(given, UNKNOWN if value is None else value)


_OPERANDS = frozenset(
    {"input", "other", "weight", "bias", "mat", "mat1", "mat2", "batch1", "batch2", "tensor", "end"}
    | {"q", "A", "B", "b", "LU"}
)
"""How what joins tensors, and products, call the tensors that they take."""


def joined(call: ast.Call) -> list[ast.expr]:
    """The tensors that a joining function or method takes: `x` and `y`, of `torch.cat([x, y], 1)`, `x.add(y)` and
    `F.linear(input=x, weight=y)`."""
    listed = call.args[0] if call.args else keyword(call, "tensors")
    if isinstance(listed, (ast.List, ast.Tuple)):
        return listed.elts
    named = [part.value for part in call.keywords if part.arg in _OPERANDS]
    held = receiver(call)
    return [*call.args, *named] if held is None or path_of(held) in TORCH else [held, *call.args, *named]


def flat(items: list[ast.expr]) -> list[ast.expr]:
    """Expressions, and in place of each list and tuple what stands in it: `eq`, `x` and `y`, of `eq, [x, y]`."""
    return [item for node in items for item in (flat(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else [node])]
