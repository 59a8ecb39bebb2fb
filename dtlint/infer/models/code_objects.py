"""Functions that are made of the code of others: `types.FunctionType(f.__code__.replace(co_name=...), f.__globals__)`.

A code object is a `Partial` of `types.CodeType` and its function. A copy under another name computes the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import NO_TENSOR, TOP, Bound, Const, External, Function, Partial, Tuple, Value
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

__all__ = ["code_attribute", "code_of"]

_CODE = External("types.CodeType")
_NAMES = frozenset({"co_name", "co_qualname", "co_filename", "co_firstlineno"})


def code_of(function: Function) -> Value:
    """`f.__code__`."""
    return Partial(_CODE, (function,))


def code_attribute(value: Partial, name: str) -> Value | None:
    """An attribute of a code object; None where the value is none."""
    if value.callee != _CODE:
        return None
    if name == "replace":
        return Bound(value, "types.CodeType.replace")
    function = value.args[0]
    assert isinstance(function, Function)
    if name == "co_varnames":  # the parameters come first
        return Tuple(tuple(map(Const, function.definition.variables[0])))
    return Const(function.definition.variables[1]) if name == "co_argcount" else NO_TENSOR


@model("types.CodeType.replace")
def _replace(ctx: Context, arguments: Arguments) -> Value:
    return arguments.args[0] if arguments.complete and set(arguments.keywords) <= _NAMES else TOP


@model("types.FunctionType")
def _function(ctx: Context, arguments: Arguments) -> Value:
    code = arguments.get(0, "code")
    if isinstance(code, Partial) and code.callee == _CODE:
        function = code.args[0]
        assert isinstance(function, Function)
        return Function(function.definition, function.frame)
    return TOP
