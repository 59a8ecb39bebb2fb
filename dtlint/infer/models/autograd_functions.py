"""torch.autograd.Function: `apply` runs `forward`, and what it saves is there again in `backward`.

Source: "Extending PyTorch" of torch's documentation. Backward is followed with gradients of the dtypes of the results, outside
of autocast or in a region that nobody knows; what it does to the state is kept, for it runs sooner or later.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import Arguments, NeverReturns
from dtlint.infer.domain.values import (
    NONE,
    TOP,
    Function,
    Many,
    Number,
    Partial,
    ProjectClass,
    Ref,
    Tensor,
    Tuple,
    Value,
)
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Context

__all__ = ["APPLY"]

APPLY = "torch.autograd.Function.apply"
_CONTEXT = "torch.autograd.function.FunctionCtx"


@model(APPLY)
def _apply(ctx: Context, arguments: Arguments) -> Value:
    cls, given, node = arguments.args[0], arguments.args[1:], arguments.node
    forward = _own(ctx, cls, "forward", node)
    if forward is None or not arguments.complete:
        ctx.modules.escape(ctx, [*given, *arguments.keywords.values()])
        return TOP
    about = ctx.allocate(node, _CONTEXT)
    ctx.store.write(about.address, "needs_input_grad", Many(Number(Category.BOOL)))
    setup = _own(ctx, cls, "setup_context", node)
    args = list(given) if setup is not None else [about, *given]
    result = ctx.semantics.call(ctx, forward, Arguments(args, arguments.keywords, True, node))
    if setup is not None:
        ctx.semantics.call(ctx, setup, Arguments([about, Tuple(tuple(given)), result], {}, True, node))
    backward = _own(ctx, cls, "backward", node)
    if backward is not None:
        _follow(ctx, backward, about, result, node)
    return plain_tensors.plain(ctx, result)


def _own(ctx: Context, cls: Value, name: str, node: object) -> Function | Partial | None:
    """A method that the class of a project defines; a `Partial` behind a decorator that casts its operands."""
    if not isinstance(cls, ProjectClass):
        return None
    found = ctx.semantics.attribute(ctx, cls, name, node)  # type: ignore[arg-type]
    return found if isinstance(found, (Function, Partial)) else None


def _follow(ctx: Context, backward: Function | Partial, about: Ref, result: Value, node: object) -> None:
    results = [plain_tensors.plain(ctx, one) for one in (result.items if isinstance(result, Tuple) else (result,))]
    if not all(isinstance(one, Tensor) for one in results):
        return
    gradients = [
        Tensor(one.dtypes, one.symbol, one.rank, device=one.device) for one in results if isinstance(one, Tensor)
    ]
    around = ctx.ambient("region"), ctx.ambient("opened")
    if around[0] != NONE:
        ctx.set_ambient("region", TOP)  # that in force when `backward()` is called
        ctx.set_ambient("opened", NONE)
    try:
        with suppress(NeverReturns):
            ctx.semantics.call(ctx, backward, Arguments([about, *gradients], {}, True, (node, "backward")))
    finally:
        ctx.set_ambient("region", around[0])
        ctx.set_ambient("opened", around[1])


@model(f"{_CONTEXT}.save_for_backward")
def _save(ctx: Context, arguments: Arguments) -> Value:
    about = arguments.args[0]
    if isinstance(about, Ref):
        saved = Tuple(tuple(arguments.args[1:])) if arguments.complete else Many(TOP)
        ctx.store.write(about.address, "saved_tensors", saved)
    return NONE


@model(*(f"{_CONTEXT}.{name}" for name in ("mark_dirty", "mark_non_differentiable", "set_materialize_grads")))
def _nothing(ctx: Context, arguments: Arguments) -> Value:
    return NONE
