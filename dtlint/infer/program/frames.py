"""What functions inside functions find around them: the names of the enclosing one, as they are when the inner one runs.

A name of an enclosing function is no value that was there at the definition. It may be bound anew before the inner
function is called, and the inner function may bind it itself, by `nonlocal`.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, MutableMapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.program.free import free_names
from dtlint.infer.program.held import with_change
from dtlint.infer.program.objects import at_rest
from dtlint.infer.program.promises import Promises
from dtlint.infer.program.signature import signature
from dtlint.infer.scopes import FunctionInfo, FunctionNode
from dtlint.infer.survey import facts
from dtlint.infer.values import (
    UNKNOWN,
    Either,
    Function,
    Instance,
    Items,
    Iteration,
    Key,
    Module,
    Partial,
    Table,
    Unknown,
    Value,
    identities,
    join,
)
from dtlint.infer.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dtlint.infer.events import Condition, Flow
    from dtlint.infer.interproc.project import ModuleInfo, Project
    from dtlint.infer.program.objects import Objects
    from dtlint.infer.program_state import State

__all__ = ["Frame", "Frames", "Write"]


class Frame(MutableMapping[str, Value]):
    """The names of one call of a function, for the functions that it defines.

    While the call lasts, they are what they are on the path that is read just then. Afterwards nobody knows when an inner
    function runs: a name is all that it was since one was defined that reads it.
    """

    def __init__(self, flow: Flow, written: list[Write], holders: Holders) -> None:
        self._flow: Flow | None = flow
        self.function = flow.function
        self.scope = 0 if flow.function is None else id(flow.function.node)
        """The function that is called, by the identity of its syntax."""
        self._ever: dict[str, Value] = {}
        self._written = written
        self._holders = holders
        self.captured: set[str] = set()
        """The names that inner functions read, or bind."""
        self.wild: set[str] = set()
        """Those among them that code binds of which nobody sees when it runs."""

    @property
    def _names(self) -> dict[str, Value]:
        return self._ever if self._flow is None else self._flow.state.names

    def capture(self, names: Iterable[str]) -> None:
        """A function is defined that speaks of names, of which some may be of this one."""
        new = [name for name in names if name not in self.captured]
        self.captured.update(new)
        for name in new:
            if name in self._names:
                self.bound(name, self._names[name])

    def bound(self, name: str, value: Value) -> None:
        """A name that is captured has been bound."""
        known = self._ever.get(name)
        self._ever[name] = value if known is None else join(known, value)
        self._note_held(name, value)

    def _note_held(self, name: str, value: Value) -> None:
        for one in identities(value):
            self._holders.setdefault(one, {})[id(self), name] = self

    def change(self, name: str, who: frozenset[int], value: Value) -> None:
        """A container that a name holds, or held, has changed."""
        if name in self._ever:
            self._ever[name] = at_rest(with_change(self._ever[name], who, value))
            self._note_held(name, self._ever[name])

    def run_wild(self, names: Iterable[str]) -> None:
        """Code binds these of which nobody sees when it runs."""
        for name in names:
            if name in self._names or name in self._ever:
                self.wild.add(name)
                self[name] = UNKNOWN

    def close(self) -> None:
        """The call has ended."""
        names = self._names
        for name in self.captured & names.keys():
            self.bound(name, names[name])  # a list that has grown was bound long ago
        self._flow = None

    def replay(self, name: str, value: Value) -> None:
        """What reading an inner function has bound here, it binds again."""
        known = self._names.get(name)
        self[name] = value if known is None else join(known, value)

    def __getitem__(self, name: str) -> Value:
        return UNKNOWN if name in self.wild else self._names[name]

    def __setitem__(self, name: str, value: Value) -> None:
        self._written.append((self, name, value))
        if name in self.wild:
            value = UNKNOWN
        if self._flow is None:
            self._ever[name] = value
            self._note_held(name, value)
        else:
            self._flow.state.bind(name, value)
            self.bound(name, value)

    def __delitem__(self, name: str) -> None:
        raise TypeError("a name of a call is never taken away")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


Holders = dict[int, dict[tuple[int, str], Frame]]
"""Frames by the identity of what they hold, and by their own with the name that holds it."""
Write = tuple[Frame, str, Value]
"""A name of an enclosing function, and what an inner one has bound to it, or stored into what it holds."""


class Frames(Promises):
    """An interpreter whose inner functions see the names around them."""

    objects: Objects

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.frame: Frame | None = None
        """The names of the call that is being read, once a function is defined in it."""
        self.nonlocals: frozenset[str] = frozenset()
        """The names of enclosing functions that the running one binds."""
        self.written: list[Write] = []
        """What inner functions have bound outside of them in this round, one after the other."""
        self.frame_holders: Holders = {}
        """The frames that hold a container under a name that inner functions read, by its identity."""
        self.closures: dict[Hashable, FunctionInfo] = {}
        """Functions inside functions, by their syntax, the calls that lead there, and how often they did in one round."""
        self.closures_made: dict[Hashable, int] = {}
        """How often each was made in this round."""
        self.made_of_node: dict[int, list[FunctionInfo]] = {}
        """The functions that each definition inside another has made in this round, by the identity of its syntax."""
        self.got_loose: dict[int, list[FunctionInfo]] = {}
        """Those of them that code may call which is not seen."""
        self.free_in_readings: dict[int, set[str]] = {}
        """The names outside of them that the functions look up which were read in this round, by the identity of the names
        of their module."""
        self.keeping: set[Key] = set()
        """Objects that hold functions which look up names of calls, in any round."""
        self.call_path: list[str] = []
        self.breaks: list[list[State] | None] = []
        """For each loop being run, the states at its breaks; None where they count as ends of an iteration."""

    def begin_closures(self) -> None:
        """Start a round of reading."""
        self.closures_made.clear()
        self.made_of_node.clear()
        self.got_loose.clear()
        self.free_in_readings.clear()
        self.written.clear()
        self.frame_holders.clear()

    # -- definitions

    def scope(self) -> tuple[MutableMapping[str, Value], ...]:
        """Where a function that is defined here finds its free names, innermost first."""
        if self.flow.function is None:
            return (self.globals,)
        if self.frame is None:
            self.frame = Frame(self.flow, self.written, self.frame_holders)
        return (self.frame, *self.outer)

    def closure(self, node: FunctionNode, scope: tuple[MutableMapping[str, Value], ...]) -> FunctionInfo:
        """A function that is defined inside another: where a round before has come by here as often, the same as there,
        so that what holds it holds nothing new."""
        place = (id(node), tuple(self.call_path))
        count = self.closures_made[place] = self.closures_made.get(place, 0) + 1
        info = self.closures.get((place, count))
        if info is None:
            info = self.closures[place, count] = FunctionInfo(node, scope, module=self.module)
        info.names = scope
        self.made_of_node.setdefault(id(node), []).append(info)
        for frame in scope:
            if isinstance(frame, Frame):
                frame.capture(free_names(node))
        return info

    def lambda_(self, node: ast.Lambda) -> Value:
        scope = self.scope()
        turning = _in_comprehensions(self.tree if self.flow.function is None else self.flow.function.node).get(node)
        if turning:  # it finds what the last turn has left, whichever that is
            unknown: dict[str, Value] = dict.fromkeys(turning, UNKNOWN)
            scope = (unknown, *scope)
        info = self.closure(node, scope)
        info.defaults = self.defaults_of(node)
        return Function(info)

    def defaults_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> dict[str, Value]:
        """The values of the defaults of a function's parameters."""
        raise NotImplementedError

    def note_kept(self, owner: Key, value: Value) -> None:
        """An object is given a value, which may be a function that looks up names of a call, or hold one."""
        if owner not in self.keeping and any(
            isinstance(names, Frame) for function in _functions_in([value]) for names in function.info.names
        ):
            self.keeping.add(owner)
            self.objects.changed = True

    def as_made(self, info: FunctionInfo) -> list[FunctionInfo]:
        """A function as it got loose, or as each call has made it, in all the ways that differ in what it finds around it.
        Where there are too many, nothing is known of that."""
        made = self.got_loose.get(id(info.node)) or self.made_of_node.get(id(info.node), [])
        found: dict[Hashable, FunctionInfo] = {}
        for one in made or [info]:
            seen = self.seen_outside([Function(one)])
            found.setdefault(tuple((name, signature(value, of_one_call=False)) for name, value in seen), one)
        if len(found) <= _MOST_MADE:
            return list(found.values())
        around = [name for name in free_names(info.node) if _found(name, info.names) is not None]
        unknown: dict[str, Value] = dict.fromkeys(around, UNKNOWN)
        return [replace(info, names=(unknown, *(names for names in info.names if not isinstance(names, Frame))))]

    def run_module(self, module: ModuleInfo, in_order: bool = False) -> None:
        saved, self.frame, self.nonlocals = (self.frame, self.nonlocals), None, frozenset()
        super().run_module(module, in_order)
        self.frame, self.nonlocals = saved

    # -- names

    def forget_names(self, node: ast.Global | ast.Nonlocal) -> None:
        if isinstance(node, ast.Global):
            self.objects.changed |= any(not isinstance(self.globals.get(name), Unknown) for name in node.names)
            super().forget_names(node)
            for name in node.names if self.flow.function is not None else ():
                self.flow.state.names[name] = UNKNOWN  # until it is bound on the way
        else:
            self.nonlocals |= frozenset(node.names)

    def publish(self, name: str, value: Value) -> None:
        at_top = self.flow.function is None and self.publishing
        before = self.globals.get(name) if at_top else None
        super().publish(name, value)
        if before is not None and self.globals[name] is not before:
            self.bound_again(name, before)
        frame = self.frame
        if frame is not None and name in frame.captured:
            frame.bound(name, value)
            if name in frame.wild:
                self.flow.state.names[name] = UNKNOWN
        if name in self.nonlocals:
            self.bind_outside(name, value)

    def bound_again(self, name: str, before: Value) -> None:
        """A global is bound anew: a function that was read before has found something else."""
        if isinstance(before, Unknown):
            self.globals[name] = before
        elif name in self.free_in_readings.get(id(self.globals), ()):
            after = self.globals[name] = at_rest(self.globals[name])
            self.objects.changed |= after != at_rest(before)

    def looks_up(self, info: FunctionInfo) -> None:
        """A function is read."""
        if info.module is not None:
            self.free_in_readings.setdefault(id(info.module.names), set()).update(free_names(info.node))

    def bind_outside(self, name: str, value: Value) -> None:
        """A name of an enclosing function is bound. Whether this is reached, and how often, is only known in part: what
        the name was before, it may still be."""
        self.flow.state.names.pop(name, None)
        frames = [names for names in self.outer if isinstance(names, Frame)]
        frame = next((frame for frame in frames if name in frame), frames[0] if frames else None)
        if frame is not None:
            frame[name] = UNKNOWN if self.breaks else join(frame[name], value) if name in frame else value

    def narrow(self, condition: Condition) -> None:
        super().narrow(condition)
        for name in self.nonlocals:  # it is not kept here
            self.flow.state.names.pop(name, None)

    def loosen_closure(self, info: FunctionInfo) -> None:
        """A function may be called by code that is not seen: who knows when it binds names of those around it?"""
        if not any(isinstance(frame, Frame) for frame in info.names):
            return
        loose = self.got_loose.setdefault(id(info.node), [])
        if all(known is not info for known in loose):
            loose.append(info)
        self.run_anywhen(info)

    def run_anywhen(self, info: FunctionInfo) -> None:
        """Nobody knows when a function binds names of those around it."""
        names = _written_outside(info.node)
        for frame in info.names if names else ():
            if isinstance(frame, Frame):
                frame.run_wild(names)

    def seen_outside(self, values: Sequence[Value], told: set[int] | None = None) -> list[tuple[str, Value]]:
        """What functions among these values find under the names around them, and what functions find that they find
        there: a call of one of them gives something else when that is something else."""
        found: list[tuple[str, Value]] = []
        told = set() if told is None else told
        kept = [
            held
            for value in values
            if isinstance(value, (Module, Instance)) and value.key in self.keeping
            for held in self.objects.of(value.key).values()
        ]
        for function in _functions_in([*values, *kept]):
            info = function.info
            if id(info) in told or not any(isinstance(names, Frame) for names in info.names):
                continue
            told.add(id(info))
            held = [(name, value) for name in free_names(info.node) if (value := _found(name, info.names)) is not None]
            found += held
            found += self.seen_outside([value for _, value in held], told)
        return found


