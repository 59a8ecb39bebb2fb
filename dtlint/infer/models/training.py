"""What optimizers train: the weights that they were given, whether these were stepped, and what is cast under their hands.

Adam's state has the dtype that a weight has in its first step, and `lerp_` raises in a later one if the weight, and so its
gradient, has another by then. Other optimizers go on with what the cast has left of the weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.domain.values import Address, Const, Mapping, Ref, Tensor, Tuple, Value, choices, present
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.module_trees import weights_within
from dtlint.infer.state import AMBIENT, CONTENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dtlint.infer.context import Context

__all__ = [
    "CAST_UNSEEN",
    "FUSED",
    "SCALED",
    "SINCE",
    "TRAINED",
    "UNSCALING",
    "became_float16",
    "float16_since",
    "frozen",
    "has_float16_gradients",
    "is_frozen",
    "low_precision_of",
    "made",
    "stepped",
    "trained_weights",
    "unscaling_is_replaced",
    "weights_cast",
]

TRAINED = "*trained"
"""The field of an optimizer that holds modules and parameters: these, and those of the modules, are all that it has."""
SCALED = "*scaled"
"""The field of an optimizer of which the step is taken by a GradScaler that the program does not name."""
FUSED = "*fused"
"""The field of an optimizer that holds the `fused` it was given."""
UNSCALING = "_unscale_grads_"
"""The method of a GradScaler that refuses float16 gradients, unless it is told otherwise: where a program binds another, the
ambient cell of that name is there."""
_OPTIMIZERS = "optimizers"
"""The ambient cell that lists the optimizers of the program whose parameters are known."""
_STEPPED, _NARROWED, _AGAIN, _WIDENED = "*stepped", "*narrowed", "*stepped narrowed", "*widened"
"""Fields of an optimizer: has it taken a step; were its weights cast to a half dtype since, and has it taken another step
then; were they ever cast back?"""
_FROZEN = "*frozen"
"""The field of a weight that is True where `requires_grad_(False)` of a module was the last to say so."""
CAST_UNSEEN = "*cast unseen"
"""The field of a module whose weights are not known that holds the dtype that it was cast to last."""
SINCE = "*float16 since"
"""The field of a weight that holds what stands for the place where it became float16: an object that is made there."""
_TRUE = Const(True)


def made(ctx: Context, optimizer: Ref, trained: Sequence[Value]) -> None:
    """An optimizer was given these modules and parameters."""
    ctx.store.write(optimizer.address, TRAINED, Tuple(tuple(trained)))
    held = ctx.store.read(AMBIENT, _OPTIMIZERS)
    known = None if held is None else present(held)
    before = dict(known.items) if isinstance(known, Mapping) else {}
    ctx.set_ambient(_OPTIMIZERS, Mapping(tuple({**before, Const(optimizer.address): optimizer}.items())))


def unscaling_is_replaced(ctx: Context) -> bool:
    """Has the program bound, on some path to here, another method for GradScaler's that refuses float16 gradients?"""
    return ctx.store.read(AMBIENT, UNSCALING) is not None


def trained_weights(ctx: Context, optimizer: Address) -> list[Address]:
    """All parameters that an optimizer trains; none where they are not known. Those that are frozen have no gradients."""
    held = ctx.store.read(optimizer, TRAINED)
    found: dict[Address, None] = {}
    for item in held.items if isinstance(held, Tuple) else ():
        for one in choices(item):
            if isinstance(one, Ref) and one.address.kind == plain_tensors.PARAMETER:
                found[one.address] = None
            else:
                found.update((each, None) for each in weights_within(ctx, one) if each.kind == plain_tensors.PARAMETER)
    return [one for one in found if not is_frozen(ctx, one)]


def is_frozen(ctx: Context, weight: Address) -> bool:
    """Was the last word on a weight that it needs no gradient?"""
    return ctx.store.read(weight, _FROZEN) == _TRUE


def frozen(ctx: Context, weights: Iterable[Address], frozen: bool) -> None:
    """Weights are said to need no gradients, or to need them."""
    for one in weights:
        if frozen or ctx.store.read(one, _FROZEN) is not None:
            ctx.store.overwrite(one, _FROZEN, Const(frozen))


def became_float16(ctx: Context, weights: Iterable[Address]) -> None:
    """Weights are float16 from here on, at the latest."""
    place: Value | None = None
    for one in weights:
        place = place or ctx.allocate(ctx.site, "place")
        ctx.store.overwrite(one, SINCE, place)


def float16_since(ctx: Context, optimizer: Address) -> tuple[Value, ...]:
    """What stands for the places where the weights became float16 that an optimizer trains, as far as they are known."""
    places = (ctx.store.read(one, SINCE) for one in trained_weights(ctx, optimizer))
    return tuple(dict.fromkeys(one for one in places if isinstance(one, Ref)))


def low_precision_of(ctx: Context, optimizer: Address) -> str | None:
    """The half dtype that all weights certainly have that an optimizer trains; None where they need not have one."""
    known = [ctx.store.read(one, CONTENT) for one in trained_weights(ctx, optimizer)]
    dtypes = {one.dtypes if isinstance(one, Tensor) else None for one in known}
    (only,) = dtypes if len(dtypes) == 1 else (None,)
    return next(iter(only)) if only is not None and len(only) == 1 and only <= LOW_PRECISION else None


def has_float16_gradients(ctx: Context, optimizer: Address) -> bool:
    """Does an optimizer certainly train weights that are float16? A model that was loaded so may keep parts in float32."""
    known = [ctx.store.read(one, CONTENT) for one in trained_weights(ctx, optimizer)]
    dtypes = {one.dtypes if isinstance(one, Tensor) else None for one in known}
    return _FLOAT16 in dtypes and dtypes <= {_FLOAT16, _FLOAT16_OR_KEPT}


_FLOAT16, _FLOAT16_OR_KEPT = frozenset({"float16"}), frozenset({"float16", "float32"})


def stepped(ctx: Context, optimizer: Address) -> None:
    """An optimizer takes a step."""
    store = ctx.store
    if store.read(optimizer, TRAINED) is not None:
        store.write(optimizer, _STEPPED, _TRUE)
        narrowed = store.read(optimizer, _NARROWED)
        if narrowed is not None and present(narrowed) is not None:
            store.write(optimizer, _AGAIN, _TRUE)


def weights_cast(ctx: Context, weights: Iterable[Address], dtypes: frozenset[str]) -> None:
    """Weights are cast, which an optimizer may train: to a half dtype for something else, if they are never cast back."""
    store = ctx.store
    held = store.read(AMBIENT, _OPTIMIZERS)
    known = None if held is None else present(held)
    cast = set(weights) if isinstance(known, Mapping) and known.items else set()
    for _, value in known.items if cast and isinstance(known, Mapping) else ():
        one = present(value)
        if not isinstance(one, Ref) or cast.isdisjoint(trained_weights(ctx, one.address)):
            continue
        optimizer = one.address
        if not dtypes <= LOW_PRECISION:
            store.write(optimizer, _WIDENED, _TRUE)
        elif store.read(optimizer, _STEPPED) is not None:
            if store.read(optimizer, _AGAIN) is not None and store.read(optimizer, _WIDENED) is None:
                ctx.event("trained weights cast", one, Const(next(iter(dtypes))))
            if low_precision_of(ctx, optimizer) not in dtypes:
                store.write(optimizer, _NARROWED, _TRUE)
