"""Functions of torch that are no ops: questions about dtypes and devices, settings, contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.dtypes.promotion import promote
from dtlint.infer.domain.interval import point
from dtlint.infer.domain.lattice import category_of, join, join_all
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Const,
    Device,
    Dtype,
    External,
    Many,
    Number,
    Partial,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
    reshaped,
)
from dtlint.infer.models import plain_tensors, ranks, scaling, shapes
from dtlint.infer.models.casts import device_of, dtype_of
from dtlint.infer.models.handed_over import supposed
from dtlint.infer.models.ops import ask, default_dtypes
from dtlint.infer.models.ranges import elements, of_op
from dtlint.infer.models.registry import attribute, model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

_TRUTH = Number(Category.BOOL)


@model("torch.is_tensor")
def _is_tensor(ctx: Context, arguments: Arguments) -> Value:
    known = ctx.modules.is_instance(ctx, arguments.args[0], External("torch.Tensor")) if arguments.args else None
    return _TRUTH if known is None else Const(known)


@model("torch.device")
def _device(ctx: Context, arguments: Arguments) -> Value:
    return Device(device_of(arguments.args[0]) if arguments.args else None)


@model("torch.cuda.is_available", "torch.cuda.is_bf16_supported", "torch.backends.mps.is_available")
def _depends(ctx: Context, arguments: Arguments) -> Value:
    return _TRUTH


@model("torch.set_default_dtype", "torch.set_default_tensor_type")
def _set_default_dtype(ctx: Context, arguments: Arguments) -> Value:
    dtype = dtype_of(arguments.args[0] if arguments.args else arguments.keywords.get("d"))
    known = dtype.dtypes if dtype is not None else None
    if known is not None and len(known) == 1:
        ctx.set_ambient("default dtype", Const(next(iter(known))))
    else:
        ctx.set_ambient("default dtype", Dtype(known))
    return NONE


@model("torch.get_default_dtype")
def _get_default_dtype(ctx: Context, arguments: Arguments) -> Value:
    return Dtype(default_dtypes(ctx))


@model("torch.promote_types", "torch.result_type")
def _promote_types(ctx: Context, arguments: Arguments) -> Value:
    given = [plain_tensors.plain(ctx, value) for value in arguments.args]
    if all(isinstance(value, Dtype) for value in given) and len(given) == 2:
        one, other = (value.dtypes for value in given if isinstance(value, Dtype))
        if one is None or other is None:
            return Dtype()
        made = {promote(left, right) for left in one for right in other}
        return Dtype(frozenset(dtype for dtype in made if dtype is not None))
    result = ask(ctx, "torch.add", given, {})
    return Dtype(result.dtypes, result.symbol) if isinstance(result, Tensor) else Dtype()


def _limits(ctx: Context, arguments: Arguments) -> Value:
    dtype = dtype_of(arguments.args[0] if arguments.args else arguments.keywords.get("type"))
    if dtype is None and not arguments.args:
        dtype = Dtype(default_dtypes(ctx))
    return Partial(External("torch.finfo"), (Dtype() if dtype is None else dtype,))


@model("torch.finfo", "torch.iinfo")
def _finfo(ctx: Context, arguments: Arguments) -> Value:
    """The limits of a dtype: an object whose fields are numbers."""
    partial = _limits(ctx, arguments)
    assert isinstance(partial, Partial)
    dtype = partial.args[0]
    assert isinstance(dtype, Dtype)
    made = ctx.allocate(arguments.node, "torch.finfo")
    known = sorted(dtype.dtypes) if dtype.dtypes is not None else []
    for field in ("max", "min", "eps", "tiny", "smallest_normal", "resolution", "lowest"):
        name = {"smallest_normal": "tiny", "lowest": "min", "resolution": "eps"}.get(field, field)
        values: list[Value] = []
        for one in known:
            limit = getattr(DTYPES[one], name)
            whole = DTYPES[one].category is not Category.FLOAT
            values.append(Number(Category.INTEGER if whole else Category.FLOAT, point(float(limit))))
        ctx.store.overwrite(made.address, field, join_all(values) or Number(Category.FLOAT))
    ctx.store.overwrite(made.address, "bits", Number(Category.INTEGER))
    ctx.store.overwrite(made.address, "dtype", NO_TENSOR)
    return made


@attribute("torch.dtype.is_floating_point")
def _dtype_is_floating(ctx: Context, value: Value) -> Value:
    if isinstance(value, Dtype) and value.dtypes:
        answers = {DTYPES[one].category is Category.FLOAT for one in value.dtypes}
        if len(answers) == 1:
            return Const(answers.pop())
    return _TRUTH


@attribute("torch.dtype.is_complex")
def _dtype_is_complex(ctx: Context, value: Value) -> Value:
    if isinstance(value, Dtype) and value.dtypes:
        answers = {DTYPES[one].category is Category.COMPLEX for one in value.dtypes}
        if len(answers) == 1:
            return Const(answers.pop())
    return _TRUTH


@attribute("torch.dtype.itemsize")
def _itemsize(ctx: Context, value: Value) -> Value:
    return Number(Category.INTEGER)


@model(
    "torch.manual_seed",
    "torch.cuda.manual_seed",
    "torch.cuda.manual_seed_all",
    "torch.set_float32_matmul_precision",
    "torch.set_grad_enabled",
    "torch.no_grad",
    "torch.inference_mode",
    "torch.enable_grad",
    "torch.cuda.synchronize",
    "torch.cuda.empty_cache",
    "torch.set_num_threads",
    "torch.use_deterministic_algorithms",
    "torch.Generator",
    "torch.save",
    "torch.cuda.device_count",
    "torch.cuda.current_device",
    "torch.are_deterministic_algorithms_enabled",
    "torch.is_grad_enabled",
)
def _no_tensor(ctx: Context, arguments: Arguments) -> Value:
    return NO_TENSOR


@model("torch.jit.is_scripting", "torch.jit.is_tracing", "torch.compiler.is_compiling", "torch._dynamo.is_compiling")
def _never_here(ctx: Context, arguments: Arguments) -> Value:
    return Const(False)


@model("torch.compile", "torch.jit.script", "torch.jit.trace")
def _same(ctx: Context, arguments: Arguments) -> Value:
    return arguments.args[0] if arguments.args else TOP


@model("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_norm", "torch.nn.utils.get_total_norm")
def _clip_grad_norm(ctx: Context, arguments: Arguments) -> Value:
    scaling.clipped(ctx)
    first = arguments.args[0] if arguments.args else arguments.keywords.get("parameters", TOP)
    items = ctx.semantics.items(ctx, first, arguments.node)
    held = items.items if isinstance(items, Tuple) else (items.item,) if isinstance(items, Many) else ()
    values = [plain_tensors.plain(ctx, one) for item in held for one in choices(item)]
    dtypes: frozenset[str] = frozenset()
    for value in values:
        if not isinstance(value, Tensor) or value.dtypes is None:
            return Tensor(None, None, 0)
        dtypes |= value.dtypes
    return Tensor(dtypes if len(dtypes) == 1 else None, None, 0)


@model("torch.einsum")
def _einsum(ctx: Context, arguments: Arguments) -> Value:
    """A product of matrices, of one dtype, or one of numbers where no index is summed over."""
    operands = [plain_tensors.plain(ctx, value) for value in arguments.args[1:]]
    if len(operands) == 1 and not isinstance(operands[0], Tensor):
        items = ctx.semantics.items(ctx, operands[0], arguments.node)
        operands = [plain_tensors.plain(ctx, item) for item in items.items] if isinstance(items, Tuple) else []
    tensors = [one for one in operands if isinstance(one, Tensor)]
    if len(tensors) == 1 and len(operands) == 1:
        return _of_one_operand(ctx, arguments.args[0], tensors[0])
    if not tensors:
        return Tensor()
    best = [one for one in tensors if one.dtypes is not None or one.symbol is not None]
    if not best:
        return Tensor()
    pair = [Tensor(one.dtypes, one.symbol, 3) for one in (best[0], best[-1])]
    made = ask(ctx, "torch.bmm" if _contracts(arguments.args[0]) else "torch.mul", pair, {})
    return Tensor(made.dtypes, made.symbol) if isinstance(made, Tensor) else Tensor()


def _of_one_operand(ctx: Context, equation: Value, operand: Tensor) -> Value:
    """A sum over indices, which counts in int64 where the operand is integer or bool, or a view."""
    view = Tensor(operand.dtypes, operand.symbol)
    if not _contracts(equation):
        return view
    made = ask(ctx, "torch.sum", [operand], {})
    total = Tensor(made.dtypes, made.symbol) if isinstance(made, Tensor) else Tensor()
    return total if isinstance(equation, Const) else join(total, view)


@model("torch.nn.functional.scaled_dot_product_attention")
def _attention(ctx: Context, arguments: Arguments) -> Value:
    """Of the dtype of query, key and value: a mask is cast, or refused."""
    given = [arguments.get(place, name) for place, name in enumerate(("query", "key", "value"))]
    operands = [_not_none(plain_tensors.plain(ctx, TOP if one is None else one)) for one in given]
    known = [one for one in operands if isinstance(one, Tensor)]
    if not known:
        return TOP
    if len(known) < len(operands):
        return Tensor()
    made = ask(ctx, "torch.nn.functional.scaled_dot_product_attention", operands, {})
    return made if isinstance(made, Tensor) else Tensor()


def _contracts(equation: Value) -> bool:
    """Does an einsum sum over an index? One whose equation is not known does, most likely."""
    text = equation.value if isinstance(equation, Const) else None
    if not isinstance(text, str) or "->" not in text:
        return True
    indices, _, kept = text.partition("->")
    return any(name.isalpha() and name not in kept for name in indices)


def _not_none(value: Value) -> Value:
    """What a value is where None would raise."""
    return join_all(one for one in choices(value) if one != NONE) or value


_LISTED = ("cat", "stack", "hstack", "vstack", "row_stack", "dstack", "column_stack")


def _joining(name: str) -> None:
    @model(f"torch.{name}")
    def join_tensors(ctx: Context, arguments: Arguments) -> Value:
        return _in_one(ctx, f"torch.{name}", arguments)


for _name in _LISTED:
    _joining(_name)


def _in_one(ctx: Context, op: str, arguments: Arguments) -> Value:
    """Tensors as one: their dtypes promoted, as `cat` does it."""
    first = arguments.args[0] if arguments.args else arguments.keywords.get("tensors", TOP)
    items = ctx.semantics.items(ctx, first, arguments.node)
    if isinstance(items, Tuple):
        operands: list[Value] = [_not_none(plain_tensors.plain(ctx, item)) for item in items.items]
    elif isinstance(items, Many):
        item = _not_none(plain_tensors.plain(ctx, items.item))
        alike = not isinstance(item, Tensor) or item.dtypes is None or len(item.dtypes) == 1
        operands = [item, item] if alike else []
    else:
        operands = []
    tensors = [Tensor(one.dtypes, one.symbol) if isinstance(one, Unknown) else one for one in operands]
    known = [one for one in tensors if isinstance(one, Tensor)]
    if not known or len(known) < len(tensors):
        return Tensor(None, None, -1)
    listed = Tuple(tuple(known))
    rank = ranks.of_result(op, [listed], {})
    device = shapes.device_of_operands(known, {})
    if len(known) > 4:
        kinds = list(dict.fromkeys(Tensor(one.dtypes, reshaped(one.symbol), -1) for one in known))
        known = kinds[:6] if len(kinds) > 1 else [kinds[0], kinds[0]]
        if len(kinds) > 6:
            return Tensor(None, None, rank, device=device)
    elif op != "torch.cat":  # the others give dimensions to what has none first, or take operands of one shape
        known = [Tensor(one.dtypes, reshaped(one.symbol), -1) for one in known]
    made = ask(ctx, "torch.cat", [Tuple(tuple(known))], {})
    if isinstance(made, Tensor):
        return Tensor(made.dtypes, reshaped(made.symbol), rank, elements(listed), device)
    return Tensor(None, None, rank, device=device)


@model("torch.atleast_1d", "torch.atleast_2d", "torch.atleast_3d")
def _at_least(ctx: Context, arguments: Arguments) -> Value:
    """One tensor with more dimensions, or several."""
    given = [plain_tensors.plain(ctx, value) for value in arguments.args]
    if len(given) == 1 and isinstance(given[0], Tensor):
        return Tensor(given[0].dtypes, given[0].symbol, -1, given[0].range, given[0].device)
    items = ctx.semantics.items(ctx, given[0], arguments.node) if len(given) == 1 else Tuple(tuple(given))
    if not isinstance(items, Tuple) or not arguments.complete:
        return TOP
    tensors = [plain_tensors.plain(ctx, one) for one in items.items]
    return Tuple(
        tuple(Tensor(one.dtypes, reshaped(one.symbol), -1) if isinstance(one, Tensor) else TOP for one in tensors)
    )


@model("torch.autograd.grad")
def _grad(ctx: Context, arguments: Arguments) -> Value:
    inputs = arguments.get(1, "inputs")
    value = NONE if inputs is None else plain_tensors.plain(ctx, inputs)
    if isinstance(value, Tensor):
        return Tuple((value,))
    items = ctx.semantics.items(ctx, value, arguments.node)
    if isinstance(items, Tuple):
        return Tuple(tuple(plain_tensors.plain(ctx, item) for item in items.items))
    return Many(plain_tensors.plain(ctx, items.item)) if isinstance(items, Many) else TOP


@model("torch.load")
def _load(ctx: Context, arguments: Arguments) -> Value:
    return TOP


def _given_tensors(ctx: Context, arguments: Arguments) -> list[Value] | None:
    """The tensors of `f(a, b)` or `f([a, b])`; None where it is not known how many there are."""
    given: list[Value] = [plain_tensors.plain(ctx, value) for value in arguments.args]
    if len(given) == 1 and not isinstance(given[0], Tensor):
        items = ctx.semantics.items(ctx, given[0], arguments.node)
        if not isinstance(items, Tuple):
            return None
        given = [plain_tensors.plain(ctx, one) for one in items.items]
    return given if arguments.args and not isinstance(arguments.keywords.get("tensors"), Value) else None


@model("torch.meshgrid")
def _meshgrid(ctx: Context, arguments: Arguments) -> Value:
    given = _given_tensors(ctx, arguments)
    return TOP if given is None else _each_with_rank(given, len(given))


@model("torch.broadcast_tensors")
def _broadcast_tensors(ctx: Context, arguments: Arguments) -> Value:
    given = _given_tensors(ctx, arguments)
    if given is None:
        return TOP
    return _each_with_rank(given, ranks.broadcast([one.rank if isinstance(one, Tensor) else None for one in given]))


def _each_with_rank(given: list[Value], rank: int | None) -> Value:
    known = [one if isinstance(one, Tensor) else Tensor() for one in given]
    return Tuple(tuple(Tensor(one.dtypes, reshaped(one.symbol), rank, one.range, one.device) for one in known))


_INDICES = frozenset({"int64"})


@model("torch.nonzero", "torch.Tensor.nonzero")
def _nonzero(ctx: Context, arguments: Arguments) -> Value:
    asked = arguments.get(1, "as_tuple")
    value = plain_tensors.plain(ctx, arguments.args[0]) if arguments.args else TOP
    if not isinstance(value, Tensor):
        return Unknown(_INDICES)
    if asked is None or asked == Const(False):
        return Tensor(_INDICES, None, 2, device=value.device)
    return Many(Tensor(_INDICES, None, 1, device=value.device)) if asked == Const(True) else TOP


@model("torch.unique", "torch.Tensor.unique", "torch.unique_consecutive", "torch.Tensor.unique_consecutive")
def _unique(ctx: Context, arguments: Arguments) -> Value:
    """The values, and with them indices and counts where they are asked for."""
    value = plain_tensors.plain(ctx, arguments.args[0]) if arguments.args else arguments.keywords.get("input", TOP)
    if not isinstance(value, Tensor) or not arguments.complete or len(arguments.args) > 2:
        return TOP
    rank = 1 if arguments.keywords.get("dim") in (None, NONE) else value.rank
    values = Tensor(value.dtypes, reshaped(value.symbol), rank, value.range, value.device)
    asked = [arguments.keywords.get(name, Const(False)) for name in ("return_inverse", "return_counts")]
    if any(one not in (Const(False), Const(True)) for one in asked):
        return TOP
    more = sum(one == Const(True) for one in asked)
    indices = Tensor(_INDICES, None, None, device=value.device)
    return Tuple((values, *[indices] * more)) if more else values


@model("torch.quantile", "torch.Tensor.quantile", "torch.nanquantile", "torch.Tensor.nanquantile")
def _quantile(ctx: Context, arguments: Arguments) -> Value:
    """Of the input's dtype: `q` has the same, or the call raises."""
    args = [plain_tensors.plain(ctx, value) for value in arguments.args]
    if not args or not isinstance(args[0], Tensor):
        return TOP
    first = args[0]
    rank = ranks.of_result("torch.quantile", args, arguments.keywords) if arguments.complete else None
    return Tensor(first.dtypes, reshaped(first.symbol), rank, first.range, first.device)


