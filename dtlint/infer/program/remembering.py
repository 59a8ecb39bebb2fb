"""An interpreter that hears what each expression is worth."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dtlint.infer.interpreter import Interpreter

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.values import Value

__all__ = ["Remembering"]

_KINDS = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Subscript, ast.Name, ast.IfExp)
"""The expressions that are spoken of, where they are read and not assigned to."""


class Remembering(Interpreter):
    """An interpreter that remembers what the expressions were that are spoken of."""

    def evaluator(self, kind: type[ast.expr], evaluate: Callable[[Any], Value]) -> Callable[[Any], Value]:
        def remembered(node: ast.expr) -> Value:
            value: Value = evaluate(node)
            if not self.muted:
                self.remember(node, value)
            return value

        return remembered if kind in _KINDS else evaluate

    def passed(self, part: ast.BinOp, value: Value) -> None:
        if not self.muted:
            self.remember(part, value)

    def remember(self, node: ast.expr, value: Value) -> None:
        """An expression was evaluated, not for the first time perhaps."""
        raise NotImplementedError
