"""The optimizers of torch.optim, and the assignment of a gradient: what each demands of dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from dtlint.dtypes.form import Form, Parameter
from dtlint.dtypes.learn.call import Call
from dtlint.dtypes.learn.op import Op
from dtlint.dtypes.learn.ramp import ramp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["optimizer_ops"]

OPTIMIZERS = (
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ASGD",
    "Muon",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
)
"""All but SparseAdam, which takes sparse gradients, and LBFGS, whose step takes a closure."""


def optimizer_ops(only: Sequence[str] = ()) -> Iterator[Op]:
    """A step of each optimizer, which demands something of a parameter's dtype; and an assignment to `grad`."""
    of_parameters = Form((Parameter("params", "t"),))
    of_gradients = Form((Parameter("self", "t"), Parameter("grad", "t")))
    ops = [Op(f"torch.optim.{name}.step", _step_of(name), [Call([ramp()])], [of_parameters]) for name in OPTIMIZERS]
    ops.append(Op("torch.Tensor.grad", _assign, [Call([ramp(), ramp()])], [of_gradients]))
    yield from (op for op in ops if not only or op.name in only)


def _step_of(name: str) -> Callable[[torch.Tensor], None]:
    optimizer = getattr(torch.optim, name)

    def step(parameter: torch.Tensor) -> None:
        weight = torch.nn.Parameter(parameter.clone(), requires_grad=True)
        weight.grad = torch.ones_like(weight)
        optimizer([weight]).step()

    return step


def _assign(tensor: torch.Tensor, gradient: torch.Tensor) -> None:
    tensor.detach().requires_grad_().grad = gradient