def _found(name: str, scopes: tuple[MutableMapping[str, Value], ...]) -> Value | None:
    """What a free name is in the enclosing functions; None where none of them has it."""
    for names in scopes:
        if not isinstance(names, Frame):
            continue
        if name in names:
            return names[name]
    return None


_MOST_INSIDE = 4
"""Containers in one another in which functions are looked for."""
_MOST_MADE = 8
"""Calls of a function that are told apart for what is read for anybody inside it."""


def _functions_in(values: Iterable[Value], depth: int = 0) -> Iterator[Function]:
    """The functions that whoever has these values can call."""
    if depth > _MOST_INSIDE:
        return
    for value in values:
        if isinstance(value, Function):
            yield value
        elif isinstance(value, Items):
            yield from _functions_in(value.items, depth + 1)
        elif isinstance(value, Either):
            yield from _functions_in(value.choices, depth + 1)
        elif isinstance(value, Table):
            yield from _functions_in(value.items.values(), depth + 1)
        elif isinstance(value, Iteration):
            yield from _functions_in((value.item,), depth + 1)
        elif isinstance(value, Partial):
            yield from _functions_in((value.callee, *value.args, *value.keywords.values()), depth + 1)


@lru_cache(maxsize=4096)
def _written_outside(node: FunctionNode) -> frozenset[str]:
    """The names that a function, or one inside it, declares to be of one around it."""
    body = node.body if isinstance(node.body, list) else [node.body]
    return frozenset(name for part in nodes(body) if isinstance(part, ast.Nonlocal) for name in part.names)


@lru_cache(maxsize=4096)
def _in_comprehensions(root: ast.Module | FunctionNode) -> dict[ast.Lambda, frozenset[str]]:
    """The lambdas that stand in a comprehension, with the names that its turns bind."""
    found: dict[ast.Lambda, frozenset[str]] = {}
    if not facts(root).bound_inside:
        return found
    for part in nodes(root.body if isinstance(root.body, list) else [root.body]):
        if isinstance(part, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            targets = nodes([clause.target for clause in part.generators])
            names = frozenset(name.id for name in targets if isinstance(name, ast.Name))
            for inner in nodes([part]):
                if isinstance(inner, ast.Lambda):
                    found[inner] = names | found.get(inner, frozenset())
    return found
