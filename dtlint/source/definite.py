"""Definite assignment: is a name bound on every path on which the program comes to a place of its function?"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.source.blocks import blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dtlint.source.enclosing import Scope

__all__ = ["is_bound"]

_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def is_bound(name: str, at: ast.expr | ast.stmt, scope: Scope | ast.Module) -> bool:
    """Is it bound for certain? Loops may run no time, and what a `while` or a `match` binds is not followed."""
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        taken = scope.args
        every = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg, taken.kwarg]
        if any(each is not None and each.arg == name for each in every):
            return True
    return not isinstance(scope, ast.Lambda) and _bound_before(name, at, scope.body)


def _bound_before(name: str, at: ast.expr | ast.stmt, block: Sequence[ast.stmt]) -> bool:
    for statement in block:
        if not _holds(statement, at):
            if _binds(statement, name):
                return True
            continue
        inner = next((each for each in blocks_of(statement) if any(_holds(part, at) for part in each)), None)
        if inner is None:
            return _bound_by_comprehension(name, at, statement)
        if inner is getattr(statement, "body", None) and name in _names(_at_entry(statement)):
            return True
        handlers = statement.handlers if isinstance(statement, ast.Try) else []
        if any(handler.body is inner and handler.name == name for handler in handlers):
            return True
        return _bound_before(name, at, inner)
    return False


def _binds(statement: ast.stmt, name: str) -> bool:
    """Is the name bound behind the statement, whichever way it goes?"""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return any((alias.asname or alias.name.partition(".")[0]) == name for alias in statement.names)
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return statement.name == name
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return name in _names(_at_entry(statement)) or _all_bind(statement.body, name)
    if isinstance(statement, ast.If):
        return all(_all_bind(block, name) or _leaves(block) for block in (statement.body, statement.orelse))
    if isinstance(statement, ast.Try):
        handled = all(_all_bind(handler.body, name) or _leaves(handler.body) for handler in statement.handlers)
        passed = _all_bind(statement.body, name) or _all_bind(statement.orelse, name)
        return _all_bind(statement.finalbody, name) or (passed and handled)
    if isinstance(statement, ast.Assign):
        return name in _names(statement.targets)
    return isinstance(statement, ast.AnnAssign) and statement.value is not None and name in _names([statement.target])


def _all_bind(block: Sequence[ast.stmt], name: str) -> bool:
    return any(_binds(statement, name) for statement in block)


def _leaves(block: Sequence[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], _LEAVING)


def _at_entry(statement: ast.stmt) -> list[ast.expr]:
    """What is bound when the body of a statement begins."""
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return [statement.target]
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return [item.optional_vars for item in statement.items if item.optional_vars is not None]
    return []


def _bound_by_comprehension(name: str, at: ast.expr | ast.stmt, statement: ast.stmt) -> bool:
    return any(
        name in _names(clause.target for clause in part.generators)
        for part in ast.walk(statement)
        if isinstance(part, _COMPREHENSIONS) and _holds(part, at)
    )


def _names(targets: Iterable[ast.expr]) -> set[str]:
    """The names that some targets bind; a subscript or an attribute binds none."""
    return {
        part.id
        for target in targets
        for part in ast.walk(target)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }


def _holds(outer: ast.expr | ast.stmt, inner: ast.expr | ast.stmt) -> bool:
    """Does one stand in the text of the other? Decorators stand above what they decorate."""
    assert outer.end_lineno is not None and outer.end_col_offset is not None, "parsed code has places"
    assert inner.end_lineno is not None and inner.end_col_offset is not None, "parsed code has places"
    begins = (outer.lineno, outer.col_offset) <= (inner.lineno, inner.col_offset)
    return begins and (inner.end_lineno, inner.end_col_offset) <= (outer.end_lineno, outer.end_col_offset)
