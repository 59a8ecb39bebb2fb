"""A module's `_modules`, `_parameters` and `_buffers`: dicts of those attributes that torch keeps there.

Such a view is a `Bound` of the module; reading and changing it reads and changes the module's attributes. And what torch does
in `Module.__getattr__` and `__setattr__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import (
    TOP,
    Bound,
    Const,
    Mapping,
    ProjectClass,
    Ref,
    Tuple,
    Value,
    choices,
    present,
)
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.instance_dicts import ANYTHING
from dtlint.infer.models.registry import attribute, model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

__all__ = ["content_of_view", "is_view", "set_content_of_view"]

_MODULES, _PARAMETERS, _BUFFERS = (f"torch.nn.Module.{name}" for name in ("_modules", "_parameters", "_buffers"))
_VIEWS = frozenset({_MODULES, _PARAMETERS, _BUFFERS})


def is_view(value: Value | None) -> bool:
    """Are these attributes of a module?"""
    return type(value) is Bound and value.name in _VIEWS


def content_of_view(ctx: Context, value: Bound) -> Mapping:
    """What a view holds now."""
    owner = value.receiver
    assert isinstance(owner, Ref)
    kind = owner.address.kind
    items: list[tuple[Value, Value]] = []
    for field in ctx.store.fields(owner.address):
        held = ctx.store.read(owner.address, field)
        if held is None:
            continue
        if field == CONTENT and value.name == _MODULES:
            items += _numbered(held)
        elif isinstance(field, str) and not field.startswith("*") and _place_of(held) == value.name:
            items.append((Const(field), held))
    opaque = isinstance(kind, ProjectClass) and kind.definition.opaque
    unknown = opaque or ctx.store.read(owner.address, ANYTHING) is not None
    return Mapping(tuple(items), TOP if unknown else None)


def _numbered(content: Value) -> list[tuple[Value, Value]]:
    """The modules in a container of them, by the texts of their places."""
    if isinstance(content, Tuple):
        return [(Const(str(place)), item) for place, item in enumerate(content.items)]
    return list(content.items) if isinstance(content, Mapping) else []


def _place_of(value: Value) -> str | None:
    """Where a module keeps an attribute; None: among those of any object."""
    from dtlint.infer.models.module_trees import is_module

    kept = present(value)
    for one in () if kept is None else choices(kept):
        if is_module(one):
            return _MODULES
        if isinstance(one, Ref) and one.address.kind in plain_tensors.WEIGHTS:
            return _BUFFERS if one.address.kind == plain_tensors.BUFFER else _PARAMETERS
    return None


def set_content_of_view(ctx: Context, value: Bound, content: Mapping) -> None:
    """Change the attributes of a module to what its view is to hold."""
    owner = value.receiver
    assert isinstance(owner, Ref)
    before = content_of_view(ctx, value)
    for key, held in content.items:
        if isinstance(key, Const) and isinstance(key.value, str) and before.get(key) is not held:
            ctx.store.write(owner.address, key.value, held)
    for key, _ in before.items:
        if isinstance(key, Const) and content.get(key) is None:
            ctx.store.delete(owner.address, key.value)
    if content.rest is not None:
        ctx.store.overwrite(owner.address, ANYTHING, Const(True))


def _register(name: str) -> None:
    @attribute(name)
    def read(ctx: Context, value: Value) -> Value:
        return Bound(value, name) if isinstance(value, Ref) else TOP


for _name in (_MODULES, _PARAMETERS, _BUFFERS):
    _register(_name)


@model("torch.nn.Module.__getattr__")
def _getattr(ctx: Context, arguments: Arguments) -> Value:
    """What torch looks up where Python has found nothing: a module, a parameter, a buffer.

    Raises:
        NeverReturns: there is none of that name.
    """
    from dtlint.infer.context import Unfit

    owner, name = arguments.args[0], arguments.get(1, "name")
    if not isinstance(owner, Ref) or not isinstance(name, Const):
        return TOP
    held = ctx.store.read(owner.address, name.value)
    found = None if held is None else present(held)
    if found is not None:
        return found
    kind = owner.address.kind
    if isinstance(kind, ProjectClass) and kind.definition.opaque:
        return TOP
    if ctx.store.read(owner.address, ANYTHING) is not None:
        return TOP
    raise Unfit


@model("torch.nn.Module.__setattr__")
def _setattr(ctx: Context, arguments: Arguments) -> Value:
    owner, name, value = arguments.args[0], arguments.get(1, "name"), arguments.get(2, "value")
    if isinstance(owner, Ref) and isinstance(name, Const) and value is not None:
        ctx.store.write(owner.address, name.value, value)
    return Const(None)
