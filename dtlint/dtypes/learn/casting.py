"""A call with its tensors cast to other dtypes, or made 0-dim."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from dtlint.dtypes.form import SCALAR
from dtlint.dtypes.learn.naming import torch_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.dtypes.learn.call import Call, Spot
    from dtlint.dtypes.learn.choices import Choice

__all__ = ["cast_tensor", "with_dtypes"]

_SIGNED = frozenset({torch.int8, torch.int16, torch.int32, torch.int64})


def cast_tensor(value: torch.Tensor, dtype: str, rank: int | None) -> torch.Tensor:
    """A tensor of another dtype; of its first element, if the rank is SCALAR."""
    if rank == SCALAR and value.ndim and value.numel():
        value = value.reshape(-1)[0]
    if dtype.startswith("uint") and (value.dtype.is_floating_point or value.dtype in _SIGNED):
        value = value.abs()  # -1 would be 2**64 - 1, and a polynomial of that degree takes forever
    return value.to(torch_dtype(dtype))


def with_dtypes(call: Call, groups: Sequence[Sequence[Spot]], choice: Choice) -> Call:
    """The call with the tensors of each group cast."""
    for group, (dtype, rank) in zip(groups, choice, strict=True):
        for at in group:
            call = call.changed({at: cast_tensor(call.tensor(at), dtype, rank)})
    return call