@model("torch.nn.functional.embedding")
def _embedding(ctx: Context, arguments: Arguments) -> Value:
    """Rows of the weight, of its dtype whatever the region."""
    index, weight = (arguments.get(place, name) for place, name in enumerate(("input", "weight")))
    plain = TOP if weight is None else plain_tensors.plain(ctx, weight)
    if not isinstance(plain, (Tensor, Unknown)):
        return Tensor(None, None, -1)
    rows = TOP if index is None else plain_tensors.plain(ctx, index)
    rank = rows.rank + 1 if isinstance(rows, Tensor) and rows.rank is not None and rows.rank >= 0 else -1
    return Tensor(
        plain.dtypes, reshaped(plain.symbol), rank, device=plain.device if isinstance(plain, Tensor) else None
    )


@model("torch.nn.functional.affine_grid", "torch.nn.functional.fold", "torch.nn.functional.pixel_shuffle")
def _of_input(ctx: Context, arguments: Arguments) -> Value:
    value = TOP if not arguments.args else plain_tensors.plain(ctx, arguments.args[0])
    if isinstance(value, Tensor) and ctx.ambient("region") == NONE:
        return Tensor(value.dtypes, reshaped(value.symbol), -1, device=value.device)
    return Tensor(None, None, -1)


@model("torch.nn.functional.triplet_margin_loss", "torch.nn.TripletMarginLoss.__call__")
def _triplet(ctx: Context, arguments: Arguments) -> Value:
    """Of the dtype of all three, where that is one and no region has to do with it."""
    given = [value for value in (plain_tensors.plain(ctx, one) for one in arguments.args) if isinstance(value, Tensor)]
    alike = {(one.dtypes, one.symbol) for one in given}
    plain = (
        len(alike) == 1
        and len(given) == 3
        and (ctx.ambient("region") == NONE or given[0].dtypes == frozenset({"float32"}))
    )
    return Tensor(given[0].dtypes, given[0].symbol) if plain else Tensor()


