"""Arithmetic on tensors and numbers, by torch's promotion, and the tensors that literal numbers make."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import COMPLEX, DTYPES, FLOATING, INTEGRAL, Category
from dtlint.dtypes.promotion import Operand, result_dtype
from dtlint.infer.symbols import category_of, promoted
from dtlint.infer.values import (
    UNKNOWN,
    Autocast,
    Constant,
    Dtypes,
    Items,
    Iteration,
    Number,
    Tensor,
    Trait,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "FLOATS",
    "constant_of",
    "dtype_filled",
    "dtype_of_category",
    "dtype_of_data",
    "dtype_of_numbers",
    "floated",
    "given_by",
    "in_place_of",
    "keeps_dtype",
    "literal_tensor",
    "operator_result",
    "picked_of",
    "shared_region",
    "span_of",
    "truths_of",
]


def shared_region(operands: Iterable[Value]) -> Autocast | None:
    """The autocast region that a result of these is still of; None where they come from different ones."""
    shared: Autocast | None = None
    for value in operands:
        kind = type(value)
        if (kind is Tensor or kind is Unknown) and (region := value.under) is not None:  # type: ignore[attr-defined]
            if shared is not None and region != shared:
                return None
            shared = region
    return shared


def operator_result(operands: list[Value], default: Dtypes, origin: ast.expr | None) -> Value:
    """An elementwise arithmetic operation on tensors and numbers, by torch's promotion."""
    tensors = [value for value in operands if type(value) is Tensor]
    under = shared_region(operands)
    if not tensors:
        return Unknown(under) if under is not None else UNKNOWN
    known: list[list[Operand]] = []
    every = any_ = traits = tensors[0].traits
    rank = _rank(operands, tensors)
    for tensor in tensors[1:]:
        every &= tensor.traits
        any_ |= tensor.traits
    if any_ is not Trait.NONE:
        # A zero point added to what was scaled and rounded leaves it so.
        traits = (every & Trait.CONSTANT) | (any_ & _LEFT)
    for value in operands:
        ranks = _ranked(value, default)
        if ranks is None:
            result = Tensor(None, rank, traits, under, origin=origin, symbol=promoted(operands))
            if result.symbol is None and _gives_floats(operands):
                result.dtypes = FLOATS
            break
        known.append(ranks)
    else:
        result = Tensor(_promoted(known), rank, traits, under, origin=origin)
        if result.dtypes is None or len(result.dtypes) > 1:
            result.symbol = promoted(operands)
        elif result.dtypes == default:
            result.traits |= every & Trait.DEFAULTED
    for tensor in tensors:
        if tensor.cast is not None and keeps_dtype(result, tensor):
            result.cast = tensor.cast
            break
    return result


_TRUTHS = Unknown(dtypes=frozenset({"bool"}))
FLOATS = FLOATING | COMPLEX
"""What a division gives, whatever it divides: a floating or complex dtype, of which no more is known."""
_QUOTIENT = Unknown(dtypes=FLOATS)
_COMPUTED = Unknown(dtypes=frozenset(DTYPES))
"""What operators give of which nobody knows whether it is a tensor, a number or an array. It is no module."""


def given_by(operator: ast.operator, left: Value, right: Value) -> Unknown:
    """What a binary operator gives where no operand is known to be a tensor. Modules can be joined by `+` and `|`, and so
    can lists and sets: of these nothing is known, unless one of two is what an operator gave."""
    kind = type(operator)
    if kind is ast.Div or (kind in _KEEPING and (_is_quotient(left) or _is_quotient(right))):
        return _QUOTIENT
    if kind in _BITWISE:
        return _TRUTHS if _are_truths(left) and _are_truths(right) else UNKNOWN
    return UNKNOWN if kind is ast.Add and not (_is_computed(left) or _is_computed(right)) else _COMPUTED


def picked_of(values: Sequence[Value]) -> Value:
    """What `max` and `min` give of floats and quotients: one of them."""
    floats = sum(category_of(value) is Category.FLOAT for value in values)
    quotients = sum(map(_is_quotient, values))
    if len(values) < 2 or floats + quotients < len(values):
        return UNKNOWN
    return _QUOTIENT if quotients else Number(Category.FLOAT)


