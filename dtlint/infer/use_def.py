"""Reaching definitions: which bindings a variable may have where it is read, in one function or a module's own statements."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dtlint.infer.walk import parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Reaching"]

_Bound = dict[str, tuple[ast.AST, ...]]
"""The nodes that may have bound each name, at one point."""
_HIDING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


class Reaching:
    """The definitions that reach each use in a scope, those of functions inside it aside.

    Bodies of loops are walked twice, for what an earlier round has bound; a `try` may be left from each of its statements.
    """

    def __init__(self, scope: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        self._uses: dict[ast.Name, tuple[ast.AST, ...]] = {}
        self._all: dict[str, dict[ast.AST, None]] = {}
        self._bound: _Bound | None = {}
        self._again = False
        """Is a loop's body walked for the second time? Loops inside it have been walked twice then."""
        if not isinstance(scope, ast.Module):
            given = scope.args
            for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
                if one is not None:
                    self._bind(one.arg, one)
        if isinstance(scope, ast.Lambda):
            self._read(scope.body)
        else:
            self._block(scope.body)

    def definitions(self, name: ast.Name) -> tuple[ast.AST, ...]:
        """What may have bound the variable that is read there; empty for one of another scope."""
        return self._uses.get(name, ())

    def everywhere(self, name: str) -> tuple[ast.AST, ...]:
        """All that binds a name in the scope."""
        return tuple(self._all.get(name, ()))

    def _bind(self, name: str, node: ast.AST, *, perhaps: bool = False) -> None:
        self._all.setdefault(name, {})[node] = None
        if self._bound is not None:
            known = self._bound.get(name, ()) if perhaps else ()
            self._bound[name] = (*known, node) if node not in known else known

    def _read(self, *nodes: ast.AST | None) -> None:
        """Expressions, in the order in which they are evaluated, roughly."""
        for node in nodes:
            if node is None:
                continue
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    self._use(node)
                continue
            if isinstance(node, ast.NamedExpr):
                self._read(node.value)
                self._bind(node.target.id, node.value)
                continue
            if isinstance(node, ast.Lambda):
                self._read(*node.args.defaults, *node.args.kw_defaults)
                continue
            if isinstance(node, _COMPREHENSIONS):
                self._comprehension(node)
                continue
            self._read(*parts(node))

    def _use(self, name: ast.Name) -> None:
        if self._bound is not None:
            known = self._uses.get(name, ())
            now = self._bound.get(name.id, ())
            self._uses[name] = (*known, *(one for one in now if one not in known))

    def _comprehension(self, node: Any) -> None:
        before = None if self._bound is None else dict(self._bound)
        for generator in node.generators:
            self._read(generator.iter)
            self._target(generator.target, generator, outside=False)
            self._read(*generator.ifs)
        self._read(*([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]))
        self._bound = before

    def _target(self, target: ast.expr, node: ast.AST, *, outside: bool = True) -> None:
        if isinstance(target, ast.Name):
            if outside:
                self._bind(target.id, node)
            elif self._bound is not None:
                self._bound[target.id] = (node,)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one in target.elts:
                self._target(one, node if not isinstance(node, ast.expr) else one, outside=outside)
        elif isinstance(target, ast.Starred):
            self._target(target.value, target, outside=outside)
        else:
            self._read(*parts(target))

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _branches(self, *bodies: Sequence[ast.stmt]) -> None:
        start = self._bound
        ends: list[_Bound | None] = []
        for body in bodies:
            self._bound = None if start is None else dict(start)
            self._block(body)
            ends.append(self._bound)
        self._bound = _joined(ends)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign():
                self._read(node.value)
                for target in node.targets:
                    self._assigned(target, node.value)
            case ast.AnnAssign():
                self._read(node.annotation, node.value)
                if node.value is not None:
                    self._target(node.target, node.value)
            case ast.AugAssign():
                self._read(node.value)
                if isinstance(node.target, ast.Name):
                    self._use(node.target)
                    self._bind(node.target.id, node)
                else:
                    self._read(*ast.iter_child_nodes(node.target))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._read(*node.decorator_list, *node.args.defaults, *node.args.kw_defaults)
                self._bind(node.name, node)
            case ast.ClassDef():
                self._read(*node.decorator_list, *node.bases)
                self._bind(node.name, node)
            case ast.Import() | ast.ImportFrom():
                for alias in node.names:
                    self._bind((alias.asname or alias.name).partition(".")[0], alias)
            case ast.If():
                self._read(node.test)
                self._branches(node.body, node.orelse)
            case ast.While():
                self._loop(node, None, [node.test])
            case ast.For() | ast.AsyncFor():
                self._read(node.iter)
                self._loop(node, node.target, [])
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self._read(item.context_expr)
                    if item.optional_vars is not None:
                        self._target(item.optional_vars, item)
                self._block(node.body)
            case ast.Try():
                self._try(node)
            case ast.Match():
                self._match(node)
            case ast.Delete():
                for target in node.targets:
                    if isinstance(target, ast.Name) and self._bound is not None:
                        self._bound.pop(target.id, None)
                    else:
                        self._read(target)
            case ast.Return() | ast.Raise():
                self._read(*parts(node))
                self._bound = None
            case ast.Break() | ast.Continue():
                self._bound = None
            case _:
                self._read(*parts(node))

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        """`a, b = x, y` binds each to its own."""
        if (
            isinstance(target, (ast.Tuple, ast.List))
            and isinstance(value, (ast.Tuple, ast.List))
            and len(target.elts) == len(value.elts)
            and not any(isinstance(one, ast.Starred) for one in (*target.elts, *value.elts))
        ):
            for one, given in zip(target.elts, value.elts, strict=True):
                self._assigned(one, given)
        else:
            self._target(target, value)

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, target: ast.expr | None, tests: Iterable[ast.expr]
    ) -> None:
        start = None if self._bound is None else dict(self._bound)
        left = _leaving(node.body)
        inside: list[_Bound | None] = [start]
        again = self._again
        for number in range(1 if again else 2):
            self._again = again or number == 1
            self._read(*tests)
            if target is not None:
                self._target(target, node)
            self._block(node.body)
            # a `break` or a `continue` may leave from anywhere: what any statement of the body binds may hold
            if left and self._bound is None and start is not None:
                self._bound = dict(start)
            if left and self._bound is not None:
                for name, values in self._everything_in(node.body).items():
                    known = self._bound.get(name, ())
                    self._bound[name] = (*known, *(one for one in values if one not in known))
            inside.append(None if self._bound is None else dict(self._bound))
            self._bound = _joined(inside)
        self._again = again
        self._block(node.orelse)

    def _try(self, node: ast.Try) -> None:
        start = None if self._bound is None else dict(self._bound)
        self._block(node.body)
        end = self._bound
        thrown = _joined([start, end]) if end is not None else start
        if thrown is not None:
            for name, values in self._everything_in(node.body).items():
                known = thrown.get(name, ())
                thrown[name] = (*known, *(one for one in values if one not in known))
        ends: list[_Bound | None] = []
        for handler in node.handlers:
            self._bound = None if thrown is None else dict(thrown)
            self._read(handler.type)
            if handler.name:
                self._bind(handler.name, handler)
            self._block(handler.body)
            ends.append(self._bound)
        self._bound = end
        self._block(node.orelse)
        ends.append(self._bound)
        self._bound = _joined(ends)
        if self._bound is None and node.finalbody:
            self._bound = None if thrown is None else dict(thrown)
            self._block(node.finalbody)
            self._bound = None
        else:
            self._block(node.finalbody)

    def _match(self, node: ast.Match) -> None:
        self._read(node.subject)
        start, ends = self._bound, [self._bound]
        for case in node.cases:
            self._bound = None if start is None else dict(start)
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(name, str):
                    self._bind(name, part)
            self._read(case.guard)
            self._block(case.body)
            ends.append(self._bound)
        self._bound = _joined(ends)

    def _everything_in(self, body: Sequence[ast.stmt]) -> _Bound:
        """All that statements bind, on whatever path."""
        inner: set[ast.AST] = set()
        waiting: list[ast.AST] = list(body)
        while waiting:
            node = waiting.pop()
            inner.add(node)
            if not isinstance(node, _HIDING):
                waiting += ast.iter_child_nodes(node)
        found = {name: tuple(one for one in nodes if one in inner) for name, nodes in self._all.items()}
        return {name: nodes for name, nodes in found.items() if nodes}


def _leaving(body: Sequence[ast.stmt]) -> bool:
    """Is a loop's body left by a `break` or a `continue` of its own?"""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Break, ast.Continue)):
            return True
        if not isinstance(node, (*_HIDING, ast.expr)):
            waiting += ast.iter_child_nodes(node)
    return False


def _joined(ends: Iterable[_Bound | None]) -> _Bound | None:
    """What may be bound where paths meet; None where none gets there."""
    found: _Bound | None = None
    for end in ends:
        if end is None:
            continue
        if found is None:
            found = dict(end)
            continue
        for name, values in end.items():
            known = found.get(name, ())
            found[name] = (*known, *(one for one in values if one not in known))
    return found
