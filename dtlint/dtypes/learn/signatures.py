"""The form of a function that is written in Python, from its signature and the calls that are made of it."""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import TYPE_CHECKING, Any, cast

import torch

from dtlint.dtypes.form import Form, Parameter, token
from dtlint.dtypes.learn.parameters import DTYPE_PARAMETERS, seen_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from dtlint.dtypes.learn.call import Call

__all__ = ["form_of_signature"]


def form_of_signature(function: Callable[..., Any], calls: Iterable[Call]) -> Form:
    """The form of a function written in Python, what its parameters take going by the calls made of it."""
    signature = inspect.signature(_dispatched(function))
    used = _kinds_used(signature, calls)
    parameters = signature.parameters.values()
    return Form(tuple(_parameter(one, used) for one in parameters if one.kind is not one.VAR_KEYWORD))


def _dispatched(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind `torch._jit_internal.boolean_dispatch`, which hides its signature."""
    for name, cell in zip(getattr(function.__code__, "co_freevars", ()), function.__closure__ or (), strict=False):
        if name == "if_true" and callable(cell.cell_contents):
            return cast("Callable[..., Any]", cell.cell_contents)
    return cast("Callable[..., Any]", inspect.unwrap(function))


def _kinds_used(signature: inspect.Signature, calls: Iterable[Call]) -> Mapping[str, set[str]]:
    """The kinds of operand that each parameter is given in the calls."""
    used: dict[str, set[str]] = defaultdict(set)
    for call in calls:
        try:
            bound = signature.bind(*call.args, **call.kwargs)
        except TypeError:
            continue
        for name, value in bound.arguments.items():
            used[name] |= _kinds_of(value)
    return used


def _kinds_of(value: Any) -> set[str]:
    if isinstance(value, torch.Tensor):
        return {"t"}
    if isinstance(value, torch.dtype):
        return {"d"}
    if isinstance(value, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in value):
        return {"t", "T"} if all(isinstance(item, torch.Tensor) for item in value) else {"?"}
    return set()


def _parameter(parameter: inspect.Parameter, used: Mapping[str, set[str]]) -> Parameter:
    name = parameter.name
    kinds = "d" if name in DTYPE_PARAMETERS else "".join(kind for kind in "tTd" if kind in used.get(name, ()))
    default = None if parameter.default is parameter.empty else token(parameter.default)
    if parameter.kind is parameter.VAR_POSITIONAL:
        kinds, default = ("Tv" if kinds else "v"), None
    return Parameter(name, kinds, parameter.kind is parameter.KEYWORD_ONLY, default, seen_of(name))
