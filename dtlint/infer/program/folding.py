"""Constants computed from constants: strings by their methods, numbers by Python's own functions.

Only what is pure and quick is computed, and only on small constants.
"""

from __future__ import annotations

import math
import re
from itertools import product
from typing import TYPE_CHECKING, Any

from dtlint.infer.values import NONE, UNKNOWN, Constant, Items, Table, Value, join, options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["folded_call", "folded_method", "formatted"]

_LONGEST = 2_000
"""Characters of strings that are computed with."""
_MOST = 8
"""Combinations of choices that are computed one by one."""

_METHODS = frozenset(
    [
        "startswith",
        "endswith",
        "removeprefix",
        "removesuffix",
        "lower",
        "upper",
        "strip",
        "lstrip",
        "rstrip",
        "split",
        "rsplit",
        "partition",
        "rpartition",
        "replace",
        "find",
        "rfind",
        "index",
        "count",
        "isdigit",
        "isalpha",
        "isidentifier",
        "title",
        "capitalize",
        "join",
        "format",
        "splitlines",
        "is_integer",
        "bit_length",
    ]
)
"""Methods of strings and numbers that only compute."""

_FUNCTIONS: dict[str, Callable[..., object]] = {
    **{f"builtins.{kind.__name__}": kind for kind in (str, int, float, bool, len, abs, min, max, round, sum, ord, chr)},
    **{
        f"math.{function.__name__}": function
        for function in (
            math.sqrt,
            math.ceil,
            math.floor,
            math.log,
            math.log2,
            math.exp,
            math.gcd,
            math.prod,
            math.isinf,
        )
    },
}


def folded_method(receiver: Value, method: str, args: Sequence[Value]) -> Value | None:
    """`constant.method(*constants)`, or None where it is not that."""
    if method not in _METHODS:
        return None
    if method == "join":  # the keys of a dict
        args = [_keys(value) for value in args]
    return _each([receiver, *args], lambda owner, *given: _of_method(owner, method, given))


def folded_call(name: str, args: Sequence[Value]) -> Value | None:
    """`function(*constants)`, or None where it is not that."""
    function = _FUNCTIONS.get(name)
    if function is not None and args:
        return _each(args, lambda *given: _small(function(*given)))
    if name in ("re.search", "re.match", "re.fullmatch") and len(args) == 2:
        match = getattr(re, name[3:])
        return _each(args, lambda *given: UNKNOWN if match(*given) else NONE)
    if name == "re.findall" and len(args) == 2:
        return _each(args, lambda *given: _small(re.findall(*given)))
    return None


def _keys(value: Value) -> Value:
    """What iterating over a dict gives, whose keys are all known."""
    if not isinstance(value, Table) or value.rest is not None or value.perhaps:
        return value
    return Items(tuple(map(Constant, value.items)))


def formatted(parts: Sequence[Value]) -> Value:
    """An f-string of these parts, none of which has a format of its own."""
    found = _each(parts, lambda *given: _small("".join(map(str, given))))
    return UNKNOWN if found is None else found


def _each(values: Sequence[Value], compute: Callable[..., Value]) -> Value | None:
    """What a function of constants gives, for each combination of the choices."""
    choices = [list(options(value)) for value in values]
    if not all(_is_constant(choice) for column in choices for choice in column):
        return None
    if math.prod(map(len, choices)) > _MOST:
        return None
    result: Value | None = None
    for given in product(*choices):
        try:
            value = compute(*map(_plain, given))
        except (ValueError, TypeError, ArithmeticError, AttributeError, IndexError, KeyError, re.error):
            continue  # the program raises there
        result = value if result is None else join(result, value)
    return UNKNOWN if result is None else result


def _is_constant(value: Value) -> bool:
    if isinstance(value, Items):
        return len(value.items) <= 64 and all(isinstance(item, Constant) for item in value.items)
    if not isinstance(value, Constant):
        return False
    held = value.value
    return held is None or isinstance(held, (int, float)) or (isinstance(held, str) and len(held) <= _LONGEST)


def _plain(value: Value) -> Any:
    if isinstance(value, Items):
        return tuple(_plain(item) for item in value.items)
    assert isinstance(value, Constant)
    return value.value


def _of_method(owner: Any, method: str, given: Sequence[Any]) -> Value:
    return _small(getattr(owner, method)(*given))


def _small(value: object) -> Value:
    """A computed value, unless it has become too large to carry along."""
    if isinstance(value, (list, tuple)):
        return Items(tuple(map(_small, value))) if len(value) <= 64 else UNKNOWN
    if isinstance(value, str):
        return Constant(value) if len(value) <= _LONGEST else UNKNOWN
    return Constant(value) if isinstance(value, (bool, int, float, type(None))) else UNKNOWN
