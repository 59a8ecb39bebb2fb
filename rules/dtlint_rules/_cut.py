"""What a cast or a write into another dtype throws away: fractions, imaginary parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import COMPLEX, FLOATING, INTEGRAL
from dtlint.infer.domain.values import Tensor
from dtlint_rules._attained import cut, dtypes_of, found, infinite, last_name_of, only

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.rule import Finding

__all__ = ["cut_fractions", "cut_weights", "dropped_imaginary_parts"]

_CASTS = frozenset({"to", "type", "type_as", "half", "float", "double", "bfloat16"})
_INTEGER_CASTS = frozenset({"to", "type", "type_as", "int", "long", "short", "char", "byte"})
_REALS = FLOATING | INTEGRAL


def dropped_imaginary_parts(facts: ModuleFacts) -> Iterator[Finding]:
    """Casts of complex tensors to real dtypes."""
    for seen in facts.operations(_drops_imaginary_parts):
        before, after = (min(dtypes_of(value)) for value in (seen.what.args[0], seen.what.result))
        text = f"A cast from {before} to {after} drops the imaginary part"
        yield found(
            seen, text, "Take `.real`, `.abs()` or `torch.view_as_real`, or leave complex tensors out of the cast"
        )


def _drops_imaginary_parts(operation: Operation) -> bool:
    is_cast = operation.op.startswith("torch.Tensor.") and last_name_of(operation) in _CASTS
    return is_cast and only(operation.args[0], COMPLEX) and only(operation.result, _REALS)


def cut_weights(facts: ModuleFacts) -> Iterator[Finding]:
    """Casts of floating weights to integers: nearly all of them are between -1 and 1."""
    for seen in facts.operations(_cuts_weights):
        text = f"The cast to {min(dtypes_of(seen.what.result))} cuts weights to whole numbers: nearly all become 0"
        yield found(seen, text, "Scale, round and clamp first")


def _cuts_weights(operation: Operation) -> bool:
    is_cast = operation.op.startswith("torch.Tensor.") and last_name_of(operation) in _INTEGER_CASTS
    if not is_cast or not only(operation.result, INTEGRAL):
        return False
    weight = operation.args[0]
    return only(weight, FLOATING) and isinstance(weight, Tensor) and ("weight", True) in weight.extra


_FILLING = {"fill": 1, "masked_fill": 2, "index_fill": 3, "__setitem__": 2}
"""Methods that write a number into a tensor, and where the number stands."""


def cut_fractions(facts: ModuleFacts) -> Iterator[Finding]:
    """Numbers that are not whole, written into integer tensors; inf and NaN as well."""
    for seen in facts.operations(lambda one: _cut(one) is not None):
        yield found(seen, _cut(seen.what) or "", "Cast the tensor to a floating dtype first")


def _cut(operation: Operation) -> str | None:
    name, args = last_name_of(operation), operation.args
    value: Value | None = dict(operation.keywords).get("value")
    place = _FILLING.get(name)
    if place is None or operation.error is not None or not operation.op.startswith("torch.Tensor."):
        return None
    if len(args) > place:
        value = args[place]
    number = getattr(value, "value", None)
    if (dtype := cut(value, args[0])) is not None:
        what = f"the {number:g}" if isinstance(number, float) else "the fraction"
        return f"The tensor is {dtype}: {what} that is written into it is cut to a whole one"
    return infinite(value, args[0])
