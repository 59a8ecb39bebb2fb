"""Weights as tensors: a parameter or buffer is an object that its module can cast; operators see the tensor in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import External, Ref, Tensor, Union, Unknown, Value, choices
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context

__all__ = ["BUFFER", "CAST", "PARAMETER", "PARAMETRISED", "REGISTERED", "WEIGHTS", "as_operand", "is_weight", "plain"]

PARAMETER = "torch.nn.Parameter"
BUFFER = "torch.nn.Buffer"
WEIGHTS = frozenset({PARAMETER, BUFFER})
"""Kinds of heap objects that hold a tensor."""

REGISTERED = "*registered"
"""Marks a buffer that is a plain tensor, which its module holds as one: under another name it is not cast with the module."""

CAST: frozenset[tuple[str, object]] = frozenset({("cast", True)})
"""Marks what `x.float()` gives where x may be anything: a tensor or a module, and a tensor once an operator or a method is
asked of it that modules do not have."""

PARAMETRISED = External("torch.nn.utils.parametrize.read")
"""Marks a weight that parametrizations compute: a `Partial` of this with their chain."""


def is_weight(value: Value) -> bool:
    """Is it a parameter or a buffer?"""
    return type(value) is Ref and value.address.kind in WEIGHTS


def as_operand(value: Value) -> Value:
    """The value where operators and functions of torch take it, which modules are no operands of."""
    if type(value) is Unknown and value.extra >= CAST:
        return Tensor(value.dtypes, value.symbol)
    return value


def plain(ctx: Context, value: Value) -> Value:
    """The value, with the tensor that it holds now in place of each parameter."""
    kind = type(value)
    if kind is Ref:
        if value.address.kind in WEIGHTS:  # type: ignore[attr-defined]
            return ctx.store.read(value.address, CONTENT) or Tensor()  # type: ignore[attr-defined]
    elif kind is Union and any(map(is_weight, value.choices)):  # type: ignore[attr-defined]
        return join_all(plain(ctx, one) for one in choices(value)) or value
    return value
