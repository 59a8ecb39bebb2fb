"""transformers' Trainer (4.40 to 5): `train` runs the model on batches of its dataset under the precision of its arguments.

As https://huggingface.co/docs/transformers/main_classes/trainer has it: the trainer hands its model to accelerate, which runs it
under autocast for `fp16=True` or `bf16=True` and gives float32 back; the loss is `compute_loss(model, inputs)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import NONE, TOP, Const, External, Ref, Region, Value, choices
from dtlint.infer.models import drivers
from dtlint.infer.models.accelerate import prepared
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

__all__: list[str] = []

_TRAINER = "transformers.trainer.Trainer"


def _region(ctx: Context, owner: Ref) -> Value:
    """Where the model runs: by the arguments `fp16`, `bf16` and `use_cpu`."""
    given = ctx.store.read(owner.address, "args")
    if not isinstance(given, Ref):
        return Region(None, None, None)
    fp16, bf16, on_cpu = (ctx.store.read(given.address, name) for name in ("fp16", "bf16", "use_cpu"))
    if fp16 == Const(True):
        return Region("cuda", "float16", True)
    if bf16 == Const(True):
        return Region("cpu" if on_cpu == Const(True) else None, "bfloat16", True)
    return NONE if fp16 == bf16 == Const(False) else Region(None, None, None)


def _loader(ctx: Context, owner: Ref, stage: str, arguments: Arguments) -> Value:
    """The loader of a stage: of a method that the program overrides, or of the dataset and the collator that are given."""
    own = drivers.method_of(ctx, owner, f"get_{stage}_dataloader", arguments.node, ("transformers.",))
    if own is not None:
        return drivers.call_back(ctx, own, (), arguments.node) or TOP
    dataset, collate = (ctx.store.read(owner.address, name) for name in (f"{stage}_dataset", "data_collator"))
    if dataset is None or collate is None:
        return TOP
    given = type(arguments)([dataset], {"collate_fn": collate}, True, arguments.node)
    return ctx.semantics.call(ctx, External("torch.utils.data.DataLoader"), given)


def _run(ctx: Context, arguments: Arguments, stage: str) -> None:
    owner = arguments.args[0]
    held = ctx.store.read(owner.address, "model") if isinstance(owner, Ref) else None
    loss = drivers.method_of(ctx, owner, "compute_loss", arguments.node)
    if not isinstance(owner, Ref) or held is None:
        return
    region = _region(ctx, owner)
    device = region.device if isinstance(region, Region) else None
    batch = drivers.item_of(ctx, _loader(ctx, owner, stage, arguments), arguments.node)
    for one in choices(held):
        prepared(ctx, one, region, device, arguments)

    def once() -> None:
        drivers.call_back(ctx, loss, (held, drivers.on_device(ctx, batch, device, arguments.node)), arguments.node)

    drivers.repeated(ctx, once)


@model(f"{_TRAINER}.train")
def _train(ctx: Context, arguments: Arguments) -> Value:
    _run(ctx, arguments, "train")
    return TOP


@model(f"{_TRAINER}.evaluate")
def _evaluate(ctx: Context, arguments: Arguments) -> Value:
    _run(ctx, arguments, "eval")
    return TOP
