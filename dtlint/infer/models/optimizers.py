"""Optimizers and their schedules: parameter groups hold the very parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    NO_TENSOR,
    TOP,
    Const,
    Many,
    Mapping,
    Ref,
    Tuple,
    Value,
    choices,
)
from dtlint.infer.models import scaling
from dtlint.infer.models.registry import model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context

_OPTIMIZERS = (
    *("Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Adadelta", "Adamax", "ASGD", "LBFGS", "NAdam", "RAdam", "Rprop"),
    *("SparseAdam", "Adafactor", "Muon"),
)


def _make(ctx: Context, arguments: Arguments, kind: str) -> Value:
    made = ctx.allocate(arguments.node, kind)
    _initialise(ctx, Arguments([made, *arguments.args], arguments.keywords, arguments.complete, arguments.node))
    return made


def _register(name: str) -> None:
    @model(f"torch.optim.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        return _make(ctx, arguments, f"torch.optim.{name}")


for _name in _OPTIMIZERS:
    _register(_name)


@model("torch.optim.Optimizer.__init__")
def _initialise(ctx: Context, arguments: Arguments) -> Value:
    """Give an optimizer its parameter groups."""
    made, given = arguments.args[0], arguments.get(1, "params")
    if not isinstance(made, Ref):
        return NO_TENSOR
    found: list[Value] = []
    items = Many(TOP) if given is None else ctx.semantics.items(ctx, given, arguments.node)
    for item in items.items if isinstance(items, Tuple) else (items.item,) if isinstance(items, Many) else ():
        for one in choices(item):
            content = ctx.store.read(one.address, CONTENT) if isinstance(one, Ref) else None
            if isinstance(content, Mapping):
                held = content.get(Const("params"))
                inner = TOP if held is None else ctx.semantics.items(ctx, held, arguments.node)
                found += inner.items if isinstance(inner, Tuple) else (inner.item,) if isinstance(inner, Many) else ()
            else:
                found.append(one)
    params = Many(join_all(found) or TOP)
    site = arguments.node
    held_list = ctx.allocate((site, "params"), "builtins.list", params)
    group = Mapping(((Const("params"), held_list), (Const("lr"), NO_TENSOR)), NO_TENSOR)
    groups = ctx.allocate(
        (site, "groups"), "builtins.list", Many(ctx.allocate((site, "group"), "builtins.dict", group))
    )
    ctx.store.write(made.address, "param_groups", groups)
    state = ctx.allocate((site, "state"), "collections.defaultdict", Mapping((), TOP))
    ctx.store.write(made.address, "state", state)
    return NO_TENSOR


@model("torch.optim.Optimizer.step")
def _step(ctx: Context, arguments: Arguments) -> Value:
    if isinstance(arguments.args[0], Ref):
        scaling.plain_step(ctx, arguments.args[0])
    closure = arguments.get(1, "closure")
    if closure is not None and closure != Const(None):
        return ctx.semantics.call(ctx, closure, Arguments([], {}, True, arguments.node))
    return Const(None)


@model("torch.optim.Optimizer.zero_grad")
def _zero_grad(ctx: Context, arguments: Arguments) -> Value:
    scaling.cleared(ctx)
    return Const(None)


@model("torch.optim.Optimizer.load_state_dict", "torch.optim.Optimizer.add_param_group")
def _nothing(ctx: Context, arguments: Arguments) -> Value:
    return Const(None)


@model("torch.optim.lr_scheduler.LRScheduler.step", "torch.optim.lr_scheduler.LRScheduler.get_last_lr")
def _schedule(ctx: Context, arguments: Arguments) -> Value:
    return Many(NO_TENSOR)
