"""A binding stands for an operator only if it dispatches to the very overload, with the very arguments."""

from __future__ import annotations

import warnings
from collections import defaultdict
from functools import cache
from itertools import islice
from typing import Any

import pytest
import torch
import torch.nn as nn
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dtlint.trace.bindings import OWNERS, shortest

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]

MADE_BY = """
    abs add addmm amax amin argmax baddbmm bernoulli bmm cat clamp clamp_min clone cos cumsum div eq exp expand gather
    ge gt le log lt masked_fill max max_pool2d mean minimum maximum mm mul ne neg permute pow reciprocal repeat rsqrt
    select sigmoid sin split sqrt squeeze stack sub sum t tanh topk transpose tril triu unbind unsqueeze view
    where zero_ native_layer_norm nn.functional.embedding nn.functional.gelu nn.functional.silu nn.functional.mish
    nn.functional.relu nn.functional.elu nn.functional.hardtanh nn.functional.leaky_relu nn.functional.softplus
    nn.functional.conv2d nn.functional.batch_norm nn.functional.group_norm nn.functional.layer_norm
    nn.functional.avg_pool2d nn.functional.max_pool2d nn.functional.dropout nn.functional.linear
    nn.functional.cross_entropy nn.functional.pad nn.functional.scaled_dot_product_attention softmax log_softmax
    nn.functional.softmin einsum matmul ones_like __radd__
    """.split()  # noqa: SIM905 -- words read better than a list of literals
"""Entries of torch's operator database that together call each operator of the table, forward or backward."""


class Recorder(TorchDispatchMode):
    """Keeps what is dispatched while it is on, as it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


@cache
def recorded() -> dict[str, list[Call]]:
    """Calls of each operator of the table, by its name."""
    from torch.testing._internal.common_methods_invocations import op_db

    calls: dict[str, list[Call]] = defaultdict(list)
    for op in op_db:
        if op.name not in MADE_BY or torch.float32 not in op.supported_dtypes("cpu"):
            continue
        for sample in islice(op.sample_inputs("cpu", torch.float32, requires_grad=True), 6):
            with warnings.catch_warnings(), Recorder() as recorder:
                warnings.simplefilter("ignore")
                results = tree_leaves(op(sample.input, *sample.args, **sample.kwargs))
                losses = [x.sum() for x in results if isinstance(x, Tensor) and x.requires_grad]
                if losses:
                    sum(losses).backward()

            for call in recorder.calls:
                calls[call[0].name().removeprefix("aten::")].append(call)
    x = torch.ones(3)
    with Recorder() as recorder:
        x.add_(x).mul_(x).div_(x).relu_().zero_().copy_(x)
        (x > 0, x >= 0, x < 0, x <= 0, x == 0, x != 0)
        x.clamp(0, 1).clamp_min(0)
        torch.dropout(x, 0.5, True)
    for call in recorder.calls:
        calls[call[0].name().removeprefix("aten::")].append(call)
    return calls


@pytest.mark.parametrize("name", sorted(OWNERS))
def test_the_binding_calls_the_very_overload_with_the_very_arguments(name: str) -> None:
    pytest.importorskip("expecttest", reason="torch's operator database needs it")
    calls = recorded()[name]
    assert calls
    for func, args, kwargs in calls[:20]:
        binding = shortest(func)
        assert binding is not func._op
        with torch.no_grad(), Recorder() as recorder:
            binding(*args, **kwargs)
        assert len(recorder.calls) == 1
        again, given, named = recorder.calls[0]
        assert again is func
        assert _same((given, named), (args, kwargs))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return one is other if isinstance(one, Tensor) else type(one) is type(other) and (one == other or one != one)


def test_an_operator_without_one_is_called_as_it_is() -> None:
    func = torch.ops.aten._unsafe_view.default
    assert shortest(func) is func._op


@pytest.mark.parametrize(
    "kwargs",
    [
        {"dtype": torch.float16},
        {"dtype": torch.float32},
        {"dtype": torch.float64, "memory_format": torch.contiguous_format},
        {"device": torch.device("meta")},
        {},
    ],
    ids=str,
)
def test_a_cast_by_way_of_another_operator_is_seen_as_what_it_is(kwargs: dict[str, Any]) -> None:
    func = torch.ops.aten._to_copy.default
    x = torch.randn(3, 2, 4, 5).to(memory_format=torch.channels_last)
    for source in (x, nn.Parameter(x), x.mT, x[:, :, ::2], x[..., :0], x.expand(2, *x.shape), torch.tensor(1e6)):
        with torch.no_grad():
            out, expected = shortest(func)(source, **kwargs), func(source, **kwargs)
        assert (out.dtype, out.device, out.stride()) == (expected.dtype, expected.device, expected.stride())
        assert out.is_meta or torch.equal(out, expected)
        assert out is not source
        with torch.no_grad(), Recorder() as recorder:
            shortest(func)(source, **kwargs)
        assert [call[0] for call in recorder.calls] == [func]
        assert recorder.calls[0][2].items() <= kwargs.items()
