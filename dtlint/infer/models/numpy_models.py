"""NumPy's functions: what makes arrays, what computes with them, and what reduces them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, REAL_PARTS, Category
from dtlint.infer.domain.lattice import category_of, join_all
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Array,
    Const,
    Dtype,
    External,
    Many,
    Number,
    Ref,
    Tensor,
    Tuple,
    Value,
    choices,
)
from dtlint.infer.models import array_promotion as promotion
from dtlint.infer.models.array_dtypes import CODES, SCALARS, as_value, dtype_named
from dtlint.infer.models.arrays import as_array
from dtlint.infer.models.registry import attribute, model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.context import Arguments, Context
    from dtlint.infer.domain.values import Dtypes

__all__ = ["AVERAGES", "FLOAT64", "INT64", "PICKS", "SUMS", "TRUTH", "reduced_dtypes"]

FLOAT64, INT64, TRUTH = frozenset({"float64"}), frozenset({"int64"}), frozenset({"bool"})


def _asked(arguments: Arguments, place: int | None) -> Value | None:
    """The `dtype=` argument; None where none is given, or None is."""
    given = arguments.get(place, "dtype")
    return None if given in (None, NONE) else given


def _is_sized(ctx: Context, size: Value | None) -> bool:
    """Has an array of this size dimensions for certain? `()` has none."""
    if isinstance(size, Ref):
        size = ctx.store.read(size.address, CONTENT)
    if isinstance(size, Tuple):
        return bool(size.items)
    return size is not None and category_of(size) is Category.INTEGER


# -- what makes arrays ---------------------------------------------------------------------------------------------------


def _made(name: str, place: int, sized: bool) -> None:
    @model(f"numpy.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        given = _asked(arguments, place)
        known = given is None and arguments.complete
        if name in _BETWEEN and known:
            ends = [*arguments.args[:2], *(arguments.keywords.get(key, NONE) for key in ("start", "stop"))]
            known = all(one == NONE or (category_of(one) or Category.BOOL) in _REAL for one in ends)
            known = known and arguments.keywords.get("retstep") is None
        scalar = False if sized is False or _is_sized(ctx, arguments.get(0, "shape")) else None
        return Array(dtype_named(given) if given is not None else FLOAT64 if known else None, scalar)


_REAL = (Category.BOOL, Category.INTEGER, Category.FLOAT)
_BETWEEN = frozenset({"linspace", "logspace", "geomspace"})
for _name, _place, _sized in (
    *((name, 1, True) for name in ("zeros", "ones", "empty")),
    *(("identity", 1, False), ("eye", 3, False), ("tri", 3, False)),
    *(("linspace", 5, False), ("logspace", 5, False), ("geomspace", 4, False)),
    *((name, 9, False) for name in ("hanning", "hamming", "blackman", "bartlett", "kaiser")),
):
    _made(_name, _place, _sized)


@model("numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile", "numpy.frombuffer")
def _of_text(ctx: Context, arguments: Arguments) -> Value:
    """Numbers in a file or a buffer are float64, unless columns have names, or each its own dtype."""
    given = _asked(arguments, 1)
    if given is not None:
        return Array(dtype_named(given), False)
    named = arguments.keywords.get("names", NONE) == NONE and arguments.keywords.get("dtype") is None
    return Array(FLOAT64 if arguments.complete and named else None)


@model(
    *(
        f"numpy.polynomial.{name}"
        for name in ("legendre.leggauss", "hermite.hermgauss", "hermite_e.hermegauss", "chebyshev.chebgauss")
    ),
    "numpy.polynomial.laguerre.laggauss",
)
def _quadrature(ctx: Context, arguments: Arguments) -> Value:
    """Points and weights."""
    return Tuple((Array(FLOAT64, False), Array(FLOAT64, False)))


@model("numpy.full")
def _full(ctx: Context, arguments: Arguments) -> Value:
    given, value = _asked(arguments, 2), arguments.get(1, "fill_value")
    scalar = False if _is_sized(ctx, arguments.get(0, "shape")) else None
    if given is not None:
        return Array(dtype_named(given), scalar)
    filled = None if value is None else as_array(ctx, value)
    return Array(None if filled is None else filled.dtypes, scalar)


@model("numpy.array", "numpy.asarray", "numpy.asanyarray", "numpy.ascontiguousarray", "numpy.asfortranarray")
def _array(ctx: Context, arguments: Arguments) -> Value:
    data = arguments.get(0, "a") or arguments.keywords.get("object")
    made = None if data is None else as_array(ctx, data)
    given = _asked(arguments, 1)
    if given is not None or not arguments.complete:
        return Array(None if given is None else dtype_named(given), None if made is None else made.scalar)
    return Array(None, None) if made is None else made


@model("numpy.arange")
def _arange(ctx: Context, arguments: Arguments) -> Value:
    given = _asked(arguments, 3)
    if given is not None:
        return Array(dtype_named(given), False)
    bounds = [*arguments.args[:3], *(value for name, value in arguments.keywords.items() if name in _BOUNDS)]
    plain = [Array(one.dtypes, None) if isinstance(one, Array) else one for one in bounds]
    known = arguments.complete and bool(plain)
    return Array(promotion.joined([*plain, Const(0)]) if known else None, False)


_BOUNDS = ("start", "stop", "step")


def _like(name: str) -> None:
    @model(f"numpy.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        given = _asked(arguments, 2 if name == "full_like" else 1)
        first = as_array(ctx, arguments.args[0]) if arguments.args else None
        scalar = None if first is None else first.scalar
        if given is not None:
            return Array(dtype_named(given), scalar)
        return Array(None if first is None else first.dtypes, scalar)


for _name in ("zeros_like", "ones_like", "empty_like", "full_like"):
    _like(_name)


@model("numpy.fromiter", "numpy.memmap")
def _read(ctx: Context, arguments: Arguments) -> Value:
    given = _asked(arguments, 1)
    return Array(None if given is None else dtype_named(given), False if given is not None else None)


def _scalar(name: str, dtype: str) -> None:
    @model(f"numpy.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        inner = arguments.args[0] if arguments.args else Const(0)
        if isinstance(inner, Array):
            return Array(frozenset({dtype}), inner.scalar)
        if category_of(inner) is not None:
            return Array(frozenset({dtype}), True)
        made = as_array(ctx, inner)
        return Array(frozenset({dtype}), None if made is None else made.scalar)


for _name, _dtype in SCALARS.items():
    _scalar(_name, _dtype)


@model("numpy.dtype")
def _named(ctx: Context, arguments: Arguments) -> Value:
    return as_value(dtype_named(arguments.args[0])) if arguments.args else NO_TENSOR


def _code(code: str) -> None:
    @attribute(f"torch.dtype.{code}")
    def read(ctx: Context, value: Value) -> Value:
        """NumPy's dtypes have it alone."""
        known = sorted(value.dtypes or ()) if isinstance(value, Dtype) else []
        return join_all(CODES.get(f"numpy.{one}.{code}", NO_TENSOR) for one in known) or NO_TENSOR


