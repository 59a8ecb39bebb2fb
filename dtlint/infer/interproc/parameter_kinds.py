"""Which parameters of functions are floating tensors, where an assumption says of which dtype these are.

An index, a mask or a target stays one. A parameter is floating if the function does with it what whole numbers are not meant
for: torch refuses them, or lifts them to floats (`x / 2`, `x.exp()`), or they are added to floating tensors; or if calls in
view give floating tensors for it. Of the rest both are possible: a mask is multiplied with floats as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import ARITHMETIC, FLOATING, INTEGRAL
from dtlint.infer.domain.lattice import join, join_all
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
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from dtlint.infer.interproc.functions import FunctionDefinition

__all__ = ["WHOLE", "Misuses", "ParameterKinds"]

WHOLE = INTEGRAL.intersection(ARITHMETIC) | {"bool"}
"""The dtypes of what is no floating tensor: indices, masks, targets."""
_Entry = tuple["FunctionDefinition", Value | None]
_ALIKE = frozenset(
    {"add", "sub", "rsub", "div", "true_divide", "lerp", "addcmul", "addcdiv", "dist", "cdist", "cat", "stack"}
    | {"maximum", "minimum"}
)
"""Ops whose operands are of one kind: nobody gives them an index or a mask together with a floating tensor."""

_OPERATORS = frozenset(
    {"add", "sub", "rsub", "mul", "div", "true_divide", "floor_divide", "remainder", "fmod", "pow", "neg"}
)
"""What can be done with numbers as well."""
_OF_FLOATS = frozenset({"matmul", "mm", "bmm", "mv", "addmm", "baddbmm", "einsum", "tensordot", "cov", "trapezoid"})
"""Ops that take whole numbers as well, and hardly ever are given any."""


class Misuses:
    """Is told, while a function is read, where torch raises, and where whole numbers become floats."""

    def __init__(self) -> None:
        self.found: set[tuple[str, object]] = set()
        self.refused: set[tuple[str, object]] = set()
        """Those where torch raises."""

    def operation(
        self, op: str, place: object, given: Iterable[Value], result: Value | None, error: str | None
    ) -> None:
        """One of torch's ops was evaluated."""
        operands = [
            one for value in given for one in _items(value) if not isinstance(one, (Const, Number, Device, Dtype))
        ]
        tensors = [one for one in operands if isinstance(one, Tensor) and one.dtypes]
        if error is not None or (len(tensors) == len(operands) and self._is_misuse(op, tensors, result)):
            self.found.add((op, place))
        if error is not None:
            self.refused.add((op, place))

    def call(self, place: object, callee: Value, result: Value | None) -> None:
        """A call was evaluated: does it cut off what was computed as floats, as `y.to(x.dtype)` does for a whole `x`?"""
        if not isinstance(callee, Bound) or not isinstance(callee.receiver, Tensor):
            return
        if callee.name.rpartition(".")[2] not in CASTS:
            return
        before, after = callee.receiver.dtypes, result.dtypes if isinstance(result, Tensor) else None
        if before and before <= FLOATING and after and after <= WHOLE:
            self.found.add((callee.name, place))

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


def _name(op: str) -> str:
    """The last part of an op's name; `add_` goes by `add`."""
    return op.rpartition(".")[2].strip("_")


class ParameterKinds:
    """What is known of the parameters of a library's functions, that are of the assumed dtype if they are floating.

    Args:
        dtype: the assumed one.
    """

    def __init__(self, dtype: str) -> None:
        self._floating = frozenset({dtype})
        self._tensors: dict[_Entry, set[str]] = {}
        """Those that are certainly tensors: what is done with them no number can."""
        self._shown: dict[_Entry, dict[str, frozenset[str]]] = {}
        """By what the function does with them: all that they can be."""
        self._given: dict[FunctionDefinition, dict[str, Value]] = {}
        """By the calls in view."""

    def called(self, definition: FunctionDefinition, bound: Mapping[str, Value]) -> bool:
        """A call in view gives these arguments. Is that more than was known?"""
        known = self._given.setdefault(definition, {})
        before = dict(known)
        for name, value in bound.items():
            known[name] = join(known[name], value) if name in known else value
        return before != known

    def parameters(
        self,
        definition: FunctionDefinition,
        receiver: Value | None,
        assumed: Mapping[str, Value],
        read: Callable[[Mapping[str, Value]], Misuses],
    ) -> dict[str, Value]:
        """Parameters that may be of the assumed dtype, as far as their kinds are known.

        Args:
            definition: the function.
            receiver: the object whose method it is.
            assumed: the parameters, all of the assumed dtype.
            read: reads the function for other parameters, and tells where they are misused.
        """
        entry = definition, receiver
        shown = self._shown.get(entry)
        if shown is None:
            tensors = self._tensors[entry] = set()
            shown = self._shown[entry] = self._by_use(assumed, read, tensors)
        is_private = definition.name.startswith("_") and not definition.name.startswith("__")
        found = {}
        for name, value in assumed.items():
            given = self._given.get(definition, {}).get(name)
            dtypes = None if given is None else _dtypes(given)
            if is_private and dtypes:
                found[name] = _of(value, dtypes)
            elif shown[name] <= FLOATING or (dtypes and dtypes <= FLOATING):
                more = dtypes & FLOATING if dtypes and dtypes <= FLOATING else frozenset()
                found[name] = _of(value, self._floating | more, certain=name in self._tensors[entry])
            else:
                found[name] = _of(value, shown[name])
        return found

    def _by_use(
        self, assumed: Mapping[str, Value], read: Callable[[Mapping[str, Value]], Misuses], tensors: set[str]
    ) -> dict[str, frozenset[str]]:
        """What the parameters can be, by how they are used; names those that are certainly tensors."""
        found = dict.fromkeys(assumed, self._floating | WHOLE)

        def misused(whole: Collection[str]) -> Misuses:
            return read(
                {one: _of(v, WHOLE if one in whole else self._floating, probing=True) for one, v in assumed.items()}
            )

        if not assumed:
            return found
        as_floats = misused(())
        as_whole = {name: misused({name}) for name in assumed}
        for group in _groups({name: now.found - as_floats.found for name, now in as_whole.items()}):
            now = as_whole[next(iter(group))] if len(group) == 1 else misused(group)
            gained = now.found - as_floats.found
            if gained and not as_floats.refused - now.refused:  # else it may be an index
                found.update(dict.fromkeys(group, self._floating))
                if any(_name(op) not in _OPERATORS for op, _ in gained):
                    tensors |= group
        return found


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


def _of(value: Value, dtypes: frozenset[str], *, probing: bool = False, certain: bool = False) -> Value:
    """A parameter of other dtypes: whatever else it may be it stays."""
    parts = []
    for one in choices(value):
        if isinstance(one, Tensor) or ((probing or certain) and type(one) is Unknown and one.dtypes):
            one = Tensor(
                dtypes, None, getattr(one, "rank", None), device="cpu" if probing and dtypes == WHOLE else None
            )
        elif type(one) is Unknown and one.dtypes:
            one = Unknown(dtypes)
        parts.append(one)
    return join_all(parts) or value


def _items(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, Tuple) else (value.item,) if isinstance(value, Many) else (value,)


def _dtypes(value: Value) -> frozenset[str] | None:
    """The dtypes of what is given, as far as it is a tensor; None where they are not known."""
    found: frozenset[str] = frozenset()
    for one in choices(value):
        if isinstance(one, (Tensor, Unknown)):
            if one.dtypes is None:
                return None
            found |= one.dtypes
    return found
