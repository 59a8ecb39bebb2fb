"""What is undone when a block is left: by `finally`, by a context's `__exit__`, by a generator behind its `yield`.

A return, a break or a continue goes through it too, and an exception comes anywhere on the way. That matters for the
default dtype and for the casts of modules, which such blocks make for a while.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from dtlint.infer.program.defaults import DEFAULT, Defaults, either_default
from dtlint.infer.program.functions import Managed
from dtlint.infer.program_state import merged_casts
from dtlint.infer.values import NONE, UNKNOWN, Dtypes, Function, Instance, Key, Value, join, options
from dtlint.infer.walk import SCOPES, nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.calls import Arguments
    from dtlint.infer.interproc.project import ModuleInfo, Project
    from dtlint.infer.program_state import Cast, State
    from dtlint.infer.scopes import FunctionNode

__all__ = ["Leaving", "Opening"]


@dataclass(slots=True)
class Opening(Value):
    """The context that a generator function makes which sets the default dtype, or casts modules.

    Attributes:
        region: the autocast region that it opens, or a context that opens none.
        before: the default dtype for which it was read.
        inside: the default dtype at its `yield`.
        behind: the default dtype at its end.
        casts: for each module that it casts, the dtypes that this has inside, and behind.
    """

    region: Value
    before: Dtypes
    inside: Dtypes
    behind: Dtypes
    casts: dict[Key, tuple[Dtypes, Dtypes]]


class Leaving(Defaults):
    """An interpreter that does what the ends of blocks do, on every way out of them."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.set_until: list[int] = []
        """For each `try` and `with` around, how many default dtypes had been set before it."""
        self.undoing: list[list[Callable[[], None]]] = []
        """For each `with` around, what its contexts undo."""

    # -- blocks

    def try_(self, node: ast.Try) -> None:
        run = super().try_
        self.set_until.append(len(self.defaults_set))
        ends = bool(node.finalbody)
        self.left_through(lambda: run(node), lambda: self.block(node.finalbody), does=lambda: ends, binds=ends)
        self.set_until.pop()

    def with_(self, node: ast.With | ast.AsyncWith) -> None:
        run = super().with_
        undo: list[Callable[[], None]] = []

        def undone() -> None:
            for close in reversed(undo):
                close()

        self.set_until.append(len(self.defaults_set))
        self.undoing.append(undo)
        self.left_through(lambda: run(node), undone, does=lambda: bool(undo))
        self.undoing.pop()
        self.set_until.pop()
        if self.alive:
            undone()

    def on_the_way(self, start: State) -> State:
        state = super().on_the_way(start)
        found = (state.casts.get(DEFAULT, (0, None))[1], *self.defaults_set[self.set_until[-1] :])
        state.casts[DEFAULT] = (0, reduce(either_default, found))
        return state

    def left_through(
        self, run: Callable[[], None], undo: Callable[[], None], does: Callable[[], bool], binds: bool = False
    ) -> None:
        """Run a block whose end does something. Who leaves it early does that on the way out.

        Args:
            does: does it do anything, once the block was run?
            binds: may the end bind names, too?
        """
        outer, self.casts_at_returns = self.casts_at_returns, None
        waiting = [states for states in (*self.exits[-1:], *self.breaks[-1:]) if states is not None]
        before = [len(states) for states in waiting]
        run()
        for states, count in zip(waiting, before, strict=True) if binds else ():
            states[count:] = [self.behind(state, undo) or state for state in states[count:]]
        returned, self.casts_at_returns = self.casts_at_returns, outer
        if does() or len(self.defaults_set) > self.set_until[-1]:
            for states, count in zip(waiting, before, strict=True):
                for state in states[count:]:
                    state.casts = self.casts_behind(state.casts, undo) or state.casts
            returned = None if returned is None else self.casts_behind(returned, undo)
        if returned is not None:
            known = self.casts_at_returns
            self.casts_at_returns = returned if known is None else merged_casts(known, returned)

    def behind(self, left: State, undo: Callable[[], None]) -> State | None:
        """What is true of a path that leaves a block, once its end was run; None where that does not end."""
        state, alive = self.flow.state, self.alive
        self.flow.state, self.alive = left.copy(), True
        self.muted += 1
        undo()
        self.muted -= 1
        behind = self.flow.state if self.alive else None
        self.flow.state, self.alive = state, alive
        return behind

    def casts_behind(self, casts: dict[Key, Cast], undo: Callable[[], None]) -> dict[Key, Cast] | None:
        """The casts that hold once it is undone what they were made under; None where that does not end."""
        left = self.flow.state.copy()
        left.casts = casts.copy()
        behind = self.behind(left, undo)
        return None if behind is None else behind.casts

    # -- contexts

    def opening(self, managed: Managed, arguments: Arguments) -> Value:
        """The context that a call of a generator function makes: what it does until its `yield` is done on entering."""
        made, before, casts = managed.function, self.default, self.flow.state.casts.copy()
        self.managing.add(id(made.info.node))
        self.apply(made.info, made.receiver, arguments.args, arguments.keywords, arguments.complete)
        behind, inside = self.default, self.defaults_at_yield
        self.default = before
        region = self.context_of(managed)
        cast = self.casts_of_opening(casts)
        if behind == before and all(dtypes == before for dtypes in inside) and not cast:
            return region
        return Opening(region, before, reduce(either_default, inside) if inside else None, behind, cast)

    def casts_of_opening(self, before: dict[Key, Cast]) -> dict[Key, tuple[Dtypes, Dtypes]]:
        """The casts of the generator function that was just read: they are made when its context is entered and left."""
        behind, self.flow.state.casts = self.flow.state.casts, before
        at_yield = reduce(merged_casts, self.casts_at_yield) if self.casts_at_yield else before
        found: dict[Key, tuple[Dtypes, Dtypes]] = {}
        for key in behind.keys() | at_yield.keys():
            inside, after = at_yield.get(key), behind.get(key)
            if key != DEFAULT and not before.get(key) == inside == after:
                found[key] = (None if inside is None else inside[1], None if after is None else after[1])
        return found

    def given_by(self, context: Value) -> Value:
        openings = [choice for choice in options(context) if isinstance(choice, Opening)]
        if openings:
            self.open_default(openings, all_of_them=len(openings) == len(list(options(context))))
            for opening in openings:
                self.open_casts(opening, certain=len(list(options(context))) == 1)
            return UNKNOWN
        entering = context.info.method("__enter__") if isinstance(context, Instance) else None
        if not isinstance(context, Instance) or entering is None:
            return super().given_by(context)
        leaving = context.info.method("__exit__")
        if leaving is not None:
            self.undoing[-1].append(lambda: self.leave_instance(context))
        return self.apply(entering, context, [], {}, True)

    def leave_instance(self, context: Instance) -> None:
        """`__exit__` is called, with an exception or without."""
        leaving = context.info.method("__exit__")
        if leaving is not None:
            self.apply(leaving, context, [join(NONE, UNKNOWN)] * 3, {}, True)

    def open_default(self, openings: list[Opening], all_of_them: bool) -> None:
        """A context is entered that sets the default dtype, and sets it again when it is left."""
        outer = self.default
        kept = () if all_of_them else (outer,)
        expected = all(opening.before == outer for opening in openings)
        inside = reduce(either_default, (*kept, *(opening.inside for opening in openings))) if expected else None
        behind = reduce(either_default, (*kept, *(opening.behind for opening in openings))) if expected else None
        self.note_default(inside)
        self.default = inside

        def undone() -> None:
            # what the body has set itself, the context may leave as it is
            self.default = behind if self.default == inside else either_default(self.default, behind)
            self.note_default(self.default)

        self.undoing[-1].append(undone)

    def open_casts(self, opening: Opening, certain: bool) -> None:
        """A context is entered that casts modules, and casts them again when it is left."""

        def cast(side: int) -> None:
            self.clock += 1
            for key, dtypes in opening.casts.items():
                self.flow.state.casts[key] = (self.clock, dtypes[side] if certain else None)

        if opening.casts:
            cast(0)
            self.undoing[-1].append(lambda: cast(1))

    def swallows(self, context: ast.expr, value: Value) -> bool | None:
        if isinstance(value, Instance):
            leaving = value.info.method("__exit__")
            return None if leaving is None else _may_give_truth(leaving.node)
        made = self.quietly(context.func) if isinstance(context, ast.Call) else UNKNOWN
        managed = made.function.info if isinstance(made, Managed) else made.info if isinstance(made, Function) else None
        if managed is not None and (isinstance(made, Managed) or managed.managed):
            return _catches_at_yield(managed.node)
        return super().swallows(context, value)

    def lose(self, value: Value, depth: int = 0) -> None:
        if isinstance(value, Opening):
            self.default_lost()
        super().lose(value, depth)


def _may_give_truth(node: FunctionNode) -> bool:
    """May an `__exit__` give something that is true, and so end an exception?"""
    if isinstance(node, ast.Lambda):
        return True
    returns = (part.value for part in nodes(node.body, SCOPES) if isinstance(part, ast.Return))
    return any(value is not None and not (isinstance(value, ast.Constant) and not value.value) for value in returns)


def _catches_at_yield(node: FunctionNode) -> bool:
    """Does a generator that is a context catch what is raised in the block, and not raise it again?"""
    for part in nodes(node.body, SCOPES) if isinstance(node.body, list) else ():
        if isinstance(part, ast.Try) and any(isinstance(inner, ast.Yield) for inner in nodes(part.body, SCOPES)):
            if not all(isinstance(handler.body[-1], ast.Raise) for handler in part.handlers):
                return True
        elif isinstance(part, (ast.With, ast.AsyncWith)) and "suppress" in ast.unparse(part.items[0].context_expr):
            return True
    return False
