"""Sums and differences of uint8 tensors that are used as if they could not wrap around."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Tensor
from dtlint_rules._attained import found, last_name_of, one_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.rule import Finding

__all__ = ["wrapped"]

_SIZES = frozenset({"abs", "absolute", "pow", "square"})
"""What asks how large a difference is."""
_PARTS = frozenset({"div", "floor_divide", "bitwise_right_shift", "true_divide"})
"""What takes the mean of a sum."""


def wrapped(facts: ModuleFacts) -> Iterator[Finding]:
    """The sizes of differences and the means of sums of uint8."""
    for seen in facts.operations(lambda one: _uses_wrapped(one) is not None):
        text = _uses_wrapped(seen.what)
        if text is not None:
            yield found(seen, text, "Cast to int16 or float first")


def _uses_wrapped(operation: Operation) -> str | None:
    first = operation.args[0] if operation.args else None
    if not isinstance(first, Tensor):
        return None
    name = last_name_of(operation)
    if ("wraps", "sub") in first.extra and name in _SIZES:
        return "A difference of uint8 tensors wraps around below 0: 1 - 2 is 255"
    if ("wraps", "add") in first.extra and name in _PARTS and (one_number(operation.args[-1]) or 0) >= 1:
        return "A sum of uint8 tensors wraps around beyond 255: 200 + 100 is 44"
    return None
