"""What an op is applied to, whether it is called as a function of torch or as a method of the tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.values import UNKNOWN
from dtlint_rules._parts import receiver

if TYPE_CHECKING:
    import ast

    from dtlint.infer.events import Call
    from dtlint.infer.values import Value

__all__ = ["is_function", "operand"]


def is_function(call: Call) -> bool:
    """Is it a function of torch, `torch.sum(x)`, whose first argument is what `x.sum()` is called on?"""
    return call.target.startswith("torch.") and not call.target.startswith("torch.Tensor.")


def operand(call: Call) -> tuple[ast.expr | None, Value]:
    """The expression of the tensor that an op is applied to, None where it is not given alone, and its value."""
    if is_function(call):
        return call.argument_node(0, "input"), call.argument(0, "input") or UNKNOWN
    return receiver(call.node), call.receiver
