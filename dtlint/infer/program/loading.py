"""Batches: what a DataLoader makes of the items of a dataset.

Source: `torch.utils.data.default_collate`: tensors are stacked, arrays become tensors of their dtype, ints int64 and
floats float64; tuples, lists and dicts are collated item by item.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.arrays import of_arrays
from dtlint.infer.program.choices import Choices
from dtlint.infer.program.containers import one_of
from dtlint.infer.symbols import category_of
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Array,
    Constant,
    Either,
    Function,
    Instance,
    Items,
    Iteration,
    Number,
    Table,
    Tensor,
    Value,
    options,
)

if TYPE_CHECKING:
    from dtlint.infer.calls import Arguments

__all__ = ["Loading", "collated"]

_DATA = "torch.utils.data."
_INDEX = Number(Category.INTEGER)
_OF_NUMBERS = {Category.BOOL: "bool", Category.INTEGER: "int64", Category.FLOAT: "float64"}
_PLACES = {"batch_size": 1, "sampler": 3, "batch_sampler": 4, "collate_fn": 6}
"""Positions of a DataLoader's arguments."""


class Loading(Choices):
    """An interpreter that asks datasets for what their loaders give."""

    def loaded(self, name: str, arguments: Arguments) -> Value | None:
        """What a class or function of torch.utils.data makes of datasets; None for another."""
        if not name.startswith(_DATA) or not arguments.complete:
            return None
        last = name.rpartition(".")[2]
        first = arguments.get(0, "dataset")
        if last == "DataLoader" and first is not None:
            return self.batches(first, arguments)
        if last == "TensorDataset":
            return Iteration(Items(tuple(map(self.item_of, arguments.args))))
        if last == "Subset" and first is not None:
            return Iteration(self.item_at(first, UNKNOWN))
        if last == "random_split" and first is not None:
            return Iteration(Iteration(self.item_at(first, UNKNOWN)))
        if last == "default_collate" and arguments.args:
            return collated(self.item_of(arguments.args[0]))
        return None

    def batches(self, dataset: Value, arguments: Arguments) -> Value:
        """The batches of a DataLoader."""
        for value in (*arguments.args[1:], *arguments.keywords.values()):
            self.lose(value)
        asked = {name: arguments.get(place, name) or NONE for name, place in _PLACES.items()}
        plain = asked["sampler"] == NONE and asked["batch_sampler"] == NONE
        item = self.item_at(dataset, _INDEX if plain else UNKNOWN)
        collate = asked["collate_fn"]
        if isinstance(collate, Function):
            return Iteration(self.apply(collate.info, collate.receiver, [Iteration(item)], {}, True))
        whole = arguments.get(_PLACES["batch_size"], "batch_size")
        if collate != NONE or (whole is not None and NONE in options(whole)):
            return UNKNOWN
        return Iteration(collated(item))

    def item_at(self, dataset: Value, index: Value) -> Value:
        """What a dataset gives under an index."""
        if isinstance(dataset, Either):
            return one_of([self.item_at(choice, index) for choice in dataset.choices])
        if isinstance(dataset, (Items, Iteration, Tensor)):
            return self.item_of(dataset)
        if not isinstance(dataset, Instance):
            return self.lost(dataset)
        getter = dataset.info.method("__getitem__")
        if dataset.info.method("__getitems__") is not None:
            return self.lost(dataset)
        if getter is not None:
            return self.apply(getter, dataset, [index], {}, True)
        walker = dataset.info.method("__iter__")
        return UNKNOWN if walker is None else self.item_of(self.apply(walker, dataset, [], {}, True))


def collated(item: Value) -> Value:
    """What `default_collate` makes of items like this one."""
    if isinstance(item, Tensor):
        return Tensor(item.dtypes, zero_dim=False, origin=item.origin)
    if isinstance(item, Array):
        taken = of_arrays(item)
        return UNKNOWN if taken is None else Tensor(taken.dtypes, zero_dim=False, origin=item.origin)
    if isinstance(item, Items):
        return item.holding(map(collated, item.items))
    if isinstance(item, Iteration):
        return Iteration(collated(item.item))
    if isinstance(item, Table) and item.rest is None:
        return Table({key: collated(value) for key, value in item.items.items()}, item.perhaps)
    if isinstance(item, Constant) and isinstance(item.value, str):
        return Iteration(UNKNOWN)
    if isinstance(item, Either):  # items of several kinds raise, or are collated as the first of a batch is
        kinds = {category_of(choice) for choice in item.choices} - {None}
        return UNKNOWN if len(kinds) > 1 else one_of([collated(choice) for choice in item.choices if choice != NONE])
    category = category_of(item)
    dtype = _OF_NUMBERS.get(category) if category is not None else None
    return UNKNOWN if dtype is None else Tensor(frozenset({dtype}), zero_dim=False)
