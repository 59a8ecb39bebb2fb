"""The modules of torch.nn, in the configurations that torch's own tests build.

They stand in `torch.testing._internal.common_modules`, which needs the package expecttest.
"""

from __future__ import annotations

import copy
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.form import Form, Parameter
from dtlint.dtypes.learn.call import Call
from dtlint.dtypes.learn.op import Op
from dtlint.dtypes.learn.parameters import either, free
from dtlint.dtypes.learn.signatures import form_of_signature

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["module_ops"]

CONFIGURATIONS = 24
"""So many configurations of a module are taken."""

SWITCHES = ("return_indices",)
"""What a module's constructor is told that changes what forward returns; asked as keyword arguments of the call."""


def module_ops(only: Sequence[str] = ()) -> Iterator[list[Op]]:
    """For each module an op for each of its configurations."""
    from torch.testing._internal.common_modules import module_db  # takes seconds

    for info in sorted(module_db, key=lambda info: info.module_cls.__name__):
        name = f"torch.nn.{info.module_cls.__name__}"
        if (only and name not in only) or "Lazy" in name:
            continue
        torch.manual_seed(0)
        inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=True)
        ops = [_configured(name, info.module_cls, one) for one in islice(inputs, CONFIGURATIONS)]
        if ops:
            yield _with_one_form(ops)


def _configured(name: str, module_class: Any, inputs: Any) -> Op:
    """The op of one configuration. Its first operand is the dtype of the weights, None for a module without."""
    module = module_class(*inputs.constructor_input.args, **inputs.constructor_input.kwargs)
    given = inputs.forward_input
    has_weights = next(module.parameters(), None) is not None
    switches = {switch: getattr(module, switch) for switch in SWITCHES if hasattr(module, switch)}
    receiver = Parameter("self", "t") if has_weights else free("self")
    forward = form_of_signature(module.forward, [Call(list(given.args), given.kwargs)])
    options = (Parameter(switch, "", True, "0") for switch in switches)
    call = Call([torch.zeros(2) if has_weights else None, *given.args], {**given.kwargs, **switches})
    return Op(name, _Forward(module), [call], [Form((receiver, *forward.parameters, *options))])


def _with_one_form(ops: list[Op]) -> list[Op]:
    """Every configuration's parameters take what any configuration's take."""
    columns = zip(*(op.forms[0].parameters for op in ops), strict=True)
    form = Form(tuple(reduce(either, column) for column in columns))
    for op in ops:
        op.forms = [form]
    return ops


class _Forward:
    """A module as a function of its weights' dtype, given as a tensor, and its inputs."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._modules = {torch.float32: module}

    def __call__(self, weights: torch.Tensor | None, *args: Any, **kwargs: Any) -> Any:
        dtype = torch.float32 if weights is None else weights.dtype
        if dtype not in self._modules:
            if not dtype.is_floating_point:
                raise ValueError("torch has no modules with such weights")
            self._modules[dtype] = copy.deepcopy(self._modules[torch.float32]).to(dtype)
        kwargs = {name: value for name, value in kwargs.items() if name not in SWITCHES}
        return self._modules[dtype](*args, **kwargs)
