"""Bytes by dtype of what a training step keeps: parameters, gradients, optimizer states, and activations.

Looked at on a sample of the steps, from what is alive: nothing is counted as operators run.
"""

from __future__ import annotations

import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch

from dtlint.trace.lost import due
from dtlint.trace.site import PLAIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor
    from torch.optim import Optimizer

    from dtlint.trace.signature import Signature
    from dtlint.trace.site import ModulePaths

__all__ = ["Memory"]

Bytes = Counter[torch.dtype]


class Memory:
    """The most that each kind of tensor held in any step that was looked at."""

    def __init__(self, modules: ModulePaths) -> None:
        self.modules = modules
        self.most: dict[str, Bytes] = {}
        self._backwards = 0
        self._states: weakref.WeakKeyDictionary[Optimizer, Bytes] = weakref.WeakKeyDictionary()

    def backward_begins(self, made: dict[int, Signature | None]) -> None:
        """What operators have made and is still alive is, but for parameters and gradients, kept for the backward."""
        self._backwards += 1
        if not due(self._backwards):
            return
        owned = {storage for x in self._owned() for storage in _storages(x)}
        held: Bytes = Counter()
        by_maker: Counter[Signature] = Counter()
        for key, maker in made.items():
            if maker is None or maker.output is None or maker.op.brings or key in owned:
                continue
            if not torch.UntypedStorage._expired(key):
                storage = torch.UntypedStorage._new_with_weak_ptr(key)
                nbytes = storage.nbytes() if storage is not None else 0
                held[maker.output] += nbytes
                by_maker[maker] += nbytes
        for maker, nbytes in by_maker.items():
            maker.held = max(maker.held, nbytes)
        self._keep("activations", held)

    def stepped(self, optimizer: Optimizer) -> None:
        """An optimizer has stepped: its states are as large as they get, and the gradients are there."""
        mine = [p for group in optimizer.param_groups for p in group["params"]]
        parameters: dict[int, Tensor] = {}
        for x in (*self._owned(), *mine):
            if isinstance(x, torch.nn.Parameter):
                parameters.update((storage, x) for storage in _storages(x))
        self._keep("parameters", _sum(parameters.values()))
        self._keep("gradients", _sum(p.grad for p in parameters.values()))
        states = (value for p in mine for value in optimizer.state.get(p, {}).values())
        self._states[optimizer] = _sum(x for x in states if isinstance(x, torch.Tensor) and x.dim())
        self._keep("optimizer states", sum(self._states.values(), Counter()))

    def _owned(self) -> Iterator[Tensor]:
        for _, _, x in self.modules.tensors():
            yield x
            if isinstance(x, torch.nn.Parameter) and x.grad is not None:
                yield x.grad

    def _keep(self, what: str, held: Bytes) -> None:
        if held.total() > self.most.get(what, Counter()).total():
            self.most[what] = held


def _storages(x: Tensor) -> tuple[int, ...]:
    plain = type(x) in PLAIN and x.layout is torch.strided
    return (x.untyped_storage()._cdata,) if plain else ()


def _sum(tensors: Any) -> Bytes:
    held: Bytes = Counter()
    for x in tensors:
        if type(x) in PLAIN:
            held[x.dtype] += x.nbytes
    return held
