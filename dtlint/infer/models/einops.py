"""einops: rearranging and repeating keep the dtype of the tensor; so does reducing, where it is a floating one.

https://einops.rocks/api/rearrange/ and its neighbours; the layers of `einops.layers.torch` do the same as the functions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    TOP,
    Array,
    Const,
    External,
    Many,
    Ref,
    Tensor,
    Tuple,
    Unknown,
    Value,
)
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

__all__: list[str] = []


def _subject(ctx: Context, value: Value | None, arguments: Arguments) -> Value:
    """The tensor that is worked on: one that is given, or what a list of them is stacked to."""
    given = TOP if value is None else plain_tensors.plain(ctx, value)
    if isinstance(given, (Tuple, Ref)):
        items = ctx.semantics.items(ctx, given, arguments.node)
        held = items.items if isinstance(items, Tuple) else (items.item,) if isinstance(items, Many) else ()
        plain = [plain_tensors.plain(ctx, one) for one in held]
        if isinstance(items, Tuple) and len(plain) == 1:
            return plain[0]
        given = join_all(plain) or TOP
        if isinstance(given, Tensor) and (given.dtypes is None or len(given.dtypes) > 1):
            return Tensor()
    return given


def _kept(value: Value, pattern: Value | None, *, same_numbers: bool) -> Value:
    """A tensor of the same dtype and of the shape that the pattern says."""
    if isinstance(value, Tensor):
        rank = _rank(pattern)
        numbers = Tensor(value.dtypes, value.symbol, rank, device=value.device)
        return Tensor(value.dtypes, value.symbol, rank, value.range, value.device) if same_numbers else numbers
    return Array(value.dtypes, None) if isinstance(value, Array) else value if isinstance(value, Unknown) else TOP


def _rank(pattern: Value | None) -> int | None:
    """The dimensions of a result: a name, a number or a group on the right is one each, `...` any number."""
    if not isinstance(pattern, Const) or not isinstance(pattern.value, str):
        return None
    axes = _GROUP.sub("one", pattern.value.partition("->")[2]).split()
    if "..." in axes or "…" in axes:
        return -1 if len(axes) > 1 else None
    return len(axes)


_GROUP = re.compile(r"\([^()]*\)")


@model("einops.rearrange", "einops.repeat")
def _rearrange(ctx: Context, arguments: Arguments) -> Value:
    return _kept(_subject(ctx, arguments.get(0, "tensor"), arguments), arguments.get(1, "pattern"), same_numbers=True)


@model("einops.reduce")
def _reduce(ctx: Context, arguments: Arguments) -> Value:
    value = _subject(ctx, arguments.get(0, "tensor"), arguments)
    return _reduced(value, arguments.get(1, "pattern"), arguments.get(2, "reduction"))


def _reduced(value: Value, pattern: Value | None, how: Value | None) -> Value:
    """Minimum and maximum keep every dtype; sums and means are those of torch, which keep floating ones."""
    if how in (Const("min"), Const("max")):
        return _kept(value, pattern, same_numbers=False)
    if isinstance(how, Const) and isinstance(value, (Tensor, Unknown)) and value.dtypes and value.dtypes <= FLOATING:
        return _kept(value, pattern, same_numbers=False)
    return Tensor() if isinstance(value, Tensor) else TOP


@model("einops.einsum")
def _einsum(ctx: Context, arguments: Arguments) -> Value:
    """`einsum(x, y, pattern)`: torch's, with the pattern behind."""
    if not arguments.complete or len(arguments.args) < 2:
        return TOP
    given = [arguments.args[-1], *arguments.args[:-1]]
    return ctx.semantics.call(ctx, External("torch.einsum"), type(arguments)(given, {}, True, arguments.node))


@model("einops.pack")
def _pack(ctx: Context, arguments: Arguments) -> Value:
    return Tuple((_kept(_subject(ctx, arguments.get(0, "tensors"), arguments), None, same_numbers=True), TOP))


@model("einops.unpack")
def _unpack(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.get(0, "tensor")
    return Many(_kept(TOP if value is None else plain_tensors.plain(ctx, value), None, same_numbers=True))


def _layer(name: str) -> None:
    @model(f"einops.layers.torch.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        made = ctx.allocate(arguments.node, f"einops.layers.torch.{name}")
        ctx.store.write(made.address, "*pattern", arguments.get(0, "pattern") or TOP)
        ctx.store.write(made.address, "*reduction", arguments.get(1, "reduction") or TOP)
        return made

    @model(f"einops.layers.torch.{name}.__call__", f"einops.layers.torch.{name}.forward")
    def call(ctx: Context, arguments: Arguments) -> Value:
        layer, value = arguments.args[0], _subject(ctx, arguments.get(1, "input"), arguments)
        pattern, reduction = (
            ctx.store.read(layer.address, field) if isinstance(layer, Ref) else None
            for field in ("*pattern", "*reduction")
        )
        return _kept(value, pattern, same_numbers=True) if name == "Rearrange" else _reduced(value, pattern, reduction)


for _name in ("Rearrange", "Reduce"):
    _layer(_name)
