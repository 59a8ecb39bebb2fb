"""Items of tensors: the dtype stays, dimensions go. Which indices torch refuses, and which writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING, Category
from dtlint.infer.domain.lattice import at_least, least
from dtlint.infer.domain.values import Const, Many, Number, Tensor, Tuple, Value, reshaped
from dtlint.infer.models.departures import places_left

if TYPE_CHECKING:
    from dtlint.infer.context import Context

__all__ = ["INTEGER", "of_tensor", "refused_index", "refused_write"]

INTEGER = Category.INTEGER


def of_tensor(ctx: Context, value: Tensor, index: Value) -> Tensor:
    """`x[index]`: as many dimensions as before, less one for each whole number, more for None and index tensors."""
    rank = _rank(value.rank, index.items if isinstance(index, Tuple) else (index,))
    return Tensor(value.dtypes, reshaped(value.symbol), rank, value.range, value.device, places_left(value))


_INDICES = frozenset({"bool", "uint8", "int32", "int64"})
_SMALL = frozenset({"int8", "int16", "uint16", "uint32", "uint64"})


def refused_index(index: Value) -> str | None:
    """What torch says of an index of a dtype that it does not look up by; None where it need not. A tensor of integers
    without dimensions is a number, of whatever dtype."""
    for place in index.items if isinstance(index, Tuple) else (index,):
        if not isinstance(place, Tensor) or not place.dtypes or place.dtypes & _INDICES:
            continue
        if place.dtypes.isdisjoint(_SMALL) or place.rank not in (None, 0):
            return "tensors used as indices must be long, int, byte or bool tensors"
    return None


def refused_write(value: Tensor, index: Value, given: Value) -> str | None:
    """What torch says of `value[index] = given`; None where it need not. What is written through an index tensor or a list
    is not cast, but for a single element through a mask. A list is given as `Many`."""
    refused = refused_index(index)
    if refused is not None or not isinstance(given, Tensor) or not value.dtypes or not given.dtypes:
        return refused
    if value.dtypes & given.dtypes or not value.dtypes <= FLOATING or not given.dtypes <= FLOATING:
        return None
    places = index.items if isinstance(index, Tuple) else (index,)
    by_mask = any(isinstance(place, Tensor) and place.dtypes == frozenset({"bool"}) for place in places)
    if any(map(_picks, places)) or (by_mask and least(given.rank) > 1):
        return "Index put requires the source and destination dtypes match"
    return None


def _picks(place: Value) -> bool:
    """Is it certainly a list of numbers, or a tensor of them that has dimensions?"""
    if isinstance(place, Tensor):
        whole = bool(place.dtypes) and (place.dtypes or _SMALL) <= _INDICES - {"bool", "uint8"}
        return whole and place.rank not in (None, 0)
    item = place.item if isinstance(place, Many) else None
    return isinstance(item, Number) or (isinstance(item, Const) and type(item.value) is int)


def _rank(rank: int | None, places: tuple[Value, ...]) -> int | None:
    slices = sum(map(_is_slice, places))  # each is of a dimension that is there, and stays
    if rank is None:
        return at_least(slices)
    gone = more = 0
    for place in places:
        if _is_slice(place) or _is_ellipsis(place):
            continue
        if isinstance(place, Const) and place.value is None:
            more += 1
        elif isinstance(place, (Number, Const)) and not (isinstance(place, Const) and isinstance(place.value, bool)):
            gone += 1
        elif isinstance(place, Tensor) and place.rank is not None:
            if place.dtypes == frozenset({"bool"}):
                if place.rank <= 0:
                    return -1
                gone += place.rank
                more += 1
            elif place.dtypes is not None and "bool" not in place.dtypes and place.rank >= 0:
                gone += 1
                more += place.rank
            else:
                return at_least(slices)
        elif isinstance(place, (Many, Tuple)):
            gone += 1
            more += 1
        else:
            return at_least(slices)
    if rank < 0:
        return at_least(max(least(rank) - gone, slices) + more)
    result = rank - gone + more
    return result if result >= 0 else None


def _is_slice(place: Value) -> bool:
    return isinstance(place, Const) and isinstance(place.value, tuple) and place.value[:1] == (slice,)


def _is_ellipsis(place: Value) -> bool:
    return isinstance(place, Const) and place.value is Ellipsis
