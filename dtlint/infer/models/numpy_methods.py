"""Methods and attributes of NumPy's arrays and scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, REAL_PARTS, Category
from dtlint.infer.domain.interval import Range
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import NONE, TOP, Array, Many, Number, Value
from dtlint.infer.models import array_promotion as promotion
from dtlint.infer.models.array_dtypes import as_value, dtype_named
from dtlint.infer.models.numpy_models import AVERAGES, INT64, PICKS, SUMS, TRUTH, reduced_dtypes
from dtlint.infer.models.registry import MODELS, attribute, model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

_SIZE = Number(Category.INTEGER, Range(0.0, float("inf"), True, False, False))


def _own(arguments: Arguments) -> Array:
    value = arguments.args[0]
    return value if isinstance(value, Array) else Array(None, None)


@attribute("numpy.ndarray.dtype")
def _dtype(ctx: Context, value: Value) -> Value:
    return as_value(value.dtypes) if isinstance(value, Array) else TOP


@attribute("numpy.ndarray.shape")
def _shape(ctx: Context, value: Value) -> Value:
    return Many(_SIZE)


@attribute("numpy.ndarray.size", "numpy.ndarray.ndim", "numpy.ndarray.nbytes", "numpy.ndarray.itemsize")
def _size(ctx: Context, value: Value) -> Value:
    return _SIZE


@attribute("numpy.ndarray.T", "numpy.ndarray.mT", "numpy.ndarray.flat")
def _transposed(ctx: Context, value: Value) -> Value:
    return value


@attribute("numpy.ndarray.real", "numpy.ndarray.imag")
def _real(ctx: Context, value: Value) -> Value:
    if not isinstance(value, Array):
        return TOP
    return Array(promotion.each(value.dtypes, lambda one: REAL_PARTS.get(one, one)), value.scalar)


@model("numpy.ndarray.astype", "numpy.ndarray.view")
def _cast(ctx: Context, arguments: Arguments) -> Value:
    array, given = _own(arguments), arguments.get(1, "dtype")
    return Array(None if given is None else dtype_named(given), array.scalar)


def _shaping(name: str, keeps: bool) -> None:
    @model(f"numpy.ndarray.{name}")
    def shape(ctx: Context, arguments: Arguments) -> Value:
        array = _own(arguments)
        return Array(array.dtypes, False if keeps and array.scalar is False else None)


for _name in ("transpose", "ravel", "flatten", "copy", "swapaxes", "repeat", "byteswap", "newbyteorder"):
    _shaping(_name, True)
for _name in ("squeeze", "reshape", "take", "diagonal", "compress", "conj", "conjugate", "__getitem__"):
    _shaping(_name, False)


@model("numpy.ndarray.round")
def _round(ctx: Context, arguments: Arguments) -> Value:
    array = _own(arguments)
    dtypes = promotion.each(array.dtypes, lambda one: "float16" if one == "bool" else one)
    return Array(dtypes, array.scalar)


@model("numpy.ndarray.clip")
def _clip(ctx: Context, arguments: Arguments) -> Value:
    return MODELS["numpy.clip"](ctx, arguments)


@model("numpy.ndarray.dot")
def _dot(ctx: Context, arguments: Arguments) -> Value:
    return MODELS["numpy.dot"](ctx, arguments)


def _reduction(name: str) -> None:
    @model(f"numpy.ndarray.{name}")
    def reduce(ctx: Context, arguments: Arguments) -> Value:
        array = _own(arguments)
        given = None if name in PICKS else arguments.get(2, "dtype")
        whole = len(arguments.args) == 1 and not set(arguments.keywords) - {"dtype"} and not name.startswith("cum")
        if given is not None and given != NONE:
            return Array(dtype_named(given), True if whole else None)
        known = arguments.complete and not {"out", "initial"} & set(arguments.keywords)
        return Array(reduced_dtypes(name, array.dtypes) if known else None, True if whole else None)


for _name in sorted((SUMS | PICKS | {"mean", "std", "var"}) & (SUMS | PICKS | AVERAGES)):
    if not _name.startswith(("nan", "a")):
        _reduction(_name)


@model("numpy.ndarray.argmax", "numpy.ndarray.argmin", "numpy.ndarray.argsort", "numpy.ndarray.argpartition")
def _indices(ctx: Context, arguments: Arguments) -> Value:
    return Array(INT64, None)


@model("numpy.ndarray.searchsorted")
def _searched(ctx: Context, arguments: Arguments) -> Value:
    return Array(INT64, None)


@model("numpy.ndarray.nonzero")
def _nonzero(ctx: Context, arguments: Arguments) -> Value:
    return Many(Array(INT64, False))


@model("numpy.ndarray.any", "numpy.ndarray.all")
def _any(ctx: Context, arguments: Arguments) -> Value:
    return Array(TRUTH, None)


@model("numpy.ndarray.item")
def _item(ctx: Context, arguments: Arguments) -> Value:
    array = _own(arguments)
    found = join_all(Number(DTYPES[one].category) for one in sorted(array.dtypes or ()))
    return TOP if found is None else found


@model("numpy.ndarray.tolist")
def _tolist(ctx: Context, arguments: Arguments) -> Value:
    array = _own(arguments)
    number = _item(ctx, arguments)
    if array.scalar is True:
        return number
    return TOP if array.scalar is None else ctx.allocate(arguments.node, "builtins.list", Many(TOP))


@model("numpy.ndarray.fill", "numpy.ndarray.sort", "numpy.ndarray.setflags", "numpy.ndarray.tofile")
def _in_place(ctx: Context, arguments: Arguments) -> Value:
    return NONE
