"""What is asked of a call: the same again with other dtypes, numbers, `dtype=`, `out=`, switches and default dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.dtype import ARITHMETIC
from dtlint.dtypes.form import FREE, SCALAR, Form
from dtlint.dtypes.learn.call import Call, groups_of
from dtlint.dtypes.learn.casting import with_dtypes
from dtlint.dtypes.learn.choices import EXOTIC, FEW, USUAL, Choice, alike, dtype_choices
from dtlint.dtypes.learn.naming import name_of, torch_dtype
from dtlint.dtypes.learn.numbers import with_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Asker", "Question"]

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
        full: ask everything, or only what may differ from another call of the same form.
    """

    form: Form
    call: Call
    full: bool

    def __post_init__(self) -> None:
        self._groups = groups_of(self.call)
        self._own = [name_of(self.call.tensor(group[0]).dtype) for group in self._groups]
        self._dtypes = ARITHMETIC if self.full else FEW

    def questions(self) -> Iterator[Question]:
        """All questions, the plainest first."""
        for choice in dtype_choices(self._own, self.call.base, self.full):
            yield self._cast(choice, "float32")
        for choice in self._under_another_default():
            yield self._cast(choice, "float64")
        for default in DEFAULTS:
            for changed in with_numbers(self.form, self.call, self.full):
                yield from self._recast(changed, default)
            yield from self._with_dtype(default)
        yield from self._with_out()
        yield from self._with_switches()

    def _cast(self, choice: Choice, default: str, **given: Any) -> Question:
        """The call with its tensors cast, and with other keyword arguments."""
        return with_dtypes(self.call, self._groups, choice).changed(given), default

    def _alike(self, dtype: str) -> Choice:
        return alike(self._own, self.call.base, dtype)

    def _under_another_default(self) -> Iterator[Choice]:
        for dtype in (*ARITHMETIC, *EXOTIC):
            yield self._alike(dtype)
        if len(self._own) == 2:
            for pair, ranks in product(product(USUAL, repeat=2), ((None, None), (None, SCALAR))):
                yield list(zip(pair, ranks, strict=True))
        elif len(self._own) == 3 and self.full:
            for triple in product((*FEW, "complex64"), repeat=3):
                yield [(dtype, None) for dtype in triple]

    def _recast(self, changed: Call, default: str) -> Iterator[Question]:
        """A call that has another number for an argument, perhaps in a tensor's place, with its tensors cast."""
        groups = groups_of(changed)
        own = [name_of(changed.tensor(group[0]).dtype) for group in groups]
        for dtype, rank in product(self._dtypes, (None, SCALAR) if self.full else (None,)):
            yield with_dtypes(changed, groups, alike(own, changed.base, dtype, rank)), default
        if self.full and len(groups) == 2:
            for left, right in product(USUAL, repeat=2):
                yield with_dtypes(changed, groups, [(left, None), (right, None)]), default

    def _with_dtype(self, default: str) -> Iterator[Question]:
        """The call with each `dtype=` that it does not give."""
        for parameter in self.form.parameters:
            if "d" in parameter.kinds and not self._gives(parameter.name):
                for asked, dtype in product(ARITHMETIC, self._dtypes if self._groups else ("float32",)):
                    yield self._cast(self._alike(dtype), default, **{parameter.name: torch_dtype(asked)})

    def _with_out(self) -> Iterator[Question]:
        """The call with an `out=` of each dtype, if it may have one."""
        takes = any(parameter.name == "out" and parameter.is_slot for parameter in self.form.parameters)
        if not self.full or not takes or "out" in self.call.kwargs:
            return
        choices = [self._alike(dtype) for dtype in ARITHMETIC] if self._groups else [[]]
        if len(self._own) == 2:
            choices += [[(left, None), (right, None)] for left, right in product(USUAL, repeat=2)]
        for choice, out in product(choices, ARITHMETIC):
            yield self._cast(choice, "float32", out=torch.empty(0, dtype=torch_dtype(out)))

    def _with_switches(self) -> Iterator[Question]:
        """The call with each bool that it leaves at its default turned."""
        for parameter in self.form.parameters:
            turns = parameter.default in ("0", "1") and not parameter.is_slot and FREE not in parameter.seen
            if turns and not self._gives(parameter.name):
                for dtype in ARITHMETIC:
                    yield self._cast(self._alike(dtype), "float32", **{parameter.name: parameter.default == "0"})

    def _gives(self, name: str) -> bool:
        """Does the call give this parameter?"""
        names = [parameter.name for parameter in self.form.parameters]
        return name in self.call.kwargs or names.index(name) < len(self.call.args)
