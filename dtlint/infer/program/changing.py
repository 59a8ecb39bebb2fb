"""Containers that change: a dict or list that is stored into is another value from there on, wherever it is known.

Values themselves never change; what does is what a name, an attribute or a module's global is known to hold.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.program.copying import Copying
from dtlint.infer.program.frames import Frame
from dtlint.infer.program.held import CONTAINERS, inside
from dtlint.infer.program.objects import at_rest, class_key
from dtlint.infer.state import State, differing
from dtlint.infer.values import (
    UNKNOWN,
    Class,
    Either,
    Imported,
    Instance,
    Items,
    Iteration,
    Module,
    Namespace,
    Table,
    Unknown,
    Value,
    join,
    options,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.program.project import ModuleInfo, Project
    from dtlint.infer.scopes import ClassInfo, FunctionInfo, FunctionNode

__all__ = ["Changing"]

_MOST_AROUND = 8
"""Containers, and states of them, that one is known to be in."""


class Changing(Copying):
    """An interpreter that follows what stores into containers change."""

    changed_parameters: dict[int, set[str]]
    """The parameters whose containers a function changes, by the identity of its syntax."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.around: dict[int, tuple[Value, list[tuple[Value, Value]]]] = {}
        """For each container, by its identity, those that it is in, and what stands there for it."""
        self.either_of: dict[int, tuple[Value, list[Value]]] = {}
        """For each container, by its identity, those that it may be the same as."""
        self.made_for_all: dict[int, tuple[Value, tuple[int, str]]] = {}
        """Containers that are defaults, by their identity: of which function, by that of its syntax, and parameter."""
        self.changed_defaults: set[tuple[int, str]] = set()
        """Those that are changed, in any round."""

    def rebind(self, node: ast.expr, value: Value) -> None:
        """The container that an expression names now is `value`."""
        path = path_of(node)
        before = self.quietly(node)
        self.note_change(node, before, value)
        value = self.under_other_names(path, before, value)
        self.holding(value)
        around = self.quietly(node.value) if isinstance(node, ast.Subscript) else None
        self.changed_inside(before, value, around)
        for choice in options(before) if isinstance(before, Either) else ():
            self.changed_perhaps(choice, value)
        for other in self.either_of.get(id(before), (before, []))[1]:
            self.changed_perhaps(other, value)
        state = self.flow.state
        if isinstance(node, ast.Attribute):
            if path is not None:
                state.paths[path] = value
            self.rebind_attribute(node, value)
        elif isinstance(node, ast.Name):
            if node.id in state.names:
                state.names[node.id] = value
                if self.flow.function is None:
                    self.publish(node.id, value)
            else:
                self.rebind_outer(node.id, value)
        elif isinstance(node, ast.Subscript):
            self.store(node, value)
        else:
            self.lose(value)

    def store(self, target: ast.Subscript, value: Value) -> None:
        """`x[key] = value`."""
        raise NotImplementedError

    def rebind_attribute(self, node: ast.Attribute, value: Value) -> None:
        for owner in options(self.quietly(node.value)):
            if isinstance(owner, (Module, Instance)):
                info, own = owner.info, self.objects.get(owner.key, node.attr)
                if info is not None and own is None and self.in_class(info, node.attr) is not None:  # of all instances
                    self.put_in_class(self.holding_class(info, node.attr), node.attr, value)
                    body = next((parent.body[node.attr] for parent in info.lineage if node.attr in parent.body), value)
                    self.changed_outside(body, value)
                    for names, name in self.names_of(body):
                        names[name] = join(body, value)
                else:
                    for given in list(self.objects.given.get((owner.key, node.attr), ())):
                        for names, name in self.names_of(given):
                            names[name] = at_rest(join(given, value))
                    self.objects.put(owner.key, node.attr, value)
            elif isinstance(owner, Class):
                self.put_in_class(self.holding_class(owner.info, node.attr), node.attr, value)
            elif isinstance(owner, Namespace):
                self.put_in_module(owner.name, node.attr, value)

    def holding_class(self, info: ClassInfo, name: str) -> Class:
        """The class, among one and its parents, in which a name is found."""
        for parent in info.lineage:
            if name in parent.body or name in self.objects.of(class_key(parent)):
                return Class(parent)
        return Class(info)

    def rebind_outer(self, name: str, value: Value) -> None:
        """A global, or a name of an enclosing function."""
        names = next((names for names in self.outer if name in names), None)
        while names is not None and isinstance(held := names.get(name), Imported):
            module = self.project.module(held.module)
            names, name = (None if module is None else module.names), held.name
        if names is not None and name in names:
            before = names[name]
            if isinstance(before, Unknown):
                self.lose(value)
                return
            names[name] = at_rest(join(before, value))
            self.objects.changed |= names[name] != before and not isinstance(names, Frame)
            for state in self.frames if names is self.globals else ():
                if isinstance(held := state.names.get(name), CONTAINERS):
                    state.names[name] = at_rest(join(held, value))

    def changed_container(self, node: ast.expr) -> None:
        """A list or dict that a method has changed is no longer what it was written as."""
        value = self.quietly(node)
        if any(isinstance(choice, CONTAINERS) for choice in options(value)):
            self.lose(value)
            self.rebind(node, UNKNOWN)

    def lose_container(self, value: Value, depth: int = 0) -> None:
        """Code that is not seen may change the lists and dicts in a value, at any time from here on."""
        for choice in options(value) if depth <= _DEEPEST else ():
            if not isinstance(choice, CONTAINERS):
                continue
            for held in inside(choice):
                self.lose_container(held, depth + 1)
            for key, name in self.objects.holders(choice):
                self.objects.put(key, name, UNKNOWN)
            self.under_other_names(None, choice, UNKNOWN)
            self.changed_inside(choice, UNKNOWN)
            if self.flow.function is not None:
                self.changed_outside(choice, UNKNOWN)

    def note_change(self, node: ast.expr, before: Value, value: Value) -> None:
        """Others may hold the same container: attributes, and whoever gave it as an argument."""
        default = self.made_for_all.get(id(before))
        if default is not None and default[1] not in self.changed_defaults:
            self.changed_defaults.add(default[1])
            self.objects.changed = True
        for key, name in self.objects.holders(before):
            self.objects.put(key, name, value)
        function = self.flow.function
        if isinstance(node, ast.Name) and function is not None and node.id in _parameters(function):
            self.changed_parameters.setdefault(id(function.node), set()).add(node.id)

    def under_other_names(self, path: str | None, before: Value, value: Value) -> Value:
        """What a container is now that others name too: they name the same one, or one that was made alike."""
        if not isinstance(before, CONTAINERS):
            return value
        state = self.flow.state
        others = [(names, name) for names, name in self.names_of(before) if names is not state.names or name != path]
        others = [(names, name) for names, name in others if names is not state.paths or name != path]
        if others:
            value = join(before, value)
        shared = self.shared.get(id(before))
        if shared is not None and shared[1].get(shared[2]) is before:
            self.change_shared(shared[1], shared[2], value := at_rest(join(before, value)))
        function = self.flow.function
        for names, name in others:
            names[name] = value
            if names is state.names and function is not None and name in _parameters(function):
                self.changed_parameters.setdefault(id(function.node), set()).add(name)
        return value

    def change_shared(self, names: dict[str, Value], name: str, value: Value) -> None:
        """A container of another module has changed, under whatever name it is known here."""
        before, names[name] = names[name], value
        self.objects.changed |= value != before
        self.shared[id(value)] = value, names, name

    def names_of(self, container: Value) -> list[tuple[dict[str, Value], str]]:
        """The names and paths that hold that very container, here and where this was called from: a call that is about to
        change it does that again where the same function is given another."""
        found: list[tuple[dict[str, Value], str]] = []
        for place, state in enumerate((*self.frames, self.flow.state)):
            before = len(found)
            for names in (state.names, state.paths):
                found += [(names, name) for name, held in names.items() if held is container]
            if len(found) > before:
                self.reaches = min(self.reaches, place)
        return found

    def one_of_these(self, made: Value, given: Iterable[Value]) -> None:
        """A container is one of several, by the path taken: what changes it changes that one, and what changes one of
        them may change it."""
        if not isinstance(made, CONTAINERS):
            return
        for other in given:
            if isinstance(other, CONTAINERS) and other is not made:
                self.either_of.setdefault(id(made), (made, []))[1].append(other)
                self.either_of.setdefault(id(other), (other, []))[1].append(made)

    def changed_perhaps(self, container: Value, value: Value) -> None:
        """A container that may be another has changed, if it is the one that is `value` now."""
        if not isinstance(container, CONTAINERS):
            return
        now = at_rest(join(container, value))
        for names, name in self.names_of(container):
            names[name] = now
        for key, name in self.objects.holders(container):
            self.objects.put(key, name, now)
        self.changed_inside(container, now)
        if self.flow.function is not None:
            self.changed_outside(container, now)
        self.holding(now)
        self.one_of_these(now, [value])

    def resume(self, *ends: State | None) -> None:
        super().resume(*ends)
        states = [end for end in ends if end is not None]
        if len(states) < 2:
            return
        for name, value in differing(self.flow.state.names, states[0].names):
            found = [state.names.get(name) for state in states]
            if isinstance(value, CONTAINERS) and all(isinstance(one, CONTAINERS) for one in found):
                named = [one for one in found if one is not None and _has_two_names(one, states)]
                self.one_of_these(value, named)

    def holding(self, container: Value) -> None:
        """Note what containers are in a container: what changes those changes it."""
        for child in inside(container):
            if isinstance(child, CONTAINERS):
                self.is_inside(child, container, child)

    def is_inside(self, child: Value, container: Value, item: Value) -> None:
        """A container is in another, which has `item` for it."""
        around = self.around.setdefault(id(child), (child, []))[1]
        if all(known is not container for known, _ in around):
            if len(around) == _MOST_AROUND:  # of a list that grows and grows, what it was long ago is held by nobody
                del around[0]
            around.append((container, item))

    def changed_inside(self, before: Value, value: Value, known: Value | None = None, depth: int = 0) -> None:
        """A container has changed: so have those that it is in, but for one of which that is known."""
        if depth > _DEEPEST or before is value:
            return
        for outside, item in list(self.around.get(id(before), (before, []))[1]):
            if outside is known:
                continue
            now = join(item, value)
            changed = _with(outside, item, now)
            self.holding(changed)
            self.is_inside(value, changed, now)
            for names, name in self.names_of(outside):
                names[name] = changed
            if self.flow.function is not None:
                self.changed_outside(outside, changed)
            for key, name in self.objects.holders(outside):
                self.objects.put(key, name, changed)
            self.changed_inside(outside, changed, known, depth + 1)

    def changed_outside(self, before: Value, value: Value) -> None:
        """A container has changed that parameters or names outside of the function hold."""
        function = self.flow.function
        names = self.flow.state.names
        for name in _parameters(function) if function is not None else ():
            if names.get(name) is value and function is not None:
                self.changed_parameters.setdefault(id(function.node), set()).add(name)
        for outer in self.outer:
            for name, held in outer.items():
                if held is before:
                    outer[name] = at_rest(join(before, value))
                    self.objects.changed |= outer[name] != at_rest(before) and not isinstance(outer, Frame)

    def define_class(self, node: ast.ClassDef) -> None:
        super().define_class(node)
        made = self.quietly(ast.Name(node.name, ast.Load()))
        info = made.info if isinstance(made, Class) else None
        for name, value in info.body.items() if info is not None else ():
            if isinstance(value, CONTAINERS) and info is not None:
                self.objects.hold(value, class_key(info), name)

    def kept_defaults(self, node: FunctionNode, given: dict[str, Value]) -> dict[str, Value]:
        kept: dict[str, Value] = {}
        for name, value in given.items():
            kept[name] = value
            if isinstance(value, CONTAINERS):
                place = (id(node), name)
                self.made_for_all[id(value)] = (value, place)
                if place in self.changed_defaults:
                    kept[name] = self.lost(value)
        return kept

    def given_back(self, info: FunctionInfo, node: ast.Call, bound_first: bool) -> None:
        """Containers that a function was given, and has changed."""
        changed = self.changed_parameters.get(id(info.node))
        if not changed:
            return
        arguments = info.node.args
        names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)][bound_first:]
        for position, given in enumerate(node.args):
            if isinstance(given, ast.Starred) or position >= len(names):
                break
            if names[position] in changed:
                self.changed_container(given)
        for keyword in node.keywords:
            if keyword.arg in changed:
                self.changed_container(keyword.value)


_DEEPEST = 4
"""Containers in one another that are followed."""


def _has_two_names(container: Value, states: list[State]) -> bool:
    """Has a container more than one name on one of the paths that meet?"""
    return any(sum(held is container for held in state.names.values()) > 1 for state in states)


def _with(container: Value, before: Value, value: Value) -> Value:
    """A container that holds a value in the place of another."""
    if isinstance(container, Items):
        return container.holding(value if item is before else item for item in container.items)
    if isinstance(container, Table):
        items = {key: value if item is before else item for key, item in container.items.items()}
        return Table(items, container.perhaps, value if container.rest is before else container.rest)
    assert isinstance(container, Iteration)
    return replace(container, item=join(container.item, value))


def _parameters(function: FunctionInfo) -> set[str]:
    """The parameters that hold what the caller has too; `*args` and `**kwargs` are made for the call."""
    arguments = function.node.args
    return {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
