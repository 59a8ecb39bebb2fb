"""What the source of torch.distributions leaves to others: samplers of torch, shapes, and the table of divergences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import Arguments
from dtlint.infer.domain.lattice import category_of
from dtlint.infer.domain.values import (
    TOP,
    Const,
    Function,
    Many,
    Mapping,
    Number,
    ProjectClass,
    Ref,
    Tensor,
    Tuple,
    Value,
)
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.registry import model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context

__all__ = ["registered_divergence"]


@model("torch._standard_gamma", "torch._sample_dirichlet", "torch.poisson", "torch.binomial")
def _sampled(ctx: Context, arguments: Arguments) -> Value:
    """A sample for each element of the parameter, of its dtype."""
    parameter = plain_tensors.plain(ctx, arguments.args[0]) if arguments.args else TOP
    if not isinstance(parameter, Tensor):
        return Tensor()
    return Tensor(parameter.dtypes, parameter.symbol, parameter.rank, device=parameter.device)


@model("torch.Size")
def _size(ctx: Context, arguments: Arguments) -> Value:
    """A tuple of sizes."""
    if not arguments.args:
        return Tuple(()) if arguments.complete else Many(Number(Category.INTEGER))
    items = ctx.semantics.items(ctx, arguments.args[0], arguments.node)
    return items if isinstance(items, (Tuple, Many)) else Many(Number(Category.INTEGER))


@model("torch.overrides.is_tensor_like")
def _is_tensor_like(ctx: Context, arguments: Arguments) -> Value:
    """A tensor, or what takes part in its operators by `__torch_function__`."""
    value = plain_tensors.plain(ctx, arguments.args[0]) if arguments.args else TOP
    if isinstance(value, Tensor):
        return Const(True)
    if isinstance(value, Const) or category_of(value) is not None:
        return Const(False)
    return Number(Category.BOOL)


def registered_divergence(ctx: Context, one: Value, other: Value, arguments: Arguments) -> Value | None:
    """What the function gives that `register_kl` has put into the table for two distributions read as source: the one for
    the nearest classes. None where there is none."""
    kinds = [value.address.kind if isinstance(value, Ref) else None for value in (one, other)]
    first, second = kinds
    if not isinstance(first, ProjectClass) or not isinstance(second, ProjectClass):
        return None
    table = ctx.modules.imported_member(ctx, "torch.distributions.kl", "_KL_REGISTRY")
    content = ctx.store.read(table.address, CONTENT) if isinstance(table, Ref) else None
    if not isinstance(content, Mapping):
        return None
    known = dict(content.items)
    for left in first.definition.order:
        for right in second.definition.order:
            found = known.get(Tuple((left, right)))
            if isinstance(found, Function):
                return ctx.semantics.call(ctx, found, Arguments([one, other], {}, True, arguments.node))
    return None
