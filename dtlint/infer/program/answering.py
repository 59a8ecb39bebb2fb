"""Attributes that a class answers for: descriptors, `__setattr__`, `__getattr__`, another dict behind them all.

Source: the data model of Python's language reference, chapters 3.3.2 and 3.3.2.2.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.program.fields import assigned_at_start, has_generated_init
from dtlint.infer.program.functions import ANYBODY
from dtlint.infer.program.instances import Instances, is_enumeration
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Class,
    Constant,
    Function,
    Instance,
    Module,
    Unknown,
    Value,
    join,
    options,
)
from dtlint.infer.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.scopes import ClassInfo, FunctionInfo, FunctionNode

__all__ = ["Answering"]

_OF_ANOTHER = frozenset({"__class__", "__code__", "__defaults__", "__kwdefaults__"})
"""Attributes that make an object or a function another: what their code says is not what they do."""


@lru_cache(maxsize=256)
def _gives_value_on(node: FunctionNode) -> bool:
    """Does a `__setattr__` assign the very value that it is given?"""
    given = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    if len(given) != 3 or isinstance(node, ast.Lambda):
        return False
    calls = 0
    for part in nodes(node.body):
        if isinstance(part, ast.Name) and part.id == given[2] and not isinstance(part.ctx, ast.Load):
            return False
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "__setattr__":
            calls += 1
            if not part.args or not isinstance(part.args[-1], ast.Name) or part.args[-1].id != given[2]:
                return False
    return calls > 0


class Answering(Instances):
    """An interpreter that asks the class of an object for what it says of attributes."""

    # -- what a class has under the name of an attribute

    def instance_member(self, base: Module | Instance, name: str) -> Value:
        info = base.info
        if info is None or name.startswith("__") or info.method(name) is not None:
            return super().instance_member(base, name)
        held = self.described(info, name)
        if held is None:
            found = super().instance_member(base, name)
            own = info.method("__getattr__") is not None and name not in assigned_at_start(info)
            if own and self.objects.get(base.key, name) is not None and not base.key.startswith(ANYBODY):
                return join(found, self.looked_up(base, name))  # until it is assigned
            return found
        if isinstance(held, Unknown):
            return UNKNOWN
        given = self.objects.get(base.key, name)
        results = [] if given is None or self.method_among(held, "__set__") else [self.owned(given, base)]
        for choice in options(held):
            getter = choice.info.method("__get__") if isinstance(choice, Instance) else None
            results.append(choice if getter is None else self.apply(getter, choice, [base, Class(info)], {}, True))
        found = results[0]
        for other in results[1:]:
            found = join(found, other)
        return found

    def described(self, info: ClassInfo, name: str) -> Value | None:
        """What a class has under a name, where that decides what its instances have: a descriptor, or what may be one."""
        if not any(parent.body for parent in info.lineage):
            return None
        held = self.in_class(info, name)
        if held is None or is_enumeration(info):
            return None
        if any(type(choice) is Unknown for choice in options(held)):
            return None if has_generated_init(info) else UNKNOWN
        return held if self.method_among(held, "__get__", "__set__") is not None else None

    @staticmethod
    def method_among(value: Value, *names: str) -> FunctionInfo | None:
        """The first of these methods that one of the objects has which a value may be."""
        infos = [choice.info for choice in options(value) if isinstance(choice, Instance)]
        return next((found for info in infos for name in names if (found := info.method(name)) is not None), None)

    def define_class(self, node: ast.ClassDef) -> None:
        """A method has each name that the body of its class gives it: `__rmul__ = __mul__`."""
        super().define_class(node)
        made = self.quietly(ast.Name(node.name, ast.Load()))
        info = made.info if isinstance(made, Class) and made.info.node is node else None
        for statement in node.body if info is not None else ():
            if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Name):
                continue
            method = info.methods.get(statement.value.id) if info is not None else None
            for target in statement.targets if method is not None else ():
                if isinstance(target, ast.Name) and info is not None and method is not None:
                    info.methods[target.id] = method
                    info.body.pop(target.id, None)

    # -- assignments

    def bind_attribute(self, target: ast.Attribute, base: Value, value: Value) -> None:
        owners = [choice for choice in options(base) if isinstance(choice, (Module, Instance))]
        if (
            owners
            and len(owners) == len(options(base))
            and self.told_of_assignment(owners, Constant(target.attr), value)
        ):
            self.flow.state.forget(path_of(target) or "")
            self.flow.state.paths.pop(path_of(target) or "", None)
            return
        super().bind_attribute(target, base, value)
        if target.attr in _OF_ANOTHER and (owners or isinstance(base, Function)):
            self.altered = self.objects.changed = True
        for owner in owners:
            lineage = owner.info.lineage if owner.info is not None else []
            if target.attr == "__dict__" or any("__setattr__" in parent.body for parent in lineage):
                self.objects.scatter(owner.key)  # `__setattr__ = dict.__setitem__`
            if owner.key in self.objects.scattered:  # it may be another's, too
                self.flow.state.paths.pop(path_of(target) or "", None)
            held = None if owner.info is None else self.described(owner.info, target.attr)
            if held is None:
                continue
            self.flow.state.forget(path_of(target) or "")
            self.flow.state.paths.pop(path_of(target) or "", None)
            for choice in options(held):
                setter = choice.info.method("__set__") if isinstance(choice, Instance) else None
                if setter is not None:
                    self.apply(setter, choice, [owner, value], {}, True)

    def told_of_assignment(self, owners: Iterable[Module | Instance], name: Value, value: Value) -> bool:
        """Do all objects decide by a `__setattr__` of their class what is assigned? It is called, and may do no more than
        any other assignment does."""
        decided = True
        for owner in owners:
            method = None if owner.info is None else owner.info.method("__setattr__")
            if method is None:
                decided = False
                continue
            outer, self.objects.stored = self.objects.stored, set()
            self.apply(method, owner, [name, value], {}, True)
            plainly = isinstance(name, Constant) and self.objects.stored == {(owner.key, name.value)}
            decided = decided and not (plainly and _gives_value_on(method.node))
            self.objects.stored |= outer
        return decided

    def set_by_name(self, target: Value, name: Value, value: Value) -> Value:
        """`setattr(target, name, value)`."""
        owners = [choice for choice in options(target) if isinstance(choice, (Module, Instance))]
        whole = bool(owners) and len(owners) == len(options(target))
        if whole and self.told_of_assignment(owners, name, value):
            return NONE
        return self.set_attribute(target, name, value)
