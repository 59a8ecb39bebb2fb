"""Tensors that change in place: what a program still holds under other names is another tensor now.

Values have no identity, so every cell that holds an equal value may hold the same tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.interval import ANY, Range
from dtlint.infer.domain.lattice import join
from dtlint.infer.domain.values import Many, Mapping, Tensor, Tuple, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.context import Context

__all__ = ["became", "elements_became"]


def became(ctx: Context, old: Tensor, new: Tensor) -> None:
    """A tensor has other dimensions, or another dtype: `x.unsqueeze_(0)`, `x.data = y`."""
    if old != new:
        _replace(ctx, lambda held: held == old, lambda held: join(held, new))


def elements_became(ctx: Context, old: Tensor, added: Range) -> None:
    """A tensor has other elements, `added` among them; a view of it has them, too."""
    if old.range != ANY:
        values = old.range.join(added)
        if values != old.range:
            _replace(ctx, lambda held: held.range == old.range, lambda held: _with_range(held, values))


def _with_range(held: Tensor, values: Range) -> Tensor:
    return Tensor(held.dtypes, held.symbol, held.rank, values, held.device, held.extra)


def _replace(ctx: Context, which: Callable[[Tensor], bool], how: Callable[[Tensor], Value]) -> None:
    store = ctx.store
    for address in store.holders():
        for field, value in list(store.objects[address].items()):
            made = _replaced(value, which, how)
            if made is not value:
                store.overwrite(address, field, made)


def _replaced(value: Value, which: Callable[[Tensor], bool], how: Callable[[Tensor], Value]) -> Value:
    if isinstance(value, Tensor):
        return how(value) if which(value) else value
    if isinstance(value, Tuple):
        items = tuple(_replaced(item, which, how) for item in value.items)
        return value if all(a is b for a, b in zip(items, value.items, strict=True)) else Tuple(items, value.names)
    if isinstance(value, Many):
        item = _replaced(value.item, which, how)
        return value if item is value.item else Many(item)
    if isinstance(value, Mapping):
        pairs = tuple((key, _replaced(item, which, how)) for key, item in value.items)
        rest = None if value.rest is None else _replaced(value.rest, which, how)
        same = rest is value.rest and all(a[1] is b[1] for a, b in zip(pairs, value.items, strict=True))
        return value if same else Mapping(pairs, rest)
    return value
