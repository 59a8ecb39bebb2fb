"""Numbers that do nothing in the dtype that they meet: an epsilon that is 0 there, a factor so close to 1 that it is 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, LOW_PRECISION
from dtlint.dtypes.rounding import rounded
from dtlint.infer.domain.values import Region, Tensor
from dtlint_rules._attained import dtypes_of, found, last_name_of, lost, one_number, only, operands

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.rule import Finding

__all__ = ["idle_factors", "lost_epsilons", "lost_row_bounds"]


def lost_epsilons(facts: ModuleFacts) -> Iterator[Finding]:
    """Numbers other than 0 that are added to what may be zero, or bound it, and are 0 in its dtype; a bound below 1 that is 1."""
    for seen in facts.operations(lambda one: _lost(one) is not None):
        text = _lost(seen.what)
        if text is not None:
            elsewhere = "float64" if "float32" in dtypes_of(seen.what.args[0]) else "float32"
            yield found(seen, text, f"Use an epsilon that the dtype has, such as 1e-5, or compute in {elsewhere}")


def _lost(operation: Operation) -> str | None:
    name, args, keywords = last_name_of(operation), operation.args, dict(operation.keywords)
    if name in ("add", "sub") and len(args) == 2 and not keywords:
        tensor, other = operands(args[0], args[1])
        number = one_number(other)
        dtype = lost(number, tensor)
        if dtype is None or number is None or not isinstance(tensor, Tensor) or not tensor.range.zero:
            return None
        return f"{number:g} is 0 in {dtype}: {'adding' if name == 'add' else 'subtracting'} it changes nothing"
    if name in ("clamp", "clamp_min", "clamp_max") and args:
        for place, value in _bounds(name, args, keywords):
            number = one_number(value)
            dtype = lost(number, args[0])
            if dtype is not None and number is not None and place == "min" and number > 0:
                return f"{number:g} is 0 in {dtype}: the bound keeps nothing away from 0"
            if place == "max" and number is not None and 0 < number < 1 and _is_one(number, args[0]):
                return f"{number!r} is 1 in {min(dtypes_of(args[0]))}: the bound keeps nothing away from 1"
    return None


_OF_ROWS = {"normalize": 1e-12, "cosine_similarity": 1e-8}
"""Functions that divide by norms, and the bound that they keep these above by default."""


def lost_row_bounds(facts: ModuleFacts) -> Iterator[Finding]:
    """Bounds of `F.normalize` and `F.cosine_similarity` that are 0 in half; the default ones where an assumption asks for half."""
    for seen in facts.operations(lambda one: last_name_of(one) in _OF_ROWS):
        operation = seen.what
        given = operation.args[3] if len(operation.args) > 3 else dict(operation.keywords).get("eps")
        is_cast = isinstance(operation.region, Region) and operation.region.enabled is not False
        if not operation.args or is_cast or (given is None and facts.assumption is None):
            continue
        number = _OF_ROWS[last_name_of(operation)] if given is None else one_number(given)
        tensor = operation.args[0]
        dtype = lost(number, tensor)
        if dtype is not None and number is not None and isinstance(tensor, Tensor) and tensor.range.zero:
            text = f"the eps of {last_name_of(operation)}, {number:g}, is 0 in {dtype}: a row of zeros becomes NaN"
            yield found(seen, text, f"Give an eps that {dtype} has, such as 1e-5, or compute in float32")


def _bounds(name: str, args: tuple[Value, ...], keywords: dict[str, Value]) -> Iterator[tuple[str, Value]]:
    places = {"clamp": ("min", "max"), "clamp_min": ("min",), "clamp_max": ("max",)}[name]
    yield from zip(places, args[1:], strict=False)
    yield from ((place, keywords[place]) for place in places if place in keywords)


def _is_one(number: float, tensor: Value) -> bool:
    dtypes = dtypes_of(tensor)
    return bool(dtypes) and all(DTYPES[dtype].eps > 0 and rounded(number, dtype) == 1 for dtype in dtypes)


def idle_factors(facts: ModuleFacts) -> Iterator[Finding]:
    """Products in place with a factor so close to 1 that they leave half as it is: the decay of a moving average."""
    for seen in facts.operations(lambda one: _idle(one) is not None):
        text = _idle(seen.what)
        if text is not None:
            yield found(seen, text, "Keep the average in float32")


def _idle(operation: Operation) -> str | None:
    name, args = last_name_of(operation), operation.args
    if not operation.op.endswith("_") or name not in ("mul", "lerp") or not args or not only(args[0], LOW_PRECISION):
        return None
    number = one_number(args[-1]) if len(args) == (2 if name == "mul" else 3) else None
    if number is None and name == "lerp":
        number = one_number(dict(operation.keywords).get("weight"))
    if number is None:
        return None
    step = abs(1 - number) if name == "mul" else abs(number)
    dtypes = dtypes_of(args[0])
    if not step or any(step >= DTYPES[dtype].eps / 4 for dtype in dtypes):
        return None
    dtype = min(dtypes)
    if name == "mul":
        return f"A factor of {number:.8g} changes nothing in {dtype}: the average never moves"
    return f"Steps of {number:g} are lost in {dtype}: the average stops moving"
