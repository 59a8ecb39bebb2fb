"""The optimizers of torch.optim, and the assignment of a gradient: what each demands of dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.form import Form, Parameter
from dtlint.dtypes.learn.call import Call
from dtlint.dtypes.learn.extras import ramp
from dtlint.dtypes.learn.op import Op

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["OPTIMIZERS", "optimizer_ops"]

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


def optimizer_ops(only: Sequence[str] = ()) -> Iterator[Op]:
    """A step of each optimizer: what it demands of the dtype of a parameter, and of a gradient."""
    for name in OPTIMIZERS:
        made = getattr(torch.optim, name)

        def step(parameter: torch.Tensor, made: Any = made) -> None:
            weight = torch.nn.Parameter(parameter.clone(), requires_grad=True)
            weight.grad = torch.ones_like(weight)
            made([weight]).step()

        if not only or f"torch.optim.{name}.step" in only:
            yield Op(f"torch.optim.{name}.step", step, [Call([ramp()])], [Form((Parameter("params", "t"),))])

    def assign(tensor: torch.Tensor, gradient: torch.Tensor) -> None:
        tensor.detach().requires_grad_().grad = gradient

    if not only or "torch.Tensor.grad" in only:
        yield Op(
            "torch.Tensor.grad",
            assign,
            [Call([ramp(), ramp()])],
            [Form((Parameter("self", "t"), Parameter("grad", "t")))],
        )
