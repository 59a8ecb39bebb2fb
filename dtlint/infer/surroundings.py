"""What stands around a piece of code: the statement, the function and the loops that it is in, and the tests that hold there.

All of it is a matter of syntax, and is found out when it is first asked for.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from dtlint.infer.names import path_of
from dtlint.infer.use_def import Reaching
from dtlint.infer.walk import parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["FUNCTIONS", "FunctionNode", "Guard", "Scope", "Surroundings"]

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Node = TypeVar("Node", bound=ast.AST)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_BODIES = ("body", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class Guard:
    """A test that decides whether code runs, and how it came out: code behind `if test: return` runs where it is false."""

    test: ast.expr
    holds: bool


_EXPECTING = frozenset({"raises", "assertRaises", "assertRaisesRegex"})
"""What a test calls to say that a block raises."""


class Surroundings:
    """The syntax around the nodes of one module."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.displayed: frozenset[ast.stmt] = frozenset()
        """Statements whose values are shown, as at the end of a notebook's cell."""
        self._reaching: dict[ast.AST, Reaching] = {}
        self._guards: dict[ast.stmt, tuple[Guard, ...]] = {}

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        """What each node is directly a part of. The nodes come in the order of the text, each before those inside it."""
        known: dict[ast.AST, ast.AST] = {}
        waiting: list[ast.AST] = parts(self.tree)[::-1]
        above: list[ast.AST] = [self.tree] * len(waiting)
        while waiting:
            node = waiting.pop()
            known[node] = above.pop()
            if inside := parts(node):
                waiting += inside[::-1]
                above += [node] * len(inside)
        return known

    @cached_property
    def _extents(self) -> tuple[Sequence[ast.AST], dict[ast.AST, int], Sequence[int]]:
        """All nodes in that order, the place of each among them, and the place behind the last one inside it."""
        order = [self.tree, *self._parents]
        places = {node: place for place, node in enumerate(order)}
        ends = list(range(1, len(order) + 1))
        for node in reversed(order[1:]):
            above = places[self._parents[node]]
            ends[above] = max(ends[above], ends[places[node]])
        return order, places, ends

    def within(self, node: ast.AST) -> Sequence[ast.AST]:
        """A node of the module and all that stands inside it, in the order of the text, operators aside."""
        order, places, ends = self._extents
        place = places[node]
        return order[place : ends[place]]

    @cached_property
    def _by_kind(self) -> dict[type, list[ast.AST]]:
        found: dict[type, list[ast.AST]] = {}
        for node in (self.tree, *self._parents):
            found.setdefault(type(node), []).append(node)
        return found

    def of_kind(self, kind: type[Node]) -> Sequence[Node]:
        """The nodes of the module that are of exactly this kind, in the order of the text."""
        return self._by_kind.get(kind, ())  # type: ignore[return-value]

    def functions(self) -> Sequence[ast.FunctionDef | ast.AsyncFunctionDef]:
        """All functions of the module and its methods, lambdas aside."""
        return (*self.of_kind(ast.FunctionDef), *self.of_kind(ast.AsyncFunctionDef))

    def with_statements(self) -> Sequence[ast.With | ast.AsyncWith]:
        """All `with` statements of the module."""
        return (*self.of_kind(ast.With), *self.of_kind(ast.AsyncWith))

    def parent(self, node: ast.AST) -> ast.AST | None:
        """What a node is directly a part of; None for the module."""
        return self._parents.get(node)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, innermost first, up to the module."""
        known = self._parents
        parent = known.get(node)
        while parent is not None:
            yield parent
            parent = known.get(parent)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement of which a node is a part."""
        if isinstance(node, ast.stmt):
            return node
        return next(one for one in self.around(node) if isinstance(one, ast.stmt))

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function whose body a node is in; None for a module's or a class's own statements. A decorator,
        a default and an annotation are outside of the function that they belong to."""
        inner = node
        for one in self.around(node):
            if isinstance(one, ast.ClassDef) and inner in one.body:
                return None
            if isinstance(one, FUNCTIONS) and (inner is one.body if isinstance(one, ast.Lambda) else inner in one.body):
                return one
            inner = one
        return None

    def scope(self, node: ast.AST) -> Scope:
        """The function that a node is in, or the module."""
        return self.function(node) or self.tree

    def owner(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class whose body a node is in, its methods included."""
        return next((one for one in self.around(node) if isinstance(one, ast.ClassDef)), None)

    def expects_error(self, node: ast.AST) -> bool:
        """Does a node stand in a block of a test that is to raise, `with pytest.raises(RuntimeError):`?"""
        return any(
            isinstance(item.context_expr, ast.Call)
            and (path_of(item.context_expr.func) or "").rpartition(".")[2] in _EXPECTING
            for one in self.around(node)
            if isinstance(one, (ast.With, ast.AsyncWith))
            for item in one.items
        )

    def loops(self, node: ast.AST) -> Iterator[ast.For | ast.AsyncFor | ast.While]:
        """The loops of its function in whose body a node runs again and again, innermost first."""
        inner = node
        for one in self.around(node):
            if isinstance(one, (*FUNCTIONS, ast.ClassDef)):
                return
            if isinstance(one, (ast.For, ast.AsyncFor, ast.While)) and (
                inner in one.body or (isinstance(one, ast.While) and inner is one.test)
            ):
                yield one
            inner = one

    def block(self, node: ast.AST) -> Sequence[ast.stmt]:
        """The statements among which a node's statement stands."""
        statement = self.statement(node)
        parent = self._parents[statement]
        for name in _BODIES:
            body = getattr(parent, name, None)
            if isinstance(body, list) and statement in body:
                return body
        return [statement]

    def is_discarded(self, call: ast.expr) -> bool:
        """Is an expression a statement of its own, whose value nobody uses?"""
        parent = self._parents.get(call)
        return isinstance(parent, ast.Expr) and parent not in self.displayed

    # -- guards --------------------------------------------------------------------------------------------------------

    def guards(self, node: ast.AST) -> tuple[Guard, ...]:
        """The tests of its function that hold where a node is evaluated, outermost first: those of the branches that it is
        in, those behind whose branches the path had ended, and those to its left in `and`, `or` and `a if test else b`.
        Each is taken apart: of `a and b` that holds, both do."""
        found: list[Guard] = []
        inner = node
        for one in self.around(node):
            if isinstance(one, (*FUNCTIONS, ast.ClassDef, ast.Module)):
                if not isinstance(one, ast.Lambda):
                    found[:0] = _behind(getattr(one, "body", ()), inner)
                break
            found[:0] = self._at(one, inner)
            inner = one
        return tuple(atom for guard in found for atom in _taken_apart(guard))

    def _at(self, around: ast.AST, inner: ast.AST) -> list[Guard]:
        """The tests that a node adds for one of its parts."""
        if isinstance(around, (ast.If, ast.While)):
            if inner in around.body:
                return [Guard(around.test, True), *_behind(around.body, inner)]
            if inner in around.orelse:
                return [Guard(around.test, False), *_behind(around.orelse, inner)]
        elif isinstance(around, ast.IfExp) and inner is not around.test:
            return [Guard(around.test, inner is around.body)]
        elif isinstance(around, ast.BoolOp):
            before = around.values[: around.values.index(inner)] if inner in around.values else []
            return [Guard(test, isinstance(around.op, ast.And)) for test in before]
        elif isinstance(around, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            if not isinstance(inner, ast.comprehension):
                return [Guard(test, True) for generator in around.generators for test in generator.ifs]
        elif isinstance(around, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Try, ast.ExceptHandler)):
            for name in _BODIES:
                body = getattr(around, name, ())
                if inner in body:
                    return _behind(body, inner)
        return []

    # -- use and definition --------------------------------------------------------------------------------------------

    def definitions(self, name: ast.Name) -> tuple[ast.AST, ...]:
        """The nodes that may have bound a variable where it is read: an assignment's value, the target itself where that
        unpacks a sequence, an augmented assignment, a loop, a `with` item, an import's alias, a function, a class, or the
        parameter. Empty where they are not known; of a variable of an outer scope they are all that bind it there."""
        own = self.scope(name)
        scope: ast.AST = own
        while True:
            reaching = self._reaching.get(scope)
            if reaching is None:
                try:
                    reaching = Reaching(scope)  # type: ignore[arg-type]
                except RecursionError:  # code that is nested deeper than it can be followed: nothing is known of it
                    reaching = Reaching(ast.Module([], []))
                self._reaching[scope] = reaching
            found = reaching.definitions(name) if scope is own else reaching.everywhere(name.id)
            if found or isinstance(scope, ast.Module):
                return found
            scope = self.scope(scope)

    def definition(self, node: ast.expr) -> ast.expr:
        """What an expression is: of a variable that one assignment has bound, the value of that, and so on."""
        for _ in range(8):
            if not isinstance(node, ast.Name):
                return node
            found = self.definitions(node)
            only = found[0] if len(found) == 1 else None
            if not isinstance(only, ast.expr) or isinstance(getattr(only, "ctx", None), ast.Store):
                return node
            node = only
        return node

    def made_of(self, node: ast.expr) -> Iterator[ast.AST]:
        """The nodes of an expression, and of all that may have bound the variables in it, and so on."""
        waiting: list[ast.AST] = [node]
        seen: set[ast.AST] = set()
        while waiting:
            for one in ast.walk(waiting.pop()):
                yield one
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
                    for found in self.definitions(one):
                        if found not in seen:
                            seen.add(found)
                            if isinstance(found, ast.expr):
                                waiting.append(found)
                            else:
                                yield found


def _behind(body: Sequence[ast.stmt], inner: ast.AST) -> list[Guard]:
    """The tests before a statement of a block whose one branch leaves the block."""
    found: list[Guard] = []
    for statement in body:
        if statement is inner:
            break
        if isinstance(statement, ast.If):
            taken, passed = _leaves(statement.body), bool(statement.orelse) and _leaves(statement.orelse)
            if taken != passed:
                found.append(Guard(statement.test, passed))
        elif isinstance(statement, ast.Assert):
            found.append(Guard(statement.test, True))
    return found


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Does no path through a block reach its end?"""
    last = body[-1] if body else None
    if isinstance(last, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
        return True
    if isinstance(last, ast.If):
        return _leaves(last.body) and bool(last.orelse) and _leaves(last.orelse)
    return isinstance(last, (ast.With, ast.AsyncWith)) and _leaves(last.body)


def _taken_apart(guard: Guard) -> Iterator[Guard]:
    test, holds = guard.test, guard.holds
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _taken_apart(Guard(test.operand, not holds))
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is holds:
        for part in test.values:
            yield from _taken_apart(Guard(part, holds))
    else:
        yield guard
