"""What is made behind one path of calls, put behind another; and which objects a value refers to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    TOP,
    Address,
    Bound,
    Const,
    Dtype,
    External,
    Function,
    Generator,
    Many,
    Mapping,
    Number,
    Partial,
    ProjectClass,
    Ref,
    SuperOf,
    Tensor,
    Tuple,
    Union,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import CallPath
    from dtlint.infer.state import Store

__all__ = ["Relocation", "addresses_in"]


class Relocation:
    """Puts what was made behind one path behind another."""

    def __init__(self, store: Store, old: CallPath, new: CallPath) -> None:
        self.store, self.old = store, old
        self.paths: dict[CallPath, CallPath] = {old: new}
        self.addresses: dict[Address, Address] = {}

    def path(self, path: CallPath | None) -> CallPath | None:
        """The path; None where it does not lead through the old one."""
        if path is None or path.depth < self.old.depth:
            return None
        known = self.paths.get(path)
        if known is None:
            caller = self.path(path.caller)
            if caller is None:
                return None
            known = self.paths[path] = self.store.path(caller, path.site, path.module)
        return known

    def address(self, address: Address) -> Address:
        """The object behind the new path; those that are not made by the call stay."""
        known = self.addresses.get(address)
        if known is None:
            path = self.path(address.path)
            site = address.site
            if isinstance(site, tuple):
                site = tuple(self.address(part) if isinstance(part, Address) else part for part in site)
            known = address
            if path is not None or site != address.site:
                known = self.store.address(address.path if path is None else path, site, address.kind)
            self.addresses[address] = known
        return known

    def value(self, value: Value) -> Value:
        """The value, its objects replaced."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if isinstance(value, Ref):
            return Ref(self.address(value.address))
        if isinstance(value, Tuple):
            return Tuple(tuple(map(self.value, value.items)), value.names, value.kind)
        if isinstance(value, Many):
            return Many(self.value(value.item))
        if isinstance(value, Mapping):
            items = tuple((self.value(key), self.value(item)) for key, item in value.items)
            return Mapping(items, None if value.rest is None else self.value(value.rest))
        if isinstance(value, Union):
            return join_all(map(self.value, value.choices)) or TOP
        if isinstance(value, Function):
            frame = None if value.frame is None else self.address(value.frame)
            return Function(value.definition, frame, None if value.receiver is None else self.value(value.receiver))
        if isinstance(value, Partial):
            keywords = tuple((name, self.value(item)) for name, item in value.keywords)
            return Partial(self.value(value.callee), tuple(map(self.value, value.args)), keywords)
        if isinstance(value, Generator):
            frame = None if value.function.frame is None else self.address(value.function.frame)
            given = tuple((name, self.value(item)) for name, item in value.bound)
            return Generator(Function(value.function.definition, frame), given)
        if isinstance(value, Bound):
            return Bound(self.value(value.receiver), value.name)
        if isinstance(value, SuperOf):
            return SuperOf(value.owner, self.value(value.receiver))
        return value


def addresses_in(value: Value) -> Iterator[Address]:
    """The objects that a value refers to, itself and through what it holds."""
    kind = type(value)
    if kind is Ref:
        yield value.address  # type: ignore[attr-defined]
    elif kind in _PLAIN:
        return
    elif isinstance(value, Generator):
        yield from addresses_in(value.function)
        for _, item in value.bound:
            yield from addresses_in(item)
    elif isinstance(value, ProjectClass):
        yield value.definition.namespace
    elif isinstance(value, Tuple):
        for item in value.items:
            yield from addresses_in(item)
        if value.kind is not None:
            yield from addresses_in(value.kind)
    elif isinstance(value, Many):
        yield from addresses_in(value.item)
    elif isinstance(value, Mapping):
        for key, item in value.items:
            yield from addresses_in(key)
            yield from addresses_in(item)
        if value.rest is not None:
            yield from addresses_in(value.rest)
    elif isinstance(value, Union):
        for item in value.choices:
            yield from addresses_in(item)
    elif isinstance(value, Function):
        if value.frame is not None:
            yield value.frame
        if value.receiver is not None:
            yield from addresses_in(value.receiver)
    elif isinstance(value, Partial):
        yield from addresses_in(value.callee)
        for item in (*value.args, *(item for _, item in value.keywords)):
            yield from addresses_in(item)
    elif isinstance(value, (Bound, SuperOf)):
        yield from addresses_in(value.receiver)


_PLAIN = frozenset({Const, Dtype, External, Number, Tensor, Unknown})
"""Kinds of values that refer to no object."""