def truths_of(left: Value, right: Value) -> Unknown:
    """What a comparison gives where neither is known to be a tensor."""
    return _TRUTHS if type(left) is Unknown or type(right) is Unknown else UNKNOWN


def _gives_floats(operands: list[Value]) -> bool:
    """Is arithmetic on these sure to give a floating or complex dtype, of which no more is known? A quotient is a number,
    nearly always: beside a tensor of one floating dtype it does not put that in question."""
    known = [value.dtypes for value in operands if type(value) is Tensor and value.dtypes is not None]
    if any(dtypes == FLOATS for dtypes in known):
        return True
    return any(map(_is_quotient, operands)) and not any(dtypes < FLOATS for dtypes in known)


def _is_quotient(value: Value) -> bool:
    return type(value) is Unknown and value.dtypes == FLOATS


def _is_computed(value: Value) -> bool:
    return type(value) is Unknown and value.dtypes is not None


def _are_truths(value: Value) -> bool:
    return type(value) is Unknown and value.dtypes == _TRUTHS.dtypes


_KEEPING = frozenset({ast.Add, ast.Sub, ast.Mult})
_BITWISE = frozenset({ast.BitAnd, ast.BitOr, ast.BitXor})
_LEFT = Trait.CLAMPED | Trait.ROUNDED | Trait.SCALED
"""What arithmetic leaves of that which was done to one of its operands."""


def _rank(operands: list[Value], tensors: list[Tensor]) -> bool | None:
    """Is what elementwise arithmetic gives 0-dim? It has the dimensions of the operand with the most."""
    least: bool | None = True
    for tensor in tensors:
        if tensor.zero_dim is False:
            return False
        if tensor.zero_dim is None:
            least = None
    if least is None or len(tensors) == len(operands):
        return least
    return True if all(isinstance(value, (Tensor, Constant)) for value in operands) else None


_MOST_COMBINATIONS = 64
_DEFAULTS = ("float16", "bfloat16", "float32", "float64")
"""What the default dtype may be set to."""


def _ranked(value: Value, default: Dtypes) -> list[Operand] | None:
    """The operands that a value can be in promotion; None when that is not known."""
    if isinstance(value, Tensor):
        if value.dtypes is None or value.dtypes == FLOATS:
            return None
        ranks = (1, 2) if value.zero_dim is None else (1,) if value.zero_dim else (2,)
        return [(dtype, rank) for dtype in sorted(value.dtypes) for rank in ranks]
    if type(value) is Unknown:
        return [("bool", rank) for rank in (0, 1, 2)] if _are_truths(value) else None
    if default is None and category_of(value) is Category.FLOAT:
        return [(dtype, 0) for dtype in _DEFAULTS]
    number = _number_dtype(value, default)
    return None if number is None else [(number, 0)]


def _promoted(operands: list[list[Operand]]) -> Dtypes:
    combinations: list[list[Operand]] = [[]]
    for ranks in operands:
        combinations = [[*done, operand] for done in combinations for operand in ranks]
        if len(combinations) > _MOST_COMBINATIONS:
            return None
    results = {result_dtype(combination) for combination in combinations}
    return None if None in results else frozenset(dtype for dtype in results if dtype is not None)


def in_place_of(tensor: Tensor, value: Tensor) -> Tensor:
    """What an in-place op leaves: the tensor keeps its dtype, or torch raises."""
    traits = (value.traits & ~Trait.DEFAULTED) | (tensor.traits & Trait.DEFAULTED)
    return value.but(dtypes=tensor.dtypes, symbol=tensor.symbol, cast=tensor.cast, traits=traits)


def keeps_dtype(made: Tensor, tensor: Tensor) -> bool:
    """Has a result the dtype of the tensor that it is made of?"""
    if made.symbol is not None or tensor.symbol is not None:
        return made.symbol is not None and tensor.symbol is not None and made.symbol.of == tensor.symbol.of
    return made.dtypes is not None and made.dtypes == tensor.dtypes


def floated(dtypes: Dtypes, default: Dtypes) -> Dtypes:
    """What a function for floats makes of a dtype: integers become the default dtype."""
    if dtypes is None:
        return None
    if dtypes <= FLOATING | COMPLEX:
        return dtypes
    return default if dtypes <= INTEGRAL | {"bool"} else None


