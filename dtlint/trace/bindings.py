"""The shorter way to the same operator: the functions by which Python code calls it.

They parse their arguments several times faster than an operator object does, which converts each to TorchScript's
values first. Only those stand here that dispatch to the very overload, with the very arguments.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dtlint.trace.site import PLAIN

__all__ = ["shortest"]

METHODS = frozenset(
    """
    abs add.Tensor add_.Tensor addmm amax amin argmax baddbmm bernoulli_.float bmm clamp clamp_min clone copy_ cos
    cumsum detach div.Tensor div_.Tensor eq.Scalar eq.Tensor exp expand gather ge.Scalar gt.Scalar le.Scalar log
    lt.Scalar masked_fill.Scalar max maximum mean mean.dim minimum mm mul.Tensor mul_.Tensor ne.Scalar neg permute
    pow.Tensor_Scalar reciprocal relu relu_ repeat rsqrt select.int sigmoid sin split.Tensor sqrt squeeze.dim
    sub.Tensor sum sum.dim_IntList t tanh topk transpose.int tril triu unbind.int unsqueeze view
    zero_
    """.split()  # noqa: SIM905 -- words read better than a list of literals
)
"""Operators that are methods of tensors."""

FUNCTIONS = frozenset(
    """
    _log_softmax _log_softmax_backward_data _softmax _softmax_backward_data cat constant_pad_nd convolution embedding
    native_batch_norm native_group_norm native_layer_norm ones_like stack where.self
    """.split()  # noqa: SIM905
)
"""Operators that are functions of torch."""

NETWORK = frozenset(
    "avg_pool2d elu gelu hardtanh leaky_relu max_pool2d_with_indices mish silu softplus".split()  # noqa: SIM905
)
"""Operators that are functions of torch.nn."""

OWNERS: dict[str, Any] = {
    **dict.fromkeys(METHODS, torch._C.TensorBase),
    **dict.fromkeys(FUNCTIONS, torch._C._VariableFunctions),
    **dict.fromkeys(NETWORK, torch._C._nn),
}


_depth = torch._C._len_torch_dispatch_stack
_to = torch._C.TensorBase.to


def _through_to(op: Any) -> Any:
    """`_to_copy`, which has no binding, by way of `to`, which calls it: where nobody is there to see that detour."""

    def to_copy(x: Tensor, *, dtype: torch.dtype | None = None, **others: Any) -> Any:
        if dtype is not None and not others and type(x) in PLAIN and not _depth():
            return _to(x, dtype, False, True)
        return op(x, dtype=dtype, **others)

    return to_copy


def shortest(func: torch._ops.OpOverload[Any, Any]) -> Any:
    """What calls `func` at the least cost. An operator that another torch has no binding for is called as it is."""
    namespace, _, name = func.name().partition("::")  # type: ignore[no-untyped-call]
    if func is torch.ops.aten._to_copy.default:
        return _through_to(func._op)
    owner = OWNERS.get(name) if namespace == "aten" else None
    return getattr(owner, name.partition(".")[0], None) or func._op
