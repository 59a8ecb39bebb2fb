"""Where tensors left the dtype that is assumed of all that a function is given: said of each tensor of another dtype that came
from one of it, through however many operators and calls. It is the last operator on the way that was given one of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.values import LEFT, Const, Dtype, Many, Tensor, Tuple, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dtlint.infer.context import Context

__all__ = ["marked", "places_left"]


def marked(ctx: Context, op: str, operands: Sequence[Value], result: Value) -> Value:
    """What an op gives at `ctx.site`, with the places where its operands left the dtype, or this one if it does so itself."""
    assumed = ctx.ambient("assumed")
    if not isinstance(assumed, Const) or assumed.value not in FLOATING or not isinstance(result, (Tensor, Tuple, Many)):
        return result
    own = frozenset({str(assumed.value)})
    given = list(_tensors(operands))
    if _is_meant(op, given, operands, own):
        places: frozenset[tuple[str, object]] = frozenset()
    elif ctx.site is not None and not _makes(op) and any(one.dtypes == own for one in given) and _leaves(result, own):
        places = frozenset({(LEFT, ctx.site)})
    else:
        places = frozenset(mark for one in given if one.dtypes != own for mark in places_left(one))
    return _with(result, own, places)


def _is_meant(op: str, given: Sequence[Tensor], operands: Sequence[Value], own: frozenset[str]) -> bool:
    """Is the dtype of the result its author's choice: a loss, for which float32 is right, or a cast of what was wide before?"""
    last = op.rpartition(".")[2]
    if "loss" in last.lower() or last in ("cross_entropy", "kl_div"):
        return True
    is_cast = last in _CASTS or (last == "to" and any(isinstance(one, Dtype) for one in operands))
    return is_cast and bool(given) and given[0].dtypes != own


_CASTS = frozenset({"float", "double", "type", "type_as"})


def places_left(value: Tensor) -> frozenset[tuple[str, object]]:
    """What is said of where a tensor left the dtype."""
    return frozenset(one for one in value.extra if one[0] == LEFT) if value.extra else value.extra


def _leaves(result: Value, own: frozenset[str]) -> bool:
    """Is there a floating tensor in it that certainly has another dtype?"""
    return any(one.dtypes and one.dtypes <= FLOATING and not one.dtypes & own for one in _tensors([result]))


def _makes(op: str) -> bool:
    """Is it given a tensor for its shape alone?"""
    last = op.rpartition(".")[2]
    return last.endswith("_like") or last.startswith("new_")


def _tensors(values: Iterable[Value]) -> Iterator[Tensor]:
    for one in values:
        if isinstance(one, Tensor):
            yield one
        elif isinstance(one, Tuple):
            yield from _tensors(one.items)
        elif isinstance(one, Many):
            yield from _tensors((one.item,))


def _with(value: Value, own: frozenset[str], places: frozenset[tuple[str, object]]) -> Value:
    if isinstance(value, Tuple):
        return replace(value, items=tuple(_with(one, own, places) for one in value.items))
    if isinstance(value, Many):
        return Many(_with(value.item, own, places))
    if not isinstance(value, Tensor) or not value.dtypes or not value.dtypes <= FLOATING:
        return value
    others = frozenset(one for one in value.extra if one[0] != LEFT)
    extra = others if value.dtypes == own else others | places
    if extra == value.extra:
        return value
    return Tensor(value.dtypes, value.symbol, value.rank, value.range, value.device, extra)
