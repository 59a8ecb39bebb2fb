"""Real arguments and real results, as the table's questions and its rules spell them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.explain import Many
from dtlint.dtypes.form import DTYPE, UNKNOWN, Argument

if TYPE_CHECKING:
    from dtlint.dtypes.learn.call import Call

__all__ = ["abstract", "abstracted", "result_of"]


def abstract(value: Any) -> Argument:
    """A real argument as the table's questions spell it."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype)[6:], 2 if value.ndim else 1
    if isinstance(value, torch.dtype):
        return str(value)[6:], DTYPE
    if isinstance(value, (list, tuple)):
        return [abstract(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    return UNKNOWN if isinstance(value, slice) else _Opaque()


class _Opaque:
    """An argument that is neither operand nor constant, as a device."""


def abstracted(call: Call) -> tuple[list[Argument], dict[str, Argument]]:
    """The arguments of a call as the table's questions spell them."""
    return [abstract(value) for value in call.args], {name: abstract(value) for name, value in call.kwargs.items()}


def result_of(value: Any) -> Any:
    """A real result as an observation: dtypes in the place of tensors."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype)[6:]
    if isinstance(value, list):
        items = {result_of(item) for item in value}
        return Many(items.pop()) if len(items) == 1 else None
    if isinstance(value, tuple) and not isinstance(value, torch.Size):
        return tuple(result_of(item) for item in value)
    return None
