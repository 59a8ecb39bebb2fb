"""The forms of a built-in function, from the schemas that the dispatcher has of its overloads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from dtlint.dtypes.form import Form, Parameter, token
from dtlint.dtypes.learn.parameters import DTYPE_PARAMETERS, either, free, seen_of

__all__ = ["forms_of_schemas"]

_KINDS = {
    "Tensor": "t",
    "Optional[Tensor]": "to",
    "List[Tensor]": "T",
    "List[Optional[Tensor]]": "T",
    "number": "n",
    "Optional[number]": "no",
}
"""The kinds of operand that a type of a schema stands for."""


def forms_of_schemas(aten: str, is_method: bool) -> list[Form]:
    """The forms of a built-in function, from the schemas of its overloads. Overloads that differ only in what kind of
    operand a parameter takes are one form."""
    merged: dict[tuple[str, ...], list[Parameter]] = {}
    plain: set[tuple[str, ...]] = set()
    with_out: set[tuple[str, ...]] = set()
    for schema in filter(_is_callable, torch._C._jit_get_schemas_for_operator(f"aten::{aten}")):
        parameters = _parameters(schema, is_method)
        names = tuple(parameter.name for parameter in parameters)
        if names in merged:
            parameters = [either(a, b) for a, b in zip(merged[names], parameters, strict=True)]
        merged[names] = parameters
        (with_out if any(argument.is_out for argument in schema.arguments) else plain).add(names)
    return [
        _finished(parameters, names in with_out and not is_method, names in plain)
        for names, parameters in merged.items()
        if names in plain or not is_method
    ]


def _is_callable(schema: Any) -> bool:
    """Is the overload one that programs call: dispatched, without named dimensions, with one `out=` at most?"""
    if "names" in schema.overload_name or "dimname" in schema.overload_name or not _is_dispatched(schema):
        return False
    outs = sum(argument.is_out for argument in schema.arguments)
    return outs <= 1 and all(str(argument.type) != "List[str]" for argument in schema.arguments)


def _is_dispatched(schema: Any) -> bool:
    """Is it an op of the dispatcher? Others exist in TorchScript only."""
    try:
        torch._C._dispatch_find_schema_or_throw(schema.name, schema.overload_name)
    except RuntimeError:
        return False
    return True


def _parameters(schema: Any, is_method: bool) -> list[Parameter]:
    """The parameters of an overload, `out=` aside; a method's receiver comes first, and is a tensor."""
    parameters = [
        _parameter(argument, place, is_method) for place, argument in enumerate(schema.arguments) if not argument.is_out
    ]
    if is_method:
        parameters.sort(key=lambda parameter: parameter.name != "input")  # some schemas have the receiver later
        parameters[:1] = [replace(parameters[0], kinds=parameters[0].kinds.replace("n", ""))]
    return parameters


def _parameter(argument: Any, place: int, is_method: bool) -> Parameter:
    kinds = "d" if argument.name in DTYPE_PARAMETERS else _KINDS.get(str(argument.type), "")
    if "List[int]" in str(argument.type) and (place == 1 or (place == 0 and not is_method)):
        kinds = "v"
    name = "input" if argument.name == "self" else argument.name
    default = token(argument.default_value) if argument.has_default_value() else None
    if argument.name == "dtype" and default is not None:
        default = "N"
    return Parameter(name, kinds, argument.kwarg_only, default, seen_of(name))


def _finished(parameters: list[Parameter], out: bool, optional: bool) -> Form:
    """The form, with `out=` where an overload has it: not to be left away where no other overload is like it."""
    if any(parameter.name == "device" for parameter in parameters):
        parameters = [*parameters, free("requires_grad", keyword=True, default="0")]
    if out:
        parameters = [*parameters, Parameter("out", "to", True, "N" if optional else None)]
    return Form(tuple(parameters))
