"""Operators on what may be one of a few things: a tensor or None, a tensor or NumPy's array.

Each is taken as it comes, None aside, of which an operator would only raise.
"""

from __future__ import annotations

import ast
from functools import reduce
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.program.generators import Generators
from dtlint.infer.values import NONE, UNKNOWN, Array, Either, Number, Tensor, Unknown, Value, join, options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Choices", "beside_array"]

_BOOL = frozenset({"bool"})
_MOST_PAIRS = 12
_ELEMENTWISE = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Choices(Generators):
    """An interpreter that applies operators to each of the things that an operand may be."""

    def operated(self, operator: ast.operator, left: Value, right: Value, node: ast.expr | None) -> Value:
        if not isinstance(left, Either) and not isinstance(right, Either):
            return super().operated(operator, left, right, node)
        pairs = [(one, other) for one in _present(left) for other in _present(right)]
        if len(pairs) > _MOST_PAIRS:
            return UNKNOWN
        operated = super().operated
        return reduce(join, (operated(operator, one, other, node) for one, other in pairs))

    def negated(self, node: ast.UnaryOp, operand: Value, result: Value) -> Value:
        result = super().negated(node, operand, result)
        if result != UNKNOWN or isinstance(node.op, ast.Not):
            return result
        return _each(operand, lambda value: value, (Tensor, Number, Array))

    def indexed(self, node: ast.Subscript, base: Value, index: Value) -> Value:
        result = super().indexed(node, base, index)
        if result != UNKNOWN:
            return result
        held = base
        if isinstance(held, Either):  # a number has no items
            held = reduce(join, [choice for choice in held.choices if not isinstance(choice, Number)] or [UNKNOWN])
        return _each(held, self.item_of, (Tensor, Array))

    def compared(self, node: ast.Compare, operator: ast.cmpop, left: Value, right: Value, result: Value) -> Value:
        """What compares with a tensor gives truths, whatever the other is; with what is not known, if it is a tensor."""
        result = super().compared(node, operator, left, right, result)
        if result != UNKNOWN or len(node.ops) != 1 or not isinstance(operator, _ELEMENTWISE):
            return result
        sides = [*options(left), *options(right)]
        if not any(isinstance(side, (Tensor, Unknown)) for side in sides):
            return result
        return Either((Tensor(_BOOL, origin=node), Array(_BOOL), Number(Category.BOOL)))


def beside_array(receiver: Either, result: Value) -> Value:
    """What a method gives of a tensor, where the receiver may be NumPy's array as well, whose methods are its own."""
    if isinstance(result, Tensor) and any(isinstance(choice, Array) for choice in receiver.choices):
        return Either((result, Array()))
    return result


def _present(value: Value) -> Sequence[Value]:
    """What a value may be, None aside."""
    return [choice for choice in options(value) if choice != NONE] or [value]


def _each(value: Value, of: Callable[[Value], Value], kinds: tuple[type[Value], ...]) -> Value:
    """What comes of each thing that a value may be, if they are all of these kinds."""
    if not isinstance(value, Either):
        return UNKNOWN
    present = _present(value)
    return reduce(join, map(of, present)) if all(isinstance(choice, kinds) for choice in present) else UNKNOWN
