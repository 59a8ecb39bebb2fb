"""The variance that batch normalization keeps, taken without its epsilon: `running_var.rsqrt()` is inf for a channel
that never varied."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.walk import nodes
from dtlint_rules._distances import ROOTS
from dtlint_rules._edges import Edge, keeps
from dtlint_rules._guards import is_guarded
from dtlint_rules._names import last_name, names_in, said
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from dtlint.infer.events import Call

__all__ = ["unguarded_variance"]

_VARIANCE = re.compile(r"^(?:\w+_)?(?:running|moving)_var(?:iance)?$")
_EPSILON = re.compile(r"eps")
_SMALL = 1e-2


def unguarded_variance(variance: ast.expr, call: Call) -> Edge | None:
    """`self.running_var.rsqrt()`, and `x / running_var.sqrt()`, in code that knows of no epsilon."""
    flow, name = call.flow, last_name(call.node)
    if _VARIANCE.search(last_name(variance)) is None or (name in ROOTS and not is_guarded(call.node, flow)):
        return None
    owner = flow.function.owner if flow.function is not None else None
    if _knows_epsilon(owner.node if owner is not None else flow.scope):
        return None
    return Edge(
        f"`{short(variance)}` is 0 for a constant channel, where one over its root is inf",
        f"Add the epsilon of the layer: `({short(variance)} + eps).rsqrt()`",
        by_name=True,
    )


def _knows_epsilon(place: ast.AST) -> bool:
    """Does a class or function speak of an epsilon, write a small number, keep anything from 0 or compare a variance?"""
    if any(_EPSILON.search(word.lower()) is not None for word in said(place)):
        return True
    for part in nodes([place]):
        if isinstance(part, ast.Constant) and isinstance(part.value, float) and 0 < part.value < _SMALL:
            return True
        if isinstance(part, ast.Call) and keeps(part):
            return True
        compares = isinstance(part, ast.Compare) and not isinstance(part.ops[0], (ast.Is, ast.IsNot))
        if compares and any(_VARIANCE.search(word) is not None for word in names_in(part)):
            return True
    return False