@model("torch.vander", "torch.block_diag", "torch.cartesian_prod", "torch.chain_matmul", "torch.linalg.multi_dot")
def _promoted_together(ctx: Context, arguments: Arguments) -> Value:
    given = _given_tensors(ctx, arguments)
    alike = {(one.dtypes, one.symbol) if isinstance(one, Tensor) else None for one in given or ()}
    if len(alike) != 1 or None in alike or ctx.ambient("region") != NONE or not isinstance((given or [TOP])[0], Tensor):
        return Tensor()
    one = (given or [])[0]
    return Tensor(one.dtypes, one.symbol) if isinstance(one, Tensor) else Tensor()


@model("torch.set_default_device")
def _set_default_device(ctx: Context, arguments: Arguments) -> Value:
    given = arguments.args[0] if arguments.args else NONE
    ctx.set_ambient("default device", Device("cpu" if given == NONE else device_of(given)))
    return NONE


def _clamping(name: str) -> None:
    @model(f"torch.{name}", f"torch.Tensor.{name}")
    def clamp(ctx: Context, arguments: Arguments) -> Value:
        return _clamped(ctx, f"torch.{name}", arguments)


for _name in ("clamp", "clamp_min", "clamp_max"):
    _clamping(_name)


def _clamped(ctx: Context, op: str, arguments: Arguments) -> Value:
    """Between two bounds: numbers, which promote the input as they do in a sum, or tensors."""
    given = [plain_tensors.plain(ctx, value) for value in arguments.args]
    named = {name: plain_tensors.plain(ctx, value) for name, value in arguments.keywords.items() if name != "out"}
    value = given[0] if given else named.get("input", TOP)
    bounds = [one for one in (*given[1:], *(named[name] for name in ("min", "max") if name in named)) if one != NONE]
    if not isinstance(value, Tensor) or not arguments.complete or "out" in arguments.keywords:
        return TOP
    if any(category_of(one) is not None for one in bounds):  # beside a number a tensor of no dimensions counts as one
        bounds = [_as_number(one) if isinstance(one, Tensor) else one for one in bounds]
    result = value
    for bound in bounds:
        if isinstance(bound, Unknown) and bound != NO_TENSOR and supposed(ctx):
            continue
        if isinstance(bound, Unknown) and bound != NO_TENSOR:
            return Tensor(None, None, -1 if value.rank not in (None, 0) else None)
        recorder, ctx.recorder = ctx.recorder, None  # nothing is added
        try:
            made = ask(ctx, "torch.add", [result, bound], {})
        finally:
            ctx.recorder = recorder
        if not isinstance(made, Tensor):
            return Tensor()
        result = made
    if any(isinstance(bound, Tensor) for bound in bounds) and ctx.ambient("region") != NONE:
        alike = all(not isinstance(one, Tensor) or one.dtypes == value.dtypes for one in bounds)
        result = result if alike else Tensor(None, None, result.rank)
    rank = ranks.broadcast([one.rank for one in (value, *bounds) if isinstance(one, Tensor)])
    return Tensor(result.dtypes, reshaped(result.symbol), rank, of_op(op, [value, *given[1:]], named), value.device)


def _as_number(value: Tensor) -> Value:
    kinds = {DTYPES[dtype].category for dtype in value.dtypes or ()}
    return Number(kinds.pop()) if len(kinds) == 1 else TOP


@model("torch.nn.functional.softplus")
def _softplus(ctx: Context, arguments: Arguments) -> Value:
    """As the layer: its numbers change no dtype."""
    value = arguments.get(0, "input")
    given = TOP if value is None else plain_tensors.plain(ctx, value)
    if not isinstance(given, Tensor):
        return (
            Unknown(given.dtypes, given.symbol) if isinstance(given, Unknown) and ctx.ambient("region") == NONE else TOP
        )
    return ask(ctx, "torch.nn.Softplus", [NONE, given], {}) or Tensor()
