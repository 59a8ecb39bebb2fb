"""Modules around a module: DataParallel, DistributedDataParallel, averaged models. Calling one calls what is within."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments
from dtlint.infer.domain.values import NONE, TOP, External, Ref, Value
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Context

_PARALLEL = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.DistributedDataParallel")
_AVERAGED = "torch.nn.AveragedModel"
"""torch.optim.swa_utils.AveragedModel is a module as those of torch.nn are."""


def _wrap(ctx: Context, arguments: Arguments, kind: str, inner: Value) -> Value:
    made = ctx.allocate(arguments.node, kind)
    ctx.store.write(made.address, "module", inner)
    return made


@model(*_PARALLEL)
def _parallel(ctx: Context, arguments: Arguments) -> Value:
    return _wrap(ctx, arguments, "torch.nn.DataParallel", arguments.get(0, "module") or TOP)


@model("torch.optim.swa_utils.AveragedModel", "torch.optim.AveragedModel")
def _averaged(ctx: Context, arguments: Arguments) -> Value:
    """A copy of a module, whose weights are averaged in place."""
    given = arguments.get(0, "model") or TOP
    copied = ctx.semantics.call(ctx, External("copy.deepcopy"), Arguments([given], {}, True, arguments.node))
    return _wrap(ctx, arguments, _AVERAGED, copied)


@model(
    *(f"torch.nn.DataParallel.{name}" for name in ("__call__", "forward")),
    *(f"{_AVERAGED}.{name}" for name in ("__call__", "forward")),
)
def _call_inner(ctx: Context, arguments: Arguments) -> Value:
    owner = arguments.args[0]
    inner = ctx.store.read(owner.address, "module") if isinstance(owner, Ref) else None
    return TOP if inner is None else ctx.semantics.call(ctx, inner, arguments.without_first())


@model(f"{_AVERAGED}.update_parameters", "torch.optim.swa_utils.update_bn")
def _updated(ctx: Context, arguments: Arguments) -> Value:
    return NONE
