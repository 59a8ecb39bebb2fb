"""The forms of a built-in function, from the schemas that the dispatcher has of its overloads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from dtlint.dtypes.form import FREE, Form, Parameter, token
from dtlint.dtypes.learn.parameters import FREE_PARAMETERS, either

__all__ = ["forms_of_schemas"]


def forms_of_schemas(aten: str, is_method: bool) -> list[Form]:
    """The forms of a built-in function, from the schemas of its overloads. Overloads that differ only in what kind of
    operand a parameter takes are one form."""
    merged: dict[tuple[str, ...], list[Parameter]] = {}
    plain: set[tuple[str, ...]] = set()
    with_out: set[tuple[str, ...]] = set()
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{aten}"):
        types = [str(argument.type) for argument in schema.arguments]
        if "names" in schema.overload_name or "dimname" in schema.overload_name or not _is_dispatched(schema):
            continue
        outs = sum(argument.is_out for argument in schema.arguments)
        if outs > 1 or "List[str]" in types:
            continue
        parameters = [
            _parameter(argument, place, is_method)
            for place, argument in enumerate(schema.arguments)
            if not argument.is_out
        ]
        if is_method:
            parameters.sort(
                key=lambda parameter: parameter.name != "input"
            )  # the receiver, where the schema has it later
            parameters[:1] = [replace(parameters[0], kinds=parameters[0].kinds.replace("n", ""))]
        names = tuple(parameter.name for parameter in parameters)
        if names in merged:
            parameters = [either(a, b) for a, b in zip(merged[names], parameters, strict=True)]
        merged[names] = parameters
        (with_out if outs else plain).add(names)
    return [
        _finished(parameters, names in with_out and not is_method, names in plain)
        for names, parameters in merged.items()
        if names in plain or not is_method
    ]


def _finished(parameters: list[Parameter], out: bool, optional: bool) -> Form:
    """The form, with `out=` where an overload has it: not to be left away where no other overload is like it."""
    if any(parameter.name == "device" for parameter in parameters):
        parameters = [*parameters, Parameter("requires_grad", "", True, "0", frozenset({FREE}))]
    if out:
        parameters = [*parameters, Parameter("out", "to", True, "N" if optional else None)]
    return Form(tuple(parameters))


def _is_dispatched(schema: Any) -> bool:
    """Is it an op of the dispatcher? Others exist in TorchScript only."""
    try:
        torch._C._dispatch_find_schema_or_throw(schema.name, schema.overload_name)
    except RuntimeError:
        return False
    return True


_KINDS = {
    "Tensor": "t",
    "Optional[Tensor]": "to",
    "List[Tensor]": "T",
    "List[Optional[Tensor]]": "T",
    "number": "n",
    "Optional[number]": "no",
}


def _parameter(argument: Any, place: int, is_method: bool) -> Parameter:
    kinds = "d" if argument.name in ("dtype", "out_dtype") else _KINDS.get(str(argument.type), "")
    if "List[int]" in str(argument.type) and place == (1 if is_method else place) and place < 2:
        kinds = "v"
    name = "input" if argument.name == "self" else argument.name
    default = token(argument.default_value) if argument.has_default_value() else None
    if argument.name == "dtype" and default is not None:
        default = "N"
    seen = frozenset({FREE}) if name in FREE_PARAMETERS else frozenset()
    return Parameter(name, kinds, argument.kwarg_only, default, seen)
