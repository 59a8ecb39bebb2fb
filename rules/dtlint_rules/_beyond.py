"""Numbers that are beyond the largest of the dtype that they are put into, by the facts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.dtypes.dtype import DTYPES, INTEGRAL
from dtlint.infer.domain.interval import LANDMARKS
from dtlint.infer.domain.values import Const, Tensor, Unknown
from dtlint_rules._attained import beyond, dtypes_of, found, largest, last_name_of, one_number, only, operands
from dtlint_rules._autocast import casting_region

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.rule import Finding

__all__ = ["MASKING", "PUTTING", "made_beyond", "put_beyond"]

MASKING = frozenset({"masked_fill", "where", "__setitem__"})
"""Ops that put a number where a mask says so."""
PUTTING = frozenset(
    {
        "full",
        "full_like",
        "new_full",
        "fill",
        "index_fill",
        "add",
        "sub",
        "clamp",
        "clamp_min",
        "clamp_max",
        "mul",
        "div",
        "place",
    }
)
_RAISING = frozenset(
    {
        "masked_fill",
        "full",
        "full_like",
        "new_full",
        "fill",
        "index_fill",
    }
)
"""Ops that raise for a finite number which the dtype of the tensor does not have."""
_ON_CPU = "the CPU refuses it, and CUDA, which compares in float32, bounds nothing"
"""What `clamp` does: `launch_clamp_scalar` takes the bounds as `opmath_t`, while the CPU casts them."""


def put_beyond(facts: ModuleFacts, ops: frozenset[str]) -> Iterator[Finding]:
    """The operations of some names with a number that the dtype of their tensor does not have."""
    for seen in facts.operations(lambda one: _name(one) in ops and _beyond(one) is not None):
        text = _beyond(seen.what)
        if text is not None:
            help = "Ask `torch.finfo(x.dtype)` for a number that the dtype has, or compute in float32"
            made = found(seen, text, help, casting_region(facts, seen, "float16"))
            yield replace(made, severity=Severity.INFO) if _is_for_the_cpu(seen.what) else made


def _is_for_the_cpu(operation: Operation) -> bool:
    """Is it a bound that the CPU alone refuses, of a tensor that need not lie there?"""
    return last_name_of(operation).startswith("clamp") and getattr(operation.args[0], "device", None) != "cpu"


def _name(operation: Operation) -> str:
    """What an operation goes by here: what is written at a place, `x[0] = 70000`, is no matter of masks."""
    name = last_name_of(operation)
    index = operation.args[1] if name == "__setitem__" else None
    return "place" if index is not None and not isinstance(index, (Tensor, Unknown)) else name


def _beyond(operation: Operation) -> str | None:
    name = last_name_of(operation)
    number, tensor = _put(operation, name)
    if name in ("mul", "div") and number is not None:
        return _scaled(number if name == "mul" else (1 / number if number else 0.0), tensor, operation, name)
    dtype = beyond(number, tensor)
    if dtype is None or number is None:
        return None
    outcome = "this raises" if name in _RAISING else f"it becomes {'-' * (number < 0)}inf"
    if name.startswith("clamp"):
        if getattr(tensor, "device", None) == "cuda":
            return None
        outcome = _ON_CPU if _is_for_the_cpu(operation) else "this raises"
    return f"{number:g} is beyond {dtype}, which ends at {largest(dtype)}: {outcome}"


def _put(operation: Operation, name: str) -> tuple[float | None, Value | None]:
    """The number that is put somewhere, and the tensor that tells the dtype."""
    args, keywords = list(operation.args), dict(operation.keywords)
    if name == "where" and len(args) == 3:
        one, other = args[1], args[2]
        number = one_number(other) if isinstance(one, Tensor) and one.rank != 0 else one_number(one)
        return number, operation.result
    if name == "__setitem__":
        return one_number(args[2]), args[0]
    if name in ("full", "full_like", "new_full"):
        return one_number(keywords.get("fill_value", args[-1] if args else None)), operation.result
    if name.startswith("clamp"):
        bounds = [*args[1:], *(keywords[key] for key in ("min", "max") if key in keywords)]
        numbers = [one_number(bound) for bound in bounds]
        return next((one for one in numbers if beyond(one, args[0])), None), args[0] if args else None
    if name in ("masked_fill", "index_fill", "fill"):
        return one_number(keywords.get("value", args[-1] if args else None)), args[0] if args else None
    if len(args) != 2:
        return None, None
    tensor, other = operands(args[0], args[1])
    return one_number(other), tensor


def _scaled(factor: float, tensor: Value | None, operation: Operation, name: str) -> str | None:
    """A factor that makes even small numbers too large: of numbers that may be that large."""
    if (
        not isinstance(tensor, Tensor)
        or not only(tensor, frozenset({"float16"}))
        or not only(operation.result, frozenset({"float16"}))
    ):
        return None
    top = DTYPES["float16"].max
    if abs(factor) <= top or tensor.range.magnitude * abs(factor) <= top:
        return None
    given = f"{factor:g}" if name == "mul" else f"1/{1 / factor:g}"
    return f"A factor of {given} is beyond float16, which ends at 65504: all above {top / abs(factor):.2g} becomes inf"


_MAKERS = frozenset(
    {"tensor", "as_tensor", "new_tensor", "arange", "linspace", "full", "full_like", "new_full", "fill"}
)
_CASTS = frozenset({"to", "half", "type", "type_as"})
_LIMITS = INTEGRAL - {"bool"}


def made_beyond(facts: ModuleFacts) -> Iterator[Finding]:
    """Tensors made of numbers that their dtype does not have, and casts of such: `torch.arange(300, dtype=torch.uint8)`."""
    for told in (_made, _written):
        for seen in facts.operations(lambda one, told=told: told(one) is not None):  # type: ignore[misc]
            text = told(seen.what)
            if text is not None:
                yield found(seen, text, "Use a wider dtype, or a number that fits")


def _made(operation: Operation) -> str | None:
    name, made = last_name_of(operation), operation.result
    if not isinstance(made, Tensor) or len(made.dtypes or ()) != 1 or not operation.args:
        return None
    values = made.range
    if name in _CASTS:
        given = operation.args[0]
        if not isinstance(given, Tensor) or given.range.low != given.range.high or only(made, _LIMITS):
            return None
        values = given.range
    elif name not in _MAKERS or (name in _FILLING and not only(made, _LIMITS)):
        return None
    numbers = (one.value for one in operation.args if isinstance(one, Const) and type(one.value) is int)
    exact = {float(one): one for one in numbers if abs(one) < _LARGEST}
    for number in (exact.get(values.low, values.low), exact.get(values.high, values.high)):
        if values.low != values.high and abs(number) in LANDMARKS:
            continue  # where a sum in a loop was widened to, not a number that it reaches
        if math.isfinite(number) and _is_beyond(number, made):
            (dtype,) = dtypes_of(made)
            whole = dtype in _LIMITS
            top = DTYPES[dtype].max if number > 0 else DTYPES[dtype].min
            outcome = "it wraps around, or raises" if whole else f"it becomes {'-' * (number < 0)}inf"
            return f"{number:.15g} is beyond {dtype}, which ends at {top if whole else largest(dtype)}: {outcome}"
    return None


def _written(operation: Operation) -> str | None:
    """What becomes of a number that is written into integers which do not have it: `labels[mask] = 300`."""
    name = last_name_of(operation)
    number, tensor = _put(operation, name) if name in _WRITING else (None, None)
    if number is None or not isinstance(tensor, Tensor) or not only(tensor, _LIMITS) or not math.isfinite(number):
        return None
    if len(dtypes_of(tensor)) != 1 or not _is_beyond(number, tensor):
        return None
    (dtype,) = dtypes_of(tensor)
    least, most = int(DTYPES[dtype].min), int(DTYPES[dtype].max)
    wraps = least == 0 and -most <= number < 0
    outcome = f"it becomes {int(number) % (most + 1)}" if wraps else "this raises"
    return f"{number:.15g} is beyond {dtype}, which goes from {least} to {most}: {outcome}"


_WRITING = frozenset({"masked_fill", "index_fill", "__setitem__"})

_LARGEST = 2**1000
"""What floats can hold, whatever is near."""
_FILLING = frozenset({"full", "full_like", "new_full", "fill"})
"""What puts a number into floating tensors is told of by `put_beyond`."""


def _is_beyond(number: float, made: Tensor) -> bool:
    if only(made, _LIMITS):  # a range is of floats: the largest int64 is 2 ** 63 there
        kind = int if isinstance(number, int) else float
        limits = [(kind(DTYPES[dtype].min), kind(DTYPES[dtype].max)) for dtype in dtypes_of(made)]
        return any(not least <= math.trunc(number) <= most for least, most in limits)
    return beyond(number, made) is not None