def dtype_of_category(category: Category, default: Dtypes) -> Dtypes:
    """The dtype that torch gives a Python number."""
    if category is Category.FLOAT:
        return default
    return frozenset({"bool" if category is Category.BOOL else "int64"}) if category < Category.FLOAT else None


def span_of(values: Sequence[Value | None]) -> tuple[float, float] | None:
    """The least and the greatest of some numbers; None when one is no known number."""
    numbers = [
        number for number in map(constant_of, values) if isinstance(number, (int, float)) and abs(number) < math.inf
    ]
    return (min(numbers), max(numbers)) if numbers and len(numbers) == len(values) else None


def dtype_of_numbers(values: list[Value], default: Dtypes) -> Dtypes:
    """The dtype that `arange` takes from its numbers: integers give int64, a float the default dtype."""
    kinds = {_number_dtype(value, default) for value in values}
    if None in kinds or not kinds or kinds & COMPLEX:
        return None
    return default if kinds & FLOATING else frozenset({"int64"})


def dtype_filled(values: list[Value], default: Dtypes) -> Dtypes:
    """The dtype that `full` takes from its number: that of `arange`, but for bool, which it keeps."""
    if values and all(category_of(value) is Category.BOOL for value in values):
        return frozenset({"bool"})
    return dtype_of_numbers(values, default)


def _number_dtype(value: Value, default: Dtypes) -> str | None:
    """The dtype that a Python number has in promotion, or None when the value is no known number."""
    category = category_of(value)
    if category is None or category < Category.FLOAT:
        return None if category is None else "bool" if category is Category.BOOL else "int64"
    if default is None or len(default) != 1:
        return None
    (base,) = default
    if category is Category.FLOAT:
        return base
    return {"float64": "complex128", "float16": "complex32"}.get(base, "complex64")


def literal_tensor(node: ast.expr, default: Dtypes) -> Tensor:
    """The tensor that `torch.tensor(node)` makes of a literal number or nest of lists."""
    kinds: set[type] = set()
    numbers: list[Value | None] = []
    nested = isinstance(node, (ast.List, ast.Tuple))
    queue: list[tuple[ast.expr, int]] = [(node, 1)]
    while queue:
        item, sign = queue.pop()
        if isinstance(item, (ast.List, ast.Tuple)):
            queue += [(inner, 1) for inner in item.elts]
        elif isinstance(item, ast.Constant):
            kinds.add(type(item.value))
            numbers.append(
                Constant(item.value if sign > 0 or not isinstance(item.value, (int, float)) else -item.value)
            )
        elif isinstance(item, ast.UnaryOp) and isinstance(item.op, (ast.USub, ast.UAdd)):
            queue.append((item.operand, -sign if isinstance(item.op, ast.USub) else sign))
        elif isinstance(item, ast.Call) and isinstance(item.func, ast.Name) and item.func.id == "float":
            kinds.add(float)
            numbers.append(None)
        else:
            return Tensor()
    if not kinds <= {bool, int, float}:
        return Tensor()
    dtypes: Dtypes = default if float in kinds or not kinds else frozenset({"int64" if int in kinds else "bool"})
    traits = Trait.NONE if None in numbers else Trait.CONSTANT
    return Tensor(dtypes, zero_dim=not nested, traits=traits, span=span_of(numbers))


def dtype_of_data(value: Value | None, default: Dtypes) -> Dtypes:
    """The dtype that `torch.tensor` takes from Python numbers, or a nest of lists of them; None where it is not known. A list
    that may be empty says the same as one of floats."""
    categories = _categories_in(value)
    known = [category for category in categories if category is not None]
    return dtype_of_category(max(known), default) if known and len(known) == len(categories) else None


def _categories_in(value: Value | None) -> set[Category | None]:
    if isinstance(value, Items):
        return set[Category | None]().union(*map(_categories_in, value.items)) if value.items else {None}
    if isinstance(value, Iteration):
        return {category if category is Category.FLOAT else None for category in _categories_in(value.item)}
    return {category_of(value) if isinstance(value, (Number, Constant)) else None}


def constant_of(value: Value | None) -> object:
    """The constant that a value is; None for one that is none."""
    return value.value if isinstance(value, Constant) else None