for _name in ("name", "kind", "str"):
    _code(_name)

_KINDS = {
    "numpy.number": {Category.INTEGER, Category.FLOAT, Category.COMPLEX},
    "numpy.integer": {Category.INTEGER},
    "numpy.inexact": {Category.FLOAT, Category.COMPLEX},
    "numpy.floating": {Category.FLOAT},
    "numpy.complexfloating": {Category.COMPLEX},
}
"""NumPy's abstract types, which stand for several."""


@model("numpy.issubdtype")
def _is_of_kind(ctx: Context, arguments: Arguments) -> Value:
    kind = arguments.get(1, "arg2")
    dtypes = dtype_named(arguments.args[0]) if arguments.args else None
    if not isinstance(kind, External) or kind.name not in _KINDS or not dtypes or not dtypes <= DTYPES.keys():
        return Number(Category.BOOL)
    answers = {DTYPES[one].category in _KINDS[kind.name] for one in dtypes}
    return Const(answers.pop()) if len(answers) == 1 else Number(Category.BOOL)


# -- what computes element by element ------------------------------------------------------------------------------------


def _operands(ctx: Context, values: Sequence[Value]) -> list[Value] | None:
    """Arrays and numbers, lists made arrays; None where one is something else, so that the result may be a tensor."""
    found: list[Value] = []
    for value in values:
        if all(isinstance(one, Array) or category_of(one) is not None for one in choices(value)):
            found.append(value)
            continue
        made = None if isinstance(value, Tensor) else as_array(ctx, value)
        if made is None:
            return None
        found.append(made)
    return found


