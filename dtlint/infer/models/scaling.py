"""GradScaler's protocol: scale, backward, unscale_, step, update; its phase is kept with the scaler.

Source: "Automatic Mixed Precision examples" of torch's documentation, and torch/amp/grad_scaler.py of torch 2.13, which
raises where a phase is wrong. A step is told as an event only where the phase is the same on every path that leads to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    Const,
    Ref,
    Region,
    Tensor,
    Tuple,
    Value,
    choices,
)
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.casts import weights_within
from dtlint.infer.models.ops import ask
from dtlint.infer.models.registry import MODELS, model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context
    from dtlint.infer.domain.values import Address

__all__ = ["SCALER"]

SCALER = "torch.amp.GradScaler"
_ENABLED, _GRADIENTS, _STEPPED = "*enabled", "*gradients", "*stepped"
_NONE, _PLAIN, _SCALED = Const("none"), Const("plain"), Const("scaled")
"""What the gradients are that a scaler is about to step with."""
_UNSCALED, _DONE, _READY = Const("unscaled"), Const("stepped"), Const("ready")
"""How far an optimizer is between two updates of a scaler."""
_SCALERS = "scalers"
"""The ambient cell that lists the scalers of the program."""


@model(SCALER, "torch.cuda.amp.GradScaler", "torch.cpu.amp.GradScaler")
def _make(ctx: Context, arguments: Arguments) -> Value:
    made = ctx.allocate(arguments.node, SCALER)
    store = ctx.store
    store.write(made.address, _ENABLED, arguments.keywords.get("enabled", Const(True)))
    store.write(made.address, _GRADIENTS, _NONE)
    store.write(made.address, _STEPPED, Const(False))
    known = ctx.ambient(_SCALERS)
    others = known.items if isinstance(known, Tuple) else ()
    if made not in others:
        ctx.set_ambient(_SCALERS, Tuple((*others, made)))
    return made


TRAINED = "*trained"
"""The field of an optimizer that holds the module whose parameters it was given."""


def _is_in_half(ctx: Context, optimizer: Ref) -> bool:
    """Are all parameters that an optimizer trains certainly float16?"""
    trained = ctx.store.read(optimizer.address, TRAINED)
    weights = [] if trained is None else [*weights_within(ctx, trained)]
    known = [ctx.store.read(one, CONTENT) for one in weights if one.kind == plain_tensors.PARAMETER]
    return bool(known) and all(isinstance(one, Tensor) and one.dtypes == _FLOAT16 for one in known)


_FLOAT16 = frozenset({"float16"})


def _is_on(ctx: Context, scaler: Address) -> bool:
    """Is a scaler not known to be switched off?"""
    return ctx.store.read(scaler, _ENABLED) != Const(False)


def _scalers(ctx: Context) -> list[Address]:
    known = ctx.ambient(_SCALERS)
    found = known.items if isinstance(known, Tuple) else ()
    return [one.address for one in found if isinstance(one, Ref) and _is_on(ctx, one.address)]


def _phase(optimizer: Address) -> tuple[str, Address]:
    """The field of a scaler that tells how far an optimizer is."""
    return "*phase", optimizer


@model(f"{SCALER}.scale")
def _scale(ctx: Context, arguments: Arguments) -> Value:
    """The loss times the scale, a float32 tensor on its device; as it was where the scaler is off."""
    scaler = arguments.args[0]
    value = plain_tensors.plain(ctx, arguments.args[1]) if len(arguments.args) > 1 else Tensor()
    return _scaled(ctx, scaler, value)


def _scaled(ctx: Context, scaler: Value, value: Value) -> Value:
    extra = frozenset({("scaled", scaler.address)}) if isinstance(scaler, Ref) else frozenset()
    if isinstance(value, Tensor):
        made = ask(ctx, "torch.mul", [value, Tensor(frozenset({"float32"}), None, 0)], {})
        known = made.dtypes if isinstance(made, Tensor) and made.dtypes == value.dtypes else None
        return Tensor(known, None, value.rank, device=value.device, extra=extra)
    if isinstance(value, Tuple):
        return Tuple(tuple(_scaled(ctx, scaler, item) for item in value.items))
    return Tensor(extra=extra)


@model("torch.Tensor.backward")
def _backward(ctx: Context, arguments: Arguments) -> Value:
    """Gradients come in: multiplied by the scale, if the loss was."""
    value = plain_tensors.plain(ctx, arguments.args[0])
    region = ctx.ambient("region")
    if isinstance(region, Region) and region.enabled is True:
        ctx.event("backward in region", region)
    scaled = [about for name, about in value.extra if name == "scaled"] if isinstance(value, Tensor) else []
    for scaler in _scalers(ctx):
        ctx.store.write(scaler, _GRADIENTS, _SCALED if scaler in scaled else _PLAIN)
    return NO_TENSOR


@model(f"{SCALER}.unscale_")
def _unscale(ctx: Context, arguments: Arguments) -> Value:
    scaler = arguments.args[0]
    if isinstance(scaler, Ref) and len(arguments.args) > 1:
        for one in choices(arguments.args[1]):
            if not isinstance(one, Ref):
                continue
            phase = ctx.store.read(scaler.address, _phase(one.address))
            if _is_on(ctx, scaler.address) and len(choices(arguments.args[1])) == 1:
                if phase == _UNSCALED:
                    ctx.event("unscale twice", scaler, one)
                elif phase == _DONE:
                    ctx.event("unscale after step", scaler, one)
            ctx.store.write(scaler.address, _phase(one.address), _UNSCALED)
    return NONE


@model(f"{SCALER}.step")
def _step(ctx: Context, arguments: Arguments) -> Value:
    scaler = arguments.args[0]
    optimizers = choices(arguments.args[1]) if len(arguments.args) > 1 else ()
    for one in optimizers:
        if isinstance(scaler, Ref) and isinstance(one, Ref):
            phase = ctx.store.read(scaler.address, _phase(one.address))
            if _is_on(ctx, scaler.address) and len(optimizers) == 1:
                if phase == _DONE:
                    ctx.event("step twice", scaler, one)
                elif ctx.store.read(scaler.address, _GRADIENTS) == _PLAIN:
                    ctx.event("step of plain gradients", scaler, one)
                if phase != _DONE and _is_in_half(ctx, one):
                    ctx.event("step of half parameters", scaler, one)
            ctx.store.write(scaler.address, _phase(one.address), _DONE)
            ctx.store.write(scaler.address, _STEPPED, Const(True))
        elif isinstance(scaler, Ref):
            ctx.store.write(scaler.address, _STEPPED, NO_TENSOR)
        method = ctx.semantics.attribute(ctx, one, "step", arguments.node)
        if method is not None:
            ctx.semantics.call(ctx, method, type(arguments)([], {}, True, arguments.node))
    return NO_TENSOR


@model(f"{SCALER}.update")
def _update(ctx: Context, arguments: Arguments) -> Value:
    scaler = arguments.args[0]
    if isinstance(scaler, Ref):
        if ctx.store.read(scaler.address, _STEPPED) == Const(False) and _is_on(ctx, scaler.address):
            ctx.event("update without step", scaler)
        for field in ctx.store.fields(scaler.address):
            if isinstance(field, tuple):
                ctx.store.write(scaler.address, field, _READY)
        ctx.store.write(scaler.address, _STEPPED, Const(False))
        ctx.store.write(scaler.address, _GRADIENTS, _NONE)
    return NONE


for _name in ("get_scale", "is_enabled", "state_dict", "load_state_dict", "get_growth_factor", "get_backoff_factor"):
    MODELS[f"{SCALER}.{_name}"] = lambda ctx, arguments: NO_TENSOR


def clipped(ctx: Context) -> None:
    """Gradients are clipped: wrong, while they are multiplied by a scale that no optimizer has been unscaled from."""
    for scaler in _scalers(ctx):
        if ctx.store.read(scaler, _GRADIENTS) != _SCALED:
            continue
        phases = [ctx.store.read(scaler, field) for field in ctx.store.fields(scaler) if isinstance(field, tuple)]
        if all(phase in (_READY, _DONE) for phase in phases):
            ctx.event("clip scaled", Ref(scaler))


@model("torch.nn.utils.clip_grad_value_")
def _clip_value(ctx: Context, arguments: Arguments) -> Value:
    clipped(ctx)
    return NONE


def plain_step(ctx: Context, optimizer: Ref) -> None:
    """An optimizer steps by itself: wrong with gradients that a scaler has scaled and not unscaled for it."""
    for scaler in _scalers(ctx):
        phase = ctx.store.read(scaler, _phase(optimizer.address))
        if ctx.store.read(scaler, _GRADIENTS) == _SCALED and phase in (None, _READY):
            ctx.event("plain step of scaled gradients", Ref(scaler), optimizer)


def cleared(ctx: Context) -> None:
    """Gradients are set to zero."""
    for scaler in _scalers(ctx):
        ctx.store.blend(scaler, _GRADIENTS, _NONE)
