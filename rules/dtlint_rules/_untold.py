"""Layers, parameters and buffers that are told no dtype beside others of the same class that are.

Who hands `dtype=` on to one layer of a module means it for all of them: a layer without stays float32, and raises where it
is given what the others compute.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint_rules._assignments import assignments
from dtlint_rules._calls import called_in
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LAYERS", "untold_layers"]

LAYERS = frozenset(
    {"Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Bilinear"}
)
_PACKAGES = ("nn", "torch.nn")


def untold_layers(scope: ast.FunctionDef) -> Iterator[tuple[ast.Call, ast.Call]]:
    """The layers that a function makes and tells no dtype, each with one that it tells the dtype that it is given."""
    if LAYERS.isdisjoint(called_in(scope).names):
        return
    calls = [call for call in facts(scope).calls if last_name(call) in LAYERS]
    told = [call for call in calls if _told(call, scope)]
    for call in calls if told else ():
        if call in told or (path_of(call.func) or "").rpartition(".")[0] not in _PACKAGES:
            continue
        if all(keyword.arg not in ("dtype", None) for keyword in call.keywords):
            yield call, told[0]


def _told(call: ast.Call, scope: ast.AST) -> bool:
    """Is a layer told a dtype that is not written out: `dtype=dtype`, `**factory_kwargs`?"""
    for keyword in call.keywords:
        if keyword.arg == "dtype":
            return not (path_of(keyword.value) or "torch.").startswith("torch.")
        if keyword.arg is None and isinstance(keyword.value, ast.Name):
            made = [value for _, value in assignments(scope).get(keyword.value.id, ())]
            if any(value is not None and _has_dtype(value) for value in made):
                return True
    return False


def _has_dtype(value: ast.expr) -> bool:
    """Is it a dictionary with a dtype: `{"device": device, "dtype": dtype}`, `dict(dtype=dtype)`?"""
    if isinstance(value, ast.Dict):
        return any(isinstance(key, ast.Constant) and key.value == "dtype" for key in value.keys)
    return isinstance(value, ast.Call) and any(keyword.arg == "dtype" for keyword in value.keywords)
