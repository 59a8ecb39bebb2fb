"""Copies: an object that `copy.deepcopy` makes has attributes, weights and casts of its own from there on."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.program.functions import ANYBODY
from dtlint.infer.program.hooking import Hooking
from dtlint.infer.values import (
    UNKNOWN,
    Class,
    Constant,
    Dtype,
    Either,
    Function,
    Instance,
    Items,
    Iteration,
    Key,
    Module,
    Number,
    Table,
    Tensor,
    Value,
    options,
)

if TYPE_CHECKING:
    from dtlint.infer.calls import Arguments
    from dtlint.infer.scopes import ClassInfo

__all__ = ["Copying"]

_SAME = (Tensor, Constant, Number, Dtype, Class, Function)
"""What a copy is like, in all that is known of it."""
_SPOKEN = ("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")
"""Methods by which a class copies its instances itself."""


class Copying(Hooking):
    """An interpreter that copies what is known of an object."""

    replaced: frozenset[str] = frozenset()
    """The attributes of the object being copied that the copy is given anew."""

    def copy(self, value: Value, arguments: Arguments, deep: bool) -> Value:
        """What `copy.copy(value)` or `copy.deepcopy(value)` gives."""
        self.replaced = _assigned_behind(self.flow.block, self.flow.statement, arguments.node)
        for module in options(value) if not deep else ():
            if isinstance(module, Module):  # a shallow copy has the same weights: its casts are the other's
                self.cast_module(module, None)
        copied = self.copied(value, self.identity(arguments), deep)
        self.replaced = frozenset()
        return copied

    def copied(self, value: Value, place: Key, deep: bool, done: dict[Key, Value] | None = None) -> Value:
        """What `copy.copy(value)` or `copy.deepcopy(value)` gives; Unknown where the value does that itself.

        Args:
            place: the identity of the copy.
            done: the objects that are copied already, by their keys.
        """
        done = {} if done is None else done
        if isinstance(value, _SAME):
            return value
        if not deep and isinstance(value, (Items, Iteration, Table)):
            return value
        if isinstance(value, Items):
            return value.holding(self.copied(item, place, deep, done) for item in value.items)
        if isinstance(value, Iteration):
            return Iteration(self.copied(value.item, place, deep, done))
        if isinstance(value, Table):
            rest = None if value.rest is None else self.copied(value.rest, place, deep, done)
            items = {key: self.copied(item, place, deep, done) for key, item in value.items.items()}
            return Table(items, value.perhaps, rest)
        if isinstance(value, Either):
            choices = tuple(self.copied(choice, place, deep, done) for choice in value.choices)
            return UNKNOWN if UNKNOWN in choices else Either(choices)
        if isinstance(value, Module) and deep:
            return self.copied_object(value, place, deep, done)
        if isinstance(value, Instance):
            return self.copied_object(value, place, deep, done)
        return self.lost(value)

    def copied_object(self, value: Module | Instance, place: Key, deep: bool, done: dict[Key, Value]) -> Value:
        if value.key in done:
            return done[value.key]
        if value.info is not None and _copies_itself(value.info):
            return self.lost(value)
        if value.key.startswith((ANYBODY, f"{place}<")):  # stands for all of its class; or holds its own copy
            return value
        key = f"{place}<{value.key}"
        made = done[value.key] = replace(value, key=key)
        objects = self.objects
        if self.loops_open or value.key in objects.shared:
            objects.stand_for_several(key)
        if value.key in objects.open:
            objects.open_up(key)
        casts = self.flow.state.casts
        held = [casts[above] for above in objects.above(value.key) if above in casts]
        if held:
            casts[key] = max(held, key=lambda cast: cast[0])
        if value.key in self.ever_cast and key not in self.ever_cast:
            self.ever_cast.add(key)
            objects.changed = True
        replaced, self.replaced = self.replaced, frozenset()
        for name, attribute in list(objects.of(value.key).items()):
            if name in replaced:
                continue
            objects.put(key, name, self.copied(attribute, place, deep, done) if deep else attribute)
        if isinstance(made, Module) and isinstance(value, Module) and value.items is not None:
            made = done[value.key] = replace(made, items=self.copied_items(value.items, key, place, done))
        return made

    def copied_items(
        self, items: tuple[Value, ...], owner: Key, place: Key, done: dict[Key, Value]
    ) -> tuple[Value, ...]:
        """The modules that a container of torch.nn holds, copied with it."""
        copies = tuple(self.copied(item, place, True, done) for item in items)
        for copy in copies:
            self.objects.own(owner, copy.item if isinstance(copy, Iteration) else copy)
        return copies


def _assigned_behind(block: list[ast.stmt], statement: ast.stmt, call: ast.Call) -> frozenset[str]:
    """The attributes that a copy is given at once, by the statements behind `x = copy.deepcopy(y)`: nobody finds in them
    what the other has."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    if not isinstance(target, ast.Name) or statement not in block:
        return frozenset()
    found: set[str] = set()
    for behind in block[block.index(statement) + 1 :]:
        if not isinstance(behind, ast.Assign) or not isinstance(behind.value, ast.Constant):
            break
        paths = [path_of(place) or "" for place in behind.targets]
        if not all(path.count(".") == 1 and path.startswith(f"{target.id}.") for path in paths):
            break
        found.update(path.partition(".")[2] for path in paths)
    return frozenset(found)


def _copies_itself(info: ClassInfo) -> bool:
    return any(info.method(name) is not None for name in _SPOKEN)
