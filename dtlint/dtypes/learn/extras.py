"""Functions and methods that the operator database has no samples of: a call of each, written here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from dtlint.dtypes.form import Form, Parameter
from dtlint.dtypes.learn.call import Call
from dtlint.dtypes.learn.names import resolved
from dtlint.dtypes.learn.op import Op, op_of
from dtlint.dtypes.learn.parameters import free
from dtlint.dtypes.learn.ramp import ramp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["FURTHER", "extra_ops"]

SIZED = ("randperm", "bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window")
"""The functions of torch that are called with a size."""

OF_ONE_TENSOR = {
    "torch": """
        relu relu_ sigmoid_ selu clip poisson tanh_ exp_ erf erfc detach is_nonzero numel
    """,
    "torch.nn.functional": """
        tanh sigmoid relu_ elu_ selu_ leaky_relu_ hardtanh_ gumbel_softmax dropout1d logsigmoid
    """,
    "torch.Tensor": """
        cpu detach detach_ requires_grad_ relu relu_ uniform_ normal_ random_ exponential_ cauchy_ log_normal_
        geometric_ bernoulli_ data_ptr dim numel size tolist item nelement element_size stride is_contiguous
        is_floating_point is_complex conj share_memory_ new_empty t_ squeeze_ zero_ softmax log_softmax sigmoid_
        tanh_ ravel clone contiguous
    """,
    "torch.nn.init": """
        uniform_ normal_ ones_ zeros_ eye_ trunc_normal_ xavier_uniform_ xavier_normal_ kaiming_uniform_
        kaiming_normal_ orthogonal_
    """,
}
"""What is called with one tensor, by namespace."""

EXTRA: dict[str, tuple[Callable[[], Call], ...]] = {
    **{f"torch.{name}": (lambda: Call([4]),) for name in SIZED},
    **{
        f"{namespace}.{name}": (lambda: Call([ramp()]),)
        for namespace, names in OF_ONE_TENSOR.items()
        for name in names.split()
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
    "torch.nn.init.constant_": (lambda: Call([ramp(), 0.5]),),
}
"""The calls of each, in float32."""

FURTHER: dict[str, tuple[Callable[[], Call], ...]] = {
    "clamp": (lambda: Call([ramp()], {"min": 0.5}), lambda: Call([ramp(), 0.2, 0.5])),
    "linalg.norm": (
        lambda: Call([ramp()], {"dim": -1}),
        lambda: Call([ramp(), 2.0], {"dim": -1, "keepdim": True}),
        lambda: Call([ramp()], {"dim": (0, 1)}),
        lambda: Call([ramp(), "fro"], {"dim": (0, 1)}),
    ),
    "nan_to_num": (lambda: Call([ramp()], {"nan": 0.0, "posinf": 1.0, "neginf": -1.0}),),
}
"""More calls of entries of the operator database, with arguments that its samples do not have."""

_DATA = Parameter("data", "tn")
_DTYPE = Parameter("dtype", "d", True, "N")
_TENSOR, _OTHER = Parameter("self", "t"), Parameter("other", "t")
_DEVICE, _REQUIRES_GRAD, _PIN_MEMORY = (
    free(name, keyword=True, default="N") for name in ("device", "requires_grad", "pin_memory")
)

FORMS = {
    "torch.tensor": Form((_DATA, _DTYPE, _DEVICE, _REQUIRES_GRAD, _PIN_MEMORY)),
    "torch.as_tensor": Form((_DATA, replace(_DTYPE, keyword=False), _DEVICE)),
    "torch.Tensor.new_tensor": Form((_TENSOR, _DATA, _DTYPE, _DEVICE, _REQUIRES_GRAD, _PIN_MEMORY)),
    "torch.Tensor.type_as": Form((_TENSOR, _OTHER)),
    "torch.Tensor.copy_": Form((_TENSOR, replace(_OTHER, name="src"), free("non_blocking", default="0"))),
}
"""The forms of built-in functions that have no schema of their own."""


def extra_ops(only: Sequence[str] = ()) -> Iterator[Op]:
    """The ops of `EXTRA` that the installed torch has."""
    for name, makers in sorted(EXTRA.items()):
        function = resolved(name)
        if callable(function) and (not only or name in only):
            calls = [maker() for maker in makers]
            yield Op(name, function, calls, [FORMS[name]]) if name in FORMS else op_of(name, calls)
