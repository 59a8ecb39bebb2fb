"""Functions of the program that torch runs: under checkpoints, with operands cast, vectorised and differentiated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.infer.context import Arguments
from dtlint.infer.domain.values import (
    NONE,
    TOP,
    Const,
    External,
    Partial,
    Region,
    Tensor,
    Tuple,
    Unknown,
    Value,
    reshaped,
)
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.casts import dtype_of
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Context

# -- torch.amp.custom_fwd ------------------------------------------------------------------------------------------------


@model("torch.amp.custom_fwd", "torch.cuda.amp.custom_fwd")
def _custom_fwd(ctx: Context, arguments: Arguments) -> Value:
    """A decorator that, in autocast, turns it off and casts the operands, if it is told to what."""
    cast = arguments.keywords.get("cast_inputs", NONE)
    if not arguments.args:
        return Partial(External("torch.amp.custom_fwd"), (), (("cast_inputs", cast),))
    function = arguments.args[0]
    return function if cast == NONE else Partial(External("torch.amp.custom_fwd.__call__"), (function, cast))


@model("torch.amp.custom_bwd", "torch.cuda.amp.custom_bwd")
def _custom_bwd(ctx: Context, arguments: Arguments) -> Value:
    return arguments.args[0] if arguments.args else Partial(External("torch.amp.custom_bwd"))


@model("torch.amp.custom_fwd.__call__")
def _call_custom_fwd(ctx: Context, arguments: Arguments) -> Value:
    function, cast = arguments.args[:2]
    given = Arguments(arguments.args[2:], arguments.keywords, arguments.complete, arguments.node)
    around = ctx.ambient("region")
    if around == NONE or (isinstance(around, Region) and around.enabled is False):
        return ctx.semantics.call(ctx, function, given)
    certain = isinstance(around, Region) and around.enabled is True
    dtype = dtype_of(cast)
    args = [_as_cast(plain_tensors.plain(ctx, one), dtype.dtypes if dtype and certain else None) for one in given.args]
    opened = ctx.ambient("opened")
    ctx.set_ambient("region", NONE if certain else TOP)
    ctx.set_ambient("opened", NONE)
    try:
        return ctx.semantics.call(ctx, function, Arguments(args, given.keywords, given.complete, given.node))
    finally:
        ctx.set_ambient("region", around)
        ctx.set_ambient("opened", opened)


def _as_cast(value: Value, dtypes: frozenset[str] | None) -> Value:
    """A floating operand in another dtype; float64 stays, and what is on another device."""
    if not isinstance(value, Tensor):
        return TOP if isinstance(value, Unknown) else value
    if value.dtypes is not None and not any(DTYPES[one].category is Category.FLOAT for one in value.dtypes):
        return value
    known = dtypes if value.dtypes is not None and value.device == "cuda" and "float64" not in value.dtypes else None
    return Tensor(known, None, value.rank, value.range, value.device)


# -- checkpoints ---------------------------------------------------------------------------------------------------------

_OF_CHECKPOINT = frozenset(
    {"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"}
)


@model("torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint")
def _checkpoint(ctx: Context, arguments: Arguments) -> Value:
    """Calls the function."""
    if not arguments.args:
        return TOP
    keywords = {name: value for name, value in arguments.keywords.items() if name not in _OF_CHECKPOINT}
    given = Arguments(arguments.args[1:], keywords, arguments.complete, arguments.node)
    return ctx.semantics.call(ctx, arguments.args[0], given)


@model("torch.utils.checkpoint.checkpoint_sequential")
def _checkpoint_sequential(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.get(2, "input")
    functions = ctx.semantics.items(ctx, arguments.args[0], arguments.node) if arguments.args else TOP
    if value is None or not isinstance(functions, Tuple):
        return TOP
    for place, function in enumerate(functions.items):
        value = ctx.semantics.call(ctx, function, Arguments([value], {}, True, (arguments.node, place)))
    return value


# -- torch.func ----------------------------------------------------------------------------------------------------------

_TRANSFORMS = ("vmap", "grad", "value_and_grad", "grad_and_value", "jacrev", "jacfwd", "hessian")


def _transform(name: str) -> None:
    @model(f"torch.func.{name}", *(["torch.vmap"] if name == "vmap" else []))
    def make(ctx: Context, arguments: Arguments) -> Value:
        function = arguments.get(0, "func")
        if function is None:
            return TOP
        plainly = len(arguments.args) == 1 and not set(arguments.keywords) - {"func", "randomness", "chunk_size"}
        keywords = tuple((key, value) for key, value in arguments.keywords.items() if key in ("in_dims", "has_aux"))
        settled = Tuple((function, Const(plainly), *(Tuple((Const(key), value)) for key, value in keywords)))
        return Partial(External(f"torch.func.{name}.__call__"), (settled,))


for _name in _TRANSFORMS:
    _transform(_name)


@model("torch.func.vmap.__call__")
def _call_vmap(ctx: Context, arguments: Arguments) -> Value:
    """The function sees each tensor with a dimension less, and the results get one more."""
    settled = arguments.args[0]
    assert isinstance(settled, Tuple)
    plainly = settled.items[1] == Const(True)
    args = [_with_rank(plain_tensors.plain(ctx, one), plainly) for one in arguments.args[1:]]
    made = ctx.semantics.call(
        ctx, settled.items[0], Arguments(args, arguments.keywords, arguments.complete, arguments.node)
    )
    return _with_dimensions(plain_tensors.plain(ctx, made))


def _with_rank(value: Value, one_less: bool) -> Value:
    if isinstance(value, Tensor):
        rank = value.rank - 1 if one_less and value.rank is not None and value.rank > 0 else None
        return Tensor(value.dtypes, reshaped(value.symbol), rank, value.range, value.device)
    return (
        Tuple(tuple(_with_rank(item, one_less) for item in value.items), value.names)
        if isinstance(value, Tuple)
        else value
    )


def _with_dimensions(value: Value) -> Value:
    if isinstance(value, Tensor):
        return Tensor(value.dtypes, reshaped(value.symbol), -1, value.range, value.device)
    return Tuple(tuple(map(_with_dimensions, value.items)), value.names) if isinstance(value, Tuple) else value


def _derivative(ctx: Context, arguments: Arguments) -> tuple[Value, Value]:
    """The derivative by the first argument, and the function's value."""
    settled = arguments.args[0]
    assert isinstance(settled, Tuple)
    given = Arguments(arguments.args[1:], arguments.keywords, arguments.complete, arguments.node)
    value = plain_tensors.plain(ctx, ctx.semantics.call(ctx, settled.items[0], given))
    first = plain_tensors.plain(ctx, given.args[0]) if given.args else TOP
    if settled.items[1] != Const(True) or not isinstance(first, Tensor):
        return TOP, TOP
    return Tensor(first.dtypes, first.symbol, first.rank, device=first.device), value


