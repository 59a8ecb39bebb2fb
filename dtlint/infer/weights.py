"""Weights and layers of a module that is read by itself: whoever has it may cast it, so its dtype has a name, not a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import COMPLEX, FLOATING, Category
from dtlint.infer.layers import AGREEING, KEEPING, LOOKUPS, NORMS
from dtlint.infer.symbols import lifted, of_atom
from dtlint.infer.values import UNKNOWN, Atom, Module, Tensor, Trait, Value

if TYPE_CHECKING:
    import ast

    from dtlint.infer.values import Autocast, Key

__all__ = ["layer_output", "weight", "weight_of"]

_AS_GIVEN = NORMS | {"Identity", "Flatten", "Unflatten"}
"""Layers that leave whole numbers what they are, or refuse them; the others may lift them."""
_WEIGHTS = Trait.PARAMETER | Trait.BUFFER


def weight(key: Key, text: str, traits: Trait = Trait.PARAMETER, origin: ast.expr | None = None) -> Tensor:
    """A floating weight, in whatever dtype its module is now."""
    return Tensor(FLOATING, traits=traits, origin=origin, symbol=of_atom(Atom(key, text, floating=True)))


def weight_of(value: Value, key: Key, text: str) -> Value:
    """An attribute of a module as code finds it that did not make it: floating weights have been cast with the module,
    integers and plain tensors are what they were."""
    if not isinstance(value, Tensor) or not value.traits & _WEIGHTS:
        return value
    if value.dtypes is not None and not value.dtypes & (FLOATING | COMPLEX):
        return value
    if value.dtypes is not None and value.dtypes & COMPLEX:
        return value.but(dtypes=None, symbol=None, cast=None)
    made = weight(key, text, value.traits & (_WEIGHTS | Trait.CONSTANT), value.origin)
    made.zero_dim, made.span = value.zero_dim, value.span
    if value.dtypes is None:  # given from outside: a buffer may as well hold integers
        made.dtypes, made.symbol = None, of_atom(Atom(key, text, floating=Trait.PARAMETER in value.traits))
    return made


def layer_output(module: Module, args: list[Value], text: str, region: Autocast | None, node: ast.Call) -> Value | None:
    """What calling a layer of torch.nn gives; None for what is said elsewhere, or not known.

    Args:
        text: how the code calls the layer; nothing where it has no name.

    Source: `dtlint.infer.layers`, whose sets tell what each layer does.
    """
    name = module.name.removeprefix("torch.nn.")
    given = args[0] if args else UNKNOWN
    if name == "Sequential":
        return _through(module, args, text, region, node)
    if name == "Identity":
        return given if args else None
    if name in LOOKUPS or (name in AGREEING and region is None):
        return weight(f"{module.key}.weight", f"{text}.weight" if text else "", Trait.NONE, node)
    if name in AGREEING and region is not None and region.enabled and region.dtype is not None:
        return Tensor(frozenset({region.dtype}), origin=node)
    if (name in KEEPING or name in NORMS) and region is None and isinstance(given, Tensor):
        return Tensor(
            given.dtypes,
            traits=given.traits & Trait.DEFAULTED,
            origin=given.origin,
            symbol=given.symbol if name in _AS_GIVEN else lifted(given, Category.FLOAT).symbol,
            cast=given.cast,
        )
    return None


def _through(module: Module, args: list[Value], text: str, region: Autocast | None, node: ast.Call) -> Value | None:
    """What a Sequential gives: what its layers make of it one after the other."""
    if not module.items or len(args) != 1:
        return None
    value: Value | None = args[0]
    for number, item in enumerate(module.items):
        if not isinstance(item, Module) or item.info is not None or not item.name.startswith("torch.nn."):
            return None
        name = f"{text}[{number}]" if text else ""
        value = layer_output(item, [UNKNOWN if value is None else value], name, region, node)
    return value
