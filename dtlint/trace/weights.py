"""What an optimizer's step did to each weight: the dtypes it works in, and whether the weight moved at all.

A half weight keeps its value when the update is less than half of its last digit. On a sample of the steps some
values of each half weight are kept before the step and compared after it, on the device.
"""

from __future__ import annotations

import re
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dtlint.trace.lost import due, octaves
from dtlint.trace.octaves import add_up
from dtlint.trace.site import PLAIN
from dtlint.trace.transfer import Counts

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from dtlint.trace.flow import Flow
    from dtlint.trace.site import Site

__all__ = ["COARSE", "REMAINDERS", "Weight", "Weights", "compared", "values_of"]

COARSE = frozenset((torch.float16, torch.bfloat16))
"""dtypes of so few digits that a usual update can round to nothing."""

VALUES = 1024
"""Values of a weight that are compared, evenly spread over it."""

REMAINDERS = re.compile(r"kahan|compens|residual|remainder|error|shift", re.I)
"""Names of optimizer states that keep what rounding took from a weight, to add it later."""

ROUNDINGS = 4
"""Errors of rounding, of the largest value that is added up, which a sum that should be 0 may come to."""

MOST_WEIGHTS = 10_000
"""Weights described; a program may make new ones for ever."""


class Weight:
    """One parameter, as the steps showed it."""

    __slots__ = (
        "checked",
        "dtype",
        "gradient",
        "looked",
        "matter",
        "name",
        "reference",
        "shape",
        "site",
        "states",
        "stuck",
        "tiny",
    )

    def __init__(self, p: Tensor, name: str, site: Site) -> None:
        self.reference = weakref.ref(p)
        self.name, self.site = name, site
        self.shape, self.dtype = tuple(p.shape), p.dtype
        self.gradient: torch.dtype | None = None
        self.states: frozenset[torch.dtype] = frozenset()
        self.checked = self.stuck = self.looked = self.matter = 0
        self.tiny: list[int] = []


class Weights:
    """The weights of all optimizers that step."""

    def __init__(self, flow: Flow, gradients: bool = False) -> None:
        """Of all optimizers; with `gradients`, also how small the values of each gradient are."""
        self.flow, self.gradients = flow, gradients
        self.all: list[Weight] = []
        self._of: dict[int, Weight] = {}
        self._named: dict[str, Weight] = {}
        self._steps: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self._due = False
        self._were: dict[int, Tensor] = {}
        """By id of a weight: its values before the step that runs."""
        self._counts: Counts[Weight] = Counts()
        self._octaves: Counts[Weight] = Counts()

    def before(self, optimizer: Optimizer) -> None:
        """A step begins."""
        count = self._steps[optimizer] = self._steps.get(optimizer, 0) + 1
        self._due, self._were = due(count), {}
        if self._due:
            for group in optimizer.param_groups:
                for p in group["params"] if _learns(group) else ():
                    if p.dtype in COARSE and _is_plain(p) and p.grad is not None:
                        self._were[id(p)] = values_of(p).clone()

    def after(self, optimizer: Optimizer, site: Site) -> None:
        """The step has ended."""
        if not self._due:
            return
        self._due, were, self._were = False, self._were, {}
        names: dict[int, str] = {}
        for number, group in enumerate(optimizer.param_groups):
            for index, p in enumerate(group["params"]):
                weight = self._weight(p, f"weight {index} of group {number}", names, site)
                if weight is not None:
                    state = {str(name): x for name, x in optimizer.state.get(p, {}).items() if isinstance(x, Tensor)}
                    weight.states = frozenset(x.dtype for x in state.values() if x.dim())
                    weight.dtype, weight.gradient = p.dtype, p.grad.dtype if p.grad is not None else None
                    if self.gradients and p.grad is not None and _is_plain(p.grad):
                        self._look(weight, p)
                    if id(p) in were and not any(map(REMAINDERS.search, state)):
                        self._compare(weight, p, were[id(p)], optimizer, list(state.values()))
        self.flow.memory.stepped(optimizer)
        self.flow.histograms.stepped(optimizer)

    def _weight(self, p: Tensor, number: str, names: dict[int, str], site: Site) -> Weight | None:
        """The weight `p`, described at its first step. `names` is filled when a name is needed."""
        weight = self._of.get(id(p))
        if weight is not None and weight.reference() is p:
            return weight
        if len(self.all) >= MOST_WEIGHTS or not _is_plain(p):
            return None
        if not names:
            names.update((x.untyped_storage()._cdata, name) for _, name, x in self.flow.modules.tensors())
        weight = self._of[id(p)] = Weight(p, names.get(p.untyped_storage()._cdata, number), site)
        self.all.append(weight)
        self._named[weight.name] = weight
        return weight

    def _compare(self, weight: Weight, p: Tensor, was: Tensor, optimizer: Optimizer, states: list[Tensor]) -> None:
        if p.grad is None or not _is_plain(p.grad):
            return
        self._counts.add(weight, *compared(p, was, optimizer, states, self._layer(weight)))

    def _look(self, weight: Weight, p: Tensor) -> None:
        """Count by octave some values of the gradient of `p`."""
        assert p.grad is not None
        gradient, of = values_of(p.grad), _gradient_of(self._layer(weight), p)
        weight.looked += gradient.numel()
        self._octaves.add(weight, *octaves(gradient, None if of is None else values_of(of)))

    def _layer(self, weight: Weight) -> Tensor | None:
        """Of a bias: the weight of its layer, if that is known."""
        layer = self._named.get(weight.name.removesuffix("bias") + "weight")
        return layer.reference() if layer is not None and layer is not weight else None

    def settle(self) -> None:
        """Read what is waiting."""
        for weight, (live, stuck) in self._counts.read():
            weight.checked += live
            weight.stuck += stuck
        for weight, (matter, *tiny) in self._octaves.read():
            weight.matter += matter
            weight.tiny = add_up(weight.tiny, tiny)


