"""One public name of torch, the forms that it can be called in, and the calls that are made of it."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.form import Form, Parameter
from dtlint.dtypes.learn.abstraction import abstracted
from dtlint.dtypes.learn.names import resolved
from dtlint.dtypes.learn.schemas import forms_of_schemas
from dtlint.dtypes.learn.signatures import form_of_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.dtypes.learn.call import Call

__all__ = ["Op", "form_of", "op_of"]

_BINARY_OPERATOR = Form((Parameter("input", "t"), Parameter("other", "tn")))
_UNARY_OPERATOR = Form(_BINARY_OPERATOR.parameters[:1])
_UNARY_NAMES = frozenset({"__neg__", "__abs__", "__pos__", "__invert__"})


@dataclass
class Op:
    """One public name, how it is called, and the calls that are made of it.

    Attributes:
        name: the qualified name: "torch.Tensor.add_".
        function: what is called.
        calls: the calls that are asked again.
        forms: the ways to call it.
    """

    name: str
    function: Callable[..., Any]
    calls: list[Call]
    forms: list[Form]

    @property
    def mutates(self) -> bool:
        """Does it change its arguments?"""
        last = self.name.rpartition(".")[2]
        if last.endswith("__"):
            return re.fullmatch(r"__i[a-z]+__", last) is not None and last not in _UNARY_NAMES
        return last.endswith("_")


def op_of(name: str, calls: list[Call]) -> Op:
    """The op of a public name, in the forms that torch itself tells of."""
    function = resolved(name)
    return Op(name, function, calls, _forms_of(name, function, calls))


def _forms_of(name: str, function: Callable[..., Any], calls: Sequence[Call]) -> list[Form]:
    last = name.rpartition(".")[2]
    if last.startswith("__"):
        return [_UNARY_OPERATOR if last in _UNARY_NAMES else _BINARY_OPERATOR]
    if inspect.isfunction(function):
        return [form_of_signature(function, calls)]
    return forms_of_schemas(getattr(function, "__name__", last), name.startswith("torch.Tensor."))


def form_of(op: Op, call: Call) -> Form | None:
    """The first of an op's forms that a call fits."""
    args, kwargs = abstracted(call)
    return next((form for form in op.forms if form.bind(args, kwargs) is not None), None)
