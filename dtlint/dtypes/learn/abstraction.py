"""Real arguments and real results, as the table's questions and its rules spell them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.explain import Many
from dtlint.dtypes.form import DTYPE, SCALAR, TENSOR, UNKNOWN, Argument
from dtlint.dtypes.learn.naming import name_of

if TYPE_CHECKING:
    from dtlint.dtypes.learn.call import Call

__all__ = ["abstracted", "result_of"]


def _argument(value: Any) -> Argument:
    """A real argument as the table's questions spell it."""
    if isinstance(value, torch.Tensor):
        return name_of(value.dtype), TENSOR if value.ndim else SCALAR
    if isinstance(value, torch.dtype):
        return name_of(value), DTYPE
    if isinstance(value, (list, tuple)):
        return [_argument(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    return UNKNOWN if isinstance(value, slice) else _Opaque()


class _Opaque:
    """An argument that is neither operand nor constant, as a device."""


def abstracted(call: Call) -> tuple[list[Argument], dict[str, Argument]]:
    """The arguments of a call as the table's questions spell them."""
    return [_argument(value) for value in call.args], {name: _argument(value) for name, value in call.kwargs.items()}


def result_of(value: Any) -> Any:
    """A real result as an observation: dtypes in the place of tensors."""
    if isinstance(value, torch.Tensor):
        return name_of(value.dtype)
    if isinstance(value, list):
        items = {result_of(item) for item in value}
        return Many(items.pop()) if len(items) == 1 else None
    if isinstance(value, tuple) and not isinstance(value, torch.Size):
        return tuple(result_of(item) for item in value)
    return None
