"""The limit of one dtype put into a tensor of another, `full(n, iinfo(uint32).max, dtype=int32)`, which does not have
it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from dtlint.dtypes.dtype import DTYPES, INTEGRAL
from dtlint.infer.names import path_of
from dtlint_rules._names import last_name
from dtlint_rules._parts import keyword
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["Limit", "limit_beyond"]

_ENDS = frozenset({"min", "max"})
_BOUNDS = frozenset({"low", "high", "minimum", "maximum", "fill_value"})
"""Keywords of what is put into a tensor, or bounds what is: those of a space of observations are of its dtype, too."""
_MAKERS = frozenset(
    {"full", "full_like", "new_full", "tensor", "as_tensor", "new_tensor", "array", "asarray", "randint", "integers"}
)
"""What makes a tensor or array of the numbers that it is given by position."""


class Limit(NamedTuple):
    """A limit, what it is worth, and the dtype that it meets."""

    node: ast.Attribute
    value: int
    dtype: str


def limit_beyond(call: ast.Call, flow: Flow) -> Limit | None:
    """What `iinfo(uint32)` is asked for, where that is beyond the dtype of what it is handed to."""
    around = parents_at(call, flow)
    limit = around.get(call)
    if not isinstance(limit, ast.Attribute) or limit.attr not in _ENDS or len(call.args) != 1:
        return None
    maker, named = around.get(limit), False
    if isinstance(maker, ast.keyword):
        maker, named = (around.get(maker), True) if maker.arg in _BOUNDS else (None, False)
    if not isinstance(maker, ast.Call) or maker.func is limit:
        return None
    name = last_name(maker)
    if name not in _MAKERS and not (named and name[:1].isupper()):  # `Box`, while `rescale` may take a range of others
        return None
    source, dtype = _integral(call.args[0]), _integral(keyword(maker, "dtype"))
    if source is None or dtype is None:
        return None
    value = getattr(DTYPES[source], limit.attr)
    return None if DTYPES[dtype].min <= value <= DTYPES[dtype].max else Limit(limit, int(value), dtype)


def _integral(node: ast.expr | None) -> str | None:
    """A dtype of whole numbers, by its name: `np.int32`, `torch.int32`, `"int32"`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        name = node.value
    else:
        name = "" if node is None else (path_of(node) or "").rpartition(".")[2]
    return name if name in INTEGRAL and name in DTYPES else None
