"""What functions of torch give whatever they are given: truths, indices, and the dtype that they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.calls import dtype_of
from dtlint.infer.kinds import BOOL_RESULT, FLOAT_RESULT, INT_RESULT, TAKING_DTYPE, tensors_taken
from dtlint.infer.values import NONE, Tensor, Unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.calls import Arguments
    from dtlint.infer.values import Value

__all__ = ["as_tensors", "certain_result"]

_PACKAGES = frozenset({"torch", "torch.nn.functional", "torch.special", "torch.linalg"})
_TENSOR_FIRST = frozenset({"topk", "sort", "max", "min", "kthvalue", "mode", "median", "cummax", "cummin", "aminmax"})
"""Functions whose first argument is a tensor, and which may give a tuple."""
_ABSOLUTE = frozenset({"norm", "vector_norm", "matrix_norm"})
"""`dtype=` is what these compute in; of complex numbers they give the real dtype."""


def as_tensors(name: str, args: Sequence[Value]) -> Sequence[Value]:
    """The arguments of a function of torch, of which some can only be tensors."""
    count = max(tensors_taken(name), int(name.removeprefix("torch.") in _TENSOR_FIRST))
    if not count or not any(type(value) is Unknown for value in args[:count]):
        return args
    return [Tensor() if type(value) is Unknown and place < count else value for place, value in enumerate(args)]


def certain_result(name: str, arguments: Arguments) -> Tensor | None:
    """The tensor that a function of torch gives for any operands and in any autocast region; None where that depends."""
    package, _, last = name.rpartition(".")
    if package not in _PACKAGES or "out" in arguments.keywords:
        return None
    if last in BOOL_RESULT:
        return Tensor(frozenset({"bool"}), origin=arguments.node)
    if last in INT_RESULT and "as_tuple" not in arguments.keywords:
        return Tensor(frozenset({"int64"}), origin=arguments.node)
    told = arguments.keywords.get("dtype")
    if told is None or told == NONE or last in _ABSOLUTE or last not in FLOAT_RESULT | TAKING_DTYPE:
        return None
    dtypes = dtype_of(told)
    return None if dtypes is None else Tensor(dtypes, origin=arguments.node)
