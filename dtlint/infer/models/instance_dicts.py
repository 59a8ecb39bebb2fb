"""`x.__dict__`: a dict whose items are the attributes of an object. It is made anew where it is read; what is stored into it
is stored into the object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import TOP, Address, Const, Mapping, ProjectClass, Ref, Value
from dtlint.infer.models.registry import MODELS, model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

__all__ = ["ANYTHING", "KIND", "instance_dict", "stored"]

ANYTHING = "*anything"
"""The field of an object that may have attributes nobody knows: `setattr(x, name, value)` with an unknown name."""
KIND = "builtins.object.__dict__"
_NAMESPACE = "types.SimpleNamespace"


@dataclass(frozen=True, slots=True)
class _Attributes:
    """The site of an object's `__dict__`."""

    owner: Address


def instance_dict(ctx: Context, owner: Ref) -> Ref:
    """The dict of an object's attributes."""
    store = ctx.store
    items = []
    rest: Value | None = None
    for field in store.fields(owner.address):
        value = store.read(owner.address, field)
        if field == ANYTHING:
            rest = TOP
        elif isinstance(field, str) and not field.startswith("*") and value is not None:
            items.append((Const(field), value))
    made = store.address(owner.address.path, _Attributes(owner.address), KIND)
    if made not in store.objects:
        store.allocate(made)
    store.overwrite(made, CONTENT, Mapping(tuple(items), rest))
    return Ref(made)


def stored(ctx: Context, value: Value) -> None:
    """A `__dict__` was changed: so were the attributes."""
    if not isinstance(value, Ref) or not isinstance(value.address.site, _Attributes):
        return
    owner, content = value.address.site.owner, ctx.store.read(value.address, CONTENT)
    if not isinstance(content, Mapping):
        return
    named = {key.value: held for key, held in content.items if isinstance(key, Const)}
    for field in ctx.store.fields(owner):
        if isinstance(field, str) and not field.startswith("*") and field not in named:
            ctx.store.delete(owner, field)
    for field, held in named.items():
        if ctx.store.read(owner, field) != held:
            ctx.store.write(owner, field, held)
    if content.rest is not None:
        ctx.store.overwrite(owner, ANYTHING, Const(True))


def _changing(name: str) -> None:
    @model(f"{KIND}.{name}")
    def call(ctx: Context, arguments: Arguments) -> Value:
        result = MODELS[f"builtins.dict.{name}"](ctx, arguments)
        stored(ctx, arguments.args[0])
        return result


for _name in ("pop", "setdefault", "update", "clear"):
    _changing(_name)


@model("builtins.vars")
def _vars(ctx: Context, arguments: Arguments) -> Value:
    owner = arguments.args[0] if arguments.args else TOP
    if isinstance(owner, Ref) and (isinstance(owner.address.kind, ProjectClass) or owner.address.kind == _NAMESPACE):
        return instance_dict(ctx, owner)
    return TOP
