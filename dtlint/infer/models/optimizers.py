"""Optimizers and their schedules: parameter groups hold the very parameters."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import Arguments
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Address,
    Const,
    Many,
    Mapping,
    Number,
    Ref,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.models import plain_tensors, scaling, training
from dtlint.infer.models.mappings import content_of_mapping
from dtlint.infer.models.module_methods import OF_MODULE, PARAMETERS_OF
from dtlint.infer.models.module_trees import is_module
from dtlint.infer.models.ops import default_dtypes
from dtlint.infer.models.registry import model
from dtlint.infer.state import AMBIENT, CONTENT

if TYPE_CHECKING:
    from collections.abc import Sequence

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
            found += _of_group(ctx, one, arguments) or [one]
    params = Many(join_all(found) or TOP)
    site = arguments.node
    held_list = ctx.allocate((site, "params"), "builtins.list", params)
    defaults = arguments.get(2, "defaults")
    content = None if defaults is None else content_of_mapping(ctx, defaults)
    named: dict[str, Value] = dict(arguments.keywords.items())
    if content is not None:
        named = {key.value: value for key, value in content.items if isinstance(key, Const)}
    settings = [(Const(name), _setting(value)) for name, value in named.items() if name not in ("params", "defaults")]
    group = Mapping(((Const("params"), held_list), *settings), NO_TENSOR)
    groups = ctx.allocate(
        (site, "groups"), "builtins.list", Many(ctx.allocate((site, "group"), "builtins.dict", group))
    )
    ctx.store.write(made.address, "param_groups", groups)
    trained = _trained(ctx, site, [one for item in found for one in choices(item)])
    if trained:
        training.made(ctx, made, trained)
    ctx.store.write(made.address, _EPS, named.get("eps", NONE))
    ctx.store.write(made.address, training.FUSED, named.get("fused", NONE))
    each: Value = TOP
    if not isinstance(made.address.kind, str):  # the program's own optimizer fills a dict for each parameter
        each = ctx.allocate((site, "each"), "builtins.dict", Mapping())
        ctx.allocate((site, "each"), "builtins.dict")
    state = ctx.allocate((site, "state"), "collections.defaultdict", Mapping((), each))
    ctx.store.write(made.address, "state", state)
    return NO_TENSOR


def _trained(ctx: Context, site: object, params: Sequence[Value]) -> list[Value]:
    """The modules and parameters that make up what an optimizer was given; none where that is not known."""
    asked = site.args[0] if isinstance(site, ast.Call) and site.args else None
    whole = ctx.store.read(AMBIENT, (PARAMETERS_OF, asked)) if isinstance(asked, ast.Call) else None
    if whole is not None and all(map(is_module, choices(whole))):
        return [whole]
    found: list[Value] = []
    for one in params:
        if isinstance(one, Ref) and one.address.kind == plain_tensors.PARAMETER:
            found.append(one)
            continue
        owners = [about for name, about in one.extra if name == OF_MODULE] if isinstance(one, Unknown) else []
        if not owners:
            return []
        found += (Ref(owner) for owner in owners if isinstance(owner, Address))
    return list(dict.fromkeys(found))


_EPS = "*eps"
"""The field of an optimizer that holds the `eps` it was given."""


def _setting(value: Value) -> Value:
    """A setting of a group, which groups and schedules give other values."""
    if isinstance(value, Tuple):
        return Tuple(tuple(map(_setting, value.items)))
    if isinstance(value, Const) and isinstance(value.value, bool):
        return Number(Category.BOOL)
    return NO_TENSOR if isinstance(value, (Const, Number)) else TOP


def _of_group(ctx: Context, value: Value, arguments: Arguments) -> list[Value]:
    """The parameters of a group that is a dict; none where it is no dict."""
    content = ctx.store.read(value.address, CONTENT) if isinstance(value, Ref) else None
    if not isinstance(content, Mapping):
        return []
    held = content.get(Const("params"))
    if held is not None and plain_tensors.is_weight(held):
        return [held]
    inner = TOP if held is None else ctx.semantics.items(ctx, held, arguments.node)
    return list(inner.items) if isinstance(inner, Tuple) else [inner.item if isinstance(inner, Many) else TOP]


@model("torch.optim.Optimizer.add_param_group")
def _add_param_group(ctx: Context, arguments: Arguments) -> Value:
    group = arguments.get(1, "param_group")
    held = _held_parameters(ctx, arguments.args[0])
    if held is not None and group is not None:
        known = ctx.store.read(held.address, CONTENT)
        found = _of_group(ctx, group, arguments) or [TOP]
        ctx.store.write(
            held.address, CONTENT, Many(join_all([known.item if isinstance(known, Many) else TOP, *found]) or TOP)
        )
    return Const(None)


def _held_parameters(ctx: Context, optimizer: Value) -> Ref | None:
    """The list of an optimizer's parameters."""
    groups = ctx.store.read(optimizer.address, "param_groups") if isinstance(optimizer, Ref) else None
    content = ctx.store.read(groups.address, CONTENT) if isinstance(groups, Ref) else None
    group = content.item if isinstance(content, Many) else None
    inner = ctx.store.read(group.address, CONTENT) if isinstance(group, Ref) else None
    held = inner.get(Const("params")) if isinstance(inner, Mapping) else None
    return held if isinstance(held, Ref) else None


