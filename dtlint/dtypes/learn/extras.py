"""Functions and methods that the operator database has no samples of: a call of each, written here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from dtlint.dtypes.form import FREE, Form, Parameter
from dtlint.dtypes.learn.call import Call
from dtlint.dtypes.learn.names import resolved
from dtlint.dtypes.learn.op import Op, forms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["EXTRA", "FORMS", "extra_ops", "ramp"]


def ramp(*shape: int) -> torch.Tensor:
    """Twelve numbers between 0 and 1, in float32."""
    return torch.linspace(0.25, 0.75, 12).reshape(shape or (3, 4))


EXTRA: dict[str, tuple[Callable[[], Call], ...]] = {
    **{
        f"torch.{name}": (lambda: Call([4]),)
        for name in (
            "rand",
            "randperm",
            "bartlett_window",
            "blackman_window",
            "hamming_window",
            "hann_window",
            "kaiser_window",
        )
    },
    **{
        f"torch.{name}": (lambda: Call([ramp()]),)
        for name in (
            "relu",
            "relu_",
            "sigmoid_",
            "selu",
            "clip",
            "poisson",
            "tanh_",
            "exp_",
            "erf",
            "erfc",
            "detach",
            "is_nonzero",
            "numel",
        )
    },
    **{
        f"torch.nn.functional.{name}": (lambda: Call([ramp()]),)
        for name in (
            "tanh",
            "sigmoid",
            "relu_",
            "elu_",
            "selu_",
            "leaky_relu_",
            "hardtanh_",
            "gumbel_softmax",
            "dropout1d",
            "logsigmoid",
        )
    },
    **{
        f"torch.Tensor.{name}": (lambda: Call([ramp()]),)
        for name in (
            *(
                "cpu",
                "detach",
                "detach_",
                "requires_grad_",
                "relu",
                "relu_",
                "uniform_",
                "normal_",
                "random_",
                "exponential_",
            ),
            *(
                "cauchy_",
                "log_normal_",
                "geometric_",
                "bernoulli_",
                "data_ptr",
                "dim",
                "numel",
                "size",
                "tolist",
                "item",
                "nelement",
            ),
            *(
                "element_size",
                "stride",
                "is_contiguous",
                "is_floating_point",
                "is_complex",
                "conj",
                "share_memory_",
                "new_empty",
                "t_",
            ),
            *(
                "squeeze_",
                "zero_",
                "softmax",
                "log_softmax",
                "sigmoid_",
                "tanh_",
                "detach",
                "ravel",
                "clone",
                "contiguous",
            ),
        )
    },
    "torch.where": (lambda: Call([ramp() > 0.5, ramp(), ramp()]), lambda: Call([ramp() > 0.5])),
    "torch.Tensor.type_as": (lambda: Call([ramp(), ramp()]),),
    "torch.Tensor.copy_": (lambda: Call([ramp(), ramp()]),),
    "torch.Tensor.new_tensor": (lambda: Call([ramp(), 2]), lambda: Call([ramp(), 2.5])),
    "torch.Tensor.masked_fill_": (lambda: Call([ramp(), ramp() > 0.5, 2.0]),),
    "torch.tensor": tuple(lambda value=value: Call([value]) for value in (True, 2, 2.5, 2j)),  # type: ignore[misc]
    "torch.as_tensor": tuple(lambda value=value: Call([value]) for value in (True, 2, 2.5, 2j, ramp())),  # type: ignore[misc]
    "torch.rand": (lambda: Call([3, 4]), lambda: Call([(3, 4)])),
    "torch.empty_like": (lambda: Call([ramp()]),),
    "torch.bernoulli": (lambda: Call([ramp()]), lambda: Call([ramp(), 0.5])),
    "torch.chain_matmul": (lambda: Call([ramp(), ramp(4, 3)]),),
    "torch.embedding": (lambda: Call([ramp(), torch.tensor([0, 1])]),),
    "torch.rms_norm": (lambda: Call([ramp(), (4,)]), lambda: Call([ramp(), (4,), ramp(12)[:4]])),
    "torch.nn.functional.conv_tbc": (lambda: Call([ramp(3, 2, 2), ramp(3, 2, 2), ramp(12)[:2]]),),
    "torch.nn.functional.lp_pool1d": (lambda: Call([ramp(1, 3, 4), 2.0, 2]),),
    "torch.nn.functional.lp_pool2d": (lambda: Call([ramp(1, 3, 4), 2.0, 2]),),
    "torch.nn.functional.upsample": (lambda: Call([ramp(1, 3, 4)], {"scale_factor": 2}),),
    **{
        f"torch.nn.init.{name}": (lambda: Call([ramp()]),)
        for name in (
            *("uniform_", "normal_", "ones_", "zeros_", "eye_", "trunc_normal_", "xavier_uniform_", "xavier_normal_"),
            *("kaiming_uniform_", "kaiming_normal_", "orthogonal_"),
        )
    },
    "torch.nn.init.constant_": (lambda: Call([ramp(), 0.5]),),
}
"""Calls of what the operator database has no samples of, in float32."""

_TENSOR_FORM = Form(
    (
        Parameter("data", "tn"),
        Parameter("dtype", "d", True, "N"),
        *(Parameter(name, "", True, "N", frozenset({FREE})) for name in ("device", "requires_grad", "pin_memory")),
    )
)

FORMS = {
    "torch.tensor": [_TENSOR_FORM],
    "torch.as_tensor": [
        Form(
            (
                _TENSOR_FORM.parameters[0],
                replace(_TENSOR_FORM.parameters[1], keyword=False),
                *_TENSOR_FORM.parameters[2:3],
            )
        )
    ],
    "torch.Tensor.new_tensor": [Form((Parameter("self", "t"), *_TENSOR_FORM.parameters))],
    "torch.Tensor.type_as": [Form((Parameter("self", "t"), Parameter("other", "t")))],
    "torch.Tensor.copy_": [
        Form(
            (
                Parameter("self", "t"),
                Parameter("src", "t"),
                Parameter("non_blocking", "", False, "0", frozenset({FREE})),
            )
        )
    ],
}
"""The forms of built-in functions that have no schema of their own."""


def extra_ops(only: Sequence[str] = ()) -> Iterator[tuple[Op, list[str]]]:
    """The ops of `EXTRA`."""
    for name, makers in sorted(EXTRA.items()):
        function = resolved(name)
        if callable(function) and (not only or name in only):
            calls = [maker() for maker in makers]
            yield (
                Op(name, function, calls, FORMS.get(name) or forms_of(name, function, calls)),
                ["float32"] * len(calls),
            )
