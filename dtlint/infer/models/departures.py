"""Where tensors left the dtype that is assumed of all that a function is given: said of each tensor of another dtype that came
from one of it, through however many operators and calls. It is the last operator on the way that was given one of it."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.lattice import widens_perhaps
from dtlint.infer.domain.values import LEFT, Const, Dtype, Many, Tensor, Tuple, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dtlint.infer.context import Context

__all__ = ["marked", "places_left", "tell_written"]


def marked(ctx: Context, op: str, operands: Sequence[Value], result: Value) -> Value:
    """What an op gives at `ctx.site`, with the places where its operands left the dtype, or this one if it does so itself."""
    assumed = ctx.ambient("assumed")
    if not isinstance(assumed, Const) or assumed.value not in FLOATING or not isinstance(result, (Tensor, Tuple, Many)):
        return result
    own = frozenset({str(assumed.value)})
    given = list(_tensors(operands[:1] if op.rpartition(".")[2] in _SHAPED else operands))
    if _is_loss(op):
        return _with(result, own, _BY_CHOICE)
    if _is_cast(op, operands) and given:
        if not own <= (given[0].dtypes or frozenset()):  # of what was wide before: its author chose the dtype
            return _with(result, own, frozenset())
        leaves = _leaves(result, own)
    elif any(own <= (one.dtypes or frozenset()) <= FLOATING for one in given) and not _makes(op):
        widens = any(one.dtypes == own for one in given) and any(
            widens_perhaps(one, own) and not places_left(one) for one in given
        )
        is_by_choice = any(places_left(one) == _BY_CHOICE for one in given)
        leaves = widens or (_leaves(result, own) and not is_by_choice)
    else:
        leaves = False
    if leaves and ctx.site is not None:
        return _with(result, own, frozenset({(LEFT, ctx.site)}))
    places = frozenset(mark for one in given if one.dtypes != own for mark in places_left(one))
    if not places and _is_open(result, own) and not any(_is_open(one, own) for one in given):
        places = _BY_CHOICE  # by an operand that need not be floating: later ops do not say it
    return _with(result, own, places)


_SHAPED = frozenset({"reshape_as", "view_as", "expand_as"})
"""Ops that ask another tensor for its shape alone."""
_BY_CHOICE = frozenset({(LEFT, None)})
"""The mark of a tensor that left the dtype where that is no finding: of a loss, which is float32 by choice."""


def _is_open(value: Value, own: frozenset[str]) -> bool:
    """Is there a tensor in it that has the dtype on some paths alone?"""
    return any(one.dtypes is not None and own < one.dtypes for one in _tensors([value]))


def _is_loss(op: str) -> bool:
    """Is it one of torch's losses, or gives it the log-probabilities that they are made of? float32 is right for these."""
    last = op.rpartition(".")[2].lower()
    return "loss" in last or "cross_entropy" in last or last in ("kl_div", "log_softmax", "logsoftmax", "logsigmoid")


def _is_cast(op: str, operands: Sequence[Value]) -> bool:
    last = op.rpartition(".")[2]
    return last in _CASTS or (last == "to" and any(isinstance(one, Dtype) for one in operands))


_CASTS = frozenset({"float", "double", "type", "type_as"})


def places_left(value: Tensor) -> frozenset[tuple[str, object]]:
    """What is said of where a tensor left the dtype."""
    return frozenset(one for one in value.extra if one[0] == LEFT) if value.extra else value.extra


def _leaves(result: Value, own: frozenset[str]) -> bool:
    """Is there a floating tensor in it that certainly has another dtype?"""
    return any(one.dtypes and one.dtypes <= FLOATING and not one.dtypes & own for one in _tensors([result]))


def tell_written(ctx: Context, variable: object, made: Value) -> None:
    """Say of a tensor in a variable what was written into it: what is said of the same tensor behind the write."""
    name = variable.id if isinstance(variable, ast.Name) else None
    known = None if name is None else ctx.store.read(ctx.frame.address, name)
    if name is None or not isinstance(known, Tensor) or not isinstance(made, Tensor) or known.dtypes != made.dtypes:
        return
    extra = known.extra | places_left(made)
    if extra != known.extra:
        new = Tensor(known.dtypes, known.symbol, known.rank, known.range, known.device, extra)
        ctx.store.overwrite(ctx.frame.address, name, new)


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
