"""What functions change: attributes once the object is made, and variables that they declare as `global`. Other functions find
more in them than the constructor, or the module's body, has left there."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.domain.lattice import category_of
from dtlint.infer.domain.values import NONE, TOP, Const, Mapping, Number, ProjectClass, Ref, Tensor, Tuple, choices
from dtlint.infer.semantics.attributes import class_attribute
from dtlint.infer.walk import nodes
from dtlint.source.definitions import functions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.infer.context import Context
    from dtlint.infer.domain.values import Address, Value

__all__ = ["forget_changed", "forget_changed_globals"]

_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})
_CHANGING = frozenset({"append", "appendleft", "extend", "insert", "add", "update", "setdefault"})
"""Methods of containers that put something in."""


@dataclass(frozen=True)
class _Changed:
    """The attributes that methods of a class change, apart from those that the constructor calls.

    Attributes:
        assigned: those that are assigned, or deleted.
        renewed: those of them that are given what is not made of themselves, as `self.x = self.x.to(device)` is.
        counted: those that are added to and the like, as in `self.step += 1`.
        filled: those that hold a container in which something is put.
    """

    assigned: frozenset[str]
    renewed: frozenset[str]
    counted: frozenset[str]
    filled: frozenset[str]


def forget_changed(ctx: Context, made: Ref, order: Sequence[Value]) -> None:
    """Forget the numbers, texts and containers, and None, in attributes that the methods of its classes change, the tensors in
    those that are given other ones, and that there are none that these bring in. Layers and weights are taken to keep their
    kind."""
    store = ctx.store
    for cls in order:
        if not isinstance(cls, ProjectClass):
            continue
        changed = _changed_in(cls.definition.node)
        for name in changed.assigned | changed.counted | changed.filled:
            value = store.read(made.address, name)
            if value is None and name in changed.assigned and class_attribute(ctx, order, name) is None:
                store.overwrite(made.address, name, TOP)
            if name in changed.renewed and value is not None and any(isinstance(one, Tensor) for one in choices(value)):
                store.overwrite(made.address, name, TOP)
                continue
            if value is None or not all(map(_is_plain, choices(value))):
                continue
            category = category_of(value)
            if name in changed.assigned:
                store.overwrite(made.address, name, TOP)
            elif name in changed.counted and category is not None:
                store.overwrite(made.address, name, Number(category))
            else:
                ctx.modules.escape(ctx, [value])


def forget_changed_globals(ctx: Context, variables: Address, tree: ast.Module) -> None:
    """Forget the numbers, texts and containers, and None, in variables of a module that its functions assign."""
    for name in _globals_in(tree):
        value = ctx.store.read(variables, name)
        if value is not None and all(map(_is_plain, choices(value))):
            ctx.store.overwrite(variables, name, TOP)


@lru_cache(maxsize=64)
def _globals_in(tree: ast.Module) -> frozenset[str]:
    every = nodes([tree], _WITHOUT_STATEMENTS)
    return frozenset(name for node in every if isinstance(node, ast.Global) for name in node.names)


_WITHOUT_STATEMENTS = (
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Expr,
    ast.Return,
    ast.Raise,
    ast.Assert,
    ast.Delete,
)
"""Statements in which no other stands."""


def _is_plain(value: Value) -> bool:
    if isinstance(value, Ref):
        return isinstance(value.address.kind, str) and value.address.kind.startswith(("builtins.", "collections."))
    return value == NONE or isinstance(value, (Const, Number, Tuple, Mapping))


@lru_cache(maxsize=1024)
def _changed_in(node: ast.ClassDef) -> _Changed:
    methods = {one.name: one for one in functions(node.body)}
    making = [methods[name] for name in _CONSTRUCTORS & methods.keys()]
    for one in making:
        making += (methods[name] for name in _called_in(one) if name in methods and methods[name] not in making)
    assigned: set[str] = set()
    renewed: set[str] = set()
    counted: set[str] = set()
    filled: set[str] = set()
    for part in nodes(method for method in methods.values() if method not in making):
        if isinstance(part, ast.AugAssign):
            counted |= _own(part.target)
            filled |= _own(part.target.value) if isinstance(part.target, ast.Subscript) else set()
        elif isinstance(part, (ast.Assign, ast.AnnAssign, ast.For, ast.Delete)):
            for target in _targets(part):
                own = _own(target)
                assigned |= own
                renewed |= own - _read_in(part) if own else own
                filled |= _own(target.value) if isinstance(target, ast.Subscript) else set()
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _CHANGING:
            filled |= _own(part.func.value)
    return _Changed(frozenset(assigned), frozenset(renewed), frozenset(counted), frozenset(filled))


def _targets(statement: ast.Assign | ast.AnnAssign | ast.For | ast.Delete) -> Iterator[ast.expr]:
    """What a statement assigns to or deletes, the items of a tuple one by one."""
    waiting = list(statement.targets) if isinstance(statement, (ast.Assign, ast.Delete)) else [statement.target]
    while waiting:
        target = waiting.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            waiting += target.elts
        else:
            yield target.value if isinstance(target, ast.Starred) else target


def _own(node: ast.expr) -> set[str]:
    """The attribute that `self.name` is."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return {node.attr}
    return set()


def _read_in(statement: ast.AST) -> set[str]:
    """The attributes that a statement reads."""
    return {
        part.attr
        for part in nodes([statement])
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Load) and _own(part)
    }


def _called_in(method: ast.AST) -> Iterator[str]:
    """The methods of the object that a method calls."""
    for part in nodes([method]):
        if isinstance(part, ast.Call):
            yield from _own(part.func)
