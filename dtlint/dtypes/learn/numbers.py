"""A call with Python numbers of each kind where its form takes them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.dtypes.form import Form
    from dtlint.dtypes.learn.call import Call

__all__ = ["NUMBERS", "with_numbers"]

NUMBERS: dict[str, Callable[[Any], Any]] = {
    "bool": lambda value: True,
    "int64": lambda value: int(_real(value)) or 1,
    "float": lambda value: float(_real(value)) or 1.0,
    "complex": lambda value: complex(_real(value), 1),
}


def _real(value: Any) -> float:
    real = getattr(value, "real", 2)
    return real if isinstance(real, (int, float)) and math.isfinite(real) else 2


def with_numbers(form: Form, call: Call, full: bool) -> Iterator[Call]:
    """The call with a number of each kind wherever its form takes one."""
    for index, parameter in enumerate(form.parameters):
        if "n" not in parameter.kinds:
            continue
        place: object = index if index < len(call.args) else parameter.name
        given = place != parameter.name or parameter.name in call.kwargs
        if not given and (not full or parameter.default == "N"):
            continue
        value = call.get(place) if given else None
        for make in NUMBERS.values():
            yield call.changed({place: make(None if isinstance(value, torch.Tensor) else value)})
