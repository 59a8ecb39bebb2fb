"""Generators: their bodies run when somebody takes items, in between what that one does, and not where they are called.

A body that is read where it is called finds what is there at its first item. Behind a `yield`, and in a generator that is
kept for later, others have run: modules may have been cast, lists filled, regions opened and names bound anew.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.program.frames import Frame
from dtlint.infer.program.free import free_names
from dtlint.infer.program.functions import ANY_REGION
from dtlint.infer.program.held import is_container, shares
from dtlint.infer.program.turns import Turns
from dtlint.infer.survey import facts
from dtlint.infer.values import UNKNOWN, Autocast, Class, Function, Instance, Module, Value
from dtlint.infer.walk import SCOPES, nodes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.infer.program_state import State
    from dtlint.infer.scopes import FunctionInfo

__all__ = ["Generators"]

_LAZY = frozenset({"zip", "map", "filter", "enumerate", "iter", "cycle", "islice", "chain"})
"""Functions that take items of what they are given when somebody takes theirs."""


class Generators(Turns):
    """An interpreter that knows that generators run later."""

    around_class: dict[str, Value] | None = None
    """The names around the class whose body is run."""

    # -- expressions

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        state = self.flow.state
        if not self.publishing and self.around_class is not None:
            self.flow.state = self.state_in_class(state, node)
            made = super().comprehension(node)
            self.flow.state = state
            return made
        if not isinstance(node, ast.GeneratorExp) or not self.runs_later(node):
            return super().comprehension(node)
        self.flow.state = self.state_later(state, node)
        self.flow.contexts.append(ANY_REGION)
        made = super().comprehension(node)
        self.flow.contexts.pop()
        self.flow.state = state
        for part in nodes([node], SCOPES) if self.binds(node) else ():
            if isinstance(part, ast.NamedExpr):  # who knows when
                self.bind_name(part.target.id, UNKNOWN)
        return made

    def define_class(self, node: ast.ClassDef) -> None:
        outer, self.around_class = self.around_class, self.flow.state.names.copy()
        super().define_class(node)
        self.around_class = outer

    def state_in_class(self, state: State, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> State:
        """A comprehension in the body of a class does not see what that has bound, but for what it goes over first."""
        inside = state.copy()
        kept = {part.id for part in ast.walk(node.generators[0].iter) if isinstance(part, ast.Name)}
        around = self.around_class or {}
        for name, value in state.names.items():
            if around.get(name) is not value and name not in kept:
                inside.names[name] = UNKNOWN
        return inside

    def runs_later(self, node: ast.GeneratorExp) -> bool:
        """Is nothing of it run where it stands? What is handed to a function of Python's or of torch's mostly is."""
        taker = _takers(self.tree).get(node)
        if taker is None or taker is node:
            return taker is None
        called = self.quietly(taker)
        return isinstance(called, (Function, Class, Instance, Module))

    def state_later(self, state: State, node: ast.GeneratorExp) -> State:
        """What is known of names that stay what they are, whenever it runs."""
        later = state.copy()
        later.paths.clear()
        later.casts.update(dict.fromkeys(self.ever_cast, (self.clock, None)))
        bound = _bindings(self.flow.scope)
        first = node.generators[0].iter  # which is run at once
        kept = {part.id for part in ast.walk(first) if isinstance(part, ast.Name)}
        for name, value in later.names.items():
            if is_container(value) or (name not in kept and bound[name] > 1):
                later.names[name] = UNKNOWN
        return later

    # -- functions

    def regions_of_generator(self, info: FunctionInfo) -> list[Autocast]:
        """The regions in which the body of a generator runs beside those around its call: it is run where a loop takes items
        of it; if that is elsewhere, any may be open."""
        if not facts(info.node).yields or id(info.node) in self.managing or not self.regions_opened:
            return []
        return [] if isinstance(self.flow.statement, (ast.For, ast.AsyncFor)) else [ANY_REGION]

    def apply_itself(
        self,
        info: FunctionInfo,
        receiver: Value | None,
        args: Sequence[Value],
        keywords: dict[str, Value],
        complete: bool,
        paths: Mapping[str, Value],
    ) -> Value:
        if not facts(info.node).yields or id(info.node) in self.managing:
            return super().apply_itself(info, receiver, args, keywords, complete, paths)
        for frame in info.names:
            if isinstance(frame, Frame) and frame.function is not None:  # its names may be others at the next item
                bound = _bindings(frame.function.node)
                frame.run_wild(name for name in free_names(info.node) if bound[name] > 1)
        if isinstance(self.flow.statement, (ast.For, ast.AsyncFor)):
            result = super().apply_itself(info, receiver, args, keywords, complete, paths)
        else:
            result = self.kept_for_later(info, receiver, args, keywords, complete, paths)
        if any(region is not None for region in self.regions_at_yield.get(id(info.node), ())):
            self.regions_lost()  # it is open while somebody has the item
        return result

    def kept_for_later(
        self,
        info: FunctionInfo,
        receiver: Value | None,
        args: Sequence[Value],
        keywords: dict[str, Value],
        complete: bool,
        paths: Mapping[str, Value],
    ) -> Value:
        """Read a generator that is not taken apart where it is made: it may start at any time from here on."""
        for value in (*args, *keywords.values()):
            self.lose_container(value)
        args = [UNKNOWN if is_container(value) else value for value in args]
        keywords = {name: UNKNOWN if is_container(value) else value for name, value in keywords.items()}
        state = self.flow.state
        before = state.casts.copy()
        state.casts.update(dict.fromkeys(self.ever_cast, (self.clock, None)))
        start = state.casts.copy()
        result = super().apply_itself(info, receiver, args, keywords, complete, paths)
        cast = [key for key, now in state.casts.items() if start.get(key) != now]
        state.casts = before | dict.fromkeys(cast, (self.clock, None))
        return result

    def yielded(self, node: ast.Yield | ast.YieldFrom) -> Value:
        value = super().yielded(node)
        state = self.flow.state
        state.casts.update(dict.fromkeys(self.ever_cast, (self.clock, None)))
        state.paths.clear()
        own = {name: known for name, known in state.names.items() if is_container(known)}
        around = [one for frame in self.frames if own for one in frame.names.values() if is_container(one)]
        for name, known in own.items():
            if shares(known, around):
                state.names[name] = UNKNOWN
        return value


@lru_cache(maxsize=64)
def _takers(tree: ast.Module) -> dict[ast.GeneratorExp, ast.expr]:
    """The generator expressions of a file whose items are taken where they stand: each with the function that is called with
    it, or with itself where a loop or a star takes them."""
    found: dict[ast.GeneratorExp, ast.expr] = {}
    for part in ast.walk(tree):
        if isinstance(part, ast.Call):
            name = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
            for given in () if name in _LAZY else (*part.args, *(word.value for word in part.keywords)):
                inner = given.value if isinstance(given, ast.Starred) else given
                if isinstance(inner, ast.GeneratorExp):
                    found[inner] = inner if isinstance(given, ast.Starred) else part.func
        elif isinstance(part, (ast.For, ast.AsyncFor, ast.comprehension)) and isinstance(part.iter, ast.GeneratorExp):
            found[part.iter] = part.iter
        elif isinstance(part, (ast.Starred, ast.YieldFrom)) and isinstance(part.value, ast.GeneratorExp):
            found[part.value] = part.value
        elif isinstance(part, ast.Compare):  # `x in (...)`
            found.update((one, one) for one in part.comparators if isinstance(one, ast.GeneratorExp))
    return found


@lru_cache(maxsize=256)
def _bindings(scope: ast.AST) -> Counter[str]:
    """How often a scope binds each name."""
    arguments = getattr(scope, "args", None)
    given = [] if arguments is None else [part.arg for part in ast.walk(arguments) if isinstance(part, ast.arg)]
    body = scope.body if isinstance(getattr(scope, "body", None), list) else [scope]  # type: ignore[attr-defined]
    found = Counter(given)
    for part in nodes(body):
        if isinstance(part, ast.Name) and isinstance(part.ctx, (ast.Store, ast.Del)):
            found[part.id] += 1
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[part.name] += 1
        elif isinstance(part, ast.alias):
            found[(part.asname or part.name).partition(".")[0]] += 1
        elif isinstance(part, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and part.name:
            found[part.name] += 1
    return found
