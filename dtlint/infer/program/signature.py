"""What a function can tell of a value that it is given: calls with values that it cannot tell apart give the same."""

from __future__ import annotations

from collections.abc import Hashable

from dtlint.infer.values import (
    Autocast,
    Class,
    Constant,
    Dtype,
    Either,
    External,
    Function,
    Instance,
    Items,
    Iteration,
    Module,
    Namespace,
    Table,
    Tensor,
    Trait,
    Unknown,
    Value,
)

__all__ = ["signature"]


_DEEPEST = 6
"""Values in one another that are told apart by what they hold; deeper ones are by their identity."""


class _Itself:
    """A value as itself, which it keeps: another that is made later has not its identity."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Itself and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def signature(value: Value, depth: int = 0, of_one_call: bool = True) -> Hashable:
    """What two values that a function cannot tell apart have in common.

    Args:
        of_one_call: are functions that two calls have made by one definition told apart?
    """
    if depth > _DEEPEST:
        return _Itself(value)
    match value:
        case Tensor():
            weight = bool(value.traits & (Trait.PARAMETER | Trait.BUFFER))
            place = value.traits & (Trait.ON_CPU | Trait.ON_CUDA)
            return ("tensor", value.dtypes, value.zero_dim, weight and (value.holder or True), place)
        case Module() | Instance():
            return (type(value).__name__, value.key)
        case Constant(value=constant):
            return ("constant", type(constant).__name__, constant if isinstance(constant, Hashable) else repr(constant))
        case Items(items=items) | Either(choices=items):
            return (type(value).__name__, tuple(signature(item, depth + 1, of_one_call) for item in items))
        case Table(items=table, perhaps=perhaps, rest=rest):
            held = tuple((repr(key), signature(item, depth + 1, of_one_call)) for key, item in table.items())
            return (
                "table",
                held,
                frozenset(perhaps),
                None if rest is None else signature(rest, depth + 1, of_one_call),
            )
        case Iteration(item=item):
            return ("iteration", signature(item, depth + 1, of_one_call))
        case Function(info=info, receiver=receiver):
            return (
                "function",
                id(info.node),
                tuple(map(id, info.names)) if of_one_call else (),
                signature(receiver, depth + 1, of_one_call) if receiver else None,
            )
        case Class(info=info):
            return ("class", id(info))
        case Unknown():
            return "unknown"
        case Dtype(name=name) | External(name=name) | Namespace(name=name):
            return (type(value).__name__, name)
        case Autocast():
            return ("autocast", value.device, value.dtype, value.enabled)
    return _Itself(value)
