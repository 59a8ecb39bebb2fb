"""One public name of torch, the forms that it can be called in, and the calls that are made of it."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.form import Form, Parameter
from dtlint.dtypes.learn.abstraction import abstracted
from dtlint.dtypes.learn.schemas import forms_of_schemas
from dtlint.dtypes.learn.signatures import forms_of_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.dtypes.learn.call import Call

__all__ = ["Op", "form_of", "forms_of"]

_BINARY_OPERATOR = Form((Parameter("input", "t"), Parameter("other", "tn")))


@dataclass
class Op:
    """One public name, how it is called, and the calls that are made of it."""

    name: str
    function: Callable[..., Any]
    calls: list[Call]
    forms: list[Form]

    @property
    def mutates(self) -> bool:
        """Does it change its arguments?"""
        last = self.name.rpartition(".")[2]
        return (last.endswith("_") and not last.endswith("__")) or bool(
            re.fullmatch(r"__i[a-z]+__", last) and last != "__invert__"
        )


def forms_of(name: str, function: Callable[..., Any], calls: Sequence[Call]) -> list[Form]:
    """The forms of a public name."""
    last = name.rpartition(".")[2]
    if last.startswith("__"):
        unary = last in ("__neg__", "__abs__", "__pos__", "__invert__")
        return [Form(_BINARY_OPERATOR.parameters[: 1 if unary else 2])]
    if inspect.isfunction(function):
        return forms_of_signature(function, calls)
    return forms_of_schemas(getattr(function, "__name__", last), name.startswith("torch.Tensor."))


def form_of(op: Op, call: Call) -> Form | None:
    """The first of an op's forms that a call fits."""
    args, kwargs = abstracted(call)
    return next((form for form in op.forms if form.bind(args, kwargs) is not None), None)
