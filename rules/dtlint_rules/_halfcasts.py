"""Casts to half that stand right where something is given: `F.softmax(x.half(), -1)`."""

from __future__ import annotations

import ast

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint_rules._meanings import written_dtype

__all__ = ["half_named"]


def half_named(node: ast.expr) -> str | None:
    """The half dtype that an argument is cast to where it is given: `x.half()`, `x.to(torch.bfloat16)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    name = node.func.attr
    if name in ("half", "bfloat16") and not node.args:
        return "float16" if name == "half" else name
    told = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "dtype")]
    if name not in ("to", "type") or len(told) != 1:
        return None
    dtype = written_dtype(told[0])
    return dtype if dtype in LOW_PRECISION else None
