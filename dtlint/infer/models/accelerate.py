"""accelerate 1: what `prepare` makes of a model is run under autocast, and gives float32 back.

As https://huggingface.co/docs/accelerate/usage_guides/mixed_precision and `Accelerator.prepare_model` have it: `forward` is
wrapped in autocast, and results in float16 or bfloat16 become float32. Where no precision is given, the launcher or a file
decides it. float16 needs a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Const,
    Device,
    External,
    Partial,
    Ref,
    Region,
    Tuple,
    Union,
    Value,
    choices,
)
from dtlint.infer.models import drivers, training
from dtlint.infer.models.casts import cast_module
from dtlint.infer.models.module_trees import is_module
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.context import Arguments, Context

__all__ = ["prepared"]

_ACCELERATOR = "accelerate.accelerator.Accelerator"
_FORWARD = External("accelerate.prepared.forward")
_FLOAT16 = Region("cuda", "float16", True)
_HALVES = frozenset({"float16", "bfloat16"})


@model("accelerate.Accelerator")
def _make(ctx: Context, arguments: Arguments) -> Value:
    made = ctx.allocate(arguments.node, _ACCELERATOR)
    _initialise(ctx, arguments.before(made))
    return made


@model(f"{_ACCELERATOR}.__init__")
def _initialise(ctx: Context, arguments: Arguments) -> Value:
    owner = arguments.args[0]
    given = arguments.get(3, "mixed_precision")
    on_cpu = arguments.get(7, "cpu") == Const(True)
    region: Value = Region(None, None, None)
    if given == Const("no"):
        region = NONE
    elif given == Const("bf16"):
        region = Region("cpu" if on_cpu else None, "bfloat16", True)
    elif given == Const("fp16"):
        region = _FLOAT16
    device = "cpu" if on_cpu else region.device if isinstance(region, Region) else None
    if isinstance(owner, Ref):
        ctx.store.write(owner.address, "*region", region)
        ctx.store.write(owner.address, "*device", Device(device))
        ctx.store.write(
            owner.address, "mixed_precision", given if isinstance(given, Const) and given != NONE else NO_TENSOR
        )
    return NONE


def _device(ctx: Context, owner: Value) -> str | None:
    held = ctx.store.read(owner.address, "*device") if isinstance(owner, Ref) else None
    return held.type if isinstance(held, Device) else None


def _region(ctx: Context, owner: Value) -> Value:
    held = ctx.store.read(owner.address, "*region") if isinstance(owner, Ref) else None
    return Region(None, None, None) if held is None else held


@model(f"{_ACCELERATOR}.prepare")
def _prepare(ctx: Context, arguments: Arguments) -> Value:
    owner = arguments.args[0]
    region = _region(ctx, owner)
    device = _device(ctx, owner)
    given = [prepared(ctx, one, region, device, arguments) for one in arguments.args[1:]]
    _scale_gradients(ctx, region, arguments.args[1:])
    if not arguments.complete:
        return TOP
    return given[0] if len(given) == 1 else Tuple(tuple(given))


@model(f"{_ACCELERATOR}.prepare_model")
def _prepare_model(ctx: Context, arguments: Arguments) -> Value:
    given = arguments.get(1, "model") or TOP
    owner = arguments.args[0]
    return prepared(ctx, given, _region(ctx, owner), _device(ctx, owner), arguments)


@model(*(f"{_ACCELERATOR}.prepare_{name}" for name in ("data_loader", "optimizer", "scheduler")))
def _prepare_other(ctx: Context, arguments: Arguments) -> Value:
    given = arguments.args[1] if len(arguments.args) > 1 else TOP
    _scale_gradients(ctx, _region(ctx, arguments.args[0]), [given])
    return prepared(ctx, given, NONE, _device(ctx, arguments.args[0]), arguments)


def _scale_gradients(ctx: Context, region: Value, values: Sequence[Value]) -> None:
    """In float16 accelerate steps the optimizers with a GradScaler of its own."""
    if region == _FLOAT16:
        for one in (each for value in values for each in choices(value)):
            if isinstance(one, Ref):
                ctx.store.write(one.address, training.SCALED, Const(True))


def prepared(ctx: Context, value: Value, region: Value, device: str | None, arguments: Arguments) -> Value:
    """A model on its device whose forward runs in the region; a loader that moves its batches; anything else as it is."""
    if isinstance(value, Union):
        return join_all([prepared(ctx, one, region, device, arguments) for one in value.choices]) or TOP
    if not isinstance(value, Ref):
        return value
    batch = ctx.store.read(value.address, "*batch")
    if batch is not None:
        ctx.store.write(value.address, "*batch", drivers.on_device(ctx, batch, device, arguments.node))
    if not is_module(value):
        return value
    cast_module(ctx, value, None, device, moves=True)
    if region == NONE:
        return value
    forward = ctx.semantics.attribute(ctx, value, "forward", arguments.node)
    if forward is not None:
        ctx.store.write(value.address, "forward", Partial(_FORWARD, (region, forward)))
    return value


@model(_FORWARD.name)
def _forward(ctx: Context, arguments: Arguments) -> Value:
    region, forward = arguments.args[:2]
    rest = arguments.without_first().without_first()
    with drivers.ambient(ctx, "region", region):
        result = ctx.semantics.call(ctx, forward, rest)
    if isinstance(region, Region) and region.enabled is True:
        return drivers.in_dtype(ctx, result, "float32", (arguments.node, "float32"), _HALVES)
    return TOP


@model(f"{_ACCELERATOR}.clip_grad_norm_")
def _clip(ctx: Context, arguments: Arguments) -> Value:
    return ctx.semantics.call(ctx, External("torch.nn.utils.clip_grad_norm_"), arguments.without_first())


@model(f"{_ACCELERATOR}.backward")
def _backward(ctx: Context, arguments: Arguments) -> Value:
    opened = ctx.ambient("opened")
    if isinstance(opened, Region) and opened.enabled is not False and opened == _region(ctx, arguments.args[0]):
        ctx.event("backward in region", opened)
    return NO_TENSOR


@model(f"{_ACCELERATOR}.autocast")
def _autocast(ctx: Context, arguments: Arguments) -> Value:
    region = _region(ctx, arguments.args[0])
    return Partial(External("contextlib.nullcontext")) if region == NONE else region


@model(*(f"{_ACCELERATOR}.{name}" for name in ("accumulate", "no_sync", "join_uneven_inputs", "profile")))
def _context(ctx: Context, arguments: Arguments) -> Value:
    return Partial(External("contextlib.nullcontext"))


@model(*(f"{_ACCELERATOR}.{name}" for name in ("gather", "gather_for_metrics", "pad_across_processes", "unwrap_model")))
def _passed(ctx: Context, arguments: Arguments) -> Value:
    return arguments.args[1] if len(arguments.args) > 1 else TOP


@model(
    *(f"{_ACCELERATOR}.{name}" for name in ("print", "log", "wait_for_everyone", "end_training", "init_trackers")),
    *(f"{_ACCELERATOR}.{name}" for name in ("save_state", "save", "free_memory", "clip_grad_value_", "set_trigger")),
)
def _nothing(ctx: Context, arguments: Arguments) -> Value:
    return NO_TENSOR
