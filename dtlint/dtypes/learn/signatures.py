"""The form of a function that is written in Python, from its signature and the calls that are made of it."""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import TYPE_CHECKING, Any, cast

import torch

from dtlint.dtypes.form import FREE, Form, Parameter, token
from dtlint.dtypes.learn.parameters import FREE_PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.dtypes.learn.call import Call

__all__ = ["forms_of_signature"]


def forms_of_signature(function: Callable[..., Any], calls: Sequence[Call]) -> list[Form]:
    """The form of a function written in Python, what its parameters take going by the calls made of it."""
    signature = inspect.signature(_dispatched(function))
    used: dict[str, set[str]] = defaultdict(set)
    for call in calls:
        try:
            bound = signature.bind(*call.args, **call.kwargs)
        except TypeError:
            continue
        for name, value in bound.arguments.items():
            used[name] |= _kinds_of(value)
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        kinds = "".join(kind for kind in "tTd" if kind in used[parameter.name])
        if parameter.name in ("dtype", "out_dtype"):
            kinds = "d"
        default = None if parameter.default is parameter.empty else token(parameter.default)
        if parameter.kind is parameter.VAR_POSITIONAL:
            kinds, default = ("Tv" if kinds else "v"), None
        seen = frozenset({FREE}) if parameter.name in FREE_PARAMETERS else frozenset()
        parameters.append(Parameter(parameter.name, kinds, parameter.kind is parameter.KEYWORD_ONLY, default, seen))
    return [Form(tuple(parameters))]


def _kinds_of(value: Any) -> set[str]:
    if isinstance(value, torch.Tensor):
        return {"t"}
    if isinstance(value, torch.dtype):
        return {"d"}
    if isinstance(value, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in value):
        return {"t", "T"} if all(isinstance(item, torch.Tensor) for item in value) else {"?"}
    return set()


def _dispatched(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind `torch._jit_internal.boolean_dispatch`, which hides its signature."""
    for name, cell in zip(getattr(function.__code__, "co_freevars", ()), function.__closure__ or (), strict=False):
        if name == "if_true" and callable(cell.cell_contents):
            return cast("Callable[..., Any]", cell.cell_contents)
    return cast("Callable[..., Any]", inspect.unwrap(function))
