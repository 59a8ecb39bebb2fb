"""Functions that make tensors of numbers, and parameters."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import COMPLEX, FLOATING, LEGACY_TENSORS, Category
from dtlint.infer.context import NeverReturns
from dtlint.infer.domain.interval import ANY, Range
from dtlint.infer.domain.lattice import category_of, number_of
from dtlint.infer.domain.values import (
    NONE,
    Array,
    Const,
    Device,
    Dtype,
    Many,
    Ref,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
    reshaped,
)
from dtlint.infer.models import plain_tensors, shapes
from dtlint.infer.models.casts import device_of, dtype_of
from dtlint.infer.models.ops import default_dtypes
from dtlint.infer.models.ranges import elements, range_of
from dtlint.infer.models.registry import model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

_COMPLEX_OF = {"float16": "complex32", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}


def _asked_dtype(arguments: Arguments) -> tuple[bool, Dtype | None]:
    """Is a dtype given, and which; (True, None): one that is not known."""
    value = arguments.keywords.get("dtype")
    if value is None:
        return not arguments.complete, None
    if value == NONE:
        return False, None
    return True, dtype_of(value)


def _device(ctx: Context, arguments: Arguments) -> str | None:
    value = arguments.keywords.get("device")
    if value is not None and value != NONE:
        return device_of(value)
    usual = ctx.ambient("default device")
    return usual.type if arguments.complete and isinstance(usual, Device) else None


def _default(ctx: Context) -> Tensor:
    return Tensor(default_dtypes(ctx))


_SIZED = ("zeros", "ones", "empty", "rand", "randn")


def _sized(name: str) -> None:
    @model(f"torch.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        given, dtype = _asked_dtype(arguments)
        rank = shapes.of_sizes([_plain_size(ctx, value) for value in arguments.args]) if arguments.complete else None
        size = arguments.keywords.get("size")
        if size is not None:
            rank = shapes.of_sizes([_plain_size(ctx, size)])
        made = (
            Tensor()
            if given and dtype is None
            else _default(ctx)
            if dtype is None
            else Tensor(dtype.dtypes, dtype.symbol)
        )
        return Tensor(
            made.dtypes, made.symbol, rank, range_of(name, arguments.args, arguments.keywords), _device(ctx, arguments)
        )


def _plain_size(ctx: Context, value: Value) -> Value:
    """A list of sizes as a tuple."""
    if isinstance(value, Ref):
        content = ctx.store.read(value.address, CONTENT)
        return value if content is None else content
    return value


for _name in _SIZED:
    _sized(_name)


@model("torch.full")
def _full(ctx: Context, arguments: Arguments) -> Value:
    given, dtype = _asked_dtype(arguments)
    value = arguments.get(1, "fill_value")
    size = arguments.get(0, "size")
    rank = None if size is None else shapes.of_sizes([_plain_size(ctx, size)])
    filled = elements(value) if value is not None else elements(NONE)
    if given:
        made = Tensor() if dtype is None else Tensor(dtype.dtypes, dtype.symbol)
    else:
        made = Tensor(None if value is None else _of_category(ctx, category_of(value)))
        plain = None if value is None else plain_tensors.plain(ctx, value)
        if isinstance(plain, Tensor):
            made = plain
    return Tensor(made.dtypes, reshaped(made.symbol), rank, filled, _device(ctx, arguments))


def _of_category(ctx: Context, category: Category | None) -> frozenset[str] | None:
    """The dtype of a tensor made of Python numbers."""
    if category is None:
        return None
    if category is Category.FLOAT:
        return default_dtypes(ctx)
    if category is Category.COMPLEX:
        return frozenset(_COMPLEX_OF[one] for one in default_dtypes(ctx))
    return frozenset({"int64" if category is Category.INTEGER else "bool"})


_DEEPEST = 6
"""The dimensions of data that are followed: a list that stands for several may hold itself."""


def dtype_of_data(ctx: Context, value: Value, depth: int = 0) -> tuple[frozenset[str] | None, int | None]:
    """The dtype and the dimensions of what `torch.tensor` makes of data, which lies so deep in other data."""
    if depth > _DEEPEST:
        return None, None
    value = plain_tensors.plain(ctx, value)
    if isinstance(value, Tensor):
        return value.dtypes, value.rank
    if isinstance(value, Array):
        return value.dtypes, 0 if value.scalar else None if value.scalar is None else -1
    category = category_of(value)
    if category is not None:
        return _of_category(ctx, category), 0
    if isinstance(value, Ref):
        content = ctx.store.read(value.address, CONTENT)
        if value.address.kind != "builtins.list" or content is None:
            return None, None
        value = content
    if isinstance(value, (Tuple, Many)):
        items = value.items if isinstance(value, Tuple) else (value.item,)
        if not items:
            return default_dtypes(ctx), 1
        return _of_items(ctx, items, depth)
    found = [dtype_of_data(ctx, one, depth + 1) for one in choices(value)] if len(choices(value)) > 1 else []
    if found and all(dtypes is not None for dtypes, _ in found):
        return frozenset().union(*(dtypes or () for dtypes, _ in found)), None
    return None, None


def _of_items(ctx: Context, items: tuple[Value, ...], depth: int) -> tuple[frozenset[str] | None, int | None]:
    categories = [category_of(item) for item in items]
    if all(category is not None for category in categories):
        return _of_category(ctx, max(category for category in categories if category is not None)), 1
    inner = [dtype_of_data(ctx, item, depth + 1) for item in items]
    first = inner[0][0]
    ranks = {rank for _, rank in inner}
    rank = ranks.pop() if len(ranks) == 1 else None
    rank = -1 if rank is None or rank < 0 else rank + 1
    if all(dtypes == first for dtypes, _ in inner):
        return first, rank
    if all(isinstance(plain_tensors.plain(ctx, item), (Tuple, Many, Ref)) or category_of(item) for item in items):
        known = [dtypes for dtypes, _ in inner if dtypes is not None]
        if len(known) == len(inner) and set().union(*known) <= {"int64", "bool", *default_dtypes(ctx)}:
            floats = set().union(*known) & set(default_dtypes(ctx))
            return (frozenset(floats) if floats else frozenset({"int64"})), rank
    return None, rank


@model("torch.scalar_tensor")
def _scalar_tensor(ctx: Context, arguments: Arguments) -> Value:
    given, dtype = _asked_dtype(arguments)
    made = (
        Tensor() if given and dtype is None else _default(ctx) if dtype is None else Tensor(dtype.dtypes, dtype.symbol)
    )
    values = elements(arguments.args[0]) if arguments.args else elements(NONE)
    return Tensor(made.dtypes, made.symbol, 0, values, _device(ctx, arguments))


@model("torch.tensor", "torch.as_tensor", "torch.asarray")
def _tensor(ctx: Context, arguments: Arguments) -> Value:
    given, dtype = _asked_dtype(arguments)
    data = arguments.get(0, "data")
    if len(arguments.args) > 1 and not given:
        given, dtype = True, dtype_of(arguments.args[1])
    dtypes, rank = (None, None) if data is None else dtype_of_data(ctx, data)
    plain = None if data is None else plain_tensors.plain(ctx, data)
    if given:
        made = Tensor() if dtype is None else Tensor(dtype.dtypes, dtype.symbol)
    else:
        made = Tensor(dtypes, plain.symbol if isinstance(plain, Tensor) and dtypes is None else None)
    device = _device(ctx, arguments)
    if isinstance(plain, Tensor) and "device" not in arguments.keywords:
        device = plain.device
    content = _nested(ctx, data) if data is not None else NONE
    is_bare = rank is None and not isinstance(plain, Array) and not _holds_several(ctx, arguments)
    extra = frozenset({shapes.BARE}) if is_bare else frozenset()
    return Tensor(made.dtypes, made.symbol, rank, elements(content), device, extra)


def _holds_several(ctx: Context, arguments: Arguments) -> bool:
    """Is the data a parameter that is declared as a list, a tuple or an array?"""
    given = arguments.node.args[:1] if isinstance(arguments.node, ast.Call) else []
    function = ctx.frame.function
    if not given or not isinstance(given[0], ast.Name) or function is None:
        return False
    declared = function.annotation(given[0].id)
    words = set() if declared is None else {getattr(one, "id", getattr(one, "attr", "")) for one in ast.walk(declared)}
    return not words.isdisjoint({"list", "List", "tuple", "Tuple", "Sequence", "ndarray"})


def _nested(ctx: Context, value: Value, depth: int = 4) -> Value:
    """Lists of lists as tuples of tuples, a few deep."""
    content = _plain_size(ctx, value)
    if not isinstance(content, Tuple) or depth == 0:
        return content
    return Tuple(tuple(_nested(ctx, item, depth - 1) for item in content.items), content.names)


@model("torch.frombuffer")
def _from_buffer(ctx: Context, arguments: Arguments) -> Value:
    given, dtype = _asked_dtype(arguments)
    if given and dtype is None:
        return Tensor(None, None, 1, device="cpu")
    dtypes, symbol = (default_dtypes(ctx), None) if dtype is None else (dtype.dtypes, dtype.symbol)
    return Tensor(dtypes, symbol, 1, device="cpu")


@model("torch.from_numpy", "torch.from_dlpack")
def _from_numpy(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.args[0] if arguments.args else NONE
    return Tensor(value.dtypes if isinstance(value, Array) else None, None, None, device="cpu")


def _legacy(name: str) -> None:
    dtypes = frozenset({LEGACY_TENSORS[name]})

    @model(f"torch.{name}", f"torch.cuda.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        return Tensor(dtypes, None, -1)


for _name in LEGACY_TENSORS:
    _legacy(_name)


@model("torch.Tensor")
def _of_default(ctx: Context, arguments: Arguments) -> Value:
    plain = plain_tensors.plain(ctx, arguments.args[0]) if arguments.args else None
    if isinstance(plain, Tensor):
        return plain
    return Tensor(default_dtypes(ctx), None, -1, device=_device(ctx, arguments))


@model("torch.nn.Parameter", "torch.nn.parameter.Parameter")
def _parameter(ctx: Context, arguments: Arguments) -> Value:
    data = arguments.get(0, "data")
    plain = Tensor(default_dtypes(ctx)) if data is None else plain_tensors.plain(ctx, data)
    tensor = plain if isinstance(plain, Tensor) else Tensor()
    return ctx.allocate(arguments.node, plain_tensors.PARAMETER, tensor)


@model("torch.nn.Buffer")
def _buffer(ctx: Context, arguments: Arguments) -> Value:
    data = arguments.get(0, "data")
    plain = Tensor() if data is None else plain_tensors.plain(ctx, data)
    return ctx.allocate(arguments.node, plain_tensors.BUFFER, plain if isinstance(plain, Tensor) else Tensor())


def _like(name: str) -> None:
    @model(f"torch.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        given, dtype = _asked_dtype(arguments)
        other = plain_tensors.plain(ctx, arguments.args[0]) if arguments.args else NONE
        if not isinstance(other, (Tensor, Unknown)):
            return Tensor()
        made: Tensor | Dtype | Unknown | None = other
        if given:
            made = dtype
        rank = other.rank if isinstance(other, Tensor) else None
        device = other.device if isinstance(other, Tensor) and "device" not in arguments.keywords else None
        values = range_of(name, arguments.args, arguments.keywords)
        if made is None:
            return Tensor(None, None, rank, values, device)
        return Tensor(made.dtypes, made.symbol, rank, values, device)


for _name in ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like"):
    _like(_name)


def _new(name: str) -> None:
    @model(f"torch.Tensor.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        given, dtype = _asked_dtype(arguments)
        other = plain_tensors.plain(ctx, arguments.args[0])
        if not isinstance(other, (Tensor, Unknown)):
            return Tensor()
        sizes = [_plain_size(ctx, value) for value in arguments.args[1:]]
        rank = shapes.of_sizes(sizes[:1] if name in ("new_full",) else sizes) if sizes else None
        device = other.device if isinstance(other, Tensor) and "device" not in arguments.keywords else None
        if given and dtype is None:
            return Tensor(None, None, rank, device=device)
        made = other if dtype is None else dtype
        return Tensor(
            made.dtypes, reshaped(made.symbol), rank, range_of(name, arguments.args, arguments.keywords), device
        )


for _name in ("new_zeros", "new_ones", "new_empty", "new_full"):
    _new(_name)


@model("torch.Tensor.new_tensor")
def _new_tensor(ctx: Context, arguments: Arguments) -> Value:
    given, dtype = _asked_dtype(arguments)
    other = plain_tensors.plain(ctx, arguments.args[0])
    data = arguments.get(1, "data")
    rank = None if data is None else dtype_of_data(ctx, data)[1]
    values = ANY if data is None else elements(_plain_size(ctx, data))
    if given:
        return Tensor() if dtype is None else Tensor(dtype.dtypes, dtype.symbol, rank, values)
    if isinstance(other, (Tensor, Unknown)):
        return Tensor(other.dtypes, reshaped(other.symbol), rank, values)
    return Tensor()


def _between(name: str) -> None:
    @model(f"torch.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        """Numbers between two, of the default dtype whatever tensors or numbers these are, as long as they are real."""
        given, dtype = _asked_dtype(arguments)
        ends = [
            plain_tensors.plain(ctx, arguments.get(place, end) or NONE) for place, end in enumerate(("start", "end"))
        ]
        made = _default(ctx) if dtype is None else Tensor(dtype.dtypes, dtype.symbol)
        if (given and dtype is None) or (not given and any(map(_may_be_complex, ends))):
            made = Tensor()
        values = range_of(name, arguments.args, arguments.keywords)
        return Tensor(made.dtypes, made.symbol, 1, values, _device(ctx, arguments))


def _may_be_complex(value: Value) -> bool:
    if isinstance(value, Tensor):
        return value.dtypes is None or not value.dtypes.isdisjoint(COMPLEX)
    return category_of(value) is Category.COMPLEX


for _name in ("linspace", "logspace"):
    _between(_name)


@model("torch.arange")
def _arange(ctx: Context, arguments: Arguments) -> Value:
    given, dtype = _asked_dtype(arguments)
    device = _device(ctx, arguments)
    if given:
        if dtype is None:
            return Tensor(None, None, 1, device=device)
        return Tensor(dtype.dtypes, dtype.symbol, 1, _counts(arguments), device, _counted(arguments))
    bounds = [plain_tensors.plain(ctx, value) for value in arguments.args]
    bounds += [value for name, value in arguments.keywords.items() if name in ("start", "end", "step")]
    categories = [_category(value) for value in bounds]
    floats = any(category is Category.FLOAT for category in categories)
    if not floats and (None in categories or not arguments.complete):  # numbers of either kind
        default = default_dtypes(ctx)
        return Tensor(default | {"int64"} if len(default) == 1 else None, None, 1, device=device)
    dtypes = default_dtypes(ctx) if floats else frozenset({"int64"})
    return Tensor(dtypes, None, 1, _counts(arguments), device)


def _counts(arguments: Arguments) -> Range:
    """The numbers that `arange` of known numbers gives: whole numbers leave the end out, where they go up to it."""
    args = arguments.args
    if not arguments.complete or not args or arguments.keywords.keys() & {"start", "end", "step"}:
        return ANY
    bounds = [number_of(one) for one in (*((Const(0),) if len(args) == 1 else ()), *args[:2])]
    known = [one for one in bounds if one is not None and one.category in _REAL and one.range.bounded]
    if len(known) < len(bounds):
        return ANY
    start, end = (one.range for one in known)
    rises = len(args) < 3 and all(one.category is Category.INTEGER for one in known)
    low, high = (
        (start.low, max(start.high, end.high - 1)) if rises else (min(start.low, end.low), max(start.high, end.high))
    )
    return Range(low, high, low <= 0 <= high, False, False)


_REAL = frozenset({Category.INTEGER, Category.FLOAT})


def _counted(arguments: Arguments) -> frozenset[tuple[str, object]]:
    """What `arange` of whole numbers counts up to, the end left out, and where; nothing where it goes in steps."""
    args = arguments.args
    if not arguments.complete or len(args) > 2 or {"start", "step"} & set(arguments.keywords):
        return frozenset()
    end = args[-1] if args else arguments.keywords.get("end")
    number = None if end is None else number_of(end)
    if number is None or number.category is not Category.INTEGER:
        return frozenset()
    return frozenset({("counted", (number.range.high, arguments.node))})


def _category(value: Value) -> Category | None:
    if isinstance(value, Tensor) and value.dtypes is not None:
        if value.dtypes <= FLOATING:
            return Category.FLOAT
        return Category.INTEGER if not value.dtypes & (FLOATING | COMPLEX) else None
    found = {category_of(one) for one in choices(value)}
    return found.pop() if len(found) == 1 else None


@model("torch.randint")
def _randint(ctx: Context, arguments: Arguments) -> Value:
    given, dtype = _asked_dtype(arguments)
    size = arguments.keywords.get("size", arguments.args[-1] if arguments.args else NONE)
    rank = shapes.of_sizes([_plain_size(ctx, size)]) if isinstance(_plain_size(ctx, size), (Tuple, Many)) else None
    if given:
        made = Tensor() if dtype is None else Tensor(dtype.dtypes, dtype.symbol)
    else:
        made = Tensor(frozenset({"int64"}))
    return Tensor(made.dtypes, made.symbol, rank, device=_device(ctx, arguments))


@model("torch.fft.fftfreq", "torch.fft.rfftfreq")
def _frequencies(ctx: Context, arguments: Arguments) -> Value:
    """The frequencies of a Fourier transform: of the dtype that is asked for, or of the one that `out` has."""
    out = arguments.keywords.get("out", NONE)
    if out != NONE:
        return plain_tensors.plain(ctx, out)
    given, dtype = _asked_dtype(arguments)
    device = _device(ctx, arguments)
    if given and dtype is None:
        return Tensor(None, None, 1, device=device)
    made = _default(ctx) if dtype is None else dtype
    if made.dtypes and not made.dtypes & (FLOATING | COMPLEX):
        raise NeverReturns
    return Tensor(made.dtypes, made.symbol, 1, device=device)
