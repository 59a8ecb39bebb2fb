"""A call with Python numbers of each kind where its form takes them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.dtypes.form import Form
    from dtlint.dtypes.learn.call import Call

__all__ = ["with_numbers"]

USUAL_NUMBER = 2
"""What stands where no number is given."""

_KINDS: tuple[Callable[[float], Any], ...] = (
    lambda value: True,
    lambda value: int(value) or 1,
    lambda value: float(value) or 1.0,
    lambda value: complex(value, 1),
)
"""A bool, an int, a float and a complex of about a value; none is zero, which may not be divided by."""


def with_numbers(form: Form, call: Call, full: bool) -> Iterator[Call]:
    """The call with a number of each kind wherever its form takes one; where it gives none, only if all is asked."""
    for index, parameter in enumerate(form.parameters):
        if "n" not in parameter.kinds:
            continue
        place: object = index if index < len(call.args) else parameter.name
        given = place != parameter.name or parameter.name in call.kwargs
        if not given and (not full or parameter.default == "N"):
            continue
        value = _real(call.get(place)) if given else USUAL_NUMBER
        for number in _KINDS:
            yield call.changed({place: number(value)})


def _real(value: Any) -> float:
    """The real part of a finite number; a tensor's, or another argument's, is the usual number."""
    real = USUAL_NUMBER if isinstance(value, torch.Tensor) else getattr(value, "real", USUAL_NUMBER)
    return real if isinstance(real, (int, float)) and math.isfinite(real) else USUAL_NUMBER
