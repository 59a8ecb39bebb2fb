"""Integers that wrapped around, and numbers that a cast to integers cut to 0: on a sample of the calls.

Counted on the device, read at the flush. An integer dtype of 64 bits is left alone: what wraps there is a hash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dtlint.trace.transfer import Counts

if TYPE_CHECKING:
    from dtlint.trace.signature import Signature

__all__ = ["Wraps", "may_wrap"]

NARROW = frozenset((torch.uint8, torch.int8, torch.int16, torch.int32))
"""dtypes in which arithmetic wraps by accident."""

INTEGERS = NARROW | {torch.int64}

SUMS: dict[str, Any] = {"add": torch.add, "add_": torch.add, "sub": torch.sub, "sub_": torch.sub, "mul": torch.mul}
"""Operators of two integer operands that wrap. Of one in place, the first operand is found again by its inverse."""

INVERSE: dict[str, Any] = {"add_": torch.sub, "sub_": torch.add}

VALUES = 1 << 16
"""Values looked at of one call, evenly spread."""


def may_wrap(signature: Signature, kwargs: Any) -> bool:
    """Is it a cast to integers that may not hold the operand's values, or arithmetic of narrow ones?"""
    out = signature.output
    if signature.backward or out not in INTEGERS:
        return False
    if signature.op.cast:
        source = signature.inputs[-1].dtype
        if source.is_floating_point:
            return True
        return source in INTEGERS and not _holds(out, source)
    return signature.op.name in SUMS and out in NARROW and not kwargs


def _holds(out: torch.dtype, source: torch.dtype) -> bool:
    low, high = torch.iinfo(source).min, torch.iinfo(source).max
    return torch.iinfo(out).min <= low and high <= torch.iinfo(out).max


class Wraps:
    """Counts of values that do not fit, waiting on their device for the flush."""

    def __init__(self) -> None:
        self._counts: Counts[Signature] = Counts()

    def sample(self, signature: Signature, args: Any, sources: list[Tensor], out: Tensor) -> None:
        """Launch the counting of one call."""
        if out.is_meta or out.device.type == "mps" or (out.is_cuda and torch.cuda.is_current_stream_capturing()):
            return  # MPS has no float64
        if signature.op.cast:
            self._cast(signature, _values(sources[-1]), _values(out))
        elif len(args) == 2:
            self._sum(signature, args[0], args[1], out)

    def _cast(self, signature: Signature, before: Tensor, after: Tensor) -> None:
        limits = torch.iinfo(after.dtype)
        if (
            before.dtype.is_floating_point
        ):  # what lies between two integers is cut; what is not finite is told at its birth
            exact = before.double().trunc()
            fits = ((exact >= float(limits.min)) & (exact < float(limits.max) + 1)) | ~exact.isfinite()
        else:
            fits = (before >= limits.min) & (before <= limits.max)
        self._count(signature, ~fits, torch.count_nonzero(before), torch.count_nonzero(after))

    def _sum(self, signature: Signature, a: Any, b: Any, out: Tensor) -> None:
        name, limits = signature.op.name, torch.iinfo(out.dtype)
        if any(isinstance(x, Tensor) and x.shape != out.shape and x.dim() for x in (a, b)):
            return
        now = _values(out)
        a, b = (_values(x) if isinstance(x, Tensor) and x.dim() else x for x in (a, b))
        if name in INVERSE:
            a = INVERSE[name](now, b)
        exact = SUMS[name](*(x.double() if isinstance(x, Tensor) else float(x) for x in (a, b)))
        none = torch.zeros((), dtype=torch.int64, device=out.device)
        self._count(signature, (exact < limits.min) | (exact > limits.max), none, none)

    def _count(self, signature: Signature, beyond: Tensor, before: Tensor, after: Tensor) -> None:
        looked = torch.full((), beyond.numel(), dtype=torch.int64, device=beyond.device)
        self._counts.add(signature, looked, torch.count_nonzero(beyond), before, after)

    def settle(self) -> None:
        """Read what is waiting."""
        for signature, (looked, beyond, before, after) in self._counts.read():
            signature.looked += looked
            signature.wrapped += beyond
            signature.nonzero += before
            signature.cut += max(before - after, 0)


def _values(x: Tensor) -> Tensor:
    flat = x.detach().reshape(-1)
    return flat[:: max(flat.numel() // VALUES, 1)][:VALUES]
