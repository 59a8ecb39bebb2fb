"""How the magnitudes of activations, gradients and weights are spread over the powers of 2, on a sample of the steps.

Some values of each tensor are copied on their device, those of many tensors at once; exponents are taken at the flush.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from dtlint.trace.lost import due
from dtlint.trace.schema import Histogram
from dtlint.trace.site import PLAIN
from dtlint.trace.storages import values_of
from dtlint.trace.transfer import fetch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch.optim import Optimizer

    from dtlint.trace.signature import Signature
    from dtlint.trace.site import ModulePaths

__all__ = ["Histograms"]

VALUES = 256
"""Values of a tensor that are looked at."""

MOST = 20_000
"""Tensors of one sample."""

LOWEST, BINS = -63, 128
"""Exponents that are told apart: what is smaller or larger counts as the first or the last."""


class _Key(NamedTuple):
    what: str
    module: str
    dtype: torch.dtype


class _Waiting(NamedTuple):
    """Values that wait on their device: of each tensor so many, one tensor after the other."""

    keys: list[_Key]
    lengths: list[int]
    values: Tensor


class Histograms:
    """Counts of values by exponent, for each module."""

    def __init__(self, watched: frozenset[torch.dtype], modules: ModulePaths) -> None:
        self.watched, self.modules = watched, modules
        self._backwards = 0
        self._waiting: list[_Waiting] = []
        self._counts: dict[_Key, Tensor] = {}
        """Zeros first, then by exponent."""

    def backward_begins(self, made: dict[int, Signature | None]) -> None:
        """What operators have made and is still alive is kept for the backward."""
        self._backwards += 1
        if self.watched and due(self._backwards):
            self._sample(dict(self._activations(made)))

    def _activations(self, made: dict[int, Signature | None]) -> Iterator[tuple[int, tuple[_Key, Tensor]]]:
        for storage, maker in made.items():
            if maker is None or maker.backward or maker.op.brings or maker.op.fresh or maker.output not in self.watched:
                continue
            values = values_of(storage, maker.output)
            if values is not None:
                yield storage, (_Key("activations", maker.site.module, maker.output), values)

    def stepped(self, optimizer: Optimizer) -> None:
        """An optimizer has stepped: its gradients are there, without the GradScaler's scale."""
        if self.watched:
            self._sample(dict(self._owned(optimizer)))

    def _owned(self, optimizer: Optimizer) -> Iterator[tuple[int, tuple[_Key, Tensor]]]:
        paths = {x.untyped_storage()._cdata: path.rpartition(".")[0] for _, path, x in self.modules.tensors()}
        for group in optimizer.param_groups:
            for p in group["params"]:
                if type(p) not in PLAIN or p.layout is not torch.strided:
                    continue
                module = paths.get(p.untyped_storage()._cdata, "")
                for what, x in (("weights", p), ("gradients", p.grad)):
                    if type(x) in PLAIN and x.layout is torch.strided and x.dtype in self.watched:
                        lying = x.detach().permute(sorted(range(x.dim()), key=x.stride, reverse=True))
                        if lying.is_contiguous():  # else all of it would be copied
                            yield id(x), (_Key(what, module, x.dtype), lying.view(-1))

    def _sample(self, found: dict[int, tuple[_Key, Tensor]]) -> None:
        """Copy some values of each; `found` by what makes a tensor the same."""
        together: dict[tuple[torch.dtype, torch.device], list[tuple[_Key, Tensor]]] = {}
        for key, x in list(found.values())[:MOST]:
            if x.numel() and not x.is_meta:
                some = x[:: max(x.numel() // VALUES, 1)][:VALUES]
                together.setdefault((x.dtype, x.device), []).append((key, some))
        for (_, device), rows in together.items():
            if device.type != "cuda" or not torch.cuda.is_current_stream_capturing():
                keys, values = zip(*rows, strict=True)
                self._waiting.append(_Waiting([*keys], [x.numel() for x in values], torch.cat(values)))

    def settle(self) -> None:
        """Count what is waiting: one transfer for each dtype and device of a sample."""
        waiting, self._waiting = self._waiting, []
        for keys, lengths, values in waiting:
            here = fetch(values)
            wide = here if here.dtype is torch.float64 else here.float()
            row = torch.arange(len(keys), device=here.device)  # whatever the program's default device is
            row = torch.repeat_interleave(row, torch.tensor(lengths, device=here.device))
            bins = (torch.frexp(wide).exponent - LOWEST).clamp(0, BINS - 1) + 1
            bins[wide == 0] = 0
            finite = wide.isfinite()
            counts = torch.bincount((row * (BINS + 1) + bins)[finite], minlength=len(keys) * (BINS + 1))
            for key, count in zip(keys, counts.view(len(keys), BINS + 1), strict=True):
                known = self._counts.get(key)
                self._counts[key] = count.clone() if known is None else known + count

    def record(self) -> list[Histogram]:
        """As the trace record keeps them."""
        return [_histogram(key, counts.tolist()) for key, counts in self._counts.items() if counts.any()]


def _histogram(key: _Key, counts: list[int]) -> Histogram:
    zeros, *by_exponent = counts
    used = [index for index, count in enumerate(by_exponent) if count]
    first, last = (used[0], used[-1] + 1) if used else (0, 0)
    return Histogram(
        what=key.what,
        module=key.module,
        dtype=str(key.dtype).removeprefix("torch."),
        zeros=zeros,
        first=LOWEST + first,
        counts=by_exponent[first:last],
    )
