"""GradScaler's protocol: scale, backward, unscale_, step, update.

Source: "Automatic Mixed Precision examples" of torch's documentation, and torch/amp/grad_scaler.py of torch 2.13, which
raises where a phase is wrong. A step is told as an event where the phase is the same on every path that leads to it; what
some paths alone lead to is told as another kind of event.

Scalers and optimizers that a function is given are known by the parameter or the attribute that holds them. Their phase is
not known where the function begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import region_in_view
from dtlint.infer.domain.lattice import join
from dtlint.infer.domain.values import (
    ABSENT,
    NO_TENSOR,
    NONE,
    TOP,
    Address,
    Atom,
    Const,
    Mapping,
    Ref,
    Region,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
    may_be_absent,
    present,
)
from dtlint.infer.models import plain_tensors, training
from dtlint.infer.models.ops import ask
from dtlint.infer.models.protocols import UNKNOWN_CLASS
from dtlint.infer.models.registry import MODELS, model
from dtlint.infer.state import AMBIENT

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator

    from dtlint.infer.context import Arguments, Context

__all__ = [
    "SCALER",
    "backward",
    "cleared",
    "clipped",
    "escaped",
    "forget",
    "is_under_way",
    "plain_step",
    "unscales_itself",
]

SCALER = "torch.amp.GradScaler"
_ENABLED, _PHASES, _UPDATED = "*enabled", "*phases", "*updated"
_GRADIENTS, _UNTOUCHED = Const("gradients"), Const("untouched")
_STEPPED, _BEGUN, _SCALING = Const("stepped"), Const("begun"), Const("scaling")
"""What is kept of a scaler beside the phase of each optimizer: what the gradients are, and whether they are as the last
backward pass has left them; of the time since the last update whether some optimizer was unscaled or stepped, whether all of
it is seen, and whether anything was scaled."""
_NONE, _PLAIN, _SCALED = Const("none"), Const("plain"), Const("scaled")
"""What the gradients are that a scaler is about to step with."""
_UNSCALED, _STEPPING, _DONE, _CLEARED = Const("unscaled"), Const("stepping"), Const("stepped"), Const("cleared")
"""How far an optimizer is between two updates of a scaler; in none of these: it has yet to step."""
_SCALERS = "scalers"
"""The ambient cell that lists the scalers of the program."""
_FLOAT16 = frozenset({"float16"})
_TRUE, _FALSE = Const(True), Const(False)
_FRESH = Mapping(((_BEGUN, _TRUE), (_GRADIENTS, _NONE), (_STEPPED, Const(False))))
_Identity = Address | Atom


# -- what is kept --------------------------------------------------------------------------------------------------------


def _identity(value: Value) -> _Identity | None:
    """Which object a value is: by its address, or by the parameter or attribute that it comes from."""
    ones = [one for one in choices(value) if one != NONE]
    if len(ones) != 1:
        return None
    (one,) = ones
    if isinstance(one, Ref):
        return one.address
    if isinstance(one, Unknown) and one.symbol is not None and len(one.symbol.of) == 1 and not one.symbol.met:
        return next(iter(one.symbol.of))
    return None


def _one_optimizer(ctx: Context, value: Value) -> _Identity | None:
    """Which optimizer a value is; None as well of one of several that are made at one place, as in a loop."""
    found = _identity(value)
    return None if isinstance(found, Address) and ctx.store.is_several(found) else found


def _cell(scaler: _Identity) -> tuple[Address, object]:
    return (scaler, _PHASES) if isinstance(scaler, Address) else (AMBIENT, (scaler, _PHASES))


def _phases(ctx: Context, scaler: _Identity) -> Mapping:
    """How far a scaler is; empty where that is not known. What is known on some paths may be absent."""
    held = ctx.store.read(*_cell(scaler))
    known = None if held is None else present(held)
    if not isinstance(known, Mapping):
        return Mapping()
    return Mapping(tuple((key, join(one, ABSENT)) for key, one in known.items)) if may_be_absent(held) else known


def _put(ctx: Context, scaler: _Identity, phases: Mapping, changes: Iterable[tuple[Value, Value | None]]) -> None:
    """Keep phases with some of them changed; None: gone."""
    changed = dict(phases.items)
    for key, value in changes:
        changed.pop(key, None)
        if value is not None:
            changed[key] = value
    ctx.store.write(*_cell(scaler), Mapping(tuple(changed.items())))


def _listed(ctx: Context) -> tuple[Value, ...]:
    """The scalers that are made, or used, on some path to here."""
    held = ctx.store.read(AMBIENT, _SCALERS)
    known = None if held is None else present(held)
    found = known.items if isinstance(known, Mapping) else ()
    return tuple(one for _, value in found if (one := present(value)) is not None)


def _list(ctx: Context, scaler: Value) -> None:
    identity = _identity(scaler)
    held = ctx.store.read(AMBIENT, _SCALERS)
    known = None if held is None else present(held)
    before = dict(known.items) if isinstance(known, Mapping) else {}
    ctx.set_ambient(_SCALERS, Mapping(tuple({**before, Const(identity): scaler}.items())))


def _scalers(ctx: Context) -> Iterator[tuple[Value, _Identity]]:
    """The scalers that are not known to be switched off."""
    for one in _listed(ctx):
        scaler = _identity(one)
        if scaler is not None and _is_on(ctx, scaler):
            yield one, scaler


def _is_on(ctx: Context, scaler: _Identity) -> bool:
    return not isinstance(scaler, Address) or ctx.store.read(scaler, _ENABLED) != Const(False)


def is_under_way(ctx: Context) -> bool:
    """Is a scaler made, or used, on some path to here?"""
    return bool(_listed(ctx))


def forget(ctx: Context) -> None:
    """A function begins that nobody is seen to call: whoever does may have taken any step before."""
    for one in _listed(ctx):
        scaler = _identity(one)
        if scaler is not None:
            ctx.store.overwrite(*_cell(scaler), ABSENT)


def escaped(ctx: Context, values: Iterable[Value]) -> None:
    """Values reach code that is not seen: what is done there to a scaler or an optimizer among them is not known."""
    listed = _listed(ctx)
    if not listed:
        return
    known = {_identity(one) for one in listed}
    given = {identity for value in values if (identity := _identity(value)) is not None}
    for scaler in known:
        if scaler is None:
            continue
        if scaler in given:
            ctx.store.overwrite(*_cell(scaler), TOP)
            continue
        phases = _phases(ctx, scaler)
        touched = [(Const(one), TOP) for one in given if phases.get(Const(one)) is not None]
        if touched:
            _put(ctx, scaler, phases, [*touched, (_UNTOUCHED, _FALSE)])


# -- the scaler ----------------------------------------------------------------------------------------------------------


@model(
    SCALER,
    "torch.cuda.amp.GradScaler",
    "torch.cpu.amp.GradScaler",
    "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
)
def _make(ctx: Context, arguments: Arguments) -> Value:
    made = ctx.allocate(arguments.node, SCALER)
    ctx.store.write(made.address, _ENABLED, arguments.keywords.get("enabled", Const(True)))
    ctx.store.write(made.address, _PHASES, _FRESH)
    _list(ctx, made)
    return made


@model(f"{SCALER}.scale")
def _scale(ctx: Context, arguments: Arguments) -> Value:
    """The loss times the scale, a float32 tensor on its device; as it was where the scaler is off."""
    scaler = arguments.args[0]
    value = plain_tensors.plain(ctx, arguments.args[1]) if len(arguments.args) > 1 else Tensor()
    _scales(ctx, scaler)
    return _scaled(ctx, scaler, value)


def _scales(ctx: Context, scaler: Value) -> None:
    identity = _identity(scaler)
    if identity is not None:
        _put(ctx, identity, _phases(ctx, identity), [(_SCALING, _TRUE)])


def _scaled(ctx: Context, scaler: Value, value: Value) -> Value:
    identity = _identity(scaler)
    extra = frozenset() if identity is None else frozenset({("scaled", identity)})
    if isinstance(value, Tensor):
        made = ask(ctx, "torch.mul", [value, Tensor(frozenset({"float32"}), None, 0)], {})
        known = made.dtypes if isinstance(made, Tensor) and made.dtypes == value.dtypes else None
        return Tensor(known, None, value.rank, device=value.device, extra=extra)
    if isinstance(value, Tuple):
        return Tuple(tuple(_scaled(ctx, scaler, item) for item in value.items))
    return Tensor(extra=extra)


@model(f"{UNKNOWN_CLASS}.scale")
def _scale_by_anything(ctx: Context, arguments: Arguments) -> Value:
    """What is scaled and then goes backward is scaled by a scaler."""
    scaler = _identity(arguments.args[0])
    ctx.modules.escape(ctx, arguments.args[1:])
    if scaler is None or len(arguments.args) != 2:
        return TOP
    _list(ctx, arguments.args[0])
    _scales(ctx, arguments.args[0])
    return Unknown(extra=frozenset({("scaled", scaler)}))


def _in_region(ctx: Context) -> None:
    region = region_in_view(ctx)
    if isinstance(region, Region) and region.enabled is not False and region != Region(None, None, None):
        ctx.event("backward in region", region)


def backward(ctx: Context, value: Value) -> None:
    """Gradients come in: multiplied by the scale, if the loss was."""
    extra = value.extra if isinstance(value, (Tensor, Unknown)) else ()
    scaled = [about for name, about in extra if name == "scaled"]
    for _, scaler in _scalers(ctx):
        phases = _phases(ctx, scaler)
        seen = (
            phases.get(_BEGUN) == _TRUE and phases.get(_SCALING) is None
        )  # what was scaled may be divided by something
        otherwise = _PLAIN if isinstance(value, Tensor) and seen else TOP
        zeroed = [(key, None) for key, phase in phases.items if phase == _CLEARED]
        _put(
            ctx,
            scaler,
            phases,
            [(_GRADIENTS, _SCALED if scaler in scaled else otherwise), (_UNTOUCHED, _TRUE), *zeroed],
        )


@model("torch.Tensor.backward")
def _backward(ctx: Context, arguments: Arguments) -> Value:
    _in_region(ctx)
    backward(ctx, plain_tensors.plain(ctx, arguments.args[0]))
    return NO_TENSOR


_OF_BACKWARD = frozenset({"gradient", "retain_graph", "create_graph", "inputs"})


@model(f"{UNKNOWN_CLASS}.backward")
def _backward_of_anything(ctx: Context, arguments: Arguments) -> Value:
    """The backward of a loss; with arguments that no tensor takes it is that of an engine of some kind."""
    of_tensor = len(arguments.args) == 1 and arguments.keywords.keys() <= _OF_BACKWARD and arguments.complete
    if of_tensor and _identity(arguments.args[0]) is None:  # a parameter may be an engine; what is computed is a loss
        _in_region(ctx)
    backward(ctx, arguments.args[0] if of_tensor else TOP)
    ctx.modules.escape(ctx, [*arguments.args[1:], *arguments.keywords.values()])
    return TOP


@model(f"{SCALER}.unscale_")
def _unscale(ctx: Context, arguments: Arguments) -> Value:
    scaler = _identity(arguments.args[0])
    optimizer = _one_optimizer(ctx, arguments.args[1]) if len(arguments.args) > 1 else None
    if scaler is None:
        return NONE
    phases = _phases(ctx, scaler)
    if optimizer is None:
        ctx.store.overwrite(*_cell(scaler), TOP)
        return NONE
    phase = phases.get(Const(optimizer))
    if _is_on(ctx, scaler) and phase in (_UNSCALED, _DONE):
        kind = "unscale twice" if phase == _UNSCALED else "unscale after step"
        ctx.event(kind, arguments.args[0], arguments.args[1])
    elif _is_on(ctx, scaler) and phase is not None and present(phase) == _UNSCALED:
        ctx.event("unscale again", arguments.args[0], arguments.args[1])
    elif _is_on(ctx, scaler) and phase is not None and present(phase) == _DONE and _is_never_updated(ctx, scaler):
        ctx.event("unscale after a step again", arguments.args[0], arguments.args[1])
    elif _is_on(ctx, scaler) and phases.get(_GRADIENTS) == _PLAIN:
        ctx.event("unscale of plain gradients", arguments.args[0], arguments.args[1])
        phases = Mapping(tuple((key, TOP if key == _GRADIENTS else one) for key, one in phases.items))  # told once
    elif _is_on(ctx, scaler):
        _judge_half(ctx, arguments.args[0], arguments.args[1], optimizer)
    _put(ctx, scaler, phases, [(Const(optimizer), _UNSCALED), (_STEPPED, _TRUE), (_UNTOUCHED, _FALSE)])
    return NONE


@model(f"{SCALER}.step")
def _step(ctx: Context, arguments: Arguments) -> Value:
    scaler = _identity(arguments.args[0])
    given = arguments.args[1] if len(arguments.args) > 1 else TOP
    optimizer = _one_optimizer(ctx, given)
    if scaler is not None and optimizer is not None:
        phases = _phases(ctx, scaler)
        if _is_on(ctx, scaler):
            _judge_step(ctx, phases, arguments.args[0], given, optimizer, arguments.node)
        _put(ctx, scaler, phases, [(Const(optimizer), _STEPPING)])
    elif scaler is not None:
        ctx.store.overwrite(*_cell(scaler), TOP)
    for one in choices(given):
        method = ctx.semantics.attribute(ctx, one, "step", arguments.node)
        if method is not None:
            ctx.semantics.call(ctx, method, type(arguments)([], {}, True, arguments.node))
    if scaler is not None and optimizer is not None:
        _put(ctx, scaler, _phases(ctx, scaler), [(Const(optimizer), _DONE), (_STEPPED, _TRUE), (_UNTOUCHED, _FALSE)])
    return NO_TENSOR


def _judge_step(
    ctx: Context, phases: Mapping, scaler: Value, given: Value, optimizer: _Identity, node: ast.AST
) -> None:
    phase = phases.get(Const(optimizer))
    if phase == _DONE:
        ctx.event("step twice", scaler, given)
        return
    identity = _identity(scaler)
    if phase is not None and present(phase) == _DONE:
        if not isinstance(identity, Address) or _is_never_updated(ctx, identity):
            ctx.event("step again", scaler, given)
    elif phase == _CLEARED:
        ctx.event("step of cleared gradients", scaler, given)
    elif phases.get(_GRADIENTS) == _PLAIN:
        ctx.event("step of plain gradients", scaler, given)
    if (phase is None or present(phase) != _UNSCALED) and not unscales_itself(ctx, given, node):
        _judge_half(ctx, scaler, given, optimizer)


def unscales_itself(ctx: Context, optimizer: Value, node: ast.AST) -> bool:
    """May an optimizer be one whose `step` takes the scale, as those with `fused=True` do? Its gradients stay as they are."""
    if not isinstance(optimizer, Ref):
        return True
    if ctx.store.read(optimizer.address, training.FUSED) not in (None, NONE, _FALSE):
        return True
    if isinstance(optimizer.address.kind, str):
        return False
    said = ctx.semantics.attribute(ctx, optimizer, "_step_supports_amp_scaling", node)
    return said not in (None, _FALSE)


def _judge_half(ctx: Context, scaler: Value, given: Value, optimizer: _Identity) -> None:
    """Gradients in float16 are not unscaled: where the optimizer is unscaled, or where it is stepped, if it was not."""
    if training.unscaling_is_replaced(ctx):
        return
    if isinstance(optimizer, Address) and training.has_float16_gradients(ctx, optimizer):
        ctx.event("step of half parameters", scaler, given, *training.float16_since(ctx, optimizer))


@model(f"{SCALER}.update")
def _update(ctx: Context, arguments: Arguments) -> Value:
    scaler = _identity(arguments.args[0])
    if scaler is not None:
        ctx.event("update", arguments.args[0])
        phases = _phases(ctx, scaler)
        sets = len(arguments.args) > 1 or arguments.keywords  # a new scale, which asks for no step
        known = phases.get(_BEGUN) == Const(True) and phases.get(_STEPPED) == Const(False)
        if known and _is_on(ctx, scaler) and not sets:
            ctx.event("update without step", arguments.args[0])
        ctx.store.write(*_cell(scaler), _FRESH)
        if isinstance(scaler, Address):
            ctx.store.overwrite(scaler, _UPDATED, _TRUE)
    return NONE


def _is_never_updated(ctx: Context, scaler: _Identity) -> bool:
    """Is a scaler updated on no path to here?"""
    return isinstance(scaler, Address) and ctx.store.read(scaler, _UPDATED) is None


@model(f"{SCALER}.get_scale")
def _get_scale(ctx: Context, arguments: Arguments) -> Value:
    """Who asks for the scale may divide by it."""
    scaler = _identity(arguments.args[0])
    if scaler is not None and scaler in {_identity(one) for one in _listed(ctx)}:
        _put(ctx, scaler, _phases(ctx, scaler), [(_GRADIENTS, TOP)])
    return NO_TENSOR


for _name in ("is_enabled", "state_dict", "load_state_dict", "get_growth_factor", "get_backoff_factor"):
    MODELS[f"{SCALER}.{_name}"] = lambda ctx, arguments: NO_TENSOR


# -- what is not known to be a scaler, or an optimizer -------------------------------------------------------------------


def _of_anything(ctx: Context, name: str, arguments: Arguments) -> Value:
    """A method of an object that is not known: a scaler's, if it has scaled something."""
    owner = _identity(arguments.args[0])
    if name != "zero_grad" and owner is not None and owner in {_identity(one) for one in _listed(ctx)}:
        MODELS[f"{SCALER}.{name}"](ctx, arguments)
        return TOP
    if len(arguments.args) == 1 and not arguments.keywords and name == "step":
        plain_step(ctx, arguments.args[0])
    elif name == "zero_grad":
        cleared(ctx, arguments.args[0])
    ctx.modules.escape(ctx, [*arguments.args[1:], *arguments.keywords.values()])
    return TOP


