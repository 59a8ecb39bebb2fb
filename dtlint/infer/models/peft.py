"""peft (0.6 to 0.19): adapters are new weights in a model, trained while those that it has stay as they are.

As `inject_adapter_in_model` of https://huggingface.co/docs/peft/developer_guides/low_level_api and
`BaseTunerLayer._move_adapter_to_device_of_base_layer` have it, each adapter is put in place with the floating dtype of the layer
that it adapts, and the weights of the model are frozen. What `get_peft_model` gives casts adapters to float32 besides, or does
not, by its version and its arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import TOP, Ref, Tensor, Value, choices
from dtlint.infer.models import training
from dtlint.infer.models.module_trees import is_module, weights_within
from dtlint.infer.models.plain_tensors import PARAMETER
from dtlint.infer.models.registry import model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

__all__ = ["adapt"]

_ADAPTERS = "*adapters"
"""The field of a model that holds the one weight that stands for all adapters in it."""


@model("peft.inject_adapter_in_model", "peft.mapping.inject_adapter_in_model")
def _inject(ctx: Context, arguments: Arguments) -> Value:
    given = arguments.get(1, "model") or TOP
    for one in choices(given):
        if isinstance(one, Ref) and is_module(one):
            adapt(ctx, one, as_base=True)
    return given


@model("peft.get_peft_model", "peft.mapping.get_peft_model", "peft.mapping_func.get_peft_model")
def _wrap(ctx: Context, arguments: Arguments) -> Value:
    given = arguments.get(0, "model") or TOP
    for one in choices(given):
        if isinstance(one, Ref) and is_module(one):
            adapt(ctx, one, as_base=False)
    ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
    return TOP


def adapt(ctx: Context, base: Ref, *, as_base: bool) -> None:
    """Put adapters into a model, and freeze what it has."""
    weights = list(dict.fromkeys(weights_within(ctx, base)))
    held = [ctx.store.read(one, CONTENT) for one in weights if one.kind == PARAMETER]
    alike = join_all(Tensor(one.dtypes) for one in held if isinstance(one, Tensor)) if as_base else None
    known = alike.dtypes if isinstance(alike, Tensor) else None
    adapters = ctx.store.address(ctx.frame.path, (base.address, "adapters"), PARAMETER)
    for _ in range(2):  # it stands for several
        ctx.store.allocate(adapters, Tensor(known if known is not None and known <= FLOATING else None))
    ctx.store.write(base.address, _ADAPTERS, Ref(adapters))
    training.frozen(ctx, weights, True)
    if known == frozenset({"float16"}):
        training.became_float16(ctx, [adapters])
