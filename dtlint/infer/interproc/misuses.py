"""Which parameters are floating tensors, by reading a function: once with floats and once with whole numbers in the place of
each.

A parameter is floating if the function does with it what whole numbers are not meant for: torch refuses them, or lifts them to
floats (`x / 2`, `x.exp()`), or they are added to floating tensors. Of the rest both are possible: a mask is multiplied with
floats as well.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import ARITHMETIC, FLOATING, INTEGRAL
from dtlint.infer.context import Recorder
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    Bound,
    Const,
    Device,
    Dtype,
    Many,
    Number,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.models.unknown_tensors import CASTS

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Collection, Mapping, Sequence

    from dtlint.infer.context import Arguments, Context, Frame

__all__ = ["WHOLE", "Misuses", "kinds_by_reading", "of_dtypes"]

WHOLE = INTEGRAL.intersection(ARITHMETIC) | {"bool"}
"""The dtypes of what is no floating tensor: indices, masks, targets."""
_ALIKE = frozenset(
    {"add", "sub", "rsub", "div", "true_divide", "lerp", "addcmul", "addcdiv", "dist", "cdist", "cat", "stack"}
    | {"maximum", "minimum"}
)
"""Ops whose operands are of one kind: nobody gives them an index or a mask together with a floating tensor."""

_OPERATORS = frozenset(
    {"add", "sub", "rsub", "mul", "div", "true_divide", "floor_divide", "remainder", "fmod", "pow", "neg"}
)
"""What can be done with numbers as well."""
_WEIGHING = frozenset({"add", "sub", "rsub", "mul"})
_INDEXING = frozenset(
    {
        "gather",
        "scatter",
        "scatter_add",
        "scatter_reduce",
        "index_select",
        "index_add",
        "index_fill",
        "index_copy",
        "take",
    }
    | {"embedding", "one_hot", "bincount", "masked_fill", "masked_select", "masked_scatter"}
)
"""Ops that take indices or masks."""
_OF_FLOATS = frozenset({"matmul", "mm", "bmm", "mv", "addmm", "baddbmm", "einsum", "tensordot", "cov", "trapezoid"})
"""Ops that take whole numbers as well, and hardly ever are given any."""


class Misuses(Recorder):
    """Is told, while a function is read, where torch raises, and where whole numbers become floats.

    Args:
        floating: the dtype of the floating tensors that it is read with.
        tells: is called wherever something is found: what is remembered of a call would not find it again.
    """

    def __init__(self, floating: str, tells: Callable[[], None]) -> None:
        self._floating, self._tells = floating, tells
        self.found: set[tuple[str, object]] = set()
        self.refused: set[tuple[str, object]] = set()
        """Those where torch raises."""
        self.returns = True
        """Does the function come to its end?"""

    def operation(
        self,
        op: str,
        args: Sequence[Value],
        keywords: Mapping[str, Value],
        result: Value | None,
        error: str | None,
        ctx: Context,
    ) -> None:
        """One of torch's ops was evaluated."""
        place = ctx.site
        items = [one for value in (*args, *keywords.values()) for one in _items(value)]
        operands = [one for one in items if not isinstance(one, (Const, Number, Device, Dtype))]
        tensors = [one for one in operands if isinstance(one, Tensor) and one.dtypes]
        refuses = error is not None or (_name(op) in _INDEXING and any(map(_is_mixed, tensors)))
        if refuses:
            self.refused.add((op, place))
        if refuses or (
            len(tensors) == len(operands) and not _switches(op, items) and self._is_misuse(op, tensors, result)
        ):
            self._note((op, place))

    def call(self, node: ast.AST, callee: Value, arguments: Arguments, result: Value | None, frame: Frame) -> None:
        """A call was evaluated: does it cut off what was computed as floats, as `y.to(x.dtype)` does for a whole `x`? Or is it a
        cast to floats? One that floats do not come to, behind `if not x.is_floating_point()`, lifts whole numbers to these; but
        one to their own dtype may be behind `if x.dtype != y.dtype`."""
        if not isinstance(callee, Bound) or not isinstance(callee.receiver, Tensor):
            return
        if callee.name.rpartition(".")[2] not in CASTS:
            return
        before, after = callee.receiver.dtypes, result.dtypes if isinstance(result, Tensor) else None
        if before and before <= FLOATING and after and after <= WHOLE:
            self._note((callee.name, node))
        elif before and after and after <= FLOATING and self._floating not in after:
            self._note(("lift", node))

    def beyond(self, other: Misuses) -> set[tuple[str, object]]:
        """What is misused here, or refused, and there not."""
        return (self.found - other.found) | (self.refused - other.refused)

    def _note(self, found: tuple[str, object]) -> None:
        self.found.add(found)
        self._tells()

    def _is_misuse(self, op: str, given: Sequence[Tensor], result: Value | None) -> bool:
        """Is something done with whole numbers that is meant for floating ones?"""
        whole = [one for one in given if one.dtypes and one.dtypes <= WHOLE]
        floating = [one for one in given if one.dtypes and one.dtypes <= FLOATING]
        name = _name(op)
        if not whole or name in CASTS:
            return False
        if len(whole) < len(given):
            return bool(floating) and (name in _ALIKE or name in _OF_FLOATS)
        dtypes = result.dtypes if isinstance(result, Tensor) else None
        return name in _OF_FLOATS or ".linalg." in op or bool(dtypes and dtypes <= FLOATING)