def _register(name: str) -> None:
    @model(f"{UNKNOWN_CLASS}.{name}")
    def method(ctx: Context, arguments: Arguments) -> Value:
        return _of_anything(ctx, name, arguments)


for _name in ("unscale_", "step", "update", "get_scale", "zero_grad"):
    _register(_name)


# -- what others do with the gradients -----------------------------------------------------------------------------------


def clipped(ctx: Context) -> None:
    """Gradients are clipped: wrong, while they are multiplied by a scale that no optimizer has been unscaled from."""
    for one, scaler in _scalers(ctx):
        phases = _phases(ctx, scaler)
        gradients = phases.get(_GRADIENTS)
        untouched = phases.get(_UNTOUCHED)
        if gradients is None or untouched is None or present(untouched) != _TRUE or _SCALED not in choices(gradients):
            continue
        certain = gradients == _SCALED and untouched == _TRUE
        ctx.event("clip scaled" if certain else "clip perhaps scaled", one)


@model("torch.nn.utils.clip_grad_value_")
def _clip_value(ctx: Context, arguments: Arguments) -> Value:
    clipped(ctx)
    return NONE


def plain_step(ctx: Context, optimizer: Value) -> None:
    """An optimizer steps by itself: wrong with gradients that a scaler has scaled, and not unscaled for it."""
    identity = _one_optimizer(ctx, optimizer)
    for one, scaler in () if identity is None else _scalers(ctx):
        phases = _phases(ctx, scaler)
        phase = phases.get(Const(identity))
        if phases.get(_GRADIENTS) == _SCALED and (phase is None or phase == _DONE):
            kind = "step beside the scaler" if phase == _DONE else "plain step of scaled gradients"
            ctx.event(kind, one, optimizer)
            if isinstance(optimizer, Ref) or not isinstance(scaler, Address):
                # One mistake is one event; and what is not known to be an optimizer may step this scaler, if it is not ours.
                _put(ctx, scaler, phases, [(_STEPPED, TOP)])


def cleared(ctx: Context, optimizer: Value) -> None:
    """An optimizer's gradients are set to zero."""
    identity = _one_optimizer(ctx, optimizer)
    for _, scaler in _scalers(ctx):
        phases = _phases(ctx, scaler)
        gradients = phases.get(_GRADIENTS)
        if identity is not None and gradients == _SCALED and phases.get(Const(identity)) is None:
            _put(ctx, scaler, phases, [(Const(identity), _CLEARED)])
        elif gradients is not None:
            _put(ctx, scaler, phases, [(_GRADIENTS, TOP)])
