"""Casts: of tensors, and of modules, whose weights are cast in place, those of all modules within included."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import ALIASES, COMPLEX, DTYPES, FLOATING, LEGACY_TENSORS, Category, named
from dtlint.infer.domain.interval import ANY
from dtlint.infer.domain.lattice import category_of, join
from dtlint.infer.domain.values import (
    TOP,
    Const,
    Device,
    Dtype,
    External,
    Number,
    Ref,
    Tensor,
    Union,
    Unknown,
    Value,
    choices,
    reshaped,
)
from dtlint.infer.models import plain_tensors, training
from dtlint.infer.models.module_trees import weights_perhaps_within, weights_within
from dtlint.infer.models.ranges import as_whole_numbers
from dtlint.infer.models.registry import model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context
    from dtlint.infer.domain.values import Address

__all__ = ["cast_module", "device_of", "dtype_of"]

_FLOAT16 = frozenset({"float16"})
_FLOATING = FLOATING | COMPLEX | {name for name in DTYPES if name.startswith("float8")}
_METHODS = {
    **{name: ALIASES.get(name, name) for name in ("half", "float", "double", "bfloat16", "chalf", "cfloat", "cdouble")},
    **{name: ALIASES.get(name, name) for name in ("int", "long", "short", "char", "byte", "bool")},
}


def dtype_of(value: Value | None) -> Dtype | None:
    """The dtype that an argument names; None where it is none, or not known to be one."""
    if isinstance(value, Dtype):
        return value
    if isinstance(value, External):
        package, _, last = value.name.rpartition(".")
        if package in ("torch", "torch.cuda") and last in LEGACY_TENSORS:
            return Dtype(frozenset({LEGACY_TENSORS[last]}))
        if value.name in _PYTHON:
            return Dtype(frozenset({_PYTHON[value.name]}))
    if isinstance(value, Const) and isinstance(value.value, str):
        last = value.value.rpartition(".")[2]
        if last in LEGACY_TENSORS:
            return Dtype(frozenset({LEGACY_TENSORS[last]}))
        known = named(last) if value.value.startswith("torch.") else None
        return None if known is None else Dtype(frozenset({known}))
    return None


_PYTHON = {
    "builtins.float": "float64",
    "builtins.int": "int64",
    "builtins.bool": "bool",
    "builtins.complex": "complex128",
}
"""Python's types as dtypes: `torch.zeros(3, dtype=float)` is float64."""


def device_of(value: Value | None) -> str | None:
    """The type of the device that an argument names."""
    if isinstance(value, Device):
        return value.type
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value.partition(":")[0]
    if isinstance(value, Const) and type(value.value) is int:
        return "cuda"
    return None


def _cast(tensor: Value, dtype: Dtype | None) -> Value:
    """A tensor in another dtype."""
    if isinstance(tensor, Tensor):
        if dtype is None:
            return Tensor(None, None, tensor.rank, ANY, tensor.device, tensor.extra)
        values = tensor.range if dtype.dtypes is not None and dtype.dtypes <= FLOATING else ANY
        if dtype.dtypes is not None and len(dtype.dtypes) == 1 and values is ANY:
            (name,) = dtype.dtypes
            values = as_whole_numbers(tensor.range) if DTYPES[name].category is Category.INTEGER else ANY
        return Tensor(dtype.dtypes, dtype.symbol, tensor.rank, values, tensor.device, tensor.extra)
    if dtype is None:
        return TOP
    from_truths = (
        isinstance(tensor, Unknown) and tensor.dtypes == _BOOL
    )  # 0 or 1, which is nowhere kept of what is unknown
    is_marked = isinstance(tensor, Unknown) and not from_truths
    return Unknown(dtype.dtypes, dtype.symbol, plain_tensors.CAST if is_marked else frozenset())


_BOOL = frozenset({"bool"})


# -- tensors -------------------------------------------------------------------------------------------------------------


def _named_cast(name: str) -> None:
    dtype = Dtype(frozenset({_METHODS[name]}))

    @model(f"torch.Tensor.{name}")
    def cast(ctx: Context, arguments: Arguments) -> Value:
        tensor = plain_tensors.plain(ctx, arguments.args[0])
        if isinstance(tensor, Tensor) and tensor.dtypes == dtype.dtypes:
            return arguments.args[0]  # the same object: a parameter stays one
        return _cast(tensor, dtype)

    @model(f"torch.nn.Module.{name}")
    def cast_modules(ctx: Context, arguments: Arguments) -> Value:
        cast_module(ctx, arguments.args[0], dtype, None, real=True)
        return arguments.args[0]


for _name in _METHODS:
    _named_cast(_name)


