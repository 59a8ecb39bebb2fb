"""The modules of torch.nn, in the configurations that torch's own tests build.

`torch.testing._internal.common_modules`, which needs the package expecttest.
"""

from __future__ import annotations

import copy
import functools
import itertools
from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.form import FREE, Form, Parameter
from dtlint.dtypes.learn.call import Call
from dtlint.dtypes.learn.op import Op
from dtlint.dtypes.learn.parameters import either
from dtlint.dtypes.learn.signatures import forms_of_signature

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["SWITCHES", "module_ops"]


def module_ops(only: Sequence[str] = ()) -> Iterator[tuple[str, list[Op]]]:
    """The modules of torch.nn, an op for each configuration that torch's own tests use. The first operand is the dtype of
    the weights, None for a module without."""
    from torch.testing._internal.common_modules import module_db

    for info in sorted(module_db, key=lambda info: info.module_cls.__name__):
        name = f"torch.nn.{info.module_cls.__name__}"
        if (only and name not in only) or "Lazy" in name:
            continue
        torch.manual_seed(0)
        inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=True)
        ops = []
        for one in itertools.islice(inputs, 24):
            made = one.constructor_input
            module = info.module_cls(*made.args, **made.kwargs)
            weights = next((parameter for parameter in module.parameters()), None)
            first = None if weights is None else torch.zeros(2)
            switches = {name: getattr(module, name) for name in SWITCHES if hasattr(module, name)}
            call = Call([first, *one.forward_input.args], {**one.forward_input.kwargs, **switches})
            receiver = (
                Parameter("self", "t") if weights is not None else Parameter("self", "", False, None, frozenset({FREE}))
            )
            form = forms_of_signature(module.forward, [Call(call.args[1:], one.forward_input.kwargs)])[0]
            options = [Parameter(switch, "", True, "0") for switch in switches]
            ops.append(Op(name, _Forward(module), [call], [Form((receiver, *form.parameters, *options))]))
        yield name, _with_one_form(ops)


def _with_one_form(ops: list[Op]) -> list[Op]:
    """Every configuration's parameters take what any configuration's take."""
    forms = [op.forms[0] for op in ops]
    if forms:
        merged = [functools.reduce(either, column) for column in zip(*(form.parameters for form in forms), strict=True)]
        for op in ops:
            op.forms = [Form(tuple(merged))]
    return ops


SWITCHES = ("return_indices",)
"""What a module's constructor is told that changes what forward returns; asked as keyword arguments of the call."""


class _Forward:
    """A module as a function of its weights' dtype, given as a tensor, and its inputs."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._modules = {"float32": module}

    def __call__(self, weights: torch.Tensor | None, *args: Any, **kwargs: Any) -> Any:
        dtype = "float32" if weights is None else str(weights.dtype)[6:]
        if dtype not in self._modules:
            if not weights.dtype.is_floating_point:  # type: ignore[union-attr]
                raise ValueError("torch has no modules with such weights")
            self._modules[dtype] = copy.deepcopy(self._modules["float32"]).to(weights.dtype)  # type: ignore[union-attr]
        kwargs = {name: value for name, value in kwargs.items() if name not in SWITCHES}
        return self._modules[dtype](*args, **kwargs)
