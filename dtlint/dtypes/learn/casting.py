"""A call with its tensors cast to other dtypes, or made 0-dim."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.dtypes.learn.call import Call, Spot
    from dtlint.dtypes.learn.choices import Choice

__all__ = ["cast_tensor", "with_dtypes"]


def cast_tensor(value: torch.Tensor, dtype: str, rank: int | None) -> torch.Tensor:
    """A tensor of another dtype, and made 0-dim where the rank says 1."""
    if rank == 1 and value.ndim and value.numel():
        value = value.reshape(-1)[0]
    if dtype.startswith("uint") and (value.dtype.is_floating_point or value.dtype in _SIGNED):
        value = value.abs()  # -1 would be 2**64 - 1, and a polynomial of that degree takes forever
    return value.to(getattr(torch, dtype))


_SIGNED = frozenset({torch.int8, torch.int16, torch.int32, torch.int64})


def with_dtypes(call: Call, groups: Sequence[Sequence[Spot]], choice: Choice) -> Call:
    """The call with the tensors of each group cast."""
    for group, (dtype, rank) in zip(groups, choice, strict=True):
        for at in group:
            call = call.changed({at: cast_tensor(call.tensor(at), dtype, rank)})
    return call