def _target(ctx: Context, arguments: Arguments) -> tuple[Dtype | None, bool, str | None]:
    """Of `.to(...)`: the dtype, whether there certainly is none, and the device."""
    given = [
        value for name, value in (*enumerate(arguments.args[1:]), *arguments.keywords.items()) if name not in _FLAGS
    ]
    dtype: Dtype | None = None
    device: str | None = None
    certain = arguments.complete
    for value in given:
        value = plain_tensors.plain(ctx, value)
        if isinstance(value, Tensor):
            return Dtype(value.dtypes, reshaped(value.symbol)), False, value.device
        found = [dtype_of(one) if not isinstance(one, Unknown) else None for one in choices(value)]
        if all(one is not None for one in found) and not isinstance(value, Const):
            dtype = _joined([one for one in found if one is not None])
            continue
        if isinstance(value, Const) and value.value is None:
            continue
        if any(_is_float(one) for one in choices(value)):
            certain = False  # no device: by then it is something else, a tensor, or this raises
            continue
        if isinstance(value, Union) and any(one is not None for one in found):
            return None, False, device
        if isinstance(value, (Device, Const)) or all(isinstance(one, (Device, Const)) for one in choices(value)):
            device = device_of(value)
            continue
        if isinstance(value, Number):  # the index of a device
            device = None
            continue
        if isinstance(value, Unknown) and value.symbol is not None:
            dtype = Dtype(None, value.symbol) if "dtype" in arguments.keywords else dtype
            certain = certain and dtype is not None
            continue
        if arguments.keywords.get("device") == value:
            device = None
            continue
        if isinstance(value, Unknown) and value.dtypes == frozenset():
            continue
        certain = False
    return dtype, dtype is None and certain, device


def _is_float(value: Value) -> bool:
    known = category_of(value) if isinstance(value, (Number, Const)) else None
    return known is Category.FLOAT


_FLAGS = frozenset({"non_blocking", "copy", "memory_format"})


def _joined(dtypes: list[Dtype]) -> Dtype:
    result: Value = dtypes[0]
    for dtype in dtypes[1:]:
        result = join(result, dtype)
    assert isinstance(result, Dtype)
    return result


@model("torch.Tensor.to")
def _to(ctx: Context, arguments: Arguments) -> Value:
    tensor = plain_tensors.plain(ctx, arguments.args[0])
    dtype, keeps, device = _target(ctx, arguments)
    given = [*arguments.args[1:], *arguments.keywords.values()]
    moved = any(isinstance(value, (Device, Const)) for value in given) or "device" in arguments.keywords
    if keeps:
        if isinstance(tensor, Tensor):
            return Tensor(tensor.dtypes, tensor.symbol, tensor.rank, tensor.range, device)
        return tensor if isinstance(tensor, Unknown) else TOP
    if dtype is None and _may_move(arguments):
        # a device that nobody knows, or a dtype: of a tensor the first is by far the more common, but nothing is certain
        made = _cast(tensor, None)
        return replace(made, device=None) if isinstance(made, Tensor) else made
    made = _cast(tensor, dtype)
    if isinstance(made, Tensor) and (moved or dtype is None):
        made = Tensor(made.dtypes, made.symbol, made.rank, made.range, device)
    return made


def _may_move(arguments: Arguments) -> bool:
    return not arguments.complete or len(arguments.args) > 1


@model("torch.Tensor.type")
def _type(ctx: Context, arguments: Arguments) -> Value:
    if len(arguments.args) == 1 and "dtype" not in arguments.keywords:
        return Unknown(frozenset())
    return _cast(plain_tensors.plain(ctx, arguments.args[0]), dtype_of(arguments.get(1, "dtype")))


@model("torch.Tensor.type_as")
def _type_as(ctx: Context, arguments: Arguments) -> Value:
    other = plain_tensors.plain(ctx, arguments.args[1]) if len(arguments.args) > 1 else TOP
    if isinstance(other, (Tensor, Unknown)):
        return _cast(plain_tensors.plain(ctx, arguments.args[0]), Dtype(other.dtypes, reshaped(other.symbol)))
    return _cast(plain_tensors.plain(ctx, arguments.args[0]), None)


def _moving(name: str, device: str | None) -> None:
    @model(f"torch.Tensor.{name}")
    def move(ctx: Context, arguments: Arguments) -> Value:
        tensor = plain_tensors.plain(ctx, arguments.args[0])
        if not isinstance(tensor, Tensor):
            return tensor
        return Tensor(tensor.dtypes, tensor.symbol, tensor.rank, tensor.range, device or tensor.device)


_moving("cuda", "cuda")
_moving("cpu", "cpu")
_moving("pin_memory", None)
_moving("share_memory_", None)


# -- modules -------------------------------------------------------------------------------------------------------------