_STATE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Adam", "AdamW"), ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")),
    **dict.fromkeys(("NAdam", "RAdam"), ("exp_avg", "exp_avg_sq")),
    "Adamax": ("exp_avg", "exp_inf"),
    "SGD": ("momentum_buffer",),
    "RMSprop": ("square_avg", "momentum_buffer", "grad_avg"),
    "Adagrad": ("sum",),
    "Adadelta": ("square_avg", "acc_delta"),
}
"""What optimizers keep for each parameter, of its dtype."""


def _keep_state(ctx: Context, optimizer: Value, site: object) -> None:
    """The state that the first step makes: like the parameters, as they are then."""
    if not isinstance(optimizer, Ref) or not isinstance(optimizer.address.kind, str):
        return
    names = _STATE.get(optimizer.address.kind.rpartition(".")[2])
    held = _held_parameters(ctx, optimizer)
    state = ctx.store.read(optimizer.address, "state")
    params = None if held is None else ctx.store.read(held.address, CONTENT)
    if names is None or not isinstance(state, Ref) or not isinstance(params, Many):
        return
    like = join_all(plain_tensors.plain(ctx, one) for one in choices(params.item))
    if not isinstance(like, Tensor):
        return
    buffer = Tensor(like.dtypes, like.symbol, like.rank, device=like.device)
    usual = default_dtypes(ctx)
    step = Tensor(usual if usual == frozenset({"float64"}) else frozenset({"float32"}), None, 0)
    items = ((Const("step"), step if usual <= {"float32", "float64"} and len(usual) == 1 else TOP),)
    content = Mapping((*items, *((Const(name), buffer) for name in names)), TOP)
    each = ctx.allocate((optimizer.address, "each"), "builtins.dict", content)
    ctx.store.write(state.address, CONTENT, Mapping((), each))


def _judge_step(ctx: Context, optimizer: Ref, node: ast.AST) -> None:
    dtype = training.low_precision_of(ctx, optimizer.address)
    is_scaled = ctx.store.read(optimizer.address, training.SCALED) == Const(True)
    has_float16 = is_scaled and training.has_float16_gradients(ctx, optimizer.address)
    if has_float16 and not scaling.unscales_itself(ctx, optimizer, node):
        if training.unscaling_is_replaced(ctx):
            return
        since = training.float16_since(ctx, optimizer.address)
        ctx.event("step of half parameters", NONE, optimizer, *since)
    elif dtype is not None:
        ctx.event("step in half", optimizer, Const(dtype), ctx.store.read(optimizer.address, _EPS) or TOP)


@model("torch.optim.Optimizer.step")
def _step(ctx: Context, arguments: Arguments) -> Value:
    if isinstance(arguments.args[0], Ref):
        scaling.plain_step(ctx, arguments.args[0])
        training.stepped(ctx, arguments.args[0].address)
        if ctx.recorder is not None:
            _judge_step(ctx, arguments.args[0], arguments.node)
    _keep_state(ctx, arguments.args[0], arguments.node)
    closure = arguments.get(1, "closure")
    if closure is not None and closure != Const(None):
        return ctx.semantics.call(ctx, closure, Arguments([], {}, True, arguments.node))
    return Const(None)


@model("torch.optim.Optimizer.zero_grad")
def _zero_grad(ctx: Context, arguments: Arguments) -> Value:
    scaling.cleared(ctx, arguments.args[0])
    return Const(None)


@model("torch.optim.Optimizer.load_state_dict")
def _nothing(ctx: Context, arguments: Arguments) -> Value:
    return Const(None)


_SCHEDULERS = (
    *(
        "StepLR",
        "MultiStepLR",
        "ConstantLR",
        "LinearLR",
        "ExponentialLR",
        "PolynomialLR",
        "CosineAnnealingLR",
        "CyclicLR",
    ),
    *("CosineAnnealingWarmRestarts", "ReduceLROnPlateau", "OneCycleLR", "SequentialLR", "ChainedScheduler", "LambdaLR"),
    "MultiplicativeLR",
)


def _scheduler(name: str) -> None:
    @model(f"torch.optim.lr_scheduler.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        made = ctx.allocate(arguments.node, f"torch.optim.lr_scheduler.{name}")
        ctx.store.write(made.address, "optimizer", arguments.get(0, "optimizer") or TOP)
        return made


for _name in (*_SCHEDULERS, "LRScheduler", "_LRScheduler"):
    _scheduler(_name)


@model("torch.optim.swa_utils.SWALR", "torch.optim.SWALR")
def _swa_scheduler(ctx: Context, arguments: Arguments) -> Value:
    return ctx.allocate(arguments.node, "torch.optim.lr_scheduler.LRScheduler")


@model(
    *(
        f"torch.optim.lr_scheduler.LRScheduler.{name}"
        for name in ("step", "get_last_lr", "get_lr", "state_dict", "load_state_dict", "print_lr")
    )
)
def _schedule(ctx: Context, arguments: Arguments) -> Value:
    return Many(NO_TENSOR)
