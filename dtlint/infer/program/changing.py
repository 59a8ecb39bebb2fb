"""Containers that change: a dict or list that is stored into is another value from there on, wherever it is known.

Values themselves never change; what does is what a name, an attribute or a module's global is known to hold.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.program.abroad import Each
from dtlint.infer.program.copying import Copying
from dtlint.infer.program.frames import Frame
from dtlint.infer.program.held import CONTAINERS, identities_of, is_container, with_change
from dtlint.infer.program.objects import at_rest, class_key
from dtlint.infer.values import (
    UNKNOWN,
    Class,
    Distinct,
    Either,
    Imported,
    Instance,
    Items,
    Iteration,
    Module,
    Namespace,
    Partial,
    Record,
    Table,
    Unknown,
    Value,
    identities,
    join,
    options,
)

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from dtlint.infer.interproc.project import ModuleInfo, Project
    from dtlint.infer.scopes import ClassInfo, FunctionInfo, FunctionNode

__all__ = ["Changing"]


class Changing(Copying):
    """An interpreter that follows what stores into containers change."""

    changed_parameters: dict[int, set[str]]
    """The parameters whose containers a function changes, by the identity of its syntax."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.made_for_all: dict[int, tuple[int, str]] = {}
        """Containers that are defaults, by their identity: of which function, by that of its syntax, and parameter."""
        self.changed_anytime: set[tuple[int, str]] = set()
        """Names of modules and of functions, by the identity of the one's names and the other's syntax, that hold containers
        which code changes of which nobody sees when it runs, in any round."""
        self.changed_defaults: set[tuple[int, str]] = set()
        """Those that are changed, in any round."""

    def rebind(self, node: ast.expr, value: Value) -> None:
        """The container that an expression names now is `value`."""
        path = path_of(node)
        value = self.has_changed(node, self.quietly(node), value)
        state = self.flow.state
        if isinstance(node, ast.Attribute):
            if self.is_computed(node):  # another each time
                return
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
                else:
                    self.objects.put(owner.key, node.attr, value)
            elif isinstance(owner, Class):
                self.put_in_class(self.holding_class(owner.info, node.attr), node.attr, value)
            elif isinstance(owner, Namespace):
                self.put_in_module(owner.name, node.attr, value)

    def is_computed(self, node: ast.Attribute) -> bool:
        """Is it an attribute that a property gives?"""
        for owner in options(self.quietly(node.value)):
            info = owner.info if isinstance(owner, (Module, Instance)) else None
            method = None if info is None else info.method(node.attr)
            if method is not None and not method.decorated.isdisjoint({"property", "functools.cached_property"}):
                return True
        return False

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
            self.note_anytime(names, name)
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

    def lose_container(self, value: Value) -> None:
        """Code that is not seen may change the lists and dicts in a value, at any time from here on."""
        who = identities(value)
        if who:
            self.change_others(who, UNKNOWN, None, frozenset())

    def has_changed(self, node: ast.expr, before: Value, value: Value) -> Value:
        """What an expression names is another value now, if it is a container: so it is under whatever name. Gives what it
        is under this one."""
        who = identities_of(before)
        if not who:
            return value
        self.note_change(node, who)
        if is_container(value) and not value.who:
            value.who = who
        around = self.quietly(node.value) if isinstance(node, ast.Subscript) else UNKNOWN
        self.change_others(who, value, path_of(node), identities_of(around))
        return join(before, value) if isinstance(before, Either) else value

    def not_read(self, info: FunctionInfo, bound: dict[str, Value]) -> None:
        changed = self.changed_parameters.get(id(info.node), set())
        half_read = any(node == id(info.node) for node, _ in self.in_progress) or id(info.node) not in self.reached
        for name, value in bound.items():
            if half_read or name in changed:
                self.lose_container(value)

    def note_change(self, node: ast.expr, who: frozenset[int]) -> None:
        """Others may hold the same container: a default, and whoever gave it as an argument."""
        for place in {self.made_for_all[one] for one in who if one in self.made_for_all} - self.changed_defaults:
            self.changed_defaults.add(place)
            self.objects.changed = True
        function = self.flow.function
        if isinstance(node, ast.Name) and function is not None and node.id in _parameters(function):
            self.changed_parameters.setdefault(id(function.node), set()).add(node.id)

    def change_others(self, who: frozenset[int], value: Value, path: str | None, beside: frozenset[int]) -> None:
        """Containers of an identity may be `value`: all names and attributes but one path hold that now, here, where this was
        called from, and around. A call that does so does it again where the same function is given others.

        Args:
            beside: the identity of a container around, which is changed for itself.
        """
        for count, state in enumerate((*self.frames, self.flow.state)):
            own = state is self.flow.state
            for names in (state.names, state.paths):
                for name, held in [*names.items()]:
                    if type(held) not in _HOLDING or (own and name == path):
                        continue
                    now = with_change(held, who, value, beside)
                    if now is not held:
                        names[name] = now
                        self.reaches = min(self.reaches, count)
                        if own:
                            self.changed_here(name, now)
        around = {id(outer): outer for scopes in (self.outer, *self.around_frames) for outer in scopes}
        for outer in around.values():
            for name, held in [*outer.items()]:
                if type(held) not in _HOLDING:
                    continue
                now = with_change(held, who, value, beside)
                if now is not held:
                    self.note_anytime(outer, name)
                    outer[name] = at_rest(now)
                    self.objects.changed |= outer[name] != at_rest(held) and not isinstance(outer, Frame)
        self.changed_containers |= who
        frames = {place: frame for one in who for place, frame in self.frame_holders.get(one, {}).items()}
        for (_, name), frame in frames.items():
            frame.change(name, who, value)
        for one in who & self.cached_containers.keys():
            place = self.cached_containers[one]
            self.cached_results[place] = at_rest(with_change(self.cached_results[place], who, value))
        others = {place: names for one in who for place, names in self.shared.get(one, {}).items()}
        for (_, name), names in others.items():
            if name in names:
                held = names[name]
                names[name] = at_rest(with_change(held, who, value, beside))
                self.objects.changed |= names[name] != held
        for key, name in self.objects.holders(who):
            known = self.objects.of(key).get(name)
            self.objects.put(key, name, value if known is None else with_change(known, who, value, beside))

    def bind_attribute(self, target: ast.Attribute, base: Value, value: Value) -> None:
        super().bind_attribute(target, base, value)
        self.kept_beyond(value)

    def set_attribute(self, target: Value, name: Value, value: Value) -> Value:
        self.kept_beyond(value)
        return super().set_attribute(target, name, value)

    def kept_beyond(self, value: Value) -> None:
        """An object keeps a container that a caller has: a call that is given another does that with the other."""
        who = identities(value)
        for place, state in enumerate(self.frames if who else ()):
            if place < self.reaches and not all(who.isdisjoint(identities(held)) for held in state.names.values()):
                self.reaches = place

    def note_anytime(self, names: MutableMapping[str, Value], name: str) -> None:
        """A container that a name of a module, or of an enclosing function, holds has changed: at any time, where what is
        read is only supposed to run."""
        place = (names.scope if isinstance(names, Frame) else id(names), name)
        if self.supposed and place not in self.changed_anytime:
            self.changed_anytime.add(place)
            self.objects.changed = True

    def publish(self, name: str, value: Value) -> None:
        super().publish(name, value)
        function = self.flow.function
        place = (id(self.globals) if function is None else id(function.node), name)
        if place in self.changed_anytime and is_container(value):
            self.flow.state.names[name] = UNKNOWN
            if function is None and self.publishing:
                self.globals[name] = UNKNOWN
            elif self.frame is not None:
                self.frame.run_wild([name])

    def changed_here(self, name: str, value: Value) -> None:
        """A name of the running function, or of the module that runs, holds a container that has changed."""
        function = self.flow.function
        if function is None:
            if "." not in name:
                self.publish(name, value)
        elif name in _parameters(function):
            self.changed_parameters.setdefault(id(function.node), set()).add(name)

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
                self.made_for_all.update(dict.fromkeys(identities_of(value), place))
                if place in self.changed_defaults:
                    kept[name] = self.lost(value)
        return kept


_HOLDING = frozenset[type]({Items, Distinct, Record, Table, Iteration, Each, Either, Partial})
"""The kinds of values that hold others."""


def _parameters(function: FunctionInfo) -> set[str]:
    """The parameters that hold what the caller has too; `*args` and `**kwargs` are made for the call."""
    arguments = function.node.args
    return {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
