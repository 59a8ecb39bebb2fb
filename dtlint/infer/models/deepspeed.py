"""DeepSpeed (0.3 to 0.17): the engine casts the weights of its model as the configuration says, and not its inputs.

As `DeepSpeedEngine._configure_distributed_model` and `forward` have it: `fp16.enabled` is `module.half()`, `bf16.enabled` is
`module.bfloat16()`; inputs are cast for `fp16.auto_cast` alone. With `amp` or `torch_autocast` weights stay as they are, and
the model runs under autocast. What is "auto" is filled in by a framework around it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import NeverReturns
from dtlint.infer.domain.values import (
    NONE,
    TOP,
    Const,
    Device,
    Dtype,
    External,
    Mapping,
    Number,
    Ref,
    Tensor,
    Tuple,
    Value,
    present,
)
from dtlint.infer.models.casts import cast_module
from dtlint.infer.models.instance_dicts import ANYTHING
from dtlint.infer.models.registry import model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

__all__: list[str] = []

_ENGINE = "deepspeed.DeepSpeedEngine"
_HALF = "*half"
"""The field of an engine that holds the half dtype that it has cast its model to, and gets no inputs cast to."""
_UNKNOWN = object()


@model("deepspeed.initialize")
def _initialise(ctx: Context, arguments: Arguments) -> Value:
    config = arguments.keywords.get("config") or arguments.keywords.get("config_params") or TOP
    given = arguments.get(1, "model") or TOP
    half = _half(ctx, config) if arguments.complete else _UNKNOWN
    if isinstance(config, Ref) and all(_is_on(ctx, config, *names) for names in (("fp16",), ("bf16", "bfloat16"))):
        ctx.site = arguments.node
        ctx.event("two precisions of DeepSpeed", config)
    if half is _UNKNOWN:
        ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
        return TOP
    made = ctx.allocate(arguments.node, _ENGINE)
    ctx.store.overwrite(made.address, ANYTHING, Const(True))
    ctx.store.write(made.address, "module", given)
    ctx.store.write(made.address, "device", Device(None))
    for name in ("local_rank", "global_rank", "world_size"):
        ctx.store.write(made.address, name, Number(Category.INTEGER))
    if isinstance(half, str):
        cast_module(ctx, given, Dtype(frozenset({half})), None)
        ctx.store.write(made.address, _HALF, Const(half))
    data = arguments.get(4, "training_data")
    loader: Value = TOP
    if data not in (None, NONE) and data is not None and "collate_fn" not in arguments.keywords:
        loading = type(arguments)([data], {}, True, arguments.node)
        loader = ctx.semantics.call(ctx, External("torch.utils.data.DataLoader"), loading)
    return Tuple((made, TOP, loader, TOP))


@model(f"{_ENGINE}.__call__", f"{_ENGINE}.forward")
def _call(ctx: Context, arguments: Arguments) -> Value:
    owner, rest = arguments.args[0], arguments.without_first()
    inner = ctx.store.read(owner.address, "module") if isinstance(owner, Ref) else None
    half = ctx.store.read(owner.address, _HALF) if isinstance(owner, Ref) else None
    if inner is None:
        return TOP
    try:
        return ctx.semantics.call(ctx, inner, rest)
    except NeverReturns:
        wide = [one for one in (*rest.args, *rest.keywords.values()) if isinstance(one, Tensor) and one.dtypes]
        if isinstance(half, Const) and any(one.dtypes <= {"float32", "float64"} for one in wide if one.dtypes):
            ctx.site = arguments.node
            ctx.event("half engine is given float32", owner, half)
        raise


def _half(ctx: Context, config: Value) -> object:
    """The half dtype that a configuration has the model cast to; None for none, _UNKNOWN where that is not told."""
    settings = _settings(ctx, config)
    if settings is None:
        return _UNKNOWN
    enabled = {name: _entry(ctx, settings, name, "enabled") for name in ("fp16", "bf16", "bfloat16")}
    others = [_entry(ctx, settings, name, "enabled") for name in ("amp", "torch_autocast")]
    others.append(_entry(ctx, settings, "fp16", "auto_cast"))
    if any(one is not False for one in others) or any(not isinstance(one, bool) for one in enabled.values()):
        return _UNKNOWN
    if enabled["fp16"]:
        return "float16"
    return "bfloat16" if enabled["bf16"] or enabled["bfloat16"] else None


def _is_on(ctx: Context, config: Value, *names: str) -> bool:
    """Does a configuration certainly enable a precision, by one of its names?"""
    settings = _settings(ctx, config)
    return settings is not None and any(_entry(ctx, settings, name, "enabled") is True for name in names)


def _settings(ctx: Context, config: Value) -> Any:
    """What a configuration holds, as JSON or as a dict of the program; None where that is not known."""
    if isinstance(config, Const) and isinstance(config.value, str):
        data = (
            ctx.modules.project.file_beside(ctx.frame.module, config.value) if config.value.endswith(".json") else None
        )
        try:
            held = None if data is None else json.loads(data)
        except (ValueError, RecursionError):
            return None
        return held if isinstance(held, dict) else None
    held = ctx.store.read(config.address, CONTENT) if isinstance(config, Ref) else None
    return held if isinstance(held, Mapping) and held.rest is None else None


def _entry(ctx: Context, settings: Any, name: str, key: str) -> object:
    """A setting, False where it is left out; None where it is not known."""
    if isinstance(settings, dict):
        block = settings.get(name, {})
        return block.get(key, False) if isinstance(block, dict) else None
    held = settings.get(Const(name))
    if held is None:
        return False
    inner = ctx.store.read(held.address, CONTENT) if isinstance(held, Ref) else None
    if not isinstance(inner, Mapping) or inner.rest is not None:
        return None
    value = inner.get(Const(key))
    value = Const(False) if value is None else present(value)
    return value.value if isinstance(value, Const) else None
