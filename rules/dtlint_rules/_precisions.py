"""What a test says of the precision that a program is asked for: `mixed_precision == "bf16"`, `args.bf16`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import named
from dtlint.infer.domain.values import Const
from dtlint_rules._casts import SHORT

if TYPE_CHECKING:
    from dtlint.infer.facts import Guard, ModuleFacts

__all__ = ["asked_for", "asks_for_precision", "precision_of"]


def precision_of(name: object) -> str | None:
    """The dtype that a name stands for, `bf16` or `bfloat16`; None for other names."""
    return SHORT.get(name) or named(name) if isinstance(name, str) else None


def asked_for(facts: ModuleFacts, guard: Guard) -> frozenset[str]:
    """The dtypes of which one is asked for where a guard holds; nothing where it may hold without."""
    return frozenset(dtype for dtype in _asked(facts, guard.test, guard.holds) if dtype)


def asks_for_precision(test: ast.expr) -> bool:
    """Does a test ask for a precision in any way: by a switch, by a text, or by a dtype?"""
    for node in ast.walk(test):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
        if name is None and isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value
        if name is not None and (precision_of(name) or "dtype" in name or "precision" in name):
            return True
    return False


def _asked(facts: ModuleFacts, test: ast.expr, holds: bool) -> set[str]:
    """The dtypes that parts of a test ask for, those that are joined by `or` each for itself."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _asked(facts, test.operand, not holds)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) and holds:
        return {dtype for one in test.values for dtype in _asked(facts, one, holds)}
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        equal = isinstance(test.ops[0], (ast.Eq, ast.Is)) if holds else isinstance(test.ops[0], (ast.NotEq, ast.IsNot))
        sides = [facts.value(side) for side in (test.left, test.comparators[0])] if equal else []
        found = [precision_of(side.value) for side in sides if isinstance(side, Const)]
        return {one for one in found if one is not None}
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else None
    asked = SHORT.get(name or "") if holds else None
    return set() if asked is None else {asked}
