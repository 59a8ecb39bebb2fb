"""Items of tensors: the dtype stays, dimensions go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.values import Const, Many, Number, Tensor, Tuple, Value, reshaped

if TYPE_CHECKING:
    from dtlint.infer.context import Context

__all__ = ["INTEGER", "of_tensor"]

INTEGER = Category.INTEGER


def of_tensor(ctx: Context, value: Tensor, index: Value) -> Tensor:
    """`x[index]`: as many dimensions as before, less one for each whole number, more for None and index tensors."""
    rank = _rank(value.rank, index.items if isinstance(index, Tuple) else (index,))
    return Tensor(value.dtypes, reshaped(value.symbol), rank, value.range, value.device)


def _rank(rank: int | None, places: tuple[Value, ...]) -> int | None:
    if rank is None:
        return -1 if any(map(_is_slice, places)) else None  # a slice of what has no dimensions raises, or keeps one
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
                return None
        elif isinstance(place, (Many, Tuple)):
            gone += 1
            more += 1
        else:
            return None
    if rank == -1:
        kept = any(_is_slice(place) for place in places) or more > 0
        return -1 if gone == 0 or kept else None
    result = rank - gone + more
    return result if result >= 0 else None


def _is_slice(place: Value) -> bool:
    return isinstance(place, Const) and isinstance(place.value, tuple) and place.value[:1] == (slice,)


def _is_ellipsis(place: Value) -> bool:
    return isinstance(place, Const) and place.value is Ellipsis