def _is_mixed(value: Tensor) -> bool:
    """Is it floating on some paths and whole on others? As an index torch refuses the former."""
    return value.dtypes is not None and bool(value.dtypes & FLOATING) and bool(value.dtypes & WHOLE)


def _switches(op: str, given: Sequence[Value]) -> bool:
    """Is it what is done with masks to weigh or to invert them, as `1.0 - mask` and `mask * -1e9` do? Fractions scale floats."""
    numbers = [one for one in given if isinstance(one, (Const, Number))]
    if _name(op) not in _WEIGHING or not numbers:
        return False
    return all(isinstance(one, Number) or one.value == int(one.value) for one in numbers if _is_finite(one))


def _is_finite(value: Const | Number) -> bool:
    return isinstance(value, Number) or (isinstance(value.value, (int, float)) and math.isfinite(value.value))


def _name(op: str) -> str:
    """The last part of an op's name; `add_` goes by `add`."""
    return op.rpartition(".")[2].strip("_")


def kinds_by_reading(
    assumed: Mapping[str, Value],
    floating: frozenset[str],
    settled: Collection[str],
    read: Callable[[Mapping[str, Value]], Misuses],
) -> tuple[dict[str, frozenset[str]], set[str]]:
    """What parameters can be by what becomes of the function, and which of them are certainly tensors: what is done with these no
    number can.

    Args:
        assumed: the parameters, all of the assumed dtype.
        floating: that dtype.
        settled: those that are known to be floating tensors.
        read: reads the function for other parameters, and tells where they are misused.
    """
    found = {name: floating if name in settled else floating | WHOLE for name in assumed}
    tensors = set(settled)

    def misused(whole: Collection[str]) -> Misuses:
        return read(
            {
                one: of_dtypes(value, WHOLE, as_tensor=True, device="cpu")
                if one in whole
                else of_dtypes(value, floating, as_tensor=True)
                for one, value in assumed.items()
            }
        )

    asked = [name for name in assumed if name not in settled]
    if not asked:
        return found, tensors
    as_floats, as_whole = misused(()), {name: misused({name}) for name in asked}
    refusing = [] if as_floats.returns else [name for name in asked if as_whole[name].returns]
    if len(refusing) == 1:  # it checks that this one is whole
        found[refusing[0]] = WHOLE
        asked.remove(refusing[0])
        as_floats, as_whole = as_whole[refusing[0]], {name: misused({name, *refusing}) for name in asked}
    elif not as_floats.returns:
        return found, tensors
    checked = {name for name, now in as_whole.items() if not now.returns} if as_floats.returns else set()
    together = misused(checked.union(refusing)) if checked else as_floats
    if not together.returns and len(checked) <= 2:  # it refuses them, or one of them and another dtype beside that
        found.update(dict.fromkeys(checked, floating))
    by_name = {name: now.beyond(as_floats) for name, now in as_whole.items() if name not in checked}
    groups = _groups(by_name)
    if together.returns and checked:  # they have to be of one dtype
        groups.append(checked)
    for group in groups:
        now = as_whole[next(iter(group))] if len(group) == 1 else misused(group.union(refusing))
        gained = now.beyond(as_floats)
        if gained and not as_floats.refused - now.refused:  # else it may be an index
            found.update(dict.fromkeys(group, floating))
            if any(_name(op) not in _OPERATORS for op, _ in gained):
                tensors |= group
    return found, tensors


def _groups(places: Mapping[str, set[tuple[str, object]]]) -> list[set[str]]:
    """The parameters that are of one kind, for they are added to one another: that one of them alone is whole is a misuse at
    one place, whichever it is."""
    groups: list[tuple[set[str], set[tuple[str, object]]]] = []
    for name, found in places.items():
        names, where = {name}, set(found)
        apart = []
        for other in groups:
            if other[1].isdisjoint(where):
                apart.append(other)
            else:
                names |= other[0]
                where |= other[1]
        groups = [*apart, (names, where)]
    return [names for names, _ in groups]


def of_dtypes(value: Value, dtypes: frozenset[str], *, as_tensor: bool = False, device: str | None = None) -> Value:
    """A parameter of other dtypes: whatever else it may be it stays.

    Args:
        as_tensor: is it a tensor, where nothing says so?
    """
    parts = []
    for one in choices(value):
        if isinstance(one, Tensor) or (as_tensor and type(one) is Unknown and one.dtypes):
            one = Tensor(dtypes, None, getattr(one, "rank", None), device=device)
        elif type(one) is Unknown and one.dtypes:
            one = Unknown(dtypes)
        parts.append(one)
    return join_all(parts) or value


def _items(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, Tuple) else (value.item,) if isinstance(value, Many) else (value,)
