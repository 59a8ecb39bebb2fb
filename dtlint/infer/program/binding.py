"""Binding arguments to parameters: the names that a function's body begins with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.values import UNKNOWN, Items, Table, Value, join

if TYPE_CHECKING:
    from dtlint.infer.scopes import FunctionInfo

__all__ = ["Perhaps", "bound_names"]


@dataclass(slots=True)
class Perhaps(Value):
    """An argument that is given on some paths only; on the others the parameter has its default."""

    value: Value


def bound_names(
    info: FunctionInfo, args: list[Value], keywords: dict[str, Value], complete: bool, defaults: dict[str, Value]
) -> dict[str, Value]:
    """The names that a function's body begins with, for these arguments."""
    arguments = info.node.args
    bound: dict[str, Value] = {}
    left: dict[str, Value] = dict(keywords)
    positional = arguments.posonlyargs + arguments.args
    for position, argument in enumerate(positional):
        name = argument.arg
        if position < len(args):
            bound[name] = args[position]
        elif name in left:
            bound[name] = _given(left.pop(name), defaults.get(name, UNKNOWN))
        else:
            bound[name] = defaults.get(name, UNKNOWN) if complete else UNKNOWN
    for argument in arguments.kwonlyargs:
        name = argument.arg
        if name in left:
            bound[name] = _given(left.pop(name), defaults.get(name, UNKNOWN))
        else:
            bound[name] = defaults.get(name, UNKNOWN) if complete else UNKNOWN
    if arguments.vararg is not None:
        bound[arguments.vararg.arg] = Items(tuple(args[len(positional) :])) if complete else UNKNOWN
    if arguments.kwarg is not None:
        items: dict[object, Value] = {
            key: value.value if isinstance(value, Perhaps) else value for key, value in left.items()
        }
        perhaps = frozenset(key for key, value in left.items() if isinstance(value, Perhaps))
        bound[arguments.kwarg.arg] = Table(items, perhaps) if complete else UNKNOWN
    return bound


def _given(value: Value, default: Value) -> Value:
    return join(default, value.value) if isinstance(value, Perhaps) else value
