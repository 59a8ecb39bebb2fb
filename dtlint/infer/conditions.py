"""What tests say together: taken apart into plain ones, and whether two places can lie on one path."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.events import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["atoms", "exclusive", "taken_apart"]


def atoms(conditions: Iterable[Condition]) -> Iterator[Condition]:
    """What must hold for conditions to: both sides of an `and` that is true, neither side of an `or` that is not."""
    for condition in conditions:
        test, holds = condition.test, condition.holds
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            yield from atoms([Condition(test.operand, not holds)])
        elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
            yield from atoms(Condition(part, holds) for part in test.values)
        else:
            yield condition


def taken_apart(condition: Condition) -> Iterable[Condition]:
    """The same of one condition. Most tests are neither `and`, `or` nor `not`: those are what they are."""
    kind = type(condition.test)
    return atoms((condition,)) if kind is ast.BoolOp or kind is ast.UnaryOp else (condition,)


def exclusive(some: Iterable[Condition], others: Iterable[Condition]) -> bool:
    """Do the conditions contradict each other, so that no path goes through both places?"""
    known = {ast.dump(part.test): part.holds for part in atoms(some)}
    return any(known.get(ast.dump(part.test), part.holds) is not part.holds for part in atoms(others))
