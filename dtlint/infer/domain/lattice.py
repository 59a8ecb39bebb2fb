"""`join`: what is known where paths meet; `widen`: the same for loops, so that fixed points are reached.

Both are pure, and `join` is idempotent and commutative; the order is that of what values may stand for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING, Category
from dtlint.infer.domain.interval import point
from dtlint.infer.domain.values import (
    ABSENT,
    LEFT,
    TOP,
    Array,
    Const,
    Device,
    Dtype,
    Instance,
    Many,
    Mapping,
    Number,
    Symbol,
    Tensor,
    Tuple,
    Union,
    Unknown,
    Value,
    choices,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dtlint.infer.domain.interval import Range
    from dtlint.infer.domain.values import Dtypes

__all__ = [
    "MOST_CHOICES",
    "at_least",
    "category_of",
    "join",
    "join_all",
    "join_dtypes",
    "join_symbols",
    "least",
    "number_of",
    "widen",
    "widens_perhaps",
]

MOST_CHOICES = 12
"""Alternatives of a union; past these it is Top."""
_DEEPEST = 12
"""Levels of nesting that are told apart: `x = (x,)` in a loop has a fixed point."""


def join(left: Value, right: Value) -> Value:
    """The least value known that stands for both."""
    if left is right:
        return left
    return _join(left, right, _unite)


def widen(left: Value, right: Value) -> Value:
    """As `join`, in a chain of finite length: ranges jump to landmarks, constants become numbers."""
    if left is right or left == right:
        return left
    return _join(left, right, _widen_ranges)


def join_all(values: Iterable[Value]) -> Value | None:
    """The join of all; None where there are none."""
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return result


def join_dtypes(left: Dtypes, right: Dtypes) -> Dtypes:
    """The dtypes of either."""
    if left == right:
        return left
    return None if left is None or right is None else left | right


def _meet_dtypes(left: Dtypes, right: Dtypes) -> Dtypes:
    """The dtypes of either, on paths that meet.

    All of `FLOATING` together stand for the default dtype where nobody knows it. That or another floating dtype is not known
    at all, unless the other is float32, as the default mostly is.
    """
    if left == FLOATING and right is not None and right < FLOATING:
        return left if right == _FLOAT32 else None
    if right == FLOATING and left is not None and left < FLOATING:
        return right if left == _FLOAT32 else None
    return join_dtypes(left, right)


_FLOAT32 = frozenset({"float32"})


def join_symbols(left: Symbol | None, right: Symbol | None) -> Symbol | None:
    """What decides both, if the same does."""
    if left == right:
        return left
    if left is None or right is None or left.of != right.of or left.met != right.met:
        return None
    return Symbol(
        left.of,
        left.met,
        max(left.least, right.least),
        left.outside or right.outside,
        left.reshaped or right.reshaped,
    )


def _unite(left: Range, right: Range) -> Range:
    return left.join(right)


def _widen_ranges(left: Range, right: Range) -> Range:
    return left.widen(right)


def _join(left: Value, right: Value, ranges: Callable[[Range, Range], Range], depth: int = 0) -> Value:
    if left is right or left == right:
        return left
    kind = type(left)
    if kind is Unknown or type(right) is Unknown:
        return _with_unknown(left, right)
    if depth > _DEEPEST:
        return TOP
    if kind is type(right):
        merged = _same_kind(left, right, ranges, depth)
        if merged is not None:
            return merged
    sequences = (Tuple, Many)
    if kind in sequences and type(right) in sequences:
        return _many(left, right, ranges, depth)
    return _union(left, right, ranges, depth)


def _with_unknown(left: Value, right: Value) -> Value:
    """What may be anything, or something known: what is known of the dtype of both still holds of a tensor."""
    one, other = (left, right) if type(left) is Unknown else (right, left)
    if one == TOP:
        return TOP
    dtypes, symbol = one.dtypes, one.symbol  # type: ignore[attr-defined]
    for choice in choices(other):
        if isinstance(choice, (Tensor, Unknown)):
            dtypes, symbol = _meet_dtypes(dtypes, choice.dtypes), join_symbols(symbol, choice.symbol)
    extra = one.extra & other.extra if isinstance(one, Unknown) and isinstance(other, Unknown) else frozenset()
    return Unknown(dtypes, symbol, extra)


def _same_kind(left: Value, right: Value, ranges: Callable[[Range, Range], Range], depth: int) -> Value | None:
    """Two values of one kind as one of that kind; None where only a union will do."""
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return Tensor(
            _meet_dtypes(left.dtypes, right.dtypes),
            join_symbols(left.symbol, right.symbol),
            _join_ranks(left.rank, right.rank),
            ranges(left.range, right.range),
            left.device if left.device == right.device else None,
            _join_extra(left.extra, right.extra),
        )
    if isinstance(left, Instance) and isinstance(right, Instance) and left.kind == right.kind:
        symbol = join_symbols(left.symbol, right.symbol)
        return Instance(_meet_dtypes(left.dtypes, right.dtypes), symbol, left.extra & right.extra, left.kind)
    if isinstance(left, Const) and isinstance(right, Const):
        return _join_consts(left, right, ranges)
    if isinstance(left, Number) and isinstance(right, Number) and left.category is right.category:
        return Number(left.category, ranges(left.range, right.range))
    if isinstance(left, Dtype) and isinstance(right, Dtype):
        return Dtype(_meet_dtypes(left.dtypes, right.dtypes), join_symbols(left.symbol, right.symbol))
    if isinstance(left, Array) and isinstance(right, Array):
        scalar = left.scalar if left.scalar == right.scalar else None
        return Array(_meet_dtypes(left.dtypes, right.dtypes), scalar)
    if isinstance(left, Device) and isinstance(right, Device):
        return Device(None)
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        if len(left.items) == len(right.items):
            items = tuple(_join(a, b, ranges, depth + 1) for a, b in zip(left.items, right.items, strict=True))
            named = left.names == right.names and left.kind == right.kind
            return Tuple(items, left.names if named else (), left.kind if named else None)
        return _many(left, right, ranges, depth)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return _join_mappings(left, right, ranges, depth)
    return None


def _join_extra(
    left: frozenset[tuple[str, object]], right: frozenset[tuple[str, object]]
) -> frozenset[tuple[str, object]]:
    """What holds of both; of places where a dtype was left, those of either."""
    if left == right:
        return left
    return (left & right) | frozenset(one for one in left | right if one[0] == LEFT)


def _join_consts(left: Const, right: Const, ranges: Callable[[Range, Range], Range]) -> Value | None:
    """Two numbers of one category are a number; True and False, and texts, stay told apart."""
    one, other = number_of(left), number_of(right)
    if one is None or other is None or one.category is not other.category or one.category is Category.BOOL:
        return None
    return Number(one.category, ranges(one.range, other.range))


def _join_ranks(left: int | None, right: int | None) -> int | None:
    return left if left == right else at_least(min(least(left), least(right)))


def least(rank: int | None) -> int:
    """The dimensions that a tensor of a rank has at least."""
    return 0 if rank is None else abs(rank)


def at_least(count: int) -> int | None:
    """The rank of what has some dimensions or more."""
    return -count if count > 0 else None


def widens_perhaps(operand: Value, own: frozenset[str]) -> bool:
    """Has an operand these floating dtypes on some paths, and others on others? And has it dimensions, so that a result has the
    other ones there, too?"""
    if not isinstance(operand, Tensor) or not operand.dtypes or not least(operand.rank):
        return False
    return own < operand.dtypes <= FLOATING


def _many(left: Value, right: Value, ranges: Callable[[Range, Range], Range], depth: int) -> Value:
    """Two sequences that are not of one length."""
    items = [item for one in (left, right) for item in (one.items if isinstance(one, Tuple) else (one.item,))]  # type: ignore[attr-defined]
    result: Value | None = None
    for item in items:
        result = item if result is None else _join(result, item, ranges, depth + 1)
    return Many(result if result is not None else TOP)


def _join_mappings(left: Mapping, right: Mapping, ranges: Callable[[Range, Range], Range], depth: int) -> Mapping:
    """What either dict holds; keys of one alone are there perhaps."""
    mine, others = dict(left.items), dict(right.items)
    keys = [*mine, *(key for key in others if key not in mine)]
    items = tuple((key, _join(mine.get(key, ABSENT), others.get(key, ABSENT), ranges, depth + 1)) for key in keys)
    if left.rest is None or right.rest is None:
        return Mapping(items, left.rest if right.rest is None else right.rest)
    return Mapping(items, _join(left.rest, right.rest, ranges, depth + 1))


def _union(left: Value, right: Value, ranges: Callable[[Range, Range], Range], depth: int) -> Value:
    """One of several values: of each kind that can be joined, one."""
    found: list[Value] = []
    for value in (*choices(left), *choices(right)):
        for place, other in enumerate(found):
            if value == other:
                break
            merged = _same_kind(other, value, ranges, depth) if type(other) is type(value) else None
            if merged is not None:
                found[place] = merged
                break
            if isinstance(value, (Tuple, Many)) and isinstance(other, (Tuple, Many)):
                found[place] = _many(other, value, ranges, depth)
                break
            if _absorbs(other, value):
                found[place] = _absorbed(other, value, ranges)
                break
        else:
            found.append(value)
    if len(found) == 1:
        return found[0]
    return Union(tuple(found)) if len(found) <= MOST_CHOICES else TOP


def _absorbs(left: Value, right: Value) -> bool:
    """Is it a number of one category, written out in one and known by its range in the other?"""
    if {type(left), type(right)} != {Const, Number}:
        return False
    one, other = number_of(left), number_of(right)
    return one is not None and other is not None and one.category is other.category


def _absorbed(left: Value, right: Value, ranges: Callable[[Range, Range], Range]) -> Value:
    one, other = number_of(left), number_of(right)
    assert one is not None
    assert other is not None
    return Number(one.category, ranges(one.range, other.range))


def number_of(value: Value) -> Number | None:
    """A constant number as a number of its category; None for what is no known number."""
    if type(value) is Number:
        return value
    if type(value) is not Const:
        return None
    category = category_of(value)
    if category is None:
        return None
    return Number(category) if category is Category.COMPLEX else Number(category, point(float(value.value)))


def category_of(value: Value) -> Category | None:
    """The category that a Python number has in promotion; None for what is no known number."""
    if type(value) is Number:
        return value.category
    return _CATEGORIES.get(type(value.value)) if type(value) is Const else None


_CATEGORIES: dict[type, Category] = {
    bool: Category.BOOL,
    int: Category.INTEGER,
    float: Category.FLOAT,
    complex: Category.COMPLEX,
}
