"""Does a file make floats of another dtype than the assumed one? Then what is not known in it may be of that dtype.

Where such floats go to is not followed: through attributes, containers, callbacks and other objects they may reach any function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.values import External, Tensor, Unknown, Value, choices
from dtlint.infer.models.registry import MODELS

if TYPE_CHECKING:
    from dtlint.infer.interproc.functions import FunctionDefinition

__all__ = ["OtherFloats"]

_OF_DATA = frozenset(
    {"torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray", "torch.frombuffer", "torch.load"}
)
"""Functions of torch that give the dtype of what they are given, which need not be a tensor, or of what a file holds."""


class OtherFloats:
    """Is told what the functions of a file evaluate.

    Args:
        assumed: the dtype that floats have otherwise.
    """

    def __init__(self, assumed: str) -> None:
        self._others = FLOATING - {assumed}
        self.are_about = False
        """Has a function made floats of another dtype, or got data from elsewhere? Constructors aside: the dtypes of what an
        object begins with are known."""

    def expression(self, value: Value, function: FunctionDefinition | None) -> bool:
        """A function has evaluated an expression. Is it the first that shows such floats? A tensor without dimensions is a count
        or a rate, and none of the tensors that are worked on."""
        if self.are_about or (function is not None and function.name == "__init__"):
            return False
        tensors = (one for one in choices(value) if isinstance(one, (Tensor, Unknown)))
        self.are_about = any(one.dtypes and one.dtypes <= self._others and _has_dimensions(one) for one in tensors)
        return self.are_about

    def call(self, callee: Value, result: Value | None) -> bool:
        """A function has called something. Is it the first that gives data: what a library reads, what an array holds?"""
        if self.are_about or not isinstance(callee, External) or result is None:
            return False
        is_op = callee.name.startswith("torch.") or callee.name in MODELS
        self.are_about = (callee.name in _OF_DATA or not is_op) and _is_open(result)
        return self.are_about


def _has_dimensions(value: Tensor | Unknown) -> bool:
    return not isinstance(value, Tensor) or value.rank != 0


def _is_open(value: Value) -> bool:
    return any(isinstance(one, (Tensor, Unknown)) and one.dtypes is None for one in choices(value))
