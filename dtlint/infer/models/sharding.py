"""FSDP: the weights of a unit are flattened into one tensor (FullyShardedDataParallel), or reduced together (fully_shard).

As `torch.distributed.fsdp._flat_param` (torch 1.12 to 2.13) has it, FSDP1 raises "Must flatten tensors with uniform dtype" for a
unit whose parameters have several, frozen ones too; `_fsdp_param_group` of FSDP2 raises "FSDP expects uniform original parameter
dtype" where those differ that are trained. Without a policy, and where nothing within is a unit itself, all of a module is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import NONE, TOP, Const, Ref, Tensor, Value, choices
from dtlint.infer.models import training
from dtlint.infer.models.module_trees import is_module, modules_within, weights_within
from dtlint.infer.models.plain_tensors import PARAMETER
from dtlint.infer.models.registry import model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.context import Arguments, Context

__all__: list[str] = []

_FSDP = "torch.distributed.fsdp."
_UNIT = "*unit"
"""The field of a module that is a unit of FSDP, or holds one."""


@model(f"{_FSDP}FullyShardedDataParallel", f"{_FSDP}fully_sharded_data_parallel.FullyShardedDataParallel")
def _wrap(ctx: Context, arguments: Arguments) -> Value:
    given = arguments.get(0, "module") or TOP
    kept_out = [arguments.get(place, name) for place, name in ((4, "auto_wrap_policy"), (7, "ignored_modules"))]
    if arguments.complete and not _given(*kept_out, arguments.keywords.get("ignored_states")):
        _judge(ctx, given, with_frozen=True)
    ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
    return TOP


@model(f"{_FSDP}fully_shard", "torch.distributed._composable.fsdp.fully_shard")
def _shard(ctx: Context, arguments: Arguments) -> Value:
    given = arguments.get(0, "module") or TOP
    if arguments.complete and not _given(arguments.keywords.get("ignored_params")):
        _judge(ctx, given, with_frozen=False)
    for one in choices(given):
        if isinstance(one, Ref):
            ctx.store.write(one.address, _UNIT, Const(True))
    ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
    return TOP


def _given(*values: Value | None) -> bool:
    return any(value not in (None, NONE) for value in values)


def _judge(ctx: Context, given: Value, *, with_frozen: bool) -> None:
    """A module becomes a unit, with all weights within that are of no other."""
    if not isinstance(given, Ref) or not is_module(given):
        return
    if any(ctx.store.read(one.address, _UNIT) is not None for one in modules_within(ctx, given)):
        return
    found = set(_dtypes(ctx, given, with_frozen=with_frozen))
    if sum(len(one) == 1 for one in found) > 1:
        names = sorted(name for one in found if len(one) == 1 for name in one)
        ctx.event("unlike weights in a unit", given, Const(with_frozen), *map(Const, names))


def _dtypes(ctx: Context, given: Ref, *, with_frozen: bool) -> Iterator[frozenset[str]]:
    for weight in dict.fromkeys(weights_within(ctx, given)):
        held = ctx.store.read(weight, CONTENT)
        counts = weight.kind == PARAMETER and (with_frozen or not training.is_frozen(ctx, weight))
        if counts and isinstance(held, Tensor) and held.dtypes:
            yield held.dtypes
