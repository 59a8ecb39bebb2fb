"""Containers that change: a dict or list that is stored into is another value from there on, wherever it is known.

Values themselves never change; what does is what a name, an attribute or a module's global is known to hold.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.program.copying import Copying
from dtlint.infer.program.objects import at_rest
from dtlint.infer.values import (
    UNKNOWN,
    Class,
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
    from dtlint.infer.scopes import FunctionInfo

__all__ = ["CONTAINERS", "Changing"]

CONTAINERS = (Items, Table, Iteration)


class Changing(Copying):
    """An interpreter that follows what stores into containers change."""

    changed_parameters: dict[int, set[str]]
    """The parameters whose containers a function changes, by the identity of its syntax."""

    def rebind(self, node: ast.expr, value: Value) -> None:
        """The container that an expression names now is `value`."""
        path = path_of(node)
        before = self.quietly(node)
        self.note_change(node, before, value)
        value = self.under_other_names(path, before, value)
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
                self.objects.put(owner.key, node.attr, value)
            elif isinstance(owner, Class):
                self.put_in_class(owner, node.attr, value)
            elif isinstance(owner, Namespace):
                self.put_in_module(owner.name, node.attr, value)

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
            self.objects.changed |= names[name] != before

    def changed_container(self, node: ast.expr) -> None:
        """A list or dict that a method has changed is no longer what it was written as."""
        value = self.quietly(node)
        if any(isinstance(choice, CONTAINERS) for choice in options(value)):
            self.lose(value)
            self.rebind(node, UNKNOWN)

    def note_change(self, node: ast.expr, before: Value, value: Value) -> None:
        """Others may hold the same container: attributes, and whoever gave it as an argument."""
        for key, name in self.objects.holders(before):
            self.objects.put(key, name, value)
        function = self.flow.function
        if isinstance(node, ast.Name) and function is not None and node.id in _parameters(function):
            self.changed_parameters.setdefault(id(function.node), set()).add(node.id)

    def under_other_names(self, path: str | None, before: Value, value: Value) -> Value:
        """What a container is now that others name too: they name the same one, or one that was made alike."""
        state = self.flow.state
        if not isinstance(before, CONTAINERS):
            return value
        others = [
            (names, name)
            for names in (state.names, state.paths)
            for name, held in names.items()
            if held is before and name != path
        ]
        if others:
            value = join(before, value)
        for names, name in others:
            names[name] = value
        return value

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


def _parameters(function: FunctionInfo) -> set[str]:
    """The parameters that hold what the caller has too; `*args` and `**kwargs` are made for the call."""
    arguments = function.node.args
    return {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
