"""Methods of what may be a tensor, as most parameters without an annotation are: what they give has the tensor's dtype, if it
is one.

Arrays of NumPy have many of these methods, too. So of a parameter, whose dtype a symbol stands for, no more is told than what
the symbol decides: `x.argmax()` is int64 of a tensor, but `x` may be an array. What was cast, `x.float()`, is no array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import NeverReturns
from dtlint.infer.domain.values import TOP, Const, Many, Number, Tensor, Tuple, Unknown, Value
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.handed_over import supposed
from dtlint.infer.models.ops import is_op
from dtlint.infer.models.registry import MODELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.context import Context

__all__ = ["CASTS", "has_method", "is_assumed", "is_of_tensors", "told", "was_cast"]

CASTS = frozenset(
    {"to", "float", "half", "double", "bfloat16", "long", "int", "short", "char", "byte", "bool", "type_as"}
)
"""Methods that give a tensor of a known dtype whatever they are called on, if it is a tensor: nothing else goes by these
names."""

_CONTAINERS = (dict, list, set, str, bytes)
"""Python's own, which have methods such as `copy`, `add` and `split`."""


def was_cast(value: Unknown) -> bool:
    """Was it cast? Nothing but tensors, and modules, which have no operators, can be."""
    return value.extra >= plain_tensors.CAST and bool(value.dtypes)


def is_assumed(ctx: Context, value: Unknown) -> bool:
    """Has it only got a dtype because all floating tensors that a function is given are assumed to have it?"""
    assumed = ctx.ambient("assumed")
    return isinstance(assumed, Const) and value.dtypes == frozenset({assumed.value})


def has_method(ctx: Context, value: Unknown, name: str) -> bool:
    """Is it told of, and is that a method of tensors, none of Python's containers, and no cast?"""
    if value.symbol is None and not was_cast(value) and not is_assumed(ctx, value):
        return False
    return name not in CASTS and is_of_tensors(name)


def is_of_tensors(name: str) -> bool:
    """Is it a method of tensors, and none of Python's containers?"""
    if name.startswith("_") or any(hasattr(kind, name) for kind in _CONTAINERS):
        return False
    return f"torch.Tensor.{name}" in MODELS or is_op(f"torch.Tensor.{name}")


def told(ctx: Context, receiver: Unknown, name: str, called: Callable[[], Value]) -> Value:
    """What a method of such a value gives.

    Args:
        name: the method's.
        called: calls it as a tensor's.
    """
    try:
        result = called()
    except NeverReturns:
        return TOP
    own = supposed(ctx)
    if own and isinstance(result, (Tensor, Unknown)) and result.dtypes == own and not _is_of_arrays(name):
        return Tensor(own)
    return _if_tensor(result, receiver.dtypes, certain=was_cast(receiver))


def _is_of_arrays(name: str) -> bool:
    """Have NumPy's arrays and numbers such a method as well?"""
    return f"numpy.ndarray.{name}" in MODELS or hasattr(float, name)


def _if_tensor(result: Value, given: frozenset[str] | None, certain: bool) -> Value:
    """A result of which it is not known that it is a tensor.

    Args:
        given: the dtypes of the receiver, if it is a tensor: a result of the same is one then.
        certain: is a dtype told that does not depend on the symbol?
    """
    if isinstance(result, (Tensor, Unknown)):
        if result.dtypes is not None:
            if certain:
                return Unknown(result.dtypes, result.symbol, plain_tensors.CAST)
            return Unknown(given) if given and result.dtypes == given else TOP
        return TOP if result.symbol is None else Unknown(None, result.symbol)
    if isinstance(result, Tuple):
        return Tuple(tuple(_if_tensor(item, given, certain) for item in result.items))
    if isinstance(result, Many):
        item = _if_tensor(result.item, given, certain)
        return TOP if item == TOP else Many(item)
    return result if isinstance(result, Number) else TOP
