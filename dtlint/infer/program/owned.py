"""All that a module owns: the modules below it and its weights, where every attribute of each of them is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.layers import AGREEING, KEEPING, LOOKUPS, NORMS, RECURRENT
from dtlint.infer.program.autocasting import Autocasting
from dtlint.infer.program.functions import ANYBODY
from dtlint.infer.program.instances import ITEMS, LAYER, is_open_book
from dtlint.infer.values import Either, Items, Iteration, Module, Table, Tensor, Trait, Unknown, options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.values import Dtypes, Key

__all__ = ["Owned"]

_MOST = 400
"""Modules below one that are looked at."""
_CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})
_LEAVES = (
    AGREEING | LOOKUPS | KEEPING | NORMS | RECURRENT | {"Softmax", "LogSoftmax", "PReLU", "SyncBatchNorm", "RMSNorm"}
)


def _is_leaf(name: str) -> bool:
    """Is it a layer of torch that is made of no others?"""
    package, _, last = name.rpartition(".")
    return package == "torch.nn" and (last in _LEAVES or last.endswith("Loss"))


class Owned(Autocasting):
    """An interpreter that can tell all modules and weights of a module."""

    def family(self, module: Module) -> dict[Key, Module] | None:
        """The module and all below it, by their keys, children first; None where some may be that are not known."""
        found: dict[Key, Module] = {}
        queue: list[Module] = [module]
        while queue:
            one = queue.pop()
            if one.key in found:
                continue
            found[one.key] = one
            children = self.children(one)
            if children is None or len(found) > _MOST:
                return None
            queue += children
        return dict(reversed(found.items()))

    def children(self, module: Module) -> list[Module] | None:
        """The modules that are attributes or items of one; None where others may be."""
        objects = self.objects
        if module.key.startswith(ANYBODY) or module.key in objects.open:
            return None
        if module.info is None and module.name not in _CONTAINERS and not _is_leaf(module.name):
            return None
        if module.info is not None and not is_open_book(module.info):
            return None
        if module.info is None and module.name in _CONTAINERS and module.items is None:
            return None
        held = [*(module.items or ()), *objects.of(module.key).values()]
        found: list[Module] = []
        for value in held:
            inner = list(options(value.item if isinstance(value, Iteration) else value))
            plain = any(isinstance(choice, (Items, Table)) for choice in inner)  # and changed in a way that is not seen
            for choice in inner:
                if isinstance(choice, Unknown) and not plain:
                    return None
                if isinstance(choice, Module):
                    found.append(choice)
                    if choice.key == module.key:  # the layer that it is by what its class inherits
                        if choice.items is None and not _is_leaf(choice.name):
                            return None
                        found += [item for item in choice.items or () if isinstance(item, Module)]
        return found

    def weights_below(self, module: Module) -> Dtypes:
        """The dtypes that the floating weights of a module have now; None where that is not known."""
        family = self.family(module)
        if family is None:
            return None
        found: set[str] = set()
        for one in family.values():
            for dtypes in self.weights_of_one(one):
                if dtypes is None:
                    return None
                found |= dtypes & FLOATING
        return frozenset(found) or None

    def weights_of_one(self, module: Module) -> Iterator[Dtypes]:
        """The dtypes of the weights that are a module's own."""
        if module.info is None and module.name not in _CONTAINERS:
            yield self.cast_of(module.key, module.dtypes)
        for name, value in self.objects.of(module.key).items():
            if name == ITEMS:
                continue
            if name == LAYER:
                yield self.cast_of(module.key, value.dtypes if isinstance(value, Module) else None)
                continue
            for choice in value.choices if isinstance(value, Either) else (value,):
                if isinstance(choice, Tensor) and choice.traits & Trait.PARAMETER:
                    yield self.cast_of(module.key, choice.dtypes)
