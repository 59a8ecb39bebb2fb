"""Modules hold modules and weights: what is reached from one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Address, Many, Mapping, ProjectClass, Ref, Tuple, Union, Value, choices
from dtlint.infer.models import plain_tensors
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.infer.context import Context

__all__ = ["KEPT", "LOADED", "WRAPPED", "is_module", "modules_within", "weights_perhaps_within", "weights_within"]

LOADED = "transformers.PreTrainedModel"
"""The class of a model of which it is known that it was loaded, and not which one it is."""
WRAPPED = "*wrapped"
"""The field of a module that stands for what a library puts around it: the name of that class, whose methods it has as well."""
KEPT = "*kept"
"""Its field that holds what stands for the parts that may be float32 though the model was loaded in float16."""


def is_module(value: Value) -> bool:
    """Is it known to be a module?"""
    if not isinstance(value, Ref):
        return False
    kind = value.address.kind
    if isinstance(kind, ProjectClass):
        return kind.definition.inherits("torch.nn.Module") is True
    if not isinstance(kind, str):
        return False
    return kind == LOADED or (kind.startswith("torch.nn.") and kind not in plain_tensors.WEIGHTS)


def _may_be_module(value: Value) -> bool:
    """Is it a module, or an object of a class of which a base is not known?"""
    kind = value.address.kind if isinstance(value, Ref) else None
    if isinstance(kind, ProjectClass):
        return kind.definition.inherits("torch.nn.Module") is not False
    return is_module(value)


def modules_within(ctx: Context, value: Value, holds: Callable[[Value], bool] = is_module) -> Iterator[Ref]:
    """A module, or what is asked for what modules have, and all that it holds, each once.

    Args:
        holds: is a part that is held one of its modules?
    """
    waiting: list[Value] = [value]
    seen: set[Address] = set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, Union):
            waiting += one.choices
        elif isinstance(one, (Tuple, Many)):
            waiting += one.items if isinstance(one, Tuple) else (one.item,)
        elif isinstance(one, Mapping):
            waiting += [item for _, item in one.items]
            if one.rest is not None:
                waiting.append(one.rest)
        elif (
            isinstance(one, Ref) and one.address not in seen and (holds(one) or (one == value and _may_be_module(one)))
        ):
            seen.add(one.address)
            yield one
            for field in ctx.store.fields(one.address):
                held = ctx.store.read(one.address, field)
                if held is None:
                    continue
                if field == CONTENT:
                    waiting.append(held)
                else:
                    waiting += [each for each in choices(held) if isinstance(each, Ref) and holds(each)]


def weights_within(ctx: Context, value: Value, holds: Callable[[Value], bool] = is_module) -> Iterator[Address]:
    """The parameters and buffers of a module and of all within."""
    for one in modules_within(ctx, value, holds):
        for field in ctx.store.fields(one.address):
            held = ctx.store.read(one.address, field)
            found: tuple[Value, ...] = () if held is None else choices(held)
            if field == CONTENT and held is not None:
                items = held.items if isinstance(held, Tuple) else (held.item,) if isinstance(held, Many) else ()
                if isinstance(held, Mapping):
                    items = tuple(item for _, item in held.items)
                found = tuple(each for item in items for each in choices(item))
            for each in found:
                if isinstance(each, Ref) and each.address.kind in plain_tensors.WEIGHTS:
                    yield each.address


def weights_perhaps_within(ctx: Context, value: Value) -> Iterator[Address]:
    """Those of a module and of all within that may be one: objects of classes with an unknown base are among them."""
    return weights_within(ctx, value, _may_be_module)