@model("torch.func.grad.__call__")
def _call_grad(ctx: Context, arguments: Arguments) -> Value:
    return _derivative(ctx, arguments)[0]


@model("torch.func.value_and_grad.__call__", "torch.func.grad_and_value.__call__")
def _call_grad_and_value(ctx: Context, arguments: Arguments) -> Value:
    return Tuple(_derivative(ctx, arguments))


@model("torch.func.jacrev.__call__", "torch.func.jacfwd.__call__", "torch.func.hessian.__call__")
def _call_jacobian(ctx: Context, arguments: Arguments) -> Value:
    grad, value = _derivative(ctx, arguments)
    alike = isinstance(grad, Tensor) and isinstance(value, Tensor) and grad.dtypes == value.dtypes
    return Tensor(grad.dtypes, grad.symbol) if alike and isinstance(grad, Tensor) else TOP


@model("torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
def _functional_call(ctx: Context, arguments: Arguments) -> Value:
    """The module with other weights; where these are of its own weights' dtypes, that is the module."""
    from dtlint.infer.models.mappings import content_of_mapping
    from dtlint.infer.models.module_trees import weights_within

    module, weights, args = (
        arguments.get(0, "module"),
        arguments.get(1, "parameter_and_buffer_dicts"),
        arguments.get(2, "args"),
    )
    content = None if weights is None else content_of_mapping(ctx, weights)
    if module is None or content is None or args is None:
        return TOP
    found = [plain_tensors.plain(ctx, value) for _, value in content.items]
    found += [] if content.rest is None else [plain_tensors.plain(ctx, content.rest)]
    own = [ctx.store.read(address, "*") for address in weights_within(ctx, module)]
    dtypes = {one.dtypes if isinstance(one, Tensor) else None for one in (*found, *own)}
    if len(dtypes) != 1 or None in dtypes:
        return TOP
    given = list(args.items) if isinstance(args, Tuple) else [args]
    return ctx.semantics.call(ctx, module, Arguments(given, {}, "kwargs" not in arguments.keywords, arguments.node))


@model("torch.autograd.functional.jacobian", "torch.autograd.functional.hessian")
def _jacobian(ctx: Context, arguments: Arguments) -> Value:
    function, inputs = arguments.get(0, "func"), arguments.get(1, "inputs")
    if function is None or inputs is None:
        return TOP
    given = list(inputs.items) if isinstance(inputs, Tuple) else [inputs]
    value = plain_tensors.plain(ctx, ctx.semantics.call(ctx, function, Arguments(given, {}, True, arguments.node)))
    first = plain_tensors.plain(ctx, inputs)
    alike = isinstance(first, Tensor) and isinstance(value, Tensor) and first.dtypes == value.dtypes
    return Tensor(first.dtypes, first.symbol) if alike and isinstance(first, Tensor) else TOP
