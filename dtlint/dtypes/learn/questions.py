"""What is asked of a call: the same again with other dtypes, numbers, `dtype=`, `out=`, switches and default dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.form import FREE, Form
from dtlint.dtypes.learn.call import Call, groups_of
from dtlint.dtypes.learn.casting import with_dtypes
from dtlint.dtypes.learn.choices import EXOTIC, FOUR, MAIN, SIX, Choice, dtype_choices
from dtlint.dtypes.learn.numbers import with_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DEFAULTS", "Asker", "Question"]

Question = tuple[Call, str]
"""A call, and the default dtype it is made under."""

DEFAULTS = ("float32", "float64")
"""The default dtypes that everything is observed under: two tell the default's dtype from float32."""


@dataclass
class Asker:
    """A call of an op asked again with other dtypes, numbers, `dtype=` and `out=`.

    Attributes:
        form: the form that the call is of.
        call: the call.
        base: the dtype it was made for: tensors of another are indices and masks, and keep theirs.
        full: ask everything, or only what may differ from another call of the same form.
    """

    form: Form
    call: Call
    base: str
    full: bool

    def __post_init__(self) -> None:
        self.groups = groups_of(self.call)
        self.own = [str(self.call.tensor(group[0]).dtype)[6:] for group in self.groups]
        self.dtypes = MAIN if self.full else FOUR

    def questions(self) -> Iterator[Question]:
        """All questions, the plainest first."""
        for choice in dtype_choices(self.own, self.base, self.full):
            yield from self._cast(choice, "float32")
        for another in self._under_another_default():
            yield from self._cast(another, "float64")
        for default in DEFAULTS:
            for changed in with_numbers(self.form, self.call, self.full):
                yield from self._recast(changed, default)
            yield from self._with_dtype(default)
        yield from self._with_out()
        yield from self._with_switches()

    def _alike(self, dtype: str) -> Choice:
        return [(dtype if mine == self.base else mine, None) for mine in self.own]

    def _cast(self, choice: Choice, default: str, **given: Any) -> Iterator[Question]:
        yield with_dtypes(self.call, self.groups, choice).changed(given), default

    def _under_another_default(self) -> Iterator[Choice]:
        yield from (self._alike(dtype) for dtype in (*MAIN, *EXOTIC))
        if len(self.own) == 2:
            for pair, ranks in product(product(SIX, repeat=2), ((None, None), (None, 1))):
                yield list(zip(pair, ranks, strict=True))
        elif len(self.own) == 3 and self.full:
            yield from ([(dtype, None) for dtype in triple] for triple in product((*FOUR, "complex64"), repeat=3))

    def _recast(self, changed: Call, default: str) -> Iterator[Question]:
        """A call that has another number for an argument, perhaps in a tensor's place, with its tensors cast."""
        groups = groups_of(changed)
        own = [str(changed.tensor(group[0]).dtype)[6:] for group in groups]
        choices = [
            [(dtype if mine == self.base else mine, rank) for mine in own]
            for dtype, rank in product(self.dtypes, (None, 1) if self.full else (None,))
        ]
        if self.full and len(groups) == 2:
            choices += [[(left, None), (right, None)] for left, right in product(SIX, repeat=2)]
        for choice in choices:
            yield with_dtypes(changed, groups, choice), default

    def _with_dtype(self, default: str) -> Iterator[Question]:
        for name in (parameter.name for parameter in self.form.parameters if "d" in parameter.kinds):
            if not self._gives(name):
                for asked, dtype in product(MAIN, self.dtypes if self.groups else ("float32",)):
                    yield from self._cast(self._alike(dtype), default, **{name: getattr(torch, asked)})

    def _with_out(self) -> Iterator[Question]:
        takes = any(parameter.name == "out" and parameter.is_slot for parameter in self.form.parameters)
        if not self.full or not takes or "out" in self.call.kwargs:
            return
        choices = [self._alike(dtype) for dtype in MAIN] if self.groups else [[]]
        if len(self.own) == 2:
            choices += [[(a, None), (b, None)] for a, b in product(SIX, repeat=2)]
        for choice, out in product(choices, MAIN):
            yield from self._cast(choice, "float32", out=torch.empty(0, dtype=getattr(torch, out)))

    def _with_switches(self) -> Iterator[Question]:
        """The call with each bool that it leaves at its default turned."""
        for parameter in self.form.parameters:
            turns = parameter.default in ("0", "1") and not parameter.is_slot and FREE not in parameter.seen
            if turns and not self._gives(parameter.name):
                for dtype in MAIN:
                    yield from self._cast(self._alike(dtype), "float32", **{parameter.name: parameter.default == "0"})

    def _gives(self, name: str) -> bool:
        names = [parameter.name for parameter in self.form.parameters]
        return name in self.call.kwargs or names.index(name) < len(self.call.args)
