"""The calls that the operator database makes of an op: of its samples one of each kind, the plainest first."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.learn.call import Call
from dtlint.dtypes.learn.naming import torch_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["samples_of"]

SAMPLES = 160
"""Of so many samples of an op the first of each kind are taken."""

BASES = ("float32", "int64", "complex64", "bool", "float64", "float16", "bfloat16")
"""The dtypes that samples may be made for, the most usual first."""


def samples_of(info: Any) -> list[Call]:
    """The calls that an entry of the database makes of its op, one of each kind."""
    base = next((base for base in BASES if torch_dtype(base) in info.dtypes), None)
    if base is None:
        return []
    torch.manual_seed(0)
    random.seed(0)
    kinds: dict[object, Call] = {}
    try:
        for call in _calls(info, base):
            without_dtype = {name: value for name, value in call.kwargs.items() if "dtype" not in name}
            for kept in (Call(call.args, without_dtype, base), call):
                kinds.setdefault(_kind(kept), kept)
    except Exception as error:  # the samples of some entries cannot be made on every machine
        print(f"{info.name}: {type(error).__name__}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
    return sorted(kinds.values(), key=_plainness)


def _calls(info: Any, base: str) -> Iterator[Call]:
    for number, sample in enumerate(info.sample_inputs("cpu", torch_dtype(base), requires_grad=False)):
        call = Call([sample.input, *sample.args], dict(sample.kwargs), base)
        tensors = [call.tensor(at) for at in call.tensors()]
        if any(tensor.layout != torch.strided or not tensor.numel() for tensor in tensors):
            continue  # what has no elements reaches no kernel, and is refused less; sparse tensors are another matter
        yield call
        if number >= SAMPLES:
            break


def _kind(call: Call) -> object:
    """Where each argument stands, and what it is like: of the calls that are alike in this one is kept."""
    values = [*enumerate(call.args), *sorted(call.kwargs.items())]
    return tuple((place, _value_kind(value)) for place, value in values), _broadcasts(call)


def _broadcasts(call: Call) -> bool:
    """Is a tensor of another shape than the first? An in-place op takes such calls one way only."""
    return len({call.tensor(at).shape for at in call.tensors()}) > 1


def _value_kind(value: Any) -> object:
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.ndim > 0, value.numel() > 0
    if isinstance(value, (list, tuple)):
        return tuple(_value_kind(item) for item in value[:3])
    return str(value) if isinstance(value, (str, bool, type(None), torch.dtype)) else type(value).__name__


def _plainness(call: Call) -> tuple[bool, bool, int]:
    """Calls with dimensions and elements come first: they can be asked of every rank."""
    tensors = [call.tensor(at) for at in call.tensors()]
    return any(t.ndim == 0 for t in tensors), _broadcasts(call), len(call.args) + len(call.kwargs)