def cast_module(
    ctx: Context, value: Value, dtype: Dtype | None, device: str | None, *, moves: bool = False, real: bool = False
) -> None:
    """Cast the floating weights of a module and of all within.

    Args:
        dtype: to which; None: to one that is not known.
        moves: is it only moved, to `device`?
        real: do complex weights stay? `.half()` leaves them, `.to(torch.half)` does not.
    """
    ones = choices(value)
    for one in ones:
        if not isinstance(one, Ref):
            continue
        whole = len(ones) == 1 and not ctx.store.is_several(one.address)
        weights = list(weights_within(ctx, one))
        if not weights and not moves:
            known_dtype = dtype is not None and dtype.dtypes is not None and len(dtype.dtypes) == 1
            cast_to = Const(next(iter(dtype.dtypes))) if known_dtype and dtype is not None and dtype.dtypes else TOP
            ctx.store.write(one.address, training.CAST_UNSEEN, cast_to)
        if not moves and dtype is not None and dtype.dtypes is not None:
            training.weights_cast(ctx, weights, dtype.dtypes)
            if dtype.dtypes == _FLOAT16:
                training.became_float16(ctx, (address for address in weights if not _is_float16(ctx, address)))
        for address in weights:
            known = ctx.store.read(address, CONTENT)
            if not isinstance(known, Tensor):
                continue
            cast = _moved_to(known, device) if moves else _cast_weight(known, dtype, real)
            if whole:
                ctx.store.overwrite(address, CONTENT, cast)
            else:
                ctx.store.blend(address, CONTENT, cast)
        for address in set(weights_perhaps_within(ctx, one)).difference(weights):
            known = ctx.store.read(address, CONTENT)
            if isinstance(known, Tensor):
                ctx.store.blend(
                    address, CONTENT, _moved_to(known, device) if moves else _cast_weight(known, dtype, real)
                )


def _is_float16(ctx: Context, weight: Address) -> bool:
    known = ctx.store.read(weight, CONTENT)
    return isinstance(known, Tensor) and known.dtypes == _FLOAT16


def _moved_to(known: Tensor, device: str | None) -> Tensor:
    return Tensor(known.dtypes, known.symbol, known.rank, known.range, device, known.extra)


def _cast_weight(known: Tensor, dtype: Dtype | None, real: bool) -> Tensor:
    """A weight after its module was cast: whole numbers stay."""
    if known.dtypes is None:
        if known.symbol is not None and all(atom.floating for atom in known.symbol.of) and dtype is not None:
            return Tensor(dtype.dtypes, dtype.symbol, known.rank, known.range, known.device, known.extra)
        return Tensor(None, None, known.rank, known.range, known.device, known.extra)
    if known.dtypes and not known.dtypes & _FLOATING:
        return known
    if dtype is None or dtype.dtypes is None or known.dtypes - _FLOATING:
        symbol = dtype.symbol if dtype is not None and not known.dtypes - _FLOATING else None
        return Tensor(None, symbol, known.rank, known.range, known.device, known.extra)
    kept = known.dtypes & COMPLEX if real else frozenset[str]()
    made = kept | dtype.dtypes if known.dtypes - kept else kept
    return Tensor(made, None, known.rank, known.range, known.device, known.extra)


@model("torch.nn.Module.to")
def _module_to(ctx: Context, arguments: Arguments) -> Value:
    dtype, keeps, device = _target(ctx, arguments)
    if keeps:
        cast_module(ctx, arguments.args[0], None, device, moves=True)
    elif (
        dtype is None
        and arguments.complete
        and all(_is_plainly_unknown(value) for value in arguments.args[1:])
        and (len(arguments.args) == 2 and not set(arguments.keywords) - _FLAGS)
    ):
        # `model.to(device)`, of a device that nobody knows: a dtype goes by that name as good as never
        cast_module(ctx, arguments.args[0], None, None)
    else:
        cast_module(ctx, arguments.args[0], dtype, device)
        if device is not None:
            cast_module(ctx, arguments.args[0], None, device, moves=True)
    return arguments.args[0]


def _is_plainly_unknown(value: Value) -> bool:
    return isinstance(value, Unknown)


@model("torch.nn.Module.type")
def _module_type(ctx: Context, arguments: Arguments) -> Value:
    """`module.type(dtype)` casts whole numbers, too."""
    module, dtype = arguments.args[0], dtype_of(arguments.get(1, "dst_type"))
    weights = list(weights_within(ctx, module))
    if dtype is not None and dtype.dtypes is not None:
        training.weights_cast(ctx, weights, dtype.dtypes)
    whole = isinstance(module, Ref) and not ctx.store.is_several(module.address)
    update = ctx.store.overwrite if whole else ctx.store.blend
    for address in weights:
        known = ctx.store.read(address, CONTENT)
        if isinstance(known, Tensor):
            update(address, CONTENT, _cast(known, dtype))
    return module


@model("torch.nn.Module.cuda", "torch.nn.Module.cpu", "torch.nn.Module.xpu")
def _module_moved(ctx: Context, arguments: Arguments) -> Value:
    cast_module(ctx, arguments.args[0], None, None, moves=True)
    return arguments.args[0]
