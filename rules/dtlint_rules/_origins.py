"""The origins of every expression of one function: what it is given, casts, makes, calls.

Inference says what is proved of a value. Of what a model returns or a caller hands over it knows nothing; these origins
still tell that one of two operands was cast to the dtype of the other, and that its sibling was not.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint_rules._functions import parameters
from dtlint_rules._kept import kept
from dtlint_rules._origin import NOTHING, Kind, Origin, few
from dtlint_rules._provenance import Provenance

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Origins", "origins_of"]

_LOAD = ast.Load()
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Origins(Provenance):
    """One function, read statement by statement."""

    def __init__(self, scope: ast.AST) -> None:
        super().__init__()
        for parameter in parameters(scope):
            self.bound[parameter.arg] = frozenset({Origin(Kind.GIVEN, parameter.arg, _name_of(parameter))})
        body = getattr(scope, "body", [])
        if isinstance(body, ast.expr):
            self.read(body)
        else:
            self._block(body)

    def _block(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            roots = self.read(node.value)
            for target in node.targets:
                self.bind(target, roots, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.bind(node.target, self.read(node.value), node.value)
        elif isinstance(node, ast.AugAssign):
            held, given = self.read(node.target), self.read(node.value)
            self.bind(node.target, held or given, node.value)
        elif isinstance(node, (ast.Expr, ast.Return)) and node.value is not None:
            self.read(node.value)
        elif isinstance(node, (ast.If, ast.While)):
            self.read(node.test)
            self._branches(node.body, node.orelse)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self.bind(node.target, self.read(node.iter), node.iter)
            self._branches(node.body, node.orelse)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self.read(item.context_expr)
            self._block(node.body)
        elif isinstance(node, ast.Try):
            self._block(node.body)
            for handler in node.handlers:
                self._branches(handler.body, [])
            self._block([*node.orelse, *node.finalbody])

    def _branches(self, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        before = dict(self.bound)
        self._block(body)
        after = self.bound
        self.bound = dict(before)
        self._block(orelse)
        if _leaves(body):
            return
        if _leaves(orelse):
            self.bound = after
            return
        for name in after.keys() | self.bound.keys():
            if after.get(name) is self.bound.get(name):
                continue
            default = before.get(name, NOTHING)
            if not default and "." in name:
                default = frozenset({Origin(Kind.GIVEN, name, _placeless(name))})
            self.bound[name] = few(after.get(name, default) | self.bound.get(name, default))


def _name_of(parameter: ast.arg) -> ast.expr:
    """A parameter, as an expression of its place."""
    return ast.Name(
        parameter.arg,
        _LOAD,
        lineno=parameter.lineno,
        col_offset=parameter.col_offset,
        end_lineno=parameter.end_lineno,
        end_col_offset=parameter.end_col_offset,
    )


def _placeless(path: str) -> ast.expr:
    """An attribute that only one branch assigned: before, it was what it is given."""
    return ast.Name(path, _LOAD, lineno=1, col_offset=0)


def _leaves(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], _LEAVING)


@kept
def origins_of(scope: ast.AST) -> Origins:
    """The origins of a function's expressions. Kept for the functions asked of last."""
    return Origins(scope)
