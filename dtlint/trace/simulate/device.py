"""The simulated device, below every other mode: what asks for it runs on the CPU, and what comes of it is on it.

Random numbers on the device come from a generator of its own, so that the CPU's give the same as beside a real GPU.
Where the CPU lacks a half kernel that CUDA has, it computes in float32 and rounds.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from dtlint.trace.simulate.placement import HOME, PINNED, place, placed

if TYPE_CHECKING:
    from dtlint.trace.simulate.hardware import Hardware

__all__ = ["HALF_ON_CUDA", "SimulatedDevice"]

HALF_ON_CUDA = frozenset(
    (
        *("avg_pool3d", "avg_pool3d_backward"),
        *("rrelu_with_noise", "rrelu_with_noise_"),
        *("multi_margin_loss", "multi_margin_loss_backward"),
        *("multilabel_margin_loss_forward", "multilabel_margin_loss_backward"),
        *("_upsample_bilinear2d_aa", "_upsample_bilinear2d_aa_backward"),
        *("_upsample_bicubic2d_aa", "_upsample_bicubic2d_aa_backward"),
    )
)
"""Operators with a kernel of half on CUDA and none on the CPU; a test asks the operator database for them."""

LACKS = re.compile(r"not implemented for '(Half|BFloat16)'")
"""How the CPU says so."""

HALVES = frozenset((torch.float16, torch.bfloat16))

IN_PLACE = re.compile(r"^[^_].*[^_]_$")


class SimulatedDevice(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Maps the device, keeps who is on it, and lends it random numbers."""

    supports_higher_order_operators = True

    def __init__(self, hardware: Hardware) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.hardware = hardware
        self.on = True
        """False once the simulation has ended; a thread of the program may still hold the mode."""
        self.widened: Counter[str] = Counter()
        """Calls that were computed in float32, by operator."""
        self._random = _Random()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator on the CPU; its results are where it was asked to make them, or where its operands are."""
        kwargs = kwargs or {}
        if not self.on:
            return func(*args, **kwargs)
        where: torch.device | None
        asked = kwargs.get("device")
        if asked is not None and asked.type == "cuda":
            where = self.hardware.indexed(asked)
            kwargs = {**kwargs, "device": HOME}
        else:  # "cpu" is also what torch fills in for `zeros_like`
            where = _operands_at((*args, *kwargs.values()))
        pinned = kwargs.get("pin_memory")
        if pinned:
            kwargs = {**kwargs, "pin_memory": False}
        try:
            if where is not None and self._random[func] and kwargs.get("generator") is None:
                with self.hardware.generator.instead():
                    out = func(*args, **kwargs)
            else:
                out = func(*args, **kwargs)
        except (NotImplementedError, RuntimeError) as error:
            if where is None or func._opname not in HALF_ON_CUDA or not LACKS.search(str(error)):
                raise
            out = self._in_float32(func, args, kwargs)
        if where is not None:
            place(out, where)
        if pinned:
            setattr(out.untyped_storage(), PINNED, True)
        return out

    def _in_float32(self, func: Any, args: Any, kwargs: Any) -> Any:
        self.widened[func._opname] += 1
        half = next(x.dtype for x in args if isinstance(x, Tensor) and x.dtype in HALVES)
        wide = [x.float() if isinstance(x, Tensor) and x.dtype in HALVES else x for x in args]
        out = func(*wide, **kwargs)
        for argument, narrow, written in zip(func._schema.arguments, args, wide, strict=False):
            if argument.is_write and narrow is not written:
                narrow.copy_(written)
        if IN_PLACE.match(func._opname):
            return args[0]
        return tuple(x.to(half) for x in out) if isinstance(out, tuple) else out.to(half)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled while a trace runs


class _Random(dict[Any, bool]):
    """By operator: does it draw random numbers?"""

    def __missing__(self, func: Any) -> bool:
        draws = self[func] = torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())
        return draws


def _operands_at(values: tuple[Any, ...]) -> torch.device | None:
    """The simulated device of the first operand that is on one."""
    for value in values:
        if isinstance(value, Tensor):
            where = placed(value)
            if where is not None:
                return where
        elif isinstance(value, (list, tuple)):
            where = _operands_at(tuple(value))
            if where is not None:
                return where
    return None
