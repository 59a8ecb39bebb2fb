"""The operator database that torch ships for its own tests: its entries, and the calls that it makes of each.

`torch.testing._internal.common_methods_invocations`, which needs the package expecttest.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.learn.call import Call
from dtlint.dtypes.learn.names import names_of, resolved
from dtlint.dtypes.learn.op import Op, forms_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["SAMPLES", "database", "database_ops", "names_of_database", "samples_of"]

SAMPLES = 160
"""Of so many samples of an op the first of each kind are taken."""


@cache
def database() -> tuple[Any, ...]:
    """The entries of the operator database."""
    from torch.testing._internal.common_methods_invocations import op_db

    return tuple(op_db)


def samples_of(info: Any) -> list[tuple[Call, str]]:
    """The calls that the database makes of an op, one of each kind, and the dtype they were made for."""
    for dtype in ("float32", "int64", "complex64", "bool", "float64", "float16", "bfloat16"):
        if getattr(torch, dtype) in info.dtypes:
            break
    else:
        return []
    torch.manual_seed(0)
    random.seed(0)
    kinds: dict[object, Call] = {}
    try:
        for number, sample in enumerate(info.sample_inputs("cpu", getattr(torch, dtype), requires_grad=False)):
            call = Call([sample.input, *sample.args], dict(sample.kwargs))
            tensors = [call.tensor(at) for at in call.tensors()]
            if any(tensor.layout != torch.strided or not tensor.numel() for tensor in tensors):
                continue  # what has no elements reaches no kernel, and is refused less; sparse tensors are another matter
            for kept in (
                Call(call.args, {name: value for name, value in call.kwargs.items() if "dtype" not in name}),
                call,
            ):
                kinds.setdefault(_kind(kept), kept)
            if number >= SAMPLES:
                break
    except Exception as error:
        print(f"{info.name}: {type(error).__name__}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
    calls = sorted(kinds.values(), key=_plainness)
    return [(call, dtype) for call in calls]


def _kind(call: Call) -> object:
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


def database_ops(only: Sequence[str] = ()) -> Iterator[tuple[str, list[tuple[Op, list[str]]]]]:
    """The entries of the operator database by name, with the public names that each is about."""
    entries: dict[str, list[Any]] = defaultdict(list)
    for info in database():
        entries[info.name].append(info)
    for name, infos in sorted(entries.items()):
        if only and name not in only:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = [sample for info in infos for sample in samples_of(info)]
        calls, bases = [call for call, _ in samples], [base for _, base in samples]
        publics = list(dict.fromkeys(public for info in infos for public in names_of(info)))
        yield (
            name,
            [
                (Op(public, resolved(public), calls, forms_of(public, resolved(public), calls)), bases)
                for public in publics
            ],
        )


def names_of_database() -> list[str]:
    """The names of the entries of the operator database."""
    return sorted({info.name for info in database()})
