"""Attributes that are stored under another name: what that leaves of the paths that lead to them.

A path (`self.state`) holds what it was last bound to. The same attribute may be assigned through another name of its
object, by a function that is called, or by one that was handed to code that is not seen, which may call it at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.program.functions import Functions
from dtlint.infer.program.objects import EVERY, Objects, class_key
from dtlint.infer.survey import facts
from dtlint.infer.values import Class, Function, Instance, Key, Module, Value, options

if TYPE_CHECKING:
    from collections.abc import Collection, Set

    from dtlint.infer.interproc.project import ModuleInfo, Project
    from dtlint.infer.program.objects import Store
    from dtlint.infer.scopes import FunctionInfo

__all__ = ["Storing", "function_key", "place_of"]


class Storing(Functions):
    """An interpreter that forgets a path where its attribute is stored otherwise."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.objects = Objects(self.lose)
        self.handed: dict[tuple[int, Key], Function] = {}
        """Functions that were handed to code that is not seen, by the identity of their syntax, and what they are bound to."""
        self.stored_anytime: set[Store] = set()
        """What those assign, in any round: it may be at any time."""

    def lose(self, value: Value, depth: int = 0) -> None:
        super().lose(value, depth)
        if isinstance(value, Function) and depth <= _DEEPEST and (value.receiver is None or _stores(value.info)):
            self.handed.setdefault(place_of(value), value)

    def read_handed(self, function: Function) -> None:
        """Read a function as the code calls it that it was handed to: with anything, for the object that it is bound to."""
        before, self.objects.stored = self.objects.stored, set()
        self.read_for_anybody(function.info, function.receiver)
        self.objects.changed |= not self.objects.stored <= self.stored_anytime
        self.stored_anytime |= self.objects.stored
        self.objects.stored = before

    def forget_stored(self, stored: Set[Store]) -> None:
        """A call has stored attributes: the paths that lead to them hold what they held no more."""
        paths = self.flow.state.paths
        if paths and stored:
            names = {name for _, name in stored}
            for path in [path for path in paths if self.is_stored(path, stored, names)]:
                paths.pop(path, None)

    def forget_stored_by(self, info: FunctionInfo) -> None:
        """The same of a call that is not read: what the function was seen to store before."""
        self.forget_stored(self.stores_of.get(id(info.node), frozenset()))

    def stored_here(self, path: str, owners: Collection[Value], name: str, value: Value) -> None:
        """`owner.name = value`, by a path: what it leaves of other paths to the attribute."""
        paths = self.flow.state.paths
        stored = {(_key_of(owner) or EVERY, name) for owner in owners}
        if stored & self.stored_anytime:
            paths.pop(path, None)
        for other in [other for other in paths if other != path and f".{name}" in other]:
            if self.is_stored(other, stored, {name}):
                only = len(owners) == 1 and not stored & {(key, name) for key in (EVERY, *self.objects.shared)}
                if only and self.owner_keys(other) == {next(iter(stored))[0]}:
                    paths[other] = value
                else:
                    paths.pop(other, None)

    def stored_by_name(self, target: Value, name: str) -> None:
        """`setattr(target, name, value)`: what it leaves of paths."""
        self.forget_stored({(_key_of(owner) or EVERY, name) for owner in options(target)})

    def is_stored(self, path: str, stored: Set[Store], names: Set[str]) -> bool:
        """Is an attribute on a path among those that were stored, as far as is known?"""
        prefix, _, name = path.rpartition(".")
        if not prefix:
            return False
        if EVERY in names or name in names:
            keys = self.owner_keys(path)
            if keys is None or any(store in stored for key in (*keys, EVERY) for store in ((key, name), (key, EVERY))):
                return True
        return self.is_stored(prefix, stored, names)

    def owner_keys(self, path: str) -> set[Key] | None:
        """The objects of which a path names the attribute; None where they are not known."""
        prefix = path.rpartition(".")[0]
        state = self.flow.state
        owner = state.paths.get(prefix) if "." in prefix else state.names.get(prefix)
        keys = set() if owner is None else {_key_of(choice) for choice in options(owner)}
        return None if not keys or None in keys else {key for key in keys if key is not None}


def place_of(function: Function) -> tuple[int, Key]:
    """What tells a function and what it is bound to from others."""
    receiver = function.receiver
    return (id(function.info.node), receiver.key if isinstance(receiver, (Module, Instance)) else "")


def _stores(info: FunctionInfo) -> bool:
    """Does a method assign to its object itself?"""
    arguments = info.node.args
    me = next((argument.arg for argument in (*arguments.posonlyargs, *arguments.args)), None)
    return any(owner == me for owner, _ in facts(info.node).stores)


def function_key(info: FunctionInfo) -> Key:
    """What the attributes of a function are kept under, of all that a definition makes."""
    return f"function {id(info.node)}"


def _key_of(owner: Value) -> Key | None:
    if isinstance(owner, Class):
        return class_key(owner.info)
    if isinstance(owner, Function):
        return function_key(owner.info)
    return owner.key if isinstance(owner, (Module, Instance)) else None


_DEEPEST = 3
"""How deep in containers functions are looked for that get out of sight with them."""
