"""The gradients and weights of an optimizer in a sampled step: norms, underflow, and weights that did not move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from dtlint.monitor.activations import paths
from dtlint.monitor.waiting import Waiting, readable, some_of
from dtlint.trace.weights import REMAINDERS, compared, values_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch.optim import Optimizer

__all__ = ["Parameters"]

HALF_TINY = torch.finfo(torch.float16).tiny
"""The least normal number of float16."""


class Parameters:
    """Those of one optimizer, by their names in the model."""

    def __init__(self, model: nn.Module, optimizer: Optimizer, waiting: Waiting) -> None:
        self._model, self._optimizer, self._waiting = model, optimizer, waiting
        self.gradients: dict[str, tuple[torch.dtype, int]] = {}
        """By parameter: the gradient's dtype, and the number of its values that shares are estimated from."""
        self.unseen: dict[str, None] = {}
        self._were: dict[str, Tensor] = {}

    def begin(self) -> None:
        """A step to look at begins."""
        self.gradients, self.unseen, self._were = {}, {}, {}

    def read_gradients(self, scale: Tensor | None, scaled: bool) -> None:
        """Launch norms and shares of the gradients as they are now.

        Args:
            scale: what the loss was multiplied by; None for nothing. A scaled backward is one in float16.
            scaled: are the gradients still to be divided by it?
        """
        self.gradients = {}
        alike: dict[tuple[torch.device, torch.dtype], list[tuple[str, Tensor]]] = {}
        for name, p in self._named():
            if readable(p.grad):
                assert p.grad is not None
                alike.setdefault((p.grad.device, p.grad.dtype), []).append((name, p.grad.detach()))
            elif p.grad is not None:
                self.unseen[f"gradients that are {_what(p.grad)}"] = None
        for (device, dtype), gradients in alike.items():
            by: Tensor | None = None
            least: Tensor | float = torch.finfo(dtype).tiny
            if scale is not None:
                by = scale.detach().to(device, torch.float32)
                least = HALF_TINY if scaled else HALF_TINY / by
            self._read(gradients, by if scaled else None, least)

    def _read(self, gradients: list[tuple[str, Tensor]], divisor: Tensor | None, least: Tensor | float) -> None:
        waiting, tensors = self._waiting, [gradient for _, gradient in gradients]
        wide = torch.float64 if tensors[0].dtype is torch.float64 else torch.float32
        norms = torch._foreach_norm(tensors, 2, dtype=wide)
        largest = torch._foreach_norm(tensors, float("inf"), dtype=wide)
        for (name, gradient), norm, high in zip(gradients, norms, largest, strict=True):
            some = some_of(gradient)
            zero = some == 0
            waiting.sum(("grad_norm", name), norm if divisor is None else norm / divisor)
            waiting.largest(("grad_amax", name), high if divisor is None else high / divisor)
            waiting.sum(("grad_underflow", name), torch.count_nonzero((some < least) & ~zero))
            waiting.sum(("grad_zero", name), torch.count_nonzero(zero))
            self.gradients[name] = gradient.dtype, some.numel()

    def before(self) -> None:
        """The optimizer is to step: keep some values of each weight."""
        for name, p in self._named(learning=True):
            if readable(p) and p.dtype.itemsize > 1:
                self._were[name] = values_of(p).clone()

    def after(self) -> None:
        """The optimizer has stepped: launch the comparison of these values."""
        weights = dict(self._named())
        for name, was in self._were.items():
            p = weights[name]
            state = {str(key): x for key, x in self._optimizer.state.get(p, {}).items() if isinstance(x, Tensor)}
            if readable(p.grad) and not any(map(REMAINDERS.search, state)):
                layer = weights.get(name.removesuffix("bias") + "weight") if name.endswith("bias") else None
                live, stuck = compared(p, was, self._optimizer, [*state.values()], layer)
                self._waiting.sum(("compared", name), live)
                self._waiting.sum(("stuck", name), stuck)
        self._were = {}

    def _named(self, learning: bool = False) -> Iterator[tuple[str, Tensor]]:
        """The optimizer's parameters with their names; of those that are `learning`, whose rate is not 0."""
        names = {
            id(p): f"{path}.{name}" if path else name
            for path, module, _ in paths(self._model)
            for name, p in module._parameters.items()
            if p is not None
        }
        for number, group in enumerate(self._optimizer.param_groups):
            rate = group.get("lr")
            if learning and isinstance(rate, (int, float)) and rate == 0:
                continue
            for index, p in enumerate(group["params"]):
                yield names.get(id(p), f"group{number}.{index}"), p


def _what(x: Tensor) -> str:
    if x.layout is not torch.strided:
        return "sparse"
    return type(x).__name__ if type(x) is not Tensor else f"{str(x.dtype).removeprefix('torch.')} on {x.device.type}"