def compared(
    p: Tensor, was: Tensor, optimizer: Optimizer, states: list[Tensor], layer: Tensor | None
) -> tuple[Tensor, Tensor]:
    """After a step: how many of the values `was` should have moved, and how many of those did not, as 0-dim tensors.

    Args:
        p: a weight that has a gradient.
        was: what `values_of(p)` gave before the step.
        optimizer: the one that stepped.
        states: the tensors that it keeps for `p`.
        layer: of a bias the weight of its layer, if that is known.
    """
    assert p.grad is not None
    now, gradient = values_of(p), values_of(p.grad)
    live = (gradient != 0) & gradient.isfinite() & was.isfinite() & (gradient.abs() > _noise(p, layer))
    skipped = getattr(optimizer, "found_inf", None)  # a fused step under a GradScaler leaves the weights alone
    if isinstance(skipped, Tensor):
        live &= skipped.to(live.device) == 0
    stuck = live & (now == was)
    for x in states:
        if x.shape == p.shape and x.dtype not in COARSE and x.device == p.device and x.dtype is not p.dtype:
            stuck &= values_of(x).to(p.dtype) != now  # else it is a wide copy of the weight, which did move
    return torch.count_nonzero(live), torch.count_nonzero(stuck)


def _noise(p: Tensor, layer: Tensor | None) -> Tensor | float:
    """What rounding alone makes of a bias's gradient, seen beside that of its layer's weight.

    A softmax, or a norm, makes some biases irrelevant: their gradient is 0 but for rounding.
    """
    of = _gradient_of(layer, p)
    return 0.0 if of is None else values_of(of).abs().max() * (ROUNDINGS * torch.finfo(p.dtype).eps)


def _gradient_of(layer: Tensor | None, p: Tensor) -> Tensor | None:
    """The gradient of a layer's weight, where it can be compared with that of its bias `p`."""
    of = layer.grad if layer is not None else None
    return of if of is not None and _is_plain(of) and of.device == p.device and of.numel() else None


def _learns(group: dict[str, Any]) -> bool:
    """Does the group mean to move? In the first step of a warm-up the rate may be 0."""
    rate = group.get("lr")
    return not isinstance(rate, (int, float)) or rate != 0


def _is_plain(x: Tensor) -> bool:
    return type(x) in PLAIN and x.layout is torch.strided and not x.is_meta


def values_of(x: Tensor) -> Tensor:
    """Some of its values, the same ones of every tensor of that shape."""
    flat = x.detach().reshape(-1)
    return flat[:: max(flat.numel() // VALUES, 1)][:VALUES]
