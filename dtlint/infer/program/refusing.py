"""What raises has no result: calls of torch whose dtypes it refuses, where no autocast region casts them.

A rule of the checker tells of them. Here they give a tensor of no dtype, so that nothing is claimed of what never comes to
be, nor of what would be made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import INTEGRAL
from dtlint.infer.refusals import refusal
from dtlint.infer.values import Constant, Tensor

if TYPE_CHECKING:
    from dtlint.infer.calls import Arguments
    from dtlint.infer.values import Autocast, Value

__all__ = ["is_refused"]

_LEARNING = {"torch.nn.Parameter": 1, "torch.Tensor.requires_grad_": 0}
"""What makes a tensor that requires gradients, and the place of the argument that tells otherwise."""
_WITHOUT_GRADIENTS = INTEGRAL | {"bool"}
"""Dtypes that never require gradients."""


def is_refused(target: str, receiver: Value, arguments: Arguments, result: Value, region: Autocast | None) -> bool:
    """Does a call raise for its dtypes?

    Args:
        target: the function or method, by its qualified name.
        result: what it would give.
        region: the autocast region in force, which casts what is of two dtypes.
    """
    if not arguments.complete or not isinstance(result, Tensor):
        return False
    if target in _LEARNING or "requires_grad" in arguments.keywords:
        made = receiver if target == "torch.Tensor.requires_grad_" else result
        known = isinstance(made, Tensor) and made.dtypes is not None and made.dtypes <= _WITHOUT_GRADIENTS
        return known and _requires_grad(target, arguments)
    if target == "torch.Tensor.type" and "inplace" in arguments.keywords:
        return True
    if region is not None or not target.startswith("torch.") or arguments.default is None:
        return False
    given = [receiver, *arguments.args] if target.startswith("torch.Tensor.") else arguments.args
    return all(refusal(target, given, arguments.keywords, default) is not None for default in arguments.default)


def _requires_grad(target: str, arguments: Arguments) -> bool:
    """Is a tensor made that has to have a gradient, or is one made to have it?"""
    position = _LEARNING.get(target)
    told = arguments.get(position, "requires_grad")
    if told is None:
        return position is not None
    return isinstance(told, Constant) and told.value is True
