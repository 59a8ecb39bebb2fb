"""Attributes of tensors, and methods of theirs that are no ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, REAL_PARTS, Category
from dtlint.infer.context import Arguments, NeverReturns
from dtlint.infer.domain.interval import ANY, Range, point
from dtlint.infer.domain.values import (
    NO_TENSOR,
    TOP,
    Array,
    Const,
    Device,
    Dtype,
    Many,
    Number,
    Tensor,
    Tuple,
    Unknown,
    Value,
    reshaped,
)
from dtlint.infer.models import mutation, plain_tensors, ranges, ranks
from dtlint.infer.models.ranges import elements
from dtlint.infer.models.registry import attribute, model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.context import Context

_SIZE = Number(Category.INTEGER, Range(0.0, float("inf"), True, False, False))


@attribute("torch.Tensor.dtype")
def _dtype(ctx: Context, value: Value) -> Value:
    if isinstance(value, (Tensor, Unknown)):
        return Dtype(value.dtypes or None, reshaped(value.symbol))
    return TOP


@attribute("torch.Tensor.device")
def _device(ctx: Context, value: Value) -> Value:
    return Device(value.device if isinstance(value, Tensor) else None)


@attribute("torch.device.type")
def _device_type(ctx: Context, value: Value) -> Value:
    if isinstance(value, Device) and value.type is not None:
        return Const(value.type)
    return NO_TENSOR


@attribute("torch.Tensor.shape")
def _shape(ctx: Context, value: Value) -> Value:
    if not isinstance(value, Tensor):
        return Many(_SIZE)
    if value.rank is not None and value.rank >= 0:
        return Tuple((_SIZE,) * value.rank)
    return Many(_SIZE)


@model("torch.Tensor.size")
def _size(ctx: Context, arguments: Arguments) -> Value:
    if len(arguments.args) > 1 or arguments.keywords:
        return _SIZE
    return _shape(ctx, plain_tensors.plain(ctx, arguments.args[0])) if _is_tensor(ctx, arguments) else Many(_SIZE)


def _is_tensor(ctx: Context, arguments: Arguments) -> bool:
    return isinstance(plain_tensors.plain(ctx, arguments.args[0]), Tensor)


@attribute("torch.Tensor.ndim")
def _ndim(ctx: Context, value: Value) -> Value:
    rank = value.rank if isinstance(value, Tensor) else None
    return Const(rank) if rank is not None and rank >= 0 else _SIZE


@model("torch.Tensor.dim", "torch.Tensor.ndimension")
def _dim(ctx: Context, arguments: Arguments) -> Value:
    return _ndim(ctx, plain_tensors.plain(ctx, arguments.args[0]))


@model("torch.Tensor.numel", "torch.Tensor.nelement", "torch.Tensor.element_size", "torch.Tensor.stride", "torch.numel")
def _count(ctx: Context, arguments: Arguments) -> Value:
    return _SIZE


def _same(ctx: Context, value: Value) -> Value:
    return value


for _name in ("data", "T", "mT", "H", "mH"):
    attribute(f"torch.Tensor.{_name}")(_same)


@attribute("torch.Tensor.grad")
def _grad(ctx: Context, value: Value) -> Value:
    if isinstance(value, Tensor):
        return Tensor(value.dtypes, value.symbol, value.rank, device=value.device)
    return value


@attribute("torch.Tensor.real", "torch.Tensor.imag")
def _real(ctx: Context, value: Value) -> Value:
    if isinstance(value, Tensor) and value.dtypes is not None:
        parts = frozenset(REAL_PARTS.get(dtype, dtype) for dtype in value.dtypes)
        return Tensor(parts, None, value.rank, device=value.device)
    return Tensor(rank=value.rank if isinstance(value, Tensor) else None)


@attribute("torch.Tensor.is_cuda")
def _is_cuda(ctx: Context, value: Value) -> Value:
    known = value.device if isinstance(value, Tensor) else None
    if known is None or (known == "cpu" and ctx.ambient("region") == TOP):  # who calls may have set a default device
        return Number(Category.BOOL)
    return Const(known == "cuda")


for _name in ("requires_grad", "is_leaf", "is_sparse", "is_quantized", "is_meta"):

    @attribute(f"torch.Tensor.{_name}")
    def _flag(ctx: Context, value: Value) -> Value:
        return Number(Category.BOOL)


@model("torch.Tensor.is_contiguous", "torch.Tensor.is_pinned", "torch.equal", "torch.allclose", "torch.Tensor.equal")
def _truth(ctx: Context, arguments: Arguments) -> Value:
    return Number(Category.BOOL)


@model("torch.Tensor.is_floating_point", "torch.is_floating_point")
def _is_floating_point(ctx: Context, arguments: Arguments) -> Value:
    return _of_category(ctx, arguments, Category.FLOAT)


@model("torch.Tensor.is_complex", "torch.is_complex")
def _is_complex(ctx: Context, arguments: Arguments) -> Value:
    return _of_category(ctx, arguments, Category.COMPLEX)


def _of_category(ctx: Context, arguments: Arguments, category: Category) -> Value:
    value = plain_tensors.plain(ctx, arguments.args[0]) if arguments.args else TOP
    dtypes = value.dtypes if isinstance(value, Tensor) else None
    answers = None if not dtypes else {DTYPES[dtype].category is category for dtype in dtypes}
    return Const(answers.pop()) if answers is not None and len(answers) == 1 else Number(Category.BOOL)


@model("torch.Tensor.item")
def _item(ctx: Context, arguments: Arguments) -> Value:
    value = plain_tensors.plain(ctx, arguments.args[0])
    if isinstance(value, Tensor) and value.dtypes is not None:
        categories = {DTYPES[dtype].category for dtype in value.dtypes}
        if len(categories) == 1:
            return Number(categories.pop(), value.range)
    return NO_TENSOR


@model("torch.Tensor.tolist")
def _tolist(ctx: Context, arguments: Arguments) -> Value:
    return Many(NO_TENSOR)


@model("torch.Tensor.numpy")
def _numpy(ctx: Context, arguments: Arguments) -> Value:
    value = plain_tensors.plain(ctx, arguments.args[0])
    return Array(value.dtypes if isinstance(value, Tensor) else None, False)


@model(
    "torch.Tensor.retain_grad",
    "torch.Tensor.data_ptr",
    "torch.Tensor.get_device",
    "torch.Tensor.storage",
    "torch.Tensor.untyped_storage",
    "torch.autograd.backward",
)
def _nothing(ctx: Context, arguments: Arguments) -> Value:
    return NO_TENSOR


@model("torch.Tensor.register_hook", "torch.Tensor.register_post_accumulate_grad_hook")
def _hooked(ctx: Context, arguments: Arguments) -> Value:
    """A hook on the gradient runs in some backward, and again: what it changes is changed perhaps, from here on."""
    hook, store = arguments.get(1, "hook") or TOP, ctx.store
    gradient = plain_tensors.plain(ctx, arguments.args[0])
    for _ in range(2):
        mark = store.mark()
        try:
            ctx.semantics.call(ctx, hook, Arguments([gradient], {}, True, arguments.node))
        except NeverReturns:
            store.undo(mark)
        store.merge([{}, store.take(mark)])
    return NO_TENSOR


_KEPT = (
    *("detach", "clone", "contiguous", "requires_grad_", "detach_", "zero_", "fill_", "normal_", "uniform_", "copy_"),
    *("masked_fill_", "clamp_", "add_", "sub_", "mul_", "div_", "sqrt_", "exp_", "neg_", "abs_", "clamp_min_", "relu_"),
    *("addcmul_", "addcdiv_", "lerp_", "pow_", "scatter_", "scatter_add_", "index_add_", "index_copy_", "index_fill_"),
    *("trunc_normal_", "bernoulli_", "random_", "exponential_", "log_", "floor_", "ceil_", "round_", "sigmoid_"),
    *("tanh_", "set_", "resize_", "squeeze_", "unsqueeze_", "transpose_", "t_", "index_put_", "clip_", "clamp_max_"),
    *("masked_scatter_", "erfinv_", "nan_to_num_", "rsqrt_", "geometric_", "cauchy_", "log_normal_"),
)


def _keeping(name: str) -> None:
    in_place = name.endswith("_") and name not in ("requires_grad_", "detach_")

    @model(f"torch.Tensor.{name}")
    def keep(ctx: Context, arguments: Arguments) -> Value:
        receiver = arguments.args[0]
        value = plain_tensors.plain(ctx, receiver)
        if not isinstance(value, Tensor):
            return value if isinstance(value, Unknown) else TOP
        if not in_place:
            return receiver if name == "requires_grad_" and plain_tensors.is_weight(receiver) else value
        args = _listed(ctx, [value, *(plain_tensors.plain(ctx, one) for one in arguments.args[1:])])
        rank = ranks.of_result(f"torch.Tensor.{name}", args, arguments.keywords) if arguments.complete else None
        values = _written(name, value, args, arguments)
        symbol = reshaped(value.symbol) if rank != value.rank else value.symbol
        made = Tensor(value.dtypes, symbol, rank, values, value.device)
        if plain_tensors.is_weight(receiver):
            return receiver
        mutation.elements_became(ctx, value, values)
        if rank != value.rank:
            mutation.became(ctx, value, made)
        return made


def _written(name: str, value: Tensor, args: Sequence[Value], arguments: Arguments) -> Range:
    """The elements behind an op in place."""
    if name in _REARRANGING:
        return value.range
    if name == "zero_":
        return point(0.0)
    if name in ("fill_", "masked_fill_", "copy_", "index_fill_") and len(args) > 1:
        filled = elements(args[-1]) if name != "copy_" else elements(args[1])
        return filled if name in ("fill_", "copy_") else value.range.join(filled)
    bounded = name[:-1] in _BOUNDED and not arguments.keywords
    return ranges.range_of(name[:-1], args, {}) if bounded else ANY


_REARRANGING = frozenset({"squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_"})
_BOUNDED = frozenset(
    {"clamp", "clamp_min", "clamp_max", "relu", "sigmoid", "tanh", "exp", "sqrt", "abs", "neg", "mul", "add"}
)


for _name in _KEPT:
    _keeping(_name)

_MOVING = (
    *("view", "reshape", "expand", "repeat", "permute", "transpose", "flatten", "unflatten", "unsqueeze", "expand_as"),
    *(
        "reshape_as",
        "view_as",
        "movedim",
        "swapaxes",
        "swapdims",
        "tile",
        "roll",
        "flip",
        "narrow",
        "index_select",
        "t",
    ),
    *(
        "tril",
        "triu",
        "gather",
        "take_along_dim",
        "unfold",
        "select",
        "diagonal",
        "adjoint",
        "squeeze",
        "masked_select",
    ),
    *("repeat_interleave", "masked_fill", "index_fill", "scatter", "moveaxis", "ravel", "fliplr", "flipud", "rot90"),
)


def _moving(name: str) -> None:
    from dtlint.infer.models.shapes import with_shape

    @model(f"torch.Tensor.{name}", f"torch.{name}")
    def move(ctx: Context, arguments: Arguments) -> Value:
        value = plain_tensors.plain(ctx, arguments.args[0]) if arguments.args else arguments.keywords.get("input", TOP)
        if isinstance(value, Unknown):
            return Unknown(value.dtypes, reshaped(value.symbol))
        if not isinstance(value, Tensor):
            return TOP
        given = arguments.args[1] if len(arguments.args) > 1 else arguments.keywords.get("dtype")
        if name == "view" and isinstance(given, Dtype):
            return Tensor(given.dtypes, given.symbol, value.rank, device=value.device)
        if name == "view" and isinstance(given, Unknown) and given.dtypes is None and _may_be_bytes(value):
            return Tensor(None, None, value.rank, device=value.device)  # it may be a dtype that they are read as
        args = [plain_tensors.plain(ctx, one) for one in arguments.args]
        made = Tensor(value.dtypes, value.symbol)
        if not arguments.complete:
            return Tensor(value.dtypes, reshaped(value.symbol), None, value.range, value.device)
        return with_shape(f"torch.Tensor.{name}", made, _listed(ctx, args), arguments.keywords)


def _may_be_bytes(value: Tensor) -> bool:
    """Does a tensor hold whole numbers, which may be the bytes of others?"""
    return value.dtypes is not None and any(DTYPES[one].category is Category.INTEGER for one in value.dtypes)


def _listed(ctx: Context, args: list[Value]) -> list[Value]:
    """Arguments, with lists as what they hold."""
    from dtlint.infer.domain.values import Ref
    from dtlint.infer.state import CONTENT

    return [(ctx.store.read(one.address, CONTENT) or one) if isinstance(one, Ref) else one for one in args]


for _name in _MOVING:
    _moving(_name)


def _splitting(name: str) -> None:
    @model(f"torch.Tensor.{name}", f"torch.{name}")
    def split(ctx: Context, arguments: Arguments) -> Value:
        value = plain_tensors.plain(ctx, arguments.args[0]) if arguments.args else TOP
        if isinstance(value, Unknown):
            value = Tensor(value.dtypes, value.symbol)
        if not isinstance(value, Tensor):
            return TOP
        rank = value.rank
        if name == "unbind" and rank is not None:
            rank = rank - 1 if rank > 0 else None
        part = Tensor(value.dtypes, reshaped(value.symbol), rank, value.range, value.device)
        count = arguments.get(1, "chunks" if name == "chunk" else "split_size_or_sections")
        if name == "chunk" and isinstance(count, Const) and type(count.value) is int and 0 < count.value < 9:
            return Tuple((part,) * count.value)
        if name == "split" and count is not None:
            sizes = _listed(ctx, [count])[0]
            if isinstance(sizes, Tuple):
                return Tuple((part,) * len(sizes.items))
        return Many(part)


for _name in ("split", "chunk", "unbind", "tensor_split", "hsplit", "vsplit", "dsplit", "split_with_sizes"):
    _splitting(_name)
