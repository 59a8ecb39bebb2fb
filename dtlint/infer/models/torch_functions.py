"""Functions of torch that are no ops: questions about dtypes and devices, settings, contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.dtypes.promotion import promote
from dtlint.infer.domain.interval import point
from dtlint.infer.domain.lattice import join_all
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
)
from dtlint.infer.models import plain_tensors, scaling
from dtlint.infer.models.casts import device_of, dtype_of
from dtlint.infer.models.ops import ask, default_dtypes
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
    "torch.nn.utils.parametrizations.spectral_norm",
    "torch.are_deterministic_algorithms_enabled",
    "torch.is_grad_enabled",
)
def _no_tensor(ctx: Context, arguments: Arguments) -> Value:
    return NO_TENSOR


@model("torch.jit.is_scripting", "torch.jit.is_tracing", "torch.compiler.is_compiling", "torch._dynamo.is_compiling")
def _never_here(ctx: Context, arguments: Arguments) -> Value:
    return Const(False)


@model("torch.compile", "torch.jit.script", "torch.jit.trace", "torch.nn.DataParallel", "torch.nn.utils.weight_norm")
def _same(ctx: Context, arguments: Arguments) -> Value:
    return arguments.args[0] if arguments.args else TOP


@model("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.get_total_norm")
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


@model("torch.nn.utils.parameters_to_vector", "torch.nn.utils.rnn.pad_sequence")
def _of_all(ctx: Context, arguments: Arguments) -> Value:
    first = arguments.args[0] if arguments.args else TOP
    items = ctx.semantics.items(ctx, first, arguments.node)
    held = items.items if isinstance(items, Tuple) else (items.item,) if isinstance(items, Many) else ()
    joined = join_all(plain_tensors.plain(ctx, one) for item in held for one in choices(item))
    return Tensor(joined.dtypes, joined.symbol, -1) if isinstance(joined, (Tensor, Unknown)) else Tensor()


@model("torch.einsum")
def _einsum(ctx: Context, arguments: Arguments) -> Value:
    """A product of its operands, all of one dtype."""
    operands = [plain_tensors.plain(ctx, value) for value in arguments.args[1:]]
    if len(operands) == 1 and not isinstance(operands[0], Tensor):
        items = ctx.semantics.items(ctx, operands[0], arguments.node)
        operands = [plain_tensors.plain(ctx, item) for item in items.items] if isinstance(items, Tuple) else []
    tensors = [one for one in operands if isinstance(one, Tensor)]
    if len(tensors) == 1 and len(operands) == 1:
        return Tensor(tensors[0].dtypes, tensors[0].symbol)
    if not tensors:
        return Tensor()
    best = [one for one in tensors if one.dtypes is not None or one.symbol is not None]
    if not best:
        return Tensor()
    pair = [Tensor(one.dtypes, one.symbol, 3) for one in (best[0], best[-1])]
    made = ask(ctx, "torch.bmm", pair, {})
    return Tensor(made.dtypes, made.symbol) if isinstance(made, Tensor) else Tensor()


@model("torch.cat", "torch.hstack", "torch.vstack", "torch.dstack", "torch.column_stack")
def _cat(ctx: Context, arguments: Arguments) -> Value:
    first = arguments.args[0] if arguments.args else arguments.keywords.get("tensors", TOP)
    items = ctx.semantics.items(ctx, first, arguments.node)
    last = "cat"
    if isinstance(items, Tuple):
        operands: list[Value] = [plain_tensors.plain(ctx, item) for item in items.items]
    elif isinstance(items, Many):
        item = plain_tensors.plain(ctx, items.item)
        operands = [item, item] if not isinstance(item, Tensor) or item.dtypes is None or len(item.dtypes) == 1 else []
    else:
        operands = []
    operands = [Tensor(one.dtypes, one.symbol) if isinstance(one, Unknown) else one for one in operands]
    if not operands or not all(isinstance(one, Tensor) for one in operands):
        return Tensor(None, None, -1)
    if len(operands) > 4:
        kinds = list(dict.fromkeys(Tensor(one.dtypes, one.symbol, -1) for one in operands if isinstance(one, Tensor)))
        operands = [*kinds[:6]] if len(kinds) > 1 else [kinds[0], kinds[0]]
    made = ask(ctx, f"torch.{last}", [Tuple(tuple(operands))], {})
    if isinstance(made, Tensor):
        ranks = [one.rank for one in operands if isinstance(one, Tensor)]
        rank = ranks[0] if len(set(ranks)) == 1 and ranks[0] not in (None, -1) else None
        return Tensor(made.dtypes, made.symbol, -1 if rank is None else rank, device=operands[0].device)  # type: ignore[attr-defined]
    return Tensor(None, None, -1)


@model("torch.stack")
def _stack(ctx: Context, arguments: Arguments) -> Value:
    made = _cat(ctx, arguments)
    assert isinstance(made, Tensor)
    return Tensor(made.dtypes, made.symbol, -1, made.range, made.device)


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


@model("torch.meshgrid", "torch.broadcast_tensors")
def _each(ctx: Context, arguments: Arguments) -> Value:
    given: list[Value] = [plain_tensors.plain(ctx, value) for value in arguments.args]
    if len(given) == 1 and not isinstance(given[0], Tensor):
        items = ctx.semantics.items(ctx, given[0], arguments.node)
        given = [plain_tensors.plain(ctx, one) for one in items.items] if isinstance(items, Tuple) else []
    return Tuple(tuple(Tensor(one.dtypes, one.symbol) if isinstance(one, Tensor) else Tensor() for one in given))
