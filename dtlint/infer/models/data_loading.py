"""Data loading: a DataLoader calls its dataset and collates what that gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import Arguments, NeverReturns
from dtlint.infer.domain.lattice import category_of, join_all
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Array,
    Const,
    Many,
    Mapping,
    Number,
    Ref,
    Tensor,
    Tuple,
    Value,
)
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.registry import MODELS, model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context


@model("torch.utils.data.TensorDataset")
def _tensor_dataset(ctx: Context, arguments: Arguments) -> Value:
    items = []
    for value in arguments.args:
        tensor = plain_tensors.plain(ctx, value)
        items.append(ctx.semantics.subscript(ctx, tensor, Number(Category.INTEGER), arguments.node))
    made = ctx.allocate(arguments.node, "torch.utils.data.TensorDataset")
    ctx.store.write(made.address, "*item", Tuple(tuple(items)) if arguments.complete else TOP)
    ctx.store.write(made.address, "tensors", Tuple(tuple(arguments.args)))
    return made


@model("torch.utils.data.TensorDataset.__getitem__")
def _tensor_item(ctx: Context, arguments: Arguments) -> Value:
    owner = arguments.args[0]
    return (ctx.store.read(owner.address, "*item") or TOP) if isinstance(owner, Ref) else TOP


@model("torch.utils.data.Subset")
def _subset(ctx: Context, arguments: Arguments) -> Value:
    return arguments.args[0] if arguments.args else TOP


@model("torch.utils.data.random_split")
def _random_split(ctx: Context, arguments: Arguments) -> Value:
    first = arguments.args[0] if arguments.args else TOP
    sizes = arguments.get(1, "lengths")
    items = None if sizes is None else ctx.semantics.items(ctx, sizes, arguments.node)
    return Tuple((first,) * len(items.items)) if isinstance(items, Tuple) else Many(first)


@model("torch.utils.data.DataLoader")
def _loader(ctx: Context, arguments: Arguments) -> Value:
    made = ctx.allocate(arguments.node, "torch.utils.data.DataLoader")
    _load(ctx, made, arguments)
    return made


@model("torch.utils.data.DataLoader.__init__")
def _initialise(ctx: Context, arguments: Arguments) -> Value:
    """The same for an object of a class that inherits from it."""
    if isinstance(arguments.args[0], Ref):
        _load(ctx, arguments.args[0], arguments.without_first())
    return NONE


def _load(ctx: Context, made: Ref, arguments: Arguments) -> None:
    dataset = arguments.get(0, "dataset") or TOP
    ctx.store.write(made.address, "dataset", dataset)
    batch = arguments.get(1, "batch_size")
    collate = arguments.get(None, "collate_fn")
    item = _item_of(ctx, dataset, arguments)
    if collate is not None and collate != NONE:
        held = ctx.allocate((arguments.node, "batch"), "builtins.list", Many(item))
        try:
            given = ctx.semantics.call(ctx, collate, Arguments([held], {}, True, arguments.node))
        except NeverReturns:
            given = TOP
    elif batch == NONE or "batch_sampler" in arguments.keywords:
        given = TOP if batch == NONE else collated(ctx, item, arguments)
    else:
        given = collated(ctx, item, arguments)
    ctx.store.write(made.address, "*batch", given)


def _item_of(ctx: Context, dataset: Value, arguments: Arguments) -> Value:
    """An item of a dataset: by its `__getitem__`, or by iterating over it."""
    try:
        if isinstance(dataset, Ref) and not isinstance(dataset.address.kind, str):
            if ctx.semantics.attribute(ctx, dataset, "__getitems__", arguments.node) not in (None, TOP):
                return TOP  # many at once, by what need not agree with `__getitem__`
            method = ctx.semantics.attribute(ctx, dataset, "__getitem__", arguments.node)
            if method is not None and method != TOP:
                index = Number(Category.INTEGER)
                return ctx.semantics.call(ctx, method, Arguments([index], {}, True, arguments.node))
        known = MODELS.get(f"{dataset.address.kind}.__getitem__") if isinstance(dataset, Ref) else None
        if known is not None:
            return known(ctx, Arguments([dataset, Number(Category.INTEGER)], {}, True, arguments.node))
        items = ctx.semantics.items(ctx, dataset, arguments.node)
    except NeverReturns:
        return TOP
    if isinstance(items, Tuple):
        return join_all(items.items) or TOP
    return items.item if isinstance(items, Many) else TOP


_DEEPEST = 6
"""How deep items are followed: a list that stands for several may hold itself."""


def collated(ctx: Context, item: Value, arguments: Arguments, depth: int = 0) -> Value:
    """What `default_collate` makes of items like this one, which lies so deep in another."""
    if depth > _DEEPEST:
        return TOP
    item = plain_tensors.plain(ctx, item)
    if isinstance(item, Tensor):
        return Tensor(
            item.dtypes,
            item.symbol,
            item.rank + 1 if item.rank is not None and item.rank >= 0 else -1,
            item.range,
            item.device,
        )
    if isinstance(item, Array):
        return Tensor(item.dtypes, None, -1, device="cpu")
    category = category_of(item)
    if category is Category.FLOAT:
        return Tensor(frozenset({"float64"}), None, 1, device="cpu")
    if category in (Category.INTEGER, Category.BOOL):
        return Tensor(frozenset({"int64" if category is Category.INTEGER else "bool"}), None, 1, device="cpu")
    if isinstance(item, Tuple):
        made = Tuple(tuple(collated(ctx, one, arguments, depth + 1) for one in item.items), item.names)
        return made if item.names else ctx.allocate((arguments.node, "collated"), "builtins.list", made)
    if isinstance(item, Const) and isinstance(item.value, str):
        return NO_TENSOR
    if isinstance(item, Ref):
        content = ctx.store.read(item.address, CONTENT)
        if isinstance(content, Mapping):
            items = tuple((key, collated(ctx, one, arguments, depth + 1)) for key, one in content.items)
            rest = None if content.rest is None else collated(ctx, content.rest, arguments, depth + 1)
            return ctx.allocate((arguments.node, "collated"), "builtins.dict", Mapping(items, rest))
        if isinstance(content, Tuple) and item.address.kind == "builtins.list":
            made = Tuple(tuple(collated(ctx, one, arguments, depth + 1) for one in content.items))
            return ctx.allocate((arguments.node, "collated"), "builtins.list", made)
    return TOP


@model("torch.utils.data.DataLoader.__iter__")
def _batches(ctx: Context, arguments: Arguments) -> Value:
    owner = arguments.args[0]
    return Many((ctx.store.read(owner.address, "*batch") or TOP) if isinstance(owner, Ref) else TOP)


@model("torch.utils.data.default_collate", "torch.utils.data._utils.collate.default_collate")
def _default_collate(ctx: Context, arguments: Arguments) -> Value:
    items = ctx.semantics.items(ctx, arguments.args[0], arguments.node)
    held = join_all(items.items) if isinstance(items, Tuple) else items.item if isinstance(items, Many) else TOP
    return collated(ctx, held or TOP, arguments)
