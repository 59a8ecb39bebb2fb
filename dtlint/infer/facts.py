"""What was found, by syntax node: the values that each expression has had, over all contexts in which it was evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.lattice import join
from dtlint.infer.domain.values import NO_TENSOR, Ref, Tensor, Unknown, Value, choices

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from dtlint.infer.context import Arguments, Context, Frame

__all__ = ["Facts"]

_NOTHING = NO_TENSOR


class Facts:
    """Remembers what a reading shows: the recorder of its context.

    Attributes:
        values: for each expression the join of the tensors that it was; NO_TENSOR where it never was one.
        modules: the module that holds each expression.
    """

    def __init__(self) -> None:
        self.values: dict[ast.expr, Value] = {}
        self.modules: dict[ast.expr, object] = {}
        self.context: Context | None = None

    def expression(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """An expression was evaluated, not for the first time perhaps."""
        seen = self._as_tensor(value)
        known = self.values.get(node)
        if known is None:
            self.values[node] = seen
            self.modules[node] = frame.module
        elif known is not seen and known != seen:
            self.values[node] = _both(known, seen)

    def call(self, node: ast.AST, callee: Value, arguments: Arguments, result: Value, frame: Frame) -> None:
        """A call was evaluated."""

    def _as_tensor(self, value: Value) -> Value:
        """A tensor, something that may be one, or nothing of the kind."""
        kind = type(value)
        if kind is Tensor or kind is Unknown:
            return value
        result: Value = _NOTHING
        for one in choices(value):
            if isinstance(one, Ref):
                from dtlint.infer.models.plain_tensors import is_weight, plain

                if is_weight(one) and self.context is not None:
                    one = plain(self.context, one)
            if isinstance(one, (Tensor, Unknown)):
                result = _both(result, one)
        return result

    def tensors(self) -> Iterator[tuple[ast.expr, object, Value]]:
        """Each expression that may be a tensor, with its module and its value."""
        for node, value in self.values.items():
            if value != _NOTHING:
                yield node, self.modules[node], value


def _both(known: Value, value: Value) -> Value:
    if known == _NOTHING:
        return value
    if value == _NOTHING:
        return known
    return join(known, value)
