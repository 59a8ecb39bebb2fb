"""Enumerations that are read as source: their members are objects, one for each name."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import (
    TOP,
    Const,
    External,
    Function,
    Mapping,
    ProjectClass,
    Ref,
    Value,
    present,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.context import Arguments, Context

__all__ = [
    "by_value",
    "is_enumeration",
    "is_member",
    "member",
    "members",
    "members_by_name",
    "names_of",
    "plain",
]

_BASES = ("enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag")
_PLAIN_BASES = ("builtins.str", "builtins.int", "enum.StrEnum", "enum.IntEnum", "enum.IntFlag")


def is_enumeration(cls: ProjectClass) -> bool:
    """Is it certainly an enumeration?"""
    return any(isinstance(one, External) and one.name in _BASES for one in cls.definition.order)


def is_member(value: Value) -> bool:
    """Is it a member of an enumeration?"""
    return (
        isinstance(value, Ref) and isinstance(value.address.kind, ProjectClass) and is_enumeration(value.address.kind)
    )


def names_of(cls: ProjectClass) -> tuple[str, ...]:
    """The names of an enumeration's members, in order: what its body binds, methods and private names aside."""
    found: list[str] = []
    for statement in cls.definition.node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        found += [one.id for one in targets if isinstance(one, ast.Name) and not one.id.startswith("_")]
    return tuple(found)


def member(ctx: Context, cls: ProjectClass, name: str, value: Value) -> Value:
    """The member of that name; one of another enumeration's class attributes stays what it is."""
    if isinstance(value, Function):
        return value
    address = ctx.store.address(None, (cls.definition.node, name), cls)
    if address not in ctx.store.objects:
        for field, held in (("value", value), ("name", Const(name)), ("_value_", value), ("_name_", Const(name))):
            ctx.store.settle(address, field, held)
        ctx.store.frozen.add(address)
    return Ref(address)


def _named_members(ctx: Context, cls: ProjectClass) -> Iterator[tuple[str, Value]]:
    for name in names_of(cls):
        held = ctx.store.read(cls.definition.namespace, name)
        value = None if held is None else present(held)
        if value is not None and not isinstance(value, Function):
            yield name, member(ctx, cls, name, value)


def members(ctx: Context, cls: ProjectClass) -> list[Value]:
    """The members of an enumeration, in order."""
    return [one for _, one in _named_members(ctx, cls)]


def members_by_name(ctx: Context, cls: ProjectClass) -> Mapping:
    """`cls.__members__`."""
    return Mapping(tuple((Const(name), one) for name, one in _named_members(ctx, cls)))


def by_value(ctx: Context, cls: ProjectClass, arguments: Arguments) -> Value:
    """`cls(value)`."""
    value = arguments.get(0, "value")
    if not arguments.complete or value is None:
        return TOP
    if is_member(value):
        return value
    for one in members(ctx, cls):
        assert isinstance(one, Ref)
        if isinstance(value, Const) and ctx.store.read(one.address, "value") == value:
            return one
    return TOP


def plain(ctx: Context, value: Value) -> Value:
    """The text or number that a member of such an enumeration is, too: `StrEnum`, `class Mode(str, Enum)`."""
    if type(value) is Ref and is_member(value):
        order = value.address.kind.definition.order
        if any(isinstance(one, External) and one.name in _PLAIN_BASES for one in order):
            held = ctx.store.read(value.address, "value")
            return held if isinstance(held, Const) else value
    return value
