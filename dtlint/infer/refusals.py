"""What torch refuses: ops whose operands, of dtypes that are known, make them raise, by the operator table.

A refusal is only told where every operand has one dtype, and where the op raises with all shapes that the operands may
have. What the CPU alone refuses, for want of a kernel, is left out.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING

from dtlint.dtypes.table import DTYPE, SCALAR, TENSOR, load
from dtlint.infer.values import Constant, Dtype, Items, Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.dtypes.form import Argument
    from dtlint.infer.values import Value

__all__ = ["refusal"]

_OF_DTYPES = re.compile(r"dtype|scalar type|Half|Float|Double|same type|expected .* but (?:got|found)", re.IGNORECASE)
"""Messages that speak of dtypes: what the table has seen refused for its shape is another matter."""


def refusal(op: str, args: Sequence[Value], keywords: Mapping[str, Value], default: str = "float32") -> str | None:
    """The message with which `op(*args, **keywords)` raises for its dtypes; None where it does not, or where that is not
    known.

    Args:
        op: its qualified name. A method's first argument is its receiver, a layer's are its weights.
    """
    table = load()
    if op not in table.ops:
        return None
    choices = [_operands(value) for value in (*args, *keywords.values())]
    if not all(choices):
        return None
    message: str | None = None
    for given in product(*choices):
        outcome = table.call(
            op, given[: len(args)], dict(zip(keywords, given[len(args) :], strict=True)), default=default
        )
        if outcome.error is None and not outcome.known and _supposes_0_dim(given, choices):
            continue  # what the table has not seen of 0-dim tensors is mostly what torch refuses for their shape
        if outcome.error is None or outcome.is_of_cpu:
            return None
        if _OF_DTYPES.search(outcome.error):
            message = message or outcome.error
    return message


def _supposes_0_dim(given: Sequence[object], choices: Sequence[list[Argument]]) -> bool:
    """Is an operand taken for 0-dim here that may as well have dimensions?"""
    return any(
        isinstance(operand, tuple) and operand[1] == SCALAR and len(choice) > 1
        for operand, choice in zip(given, choices, strict=True)
    )


def _operands(value: Value) -> list[Argument]:
    """What an argument may be to the table; nothing where that is not known for certain."""
    if isinstance(value, Tensor):
        if value.dtypes is None or len(value.dtypes) != 1:
            return []
        ranks = (TENSOR, SCALAR) if value.zero_dim is None else (SCALAR,) if value.zero_dim else (TENSOR,)
        return [(dtype, rank) for dtype in value.dtypes for rank in ranks]
    if isinstance(value, Items):
        items = [_operands(item) for item in value.items]
        return [[item[0] for item in items]] if items and all(items) else []
    if isinstance(value, Dtype):
        return [(value.name, DTYPE)]
    if isinstance(value, Constant) and isinstance(value.value, (bool, int, float, complex, str, type(None))):
        return [value.value]
    return []
