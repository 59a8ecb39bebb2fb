"""Loops: over a few things that are known one by one, turn for turn; over others, until nothing new is learnt."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.events import Loop
from dtlint.infer.names import path_of
from dtlint.infer.program.abroad import Each
from dtlint.infer.program.containers import one_of
from dtlint.infer.program.truth import Truth
from dtlint.infer.program_state import State
from dtlint.infer.values import Constant, Distinct, Items, Iteration, Module, Table, Value, join
from dtlint.infer.walk import SCOPES, nodes

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Turns"]

Entry = tuple[Value, bool]
"""An item of a comprehension, and whether it is certainly there."""
_MOST_TURNS = 16
"""Items that a loop takes one by one; longer lists are alike enough."""
_MOST_PLAIN_TURNS = 128
"""The same for names, numbers and modules, where the body is one statement: `for name in names: kwargs.pop(name, None)`."""
_MOST_REHEARSALS = 8


class Turns(Truth):
    """An interpreter that runs the turns of loops."""

    def for_(self, node: ast.For | ast.AsyncFor) -> None:
        over = self.value(node.iter)
        empty = over == Table({}) or (over == Items(()) and _is_view(node.iter))
        empty = empty or (isinstance(over, Each) and not over.each)
        items = () if empty else self.one_by_one(over, _MOST_PLAIN_TURNS if len(node.body) == 1 else _MOST_TURNS)
        turning = {part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)}
        growing = any(_changes(node.body, path, turning) for path in _paths_taken(node.iter))
        items = None if growing else items
        self.flow.loops.append(Loop(node, over))
        if items is None or any(isinstance(item, ast.Starred) for item in ast.walk(node.target)):

            def begin() -> None:
                self.bind_target(node.target, self.item_of(self.quietly(node.iter) if growing else over))

            self.loop(node.body, node.orelse, begin, may_skip=True)
        else:
            self.turns(node, items)
        self.flow.loops.pop()

    def while_(self, node: ast.While) -> None:
        """The test is asked again before each turn, and once more behind the last."""
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        binds = self.binds(node.test)
        if not binds:
            self.value(node.test)
        self.loop(node.body, node.orelse, lambda: self.tested(node.test), may_skip=not endless)
        if binds and self.alive:
            broken = self.flow.state.copy()
            self.value(node.test)
            self.resume(broken, self.flow.state)

    def tested(self, test: ast.expr) -> None:
        self.value(test)

    def entries(self, node: ast.expr, over: Value) -> tuple[Entry, ...] | None:
        """The items of a comprehension over `node`, with whether each is certainly there; None when they are not known."""
        view = (
            node.func
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_view(node)
            else None
        )
        table = over if view is None else self.quietly(view.value)
        if not isinstance(table, Table) or table.rest is not None or not table.perhaps:
            items = self.one_by_one(over)
            return None if items is None else tuple((item, True) for item in items)
        if len(table.items) > _MOST_TURNS:
            return None
        held = [(Items((Constant(key), value)), key not in table.perhaps) for key, value in table.items.items()]
        if view is not None and view.attr == "items":
            return tuple(held)
        place = int(view is not None and view.attr == "values")
        return tuple((pair.items[place], there) for pair, there in held)

    def one_by_one(self, over: Value, most: int = _MOST_TURNS) -> tuple[Value, ...] | None:
        """The items of a loop, when they are few and known; of constants there may be more."""
        if isinstance(over, Table) and over.rest is None and not over.perhaps:
            over = Items(tuple(map(Constant, over.items)))
        if isinstance(over, Each):
            over = Items(over.each)
        if not isinstance(over, Items) or not over.items or isinstance(over, Distinct):
            return None
        plain = most if all(isinstance(item, (Constant, Module)) for item in over.items) else _MOST_TURNS
        return over.items if len(over.items) <= plain else None

    def turns(self, node: ast.For | ast.AsyncFor, items: tuple[Value, ...]) -> None:
        """Run a loop's body for one item after the other."""
        self.loops_open += 1
        self.breaks.append([])
        for item in items:
            self.exits.append([])
            self.bind_target(node.target, item)
            self.block(node.body)
            self.resume(self.flow.state if self.alive else None, *self.exits.pop())
            if not self.alive:
                break
        broken = self.breaks.pop() or []
        self.loops_open -= 1
        if node.orelse and self.alive:
            self.block(node.orelse)
        self.resume(self.flow.state if self.alive else None, *broken)

    def leave_loop(self, node: ast.Break | ast.Continue) -> None:
        self.left_early = self.left_early or len(self.doubts) > 1
        broken = self.breaks[-1] if self.breaks else None
        if isinstance(node, ast.Break) and broken is not None:
            broken.append(self.flow.state.copy())
            self.alive = False
        else:
            super().leave_loop(node)

    def loop(self, body: list[ast.stmt], orelse: list[ast.stmt], begin: Callable[[], None], may_skip: bool) -> None:
        """Rehearse a loop until an iteration leaves behind what it began with."""
        start = self.flow.state
        outer = self.doubt()
        self.loops_open += 1
        self.breaks.append(None if not orelse else [])
        self.muted += 1
        for attempt in range(_MOST_REHEARSALS):
            end = self.iteration(start, body, begin)
            merged = State.merged(start, end) or start
            stable = _same(start, merged)
            start = merged
            if stable:
                break
            if attempt >= 2:
                start = self.blurred(start, end)
        self.muted -= 1
        if orelse:
            self.breaks[-1] = []
        end = self.iteration(start, body, begin)
        broken = self.breaks.pop() or []
        self.loops_open -= 1
        self.doubts = outer
        self.resume(end, start if may_skip else None)
        if orelse and self.alive:
            self.block(orelse)
        self.resume(self.flow.state if self.alive else None, *broken)

    def blurred(self, start: State, end: State | None) -> State:
        """What never comes to rest is unknown."""
        state = start.copy()
        for name, value in state.names.items():
            if end is not None and end.names.get(name) != value:
                state.names[name] = self.lost(value)
        state.paths.clear()
        return state

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        casts, names = dict(self.flow.state.casts), self.flow.state.names
        self.loops_open += 1  # what it makes, it makes for each turn
        made = self.comprehended(node)
        self.loops_open -= 1
        if self.flow.state.casts != casts:
            for known in (names, self.flow.state.paths):
                for name, value in known.items():
                    known[name] = self.kept_aside(value)
        return made

    def comprehended(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        """A list or dict written as a loop: item for item, when it is over a few that are known."""
        clause = node.generators[0]
        items = self.entries(clause.iter, self.quietly(clause.iter)) if len(node.generators) == 1 else None
        if items is None or isinstance(node, ast.SetComp):
            outer = self.doubt()
            value = super().comprehension(node)
            self.doubts = outer
            return value
        self.value(clause.iter)
        names = self.flow.state.names
        self.flow.state.names = names.copy()
        found: list[Value] = []
        table: dict[object, Value] = {}
        certain = True
        perhaps: set[object] = set()
        bound: dict[str, Value] = {}
        for item, there in items:
            if isinstance(node, ast.GeneratorExp) and self.binds(node):  # whoever takes items may stop at any
                now = self.flow.state.names
                for walrus, last in bound.items():
                    now[walrus] = join(last, now[walrus])
                bound = {part.target.id: now[part.target.id] for part in _walruses(node) if part.target.id in now}
            self.bind_target(clause.target, item)
            truths = [self.truth(test) for test in clause.ifs]
            for test in clause.ifs:
                self.value(test)
            if False in truths:
                continue
            there = there and None not in truths
            if isinstance(node, ast.DictComp):
                key = self.value(node.key)
                value = self.value(node.value)
                certain = certain and isinstance(key, Constant)
                name = key.value if isinstance(key, Constant) else len(table)
                if there:
                    perhaps.discard(name)
                elif name not in table:
                    perhaps.add(name)
                table[name] = value if there or name not in table else join(table[name], value)
            else:
                certain = certain and there
                found.append(self.value(node.elt))
        for walrus, last in bound.items():
            self.flow.state.names[walrus] = join(last, self.flow.state.names[walrus])
        self.leave_comprehension(node, names)
        if isinstance(node, ast.DictComp):
            return Table(table, frozenset(perhaps)) if certain else self.lost(Table(table))
        return Items(tuple(found)) if certain else Iteration(one_of(found))

    def under_any_key(self, item: Value) -> Value:
        return Table({}, rest=item)


def _walruses(node: ast.expr) -> list[ast.NamedExpr]:
    """What an expression binds by `:=`."""
    return [part for part in nodes([node], SCOPES) if isinstance(part, ast.NamedExpr)]


def _paths_taken(node: ast.expr) -> list[str]:
    """The lists and dicts that a loop takes items of: `xs`, `enumerate(xs)`, `d.items()`."""
    parts = [node]
    if isinstance(node, ast.Call):
        parts = [node.func.value] if _is_view(node) and isinstance(node.func, ast.Attribute) else node.args
    return [path for part in parts if (path := path_of(part)) is not None]


def _changes(body: list[ast.stmt], path: str, turning: set[str]) -> bool:
    """Does the body of a loop add to a list that it goes over, or give it other items than the one it is at?"""
    for part in nodes(body):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and path_of(part.func.value) == path:
            if part.func.attr in ("append", "extend", "insert", "add"):
                return True
        elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store) and path_of(part.value) == path:
            at = part.slice
            if not (isinstance(at, ast.Name) and at.id in turning):
                return True
    return False


def _is_view(node: ast.expr) -> bool:
    """Is it `d.items()` or its like? A dict that is seen to be empty there is so: a list may have been filled since."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS


_VIEWS = frozenset({"items", "keys", "values"})


def _same(before: State, after: State) -> bool:
    """Is what the loop began with still what it was? What it binds anew each time does not count."""
    return (
        all(after.names[name] == value for name, value in before.names.items())
        and all(after.paths.get(path) == value for path, value in before.paths.items())
        and before.casts == after.casts
    )