_FLOATED = (
    *("sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "arcsin", "arccos", "arctan"),
    *("sinh", "cosh", "tanh", "deg2rad", "rad2deg", "radians", "degrees", "exp2", "cbrt", "arctan2", "hypot"),
    *("arcsinh", "arccosh", "arctanh", "logaddexp", "copysign"),
)
_MIXED = (
    *("add", "subtract", "multiply", "maximum", "minimum", "power", "mod", "remainder", "fmax", "fmin"),
    *("floor_divide", "fmod", "bitwise_and", "bitwise_or", "bitwise_xor"),
)
_SAME = ("absolute", "abs", "negative", "square", "sign", "floor", "ceil", "trunc", "rint", "round", "around", "fix")
_PARTS = ("real", "imag")
_TOLD = (
    *("isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_not", "logical_xor", "greater", "less"),
    *("greater_equal", "less_equal", "equal", "not_equal", "isclose", "isin", "signbit"),
)
_OF_TWO = frozenset({"arctan2", "hypot", "logaddexp", "copysign", "isclose", "isin", *_MIXED}) | frozenset(
    {"logical_and", "logical_or", "logical_xor", "greater", "less", "greater_equal", "less_equal", "equal", "not_equal"}
)
_LIFTED = {
    "square": "int8",
    **dict.fromkeys(("power", "mod", "remainder", "floor_divide", "fmod"), "int8"),
    **dict.fromkeys(("round", "around", "rint"), "float16"),
}
"""What truths are made by functions that count with them."""


def _elementwise(name: str) -> None:
    @model(f"numpy.{name}")
    def compute(ctx: Context, arguments: Arguments) -> Value:
        count = 2 if name in _OF_TWO else 1
        operands = _operands(ctx, arguments.args[:count])
        if operands is None or len(operands) < count or not arguments.complete:
            return TOP
        beyond = len(arguments.args) > count and name not in ("round", "around")
        if beyond or {"out", "dtype", "where"} & set(arguments.keywords):
            return Array(None, None)
        scalar = promotion.scalar_of(operands)
        if name in _TOLD:
            return Array(TRUTH, scalar)
        dtypes = promotion.mixed(operands)
        if name in _FLOATED:
            dtypes = promotion.each(dtypes, promotion.floated)
        elif name in ("abs", "absolute", *_PARTS):
            dtypes = promotion.each(dtypes, lambda dtype: REAL_PARTS.get(dtype, dtype))
        lifted = _LIFTED.get(name, "bool")
        return Array(promotion.each(dtypes, lambda dtype: lifted if dtype == "bool" else dtype), scalar)


for _name in (*_FLOATED, *_MIXED, *_SAME, *_PARTS, *_TOLD):
    _elementwise(_name)


@model("numpy.divide", "numpy.true_divide")
def _divide(ctx: Context, arguments: Arguments) -> Value:
    operands = _operands(ctx, arguments.args[:2])
    if operands is None or len(operands) < 2 or not arguments.complete:
        return TOP
    if len(arguments.args) > 2 or arguments.keywords:
        return Array(None, None)
    dtypes = promotion.each(promotion.mixed(operands), lambda one: one if _is_float(one) else "float64")
    return Array(dtypes, promotion.scalar_of(operands))


def _is_float(dtype: str) -> bool:
    return DTYPES[dtype].category >= Category.FLOAT


@model("numpy.where")
def _where(ctx: Context, arguments: Arguments) -> Value:
    if len(arguments.args) == 1:
        return Many(Array(INT64, False))
    operands = None if len(arguments.args) != 3 else _operands(ctx, arguments.args[1:])
    return Array(None if operands is None else promotion.mixed(operands), None)


@model("numpy.clip")
def _clip(ctx: Context, arguments: Arguments) -> Value:
    names = ("min", "max", "a_min", "a_max")
    bounds = [*arguments.args[:3], *(value for name, value in arguments.keywords.items() if name in names)]
    operands = _operands(ctx, [value for value in bounds if value != NONE])
    if operands is None or not operands or not arguments.complete:
        return TOP
    known = len(arguments.args) <= 3 and set(arguments.keywords) <= set(names)
    return Array(promotion.mixed(operands) if known else None, promotion.scalar_of(operands))


# -- matrices and what joins arrays --------------------------------------------------------------------------------------


@model("numpy.dot", "numpy.matmul", "numpy.cross", "numpy.outer", "numpy.inner", "numpy.kron", "numpy.tensordot")
def _product(ctx: Context, arguments: Arguments) -> Value:
    operands = _operands(ctx, arguments.args[:2])
    if operands is None or len(operands) < 2 or not arguments.complete:
        return TOP
    return Array(promotion.joined(operands) if not {"out", "dtype"} & set(arguments.keywords) else None, None)


@model("numpy.einsum")
def _einsum(ctx: Context, arguments: Arguments) -> Value:
    operands = _operands(ctx, arguments.args[1:])
    if operands is None or not operands or not isinstance(arguments.args[0], Const):
        return TOP
    return Array(promotion.joined(operands) if set(arguments.keywords) <= {"optimize"} else None, None)


_JOINING = ("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack", "block", "row_stack")


@model(*(f"numpy.{name}" for name in _JOINING))
def _joined(ctx: Context, arguments: Arguments) -> Value:
    given = _asked(arguments, None)
    if given is not None:
        return Array(dtype_named(given), False)
    made = as_array(ctx, arguments.args[0]) if arguments.args and arguments.complete else None
    return Array(None if made is None or "out" in arguments.keywords else made.dtypes, False)


# -- what keeps the dtype ------------------------------------------------------------------------------------------------

_KEEPING = (
    *("sort", "flip", "fliplr", "flipud", "roll", "transpose", "ravel", "expand_dims", "moveaxis", "rollaxis"),
    *("swapaxes", "repeat", "tile", "pad", "diff", "copy", "rot90", "broadcast_to", "triu", "tril", "partition"),
    *("atleast_1d", "atleast_2d", "atleast_3d", "resize", "delete", "require"),
)
_UNSHAPED = ("squeeze", "reshape", "take", "diag", "take_along_axis", "compress", "diagonal")
"""What may give an array without dimensions for one with some."""


def _keeping(name: str, keeps: bool) -> None:
    @model(f"numpy.{name}")
    def keep(ctx: Context, arguments: Arguments) -> Value:
        operands = _operands(ctx, arguments.args[:1])
        if not operands or "out" in arguments.keywords:
            return TOP
        first = as_array(ctx, operands[0]) if not isinstance(operands[0], Array) else operands[0]
        if first is None:
            return TOP
        scalar = False if keeps and first.scalar is False else None
        return Array(first.dtypes if name != "diff" or first.dtypes != TRUTH else TRUTH, scalar)


for _name in _KEEPING:
    _keeping(_name, True)
for _name in _UNSHAPED:
    _keeping(_name, False)


@model("numpy.nan_to_num")
def _nan_to_num(ctx: Context, arguments: Arguments) -> Value:
    operands = _operands(ctx, arguments.args[:1])
    return Array(promotion.mixed(operands), promotion.scalar_of(operands)) if operands else TOP


@model("numpy.unique")
def _unique(ctx: Context, arguments: Arguments) -> Value:
    made = as_array(ctx, arguments.args[0]) if arguments.args else None
    if len(arguments.args) > 1 or not set(arguments.keywords) <= {"axis"}:
        return Many(TOP)
    return Array(None if made is None else made.dtypes, False)


@model("numpy.split", "numpy.array_split", "numpy.hsplit", "numpy.vsplit")
def _split(ctx: Context, arguments: Arguments) -> Value:
    made = as_array(ctx, arguments.args[0]) if arguments.args else None
    part = Array(None if made is None else made.dtypes, False)
    return ctx.allocate(arguments.node, "builtins.list", Many(part))


@model("numpy.meshgrid")
def _meshgrid(ctx: Context, arguments: Arguments) -> Value:
    made = [as_array(ctx, value) for value in arguments.args]
    if not arguments.complete:
        return Many(Array(None, False))
    return Tuple(tuple(Array(None if one is None else one.dtypes, False) for one in made))


# -- what reduces --------------------------------------------------------------------------------------------------------

AVERAGES = frozenset({"mean", "std", "var", "median", "average", "nanmean", "nanstd", "nanvar", "nanmedian"})
_QUANTILES = frozenset({"percentile", "quantile", "nanpercentile", "nanquantile"})
_SPREADS = frozenset({"std", "var", "nanstd", "nanvar"})
"""What is real of complex numbers too."""
SUMS = frozenset({"sum", "prod", "cumsum", "cumprod", "nansum", "nanprod", "trace"})
PICKS = frozenset({"max", "min", "amax", "amin", "nanmax", "nanmin", "ptp"})


def reduced_dtypes(name: str, dtypes: Dtypes) -> Dtypes:
    """What a reduction makes of an array's dtype: whole numbers are added in 64 bits, and their mean is float64."""
    if name in PICKS:
        return dtypes

    def of_one(dtype: str) -> str:
        info = DTYPES[dtype]
        if info.category >= Category.FLOAT:
            return REAL_PARTS.get(dtype, dtype) if name in _SPREADS else dtype
        if name in AVERAGES or name in _QUANTILES:
            return "float64"
        return "uint64" if info.category is Category.INTEGER and info.min == 0 else "int64"

    return promotion.each(dtypes, of_one)


def _reduction(name: str) -> None:
    @model(f"numpy.{name}")
    def reduce(ctx: Context, arguments: Arguments) -> Value:
        operands = _operands(ctx, arguments.args[:1])
        if not operands or not arguments.complete:
            return TOP
        array = operands[0] if isinstance(operands[0], Array) else as_array(ctx, operands[0])
        dtypes = None if array is None else array.dtypes
        whole = len(arguments.args) == 1 and not set(arguments.keywords) - {"dtype"} and not name.startswith("cum")
        given = _asked(arguments, 2) if name in SUMS | AVERAGES - {"median", "average", "nanmedian"} else None
        if given is not None:
            return Array(dtype_named(given), True if whole else None)
        if {"out", "weights", "initial"} & set(arguments.keywords):
            return Array(None, None)
        if name in _QUANTILES:
            asked = arguments.get(1, "q")
            number = asked is not None and category_of(asked) in (Category.FLOAT, Category.INTEGER)
            if not number or "method" in arguments.keywords or len(arguments.args) > 2:
                return Array(None, None)
            if category_of(asked or NONE) is Category.INTEGER and name.endswith("quantile"):
                return Array(None, None)
        return Array(reduced_dtypes(name, dtypes), True if whole else None)


for _name in (*AVERAGES, *_QUANTILES, *SUMS, *PICKS):
    _reduction(_name)


@model(
    *(f"numpy.{name}" for name in ("argmax", "argmin", "argsort", "searchsorted", "digitize", "lexsort", "nanargmax")),
    *(f"numpy.{name}" for name in ("argpartition", "nanargmin", "flatnonzero", "argwhere", "ravel_multi_index")),
)
def _indices(ctx: Context, arguments: Arguments) -> Value:
    return Array(INT64, None) if _operands(ctx, arguments.args[:1]) else TOP


@model("numpy.bincount")
def _bincount(ctx: Context, arguments: Arguments) -> Value:
    weighed = len(arguments.args) > 1 or "weights" in arguments.keywords
    return Array(FLOAT64 if weighed else INT64 if arguments.complete else None, False)


@model("numpy.nonzero")
def _nonzero(ctx: Context, arguments: Arguments) -> Value:
    return Many(Array(INT64, False)) if _operands(ctx, arguments.args[:1]) else TOP


@model("numpy.any", "numpy.all")
def _any(ctx: Context, arguments: Arguments) -> Value:
    return Array(TRUTH, None) if _operands(ctx, arguments.args[:1]) else TOP


@model("numpy.allclose", "numpy.array_equal", "numpy.shares_memory", "numpy.isscalar", "numpy.iterable")
def _truth(ctx: Context, arguments: Arguments) -> Value:
    return Number(Category.BOOL)


@model("numpy.size", "numpy.ndim")
def _size(ctx: Context, arguments: Arguments) -> Value:
    return Number(Category.INTEGER)


@model("numpy.shape")
def _shape(ctx: Context, arguments: Arguments) -> Value:
    return Many(Number(Category.INTEGER))


@model("numpy.interp", "numpy.trapezoid")
def _interpolated(ctx: Context, arguments: Arguments) -> Value:
    operands = _operands(ctx, arguments.args[:3])
    complexes = operands is None or any(_may_be_complex(one) for one in operands)
    return TOP if operands is None else Array(None if complexes else FLOAT64, None)


def _may_be_complex(value: Value) -> bool:
    if isinstance(value, Array):
        return value.dtypes is None or any(DTYPES[one].category is Category.COMPLEX for one in value.dtypes)
    return category_of(value) is Category.COMPLEX


@model("numpy.save", "numpy.savez", "numpy.savez_compressed", "numpy.savetxt", "numpy.set_printoptions", "numpy.seterr")
def _nothing(ctx: Context, arguments: Arguments) -> Value:
    return NONE


# -- numpy.linalg --------------------------------------------------------------------------------------------------------


def _linear(dtypes: Dtypes) -> Dtypes:
    """What LAPACK computes in: whole numbers in float64; it has no float16."""
    return promotion.each(dtypes, lambda one: one if one in ("float32", "complex64", "complex128") else "float64")


@model(*(f"numpy.linalg.{name}" for name in ("inv", "pinv", "det", "cholesky")))
def _of_matrix(ctx: Context, arguments: Arguments) -> Value:
    operands = _operands(ctx, arguments.args[:1])
    made = as_array(ctx, operands[0]) if operands else None
    return TOP if made is None else Array(_linear(made.dtypes), None)


@model("numpy.linalg.norm")
def _norm(ctx: Context, arguments: Arguments) -> Value:
    operands = _operands(ctx, arguments.args[:1])
    made = as_array(ctx, operands[0]) if operands else None
    if made is None:
        return TOP
    known = len(arguments.args) == 1 and "ord" not in arguments.keywords
    dtypes = promotion.each(made.dtypes, lambda one: REAL_PARTS.get(one, one) if _is_float(one) else "float64")
    return Array(dtypes if known else None, None)


@model("numpy.linalg.svd", "numpy.linalg.eigh", "numpy.linalg.qr", "numpy.linalg.eig")
def _decomposition(ctx: Context, arguments: Arguments) -> Value:
    return Many(Array(None, False))


# -- numpy.fft -----------------------------------------------------------------------------------------------------------


@model(*(f"numpy.fft.{name}" for name in ("fft", "ifft", "rfft", "fft2", "ifft2", "rfft2", "fftn", "ifftn", "rfftn")))
def _transform(ctx: Context, arguments: Arguments) -> Value:
    """complex128 of float64 and of whole numbers; of narrower floats that depends on NumPy's release."""
    operands = _operands(ctx, arguments.args[:1])
    made = as_array(ctx, operands[0]) if operands else None
    if made is None or made.dtypes is None:
        return TOP if made is None else Array(None, False)
    wide = all(dtype in ("float64", "complex128") or not _is_float(dtype) for dtype in made.dtypes)
    return Array(frozenset({"complex128"}) if wide else None, False)


@model("numpy.fft.irfft", "numpy.fft.irfft2", "numpy.fft.irfftn")
def _back(ctx: Context, arguments: Arguments) -> Value:
    operands = _operands(ctx, arguments.args[:1])
    made = as_array(ctx, operands[0]) if operands else None
    wide = made is not None and made.dtypes is not None and made.dtypes <= {"float64", "complex128", "int64"}
    return Array(frozenset({"float64"}) if wide else None, False)


@model("numpy.fft.fftfreq", "numpy.fft.rfftfreq")
def _frequencies(ctx: Context, arguments: Arguments) -> Value:
    return Array(frozenset({"float64"}), False)
