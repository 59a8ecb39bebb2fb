"""What drivers share: callers that a program does not show, as a Trainer that runs the steps of a module."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.context import Arguments, NeverReturns
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    TOP,
    Function,
    Many,
    Mapping,
    Ref,
    Tensor,
    Tuple,
    Union,
    Unknown,
    Value,
)
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.module_trees import is_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dtlint.infer.context import Context
    from dtlint.infer.domain.values import Address

__all__ = ["ambient", "call_back", "in_dtype", "item_of", "method_of", "on_device", "repeated"]


def method_of(ctx: Context, owner: Value, name: str, node: object, library: tuple[str, ...] = ()) -> Function | None:
    """A method that a class of the program defines; None where it has none but the library's own."""
    if not isinstance(owner, Ref):
        return None
    try:
        found = ctx.semantics.attribute(ctx, owner, name, node)  # type: ignore[arg-type]
    except NeverReturns:
        return None
    if not isinstance(found, Function) or found.definition.module.name.startswith(library or ("\0",)):
        return None
    return found


def call_back(ctx: Context, function: Function | None, args: Sequence[Value], node: object) -> Value | None:
    """What a callback gives for as many of the arguments as it takes; None where there is none, or it raises."""
    if function is None:
        return None
    given = function.definition.node.args
    most = len(given.posonlyargs) + len(given.args) - (function.receiver is not None)
    handed = list(args) if given.vararg is not None else list(args)[: max(most, 0)]
    try:
        return ctx.semantics.call(ctx, function, Arguments(handed, {}, True, node))
    except NeverReturns:
        return None


def repeated(ctx: Context, step: Callable[[], None]) -> None:
    """Run a step any number of times: the second time in what the first may have left."""
    for _ in range(2):
        ctx.semantics.perhaps(ctx, step)


@contextmanager
def ambient(ctx: Context, name: str, value: Value) -> Iterator[None]:
    """What holds everywhere, while a block runs: a region, the default dtype."""
    before = ctx.ambient(name)
    ctx.set_ambient(name, value)
    try:
        yield
    finally:
        ctx.set_ambient(name, before)


def item_of(ctx: Context, loader: Value, node: object) -> Value:
    """A batch of a loader."""
    try:
        items = ctx.semantics.items(ctx, loader, node)  # type: ignore[arg-type]
    except NeverReturns:
        return TOP
    if isinstance(items, Tuple):
        return join_all(items.items) or TOP
    return items.item if isinstance(items, Many) else TOP


def in_dtype(ctx: Context, value: Value, dtype: str, site: object, of: frozenset[str] = FLOATING) -> Value:
    """A value with each tensor of some dtypes in it cast: in tuples, lists and dicts.

    Args:
        of: the dtypes that are cast; `FLOATING`, or the halves where a result is given back in float32.
    """

    def cast(one: Tensor | Unknown) -> Value:
        if one.dtypes is None:
            return Tensor(None, None, one.rank) if isinstance(one, Tensor) else TOP
        made = (one.dtypes - of) | (frozenset({dtype}) if one.dtypes & of else frozenset())
        return Tensor(made, None, one.rank, device=one.device) if isinstance(one, Tensor) else Unknown(made)

    return _mapped(ctx, value, cast, (site, "cast"))


def on_device(ctx: Context, value: Value, device: str | None, site: object) -> Value:
    """A value with each tensor in it moved to a device; None: to one that is not known."""

    def move(one: Tensor | Unknown) -> Value:
        return Tensor(one.dtypes, one.symbol, one.rank, one.range, device) if isinstance(one, Tensor) else one

    return _mapped(ctx, value, move, (site, "moved"))


def _mapped(ctx: Context, value: Value, leaf: Callable[[Tensor | Unknown], Value], site: object) -> Value:
    """A value with others in place of its tensors; the objects that hold them are new, one for each, so that what holds
    itself is followed once. What the same site made before is as it should be."""
    copies: dict[Address, Ref] = {}

    def mapped(one: Value) -> Value:
        if isinstance(one, (Tensor, Unknown)):
            return leaf(one)
        if isinstance(one, Tuple):
            return Tuple(tuple(map(mapped, one.items)), one.names)
        if isinstance(one, Many):
            return Many(mapped(one.item))
        if isinstance(one, Mapping):
            items = tuple((key, mapped(held)) for key, held in one.items)
            return Mapping(items, None if one.rest is None else mapped(one.rest))
        if isinstance(one, Union):
            return join_all(map(mapped, one.choices)) or TOP
        if not isinstance(one, Ref) or is_module(one) or plain_tensors.is_weight(one):
            return one
        return copied(one)

    def copied(one: Ref) -> Ref:
        known = copies.get(one.address)
        if known is not None:
            return known
        origin = one.address.site
        if isinstance(origin, tuple) and origin[:1] == (site,):
            return one
        made = copies[one.address] = ctx.allocate((site, one.address), one.address.kind)
        for field in ctx.store.fields(one.address):
            held = ctx.store.read(one.address, field)
            if held is not None:
                ctx.store.write(made.address, field, mapped(held))
        return made

    return mapped(value)
