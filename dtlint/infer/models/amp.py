"""torch.amp: autocast regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments, region_in_view
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    Const,
    Dtype,
    External,
    Partial,
    Region,
    Value,
)
from dtlint.infer.models.casts import device_of, dtype_of
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Context

__all__ = ["DEFAULT_DTYPE", "IN_REGION"]

IN_REGION = External("torch.amp.autocast.__call__")
"""What a function behind a decorator that opens a region is a `Partial` of: of the region, and the function."""
DEFAULT_DTYPE = External("lightning.fabric.default_dtype")
"""What a context is a `Partial` of in which floats have a dtype by default: of the name of the dtype, TOP where that is not
known."""
_DEFAULTS = {"cuda": "float16", "cpu": "bfloat16", "xpu": "bfloat16", "mps": "float16"}
"""The dtype of a region that names none, by device: torch.get_autocast_dtype of torch 2.13."""


def _region(ctx: Context, arguments: Arguments, device: str | None, first: int) -> Region:
    """A region, from the arguments behind the device: dtype and enabled."""
    given = arguments.get(first, "dtype")
    if given is None or given == NONE:
        around = region_in_view(ctx)
        if isinstance(around, Region) and around.device == device:
            dtype = around.dtype  # the one in force
        else:
            dtype = _DEFAULTS.get(device) if device is not None and arguments.complete else None
    else:
        known = dtype_of(given)
        dtypes = known.dtypes if known is not None else None
        dtype = next(iter(dtypes)) if dtypes is not None and len(dtypes) == 1 else None
    switch = arguments.get(first + 1, "enabled")
    if switch is None:
        enabled: bool | None = True if arguments.complete else None
    else:
        enabled = bool(switch.value) if isinstance(switch, Const) else None
    if enabled is False:
        return Region(device, dtype, False)
    return Region(device, dtype, enabled)


@model("torch.amp.autocast")
def _autocast(ctx: Context, arguments: Arguments) -> Value:
    device = device_of(arguments.get(0, "device_type"))
    return _region(ctx, arguments, device, 1)


@model("torch.cuda.amp.autocast")
def _cuda_autocast(ctx: Context, arguments: Arguments) -> Value:
    return _region(
        ctx,
        Arguments(
            [arguments.get(1, "dtype") or Dtype(frozenset({"float16"})), arguments.get(0, "enabled") or Const(True)],
            {},
            arguments.complete,
            arguments.node,
        ),
        "cuda",
        0,
    )


@model("torch.cpu.amp.autocast")
def _cpu_autocast(ctx: Context, arguments: Arguments) -> Value:
    return _region(
        ctx,
        Arguments(
            [arguments.get(1, "dtype") or Dtype(frozenset({"bfloat16"})), arguments.get(0, "enabled") or Const(True)],
            {},
            arguments.complete,
            arguments.node,
        ),
        "cpu",
        0,
    )


@model("torch.is_autocast_enabled", "torch.is_autocast_cpu_enabled", "torch.is_autocast_cache_enabled")
def _is_on(ctx: Context, arguments: Arguments) -> Value:
    region = ctx.ambient("region")
    if region == NONE:
        return Const(False)
    return NO_TENSOR


@model(
    *(f"torch.set_autocast_{name}" for name in ("enabled", "cpu_enabled", "dtype", "gpu_dtype", "cpu_dtype")),
)
def _set_by_hand(ctx: Context, arguments: Arguments) -> Value:
    """Who sets the switch by hand may have any region on."""
    ctx.set_ambient("region", Region(None, None, None))
    return NONE


@model("torch.get_autocast_dtype", "torch.get_autocast_gpu_dtype", "torch.get_autocast_cpu_dtype")
def _dtype_now(ctx: Context, arguments: Arguments) -> Value:
    region = ctx.ambient("region")
    if isinstance(region, Region) and region.dtype is not None:
        return Dtype(frozenset({region.dtype}))
    return Dtype()


@model("contextlib.nullcontext", "torch.autograd.graph.save_on_cpu")
def _nullcontext(ctx: Context, arguments: Arguments) -> Value:
    return Partial(External("contextlib.nullcontext"), tuple(arguments.args[:1]))
