"""Running totals and averages in half precision that no longer move: what is added is less than half a last digit.

On a sample of the steps, some values of what an operator adds to are kept and compared with what it leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dtlint.trace.lost import due
from dtlint.trace.transfer import Counts
from dtlint.trace.weights import COARSE, values_of

if TYPE_CHECKING:
    from dtlint.trace.signature import Signature

__all__ = ["Totals", "may_stall"]

FIRST = 256
"""Calls in a step that are looked at before they are sampled: a program may add for ever without a step."""

EACH = 61
"""Of those after them, each so many-th: a number that no loop has as a period."""

MOST = 0.9
"""A share of values that keep still from which a total does."""


def may_stall(signature: Signature, tensors: list[Tensor]) -> bool:
    """Does it add to something in half precision without a gradient to come, as to a total or an average?"""
    if not signature.op.adds or signature.backward or not tensors or tensors[0].dtype not in COARSE:
        return False
    return not (torch.is_grad_enabled() and any(x.requires_grad for x in tensors))


class Totals:
    """What was added to, and whether it moved."""

    def __init__(self) -> None:
        self.looks = True
        """Is the step that runs one to look at?"""
        self._calls = 0
        self._were: dict[int, Tensor] = {}
        """By storage: some values of what the operator in place that runs adds to."""
        self._adders: dict[int, set[Signature]] = {}
        """By storage: what added to it in place, in calls that were looked at. What does so twice is a total."""
        self._counts: Counts[Signature] = Counts()

    def before(self, x: Tensor, key: int) -> None:
        """An operator is about to add to `x` in place."""
        self._calls += 1
        due_now = self._calls <= FIRST or self._calls % EACH == 0
        if due_now and x.dtype in COARSE and not (x.is_meta or _captured(x)):
            self._were[key] = values_of(x).clone()

    def added(self, signature: Signature, sources: list[Tensor], out: Tensor, key: int, makers: list[Any]) -> None:
        """It has: `makers` wrote the storages of `sources` before."""
        if signature.op.writes:
            was = self._were.pop(key, None)
            if was is None:
                return
            adders = self._adders.setdefault(key, set())
            if signature in adders:
                self._compare(signature, was, sources[1:], out)
            adders.add(signature)
        elif self.looks and due(signature.count) and not (out.is_meta or _captured(out)):
            index = makers.index(signature) if signature in makers else -1
            if index >= 0 and sources[index].shape == out.shape:
                others = sources[:index] + sources[index + 1 :]
                self._compare(signature, values_of(sources[index]), others, out)

    def forget(self) -> None:
        """What ran has ended, or failed."""
        self._were.clear()

    def let_go(self) -> None:
        """Storages are not known any more: another may get the address of one."""
        self._adders.clear()

    def _compare(self, signature: Signature, was: Tensor, others: list[Tensor], out: Tensor) -> None:
        now = values_of(out)
        live = now.isfinite() & was.isfinite()
        if others and others[0].dim():
            if others[0].shape != out.shape:
                return
            addend = values_of(others[0])
        elif others:
            addend = others[0].detach()
        elif signature.number:
            addend = torch.ones_like(now)
        else:
            return
        live &= addend != (was.to(addend.dtype) if "lerp" in signature.op.name else 0)
        self._counts.add(signature, torch.count_nonzero(live), torch.count_nonzero(live & (now == was)))

    def settle(self, step: int, dead: list[int]) -> None:
        """Read what is waiting, at the end of a step, and let go of storages that died."""
        for signature, (live, stuck) in self._counts.read():
            if live:
                signature.sums += 1
                signature.stalled = signature.stalled + 1 if stuck >= MOST * live else 0
        self._calls, self.looks = 0, due(step + 2)
        for key in dead if self._adders else ():
            self._adders.pop(key, None)


def _captured(x: Tensor) -> bool:
    return x.is_cuda and torch.cuda.is_current_stream_capturing()
