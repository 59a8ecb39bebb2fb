"""NumPy, as far as torch meets it: the dtypes of arrays, so that `from_numpy` and `torch.tensor` are known.

Every line of the tests was run on NumPy 2.4. Before NumPy 2 the platform's integer is int32 on Windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, REAL_PARTS, Category
from dtlint.infer.array_promotion import floated, joined, mixed, of_numbers, scalar_of
from dtlint.infer.symbols import category_of
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Array,
    Constant,
    External,
    Items,
    Iteration,
    Number,
    Picture,
    Tensor,
    Value,
    options,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.calls import Arguments
    from dtlint.infer.values import Dtypes

__all__ = ["array_call", "array_method", "of_arrays", "picture_method"]

_FLOAT64, _INT64, _UINT8 = frozenset({"float64"}), frozenset({"int64"}), frozenset({"uint8"})

_DTYPES = {
    **{name: name for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64")},
    **{name: name for name in ("uint8", "uint16", "uint32", "uint64", "complex64", "complex128", "bool")},
    "half": "float16",
    "single": "float32",
    "double": "float64",
    "float_": "float64",
    "float": "float64",
    "int_": "int64",
    "int": "int64",
    "intp": "int64",
    "longlong": "int64",
    "intc": "int32",
    "short": "int16",
    "byte": "int8",
    "ubyte": "uint8",
    "ushort": "uint16",
    "uint": "uint64",
    "bool_": "bool",
    "complex_": "complex128",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "f": "float32",
    "d": "float64",
    "e": "float16",
    "i": "int32",
    "i4": "int32",
    "i8": "int64",
    "u1": "uint8",
    "i1": "int8",
    "i2": "int16",
    "complex": "complex128",
}
"""NumPy's names of dtypes, as attributes of the module, as strings, and Python's own types."""


def _dtype(value: Value | None) -> Dtypes:
    """The dtypes that a `dtype=` argument names."""
    if value is None:
        return None
    found = set()
    for choice in options(value):
        name = ""
        if isinstance(choice, External) and choice.name.startswith(("numpy.", "builtins.")):
            name = choice.name.partition(".")[2]
        elif isinstance(choice, Constant) and isinstance(choice.value, str):
            name = choice.value.lstrip("<>=")
        if name not in _DTYPES:
            return None
        found.add(_DTYPES[name])
    return frozenset(found)


def of_arrays(value: Value | None) -> Tensor | None:
    """The tensor that `torch.tensor`, `torch.as_tensor` and `torch.from_numpy` make of an array, or of a list of them."""
    if isinstance(value, Array):
        return Tensor(value.dtypes, zero_dim=value.scalar)
    if isinstance(value, (Items, Iteration)):
        items = value.items if isinstance(value, Items) else (value.item,)
        first = items[0] if items else None
        if isinstance(first, Array) and all(isinstance(item, Array) and item.dtypes == first.dtypes for item in items):
            return Tensor(first.dtypes, zero_dim=False)
    return None


# -- functions --------------------------------------------------------------------------------------------------------

Maker = Callable[[str, "Arguments"], Value]

_ZEROS = frozenset(
    {"zeros", "ones", "empty", "eye", "identity", "linspace", "logspace", "geomspace", "hanning", "hamming"}
)
_LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "full_like"})
_FOR_TWO_FLOATS = frozenset({"arctan2", "hypot", "true_divide", "divide"})
_FOR_FLOATS = _FOR_TWO_FLOATS | frozenset(
    {"sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "tanh"}
    | {"sinh", "cosh", "deg2rad", "rad2deg", "radians", "degrees", "exp2", "cbrt"}
)
_KEEPING = frozenset(
    {
        "abs",
        "absolute",
        "negative",
        "square",
        "clip",
        "round",
        "around",
        "sort",
        "flip",
        "fliplr",
        "flipud",
        "roll",
        "squeeze",
    }
    | {
        "transpose",
        "reshape",
        "ravel",
        "expand_dims",
        "moveaxis",
        "rollaxis",
        "swapaxes",
        "repeat",
        "tile",
        "pad",
        "diff",
    }
    | {"ascontiguousarray", "copy", "rot90", "unique", "take", "broadcast_to", "diag", "triu", "tril", "amax", "amin"}
)
"""Functions whose result has the first array's dtype."""
_OF_ONE = frozenset({"abs", "absolute", "negative", "square", "isnan", "isinf", "isfinite", "logical_not"})
"""Functions of one array: a second is what they write into."""
_ROUNDING = frozenset({"round", "around"})
_UNSHAPED = frozenset({"squeeze", "reshape", "amax", "amin", "take", "diag", "clip"})
"""Functions that may give an array without dimensions for one with some."""
_MIXING = frozenset(
    {"add", "subtract", "multiply", "maximum", "minimum", "power", "mod", "dot", "matmul", "cross", "fmax"}
)
_JOINING = frozenset({"concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"})
_AVERAGES = frozenset({"mean", "std", "var", "median", "average", "nanmean", "nanstd", "percentile", "quantile"})
_QUANTILES = frozenset({"percentile", "quantile"})
_SPREADS = frozenset({"std", "var", "nanstd"})
"""What is real of complex numbers too."""
_SUMS = frozenset({"sum", "prod", "cumsum", "cumprod", "nansum"})
_PICKS = frozenset({"max", "min", "nanmax", "nanmin", "ptp"})
_INDICES = frozenset(
    {"argmax", "argmin", "argsort", "searchsorted", "bincount", "count_nonzero", "digitize", "lexsort"}
)
_TRUTHS = frozenset(
    {"isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_not", "isclose", "isin", "greater"}
)
_DRAWS = frozenset({"rand", "randn", "random", "random_sample", "standard_normal", "ranf"})
_DISTRIBUTIONS = frozenset({"uniform", "normal", "beta", "gamma", "exponential", "laplace", "lognormal", "dirichlet"})
_OF_ONE_PARAMETER = frozenset({"exponential", "dirichlet", "poisson", "geometric"})
"""Distributions whose sizes come second."""
_INTEGERS = frozenset({"randint", "integers", "poisson", "binomial", "geometric"})


def array_call(name: str, arguments: Arguments) -> Value | None:
    """What a function of NumPy, PIL or OpenCV gives, by its qualified name; None for one that is not known."""
    if not name.startswith("numpy."):
        maker = _PICTURES.get(name)
        return None if maker is None else maker(name, arguments)
    package, _, last = name.rpartition(".")
    if package == "numpy":
        return _numpy(last, arguments)
    return _random(last, arguments) if package == "numpy.random" else None


def _numpy(name: str, arguments: Arguments) -> Value | None:
    first = arguments.get(0, "a")
    given = arguments.keywords.get("dtype", NONE)
    if given == NONE and name in _DTYPE_PLACES and len(arguments.args) > _DTYPE_PLACES[name]:
        given = arguments.args[_DTYPE_PLACES[name]]
    origin = arguments.node
    shaped = _shaped(arguments.get(0, "shape")) if name in _SIZED else None if name in _MAYBE_SCALAR else False
    if given != NONE:
        return Array(_dtype(given), shaped, origin) if name in _MADE else None
    if not arguments.complete or "out" in arguments.keywords:
        return None
    if name in _ZEROS:
        between = name in _BETWEEN and not all(map(_is_real, _ends(arguments)))
        return Array(None if between else _FLOAT64, shaped, origin)
    if name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
        return replace(_of_data(first, arguments), origin=origin)
    if name == "full":
        return Array(of_numbers(arguments.args[1:2]), shaped, origin)
    if name == "arange":
        numbers = [_plain(value) for value in arguments.args]
        known = not any(isinstance(value, Array) for value in numbers)
        return Array(of_numbers([*numbers, Constant(0)]) if known else None, False, origin)
    if name in _DTYPES and name not in ("float", "int", "bool", "complex"):
        inner = arguments.args[0] if arguments.args else Constant(0)
        if isinstance(inner, Array):
            return Array(frozenset({_DTYPES[name]}), inner.scalar, origin)
        scalar = True if isinstance(inner, (Constant, Number)) else False if isinstance(inner, Items) else None
        return Array(frozenset({_DTYPES[name]}), scalar, origin)
    if name in ("frombuffer", "fromfile", "genfromtxt", "loadtxt"):
        return Array(_FLOAT64 if name == "loadtxt" else None, None, origin)
    if name == "where" and len(arguments.args) == 3:
        return _where(arguments)
    return _of_arrays(name, arguments)


def _shaped(size: Value | None) -> bool | None:
    """Is an array of this size a scalar, or becomes one? `()` has no dimensions, and what is computed of it is a scalar."""
    sized = isinstance(size, Number) or (isinstance(size, Constant) and isinstance(size.value, int))
    return False if sized or (isinstance(size, Items) and size.items) else None


def _ends(arguments: Arguments) -> list[Value]:
    """What `linspace` and its like go between."""
    return [*arguments.args[:2], *(value for name, value in arguments.keywords.items() if name in ("start", "stop"))]


def _is_real(value: Value) -> bool:
    category = category_of(value)
    return not isinstance(value, Array) and category is not None and category <= Category.FLOAT


def _plain(value: Value) -> Value:
    """NumPy's own default integers and floats count for `arange` like Python's numbers."""
    if isinstance(value, Array) and value.dtypes in (_INT64, _FLOAT64):
        return Number(Category.INTEGER if value.dtypes == _INT64 else Category.FLOAT)
    return value


_SIZED = frozenset({"zeros", "ones", "empty", "full"})
_BETWEEN = frozenset({"linspace", "logspace", "geomspace", "hanning", "hamming"})
"""What makes numbers between others: float64, if those are Python's."""
_DTYPE_PLACES = {
    **dict.fromkeys(("zeros", "ones", "empty", "identity", "array", "asarray", "asanyarray", "ascontiguousarray"), 1),
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like"), 1),
    **dict.fromkeys(("sum", "prod", "cumsum", "cumprod", "nansum", "mean", "std", "var", "nanmean", "full"), 2),
    "full_like": 2,
    "eye": 3,
    "arange": 3,
    "linspace": 5,
    "logspace": 5,
    "geomspace": 4,
}
"""Where `dtype` stands among the arguments by position."""
_MADE = (
    _ZEROS
    | _LIKE
    | _SUMS
    | _AVERAGES
    | {"array", "asarray", "asanyarray", "ascontiguousarray", "arange", "full", "frombuffer"}
) | {"fromfile", "fromiter", "loadtxt", "genfromtxt", "memmap"}
"""Functions that give an array of the dtype that they are asked for."""
_MAYBE_SCALAR = _LIKE | _SUMS | _AVERAGES | {"array", "asarray", "full"}


def _of_arrays(name: str, arguments: Arguments) -> Value | None:
    """A function of one array, or several."""
    args, origin = arguments.args, arguments.node
    first = args[0] if args else None
    if name in _JOINING:
        items = first.items if isinstance(first, Items) else (first.item,) if isinstance(first, Iteration) else ()
        return Array(joined(items) if items else None, False, origin)
    if name in _INDICES:
        return Array(_INT64 if name != "bincount" or _is_alone(arguments, "minlength") else None, None, origin)
    if name in _FOR_FLOATS or name in _MIXING:
        return _computed(name, args, arguments)
    if not isinstance(first, Array) or (name in _OF_ONE and len(args) > 1):
        return None
    if name in _LIKE:
        return Array(first.dtypes, first.scalar, origin)
    if name == "clip":
        return _clipped(first, args[1:], arguments)
    if name in _KEEPING:
        if name == "unique" and not _is_alone(arguments, "axis"):
            return None  # a tuple
        keeps = first.scalar is False and name not in _UNSHAPED
        return Array(_kept_dtypes(name, first.dtypes), False if keeps else None, origin)
    if name in _AVERAGES or name in _SUMS or name in _PICKS:
        return _reduced(name, first, arguments)
    return Array(frozenset({"bool"}), None, origin) if name in _TRUTHS and len(args) <= 2 else None


def _is_alone(arguments: Arguments, *harmless: str) -> bool:
    """Is it the only argument, aside from these?"""
    return len(arguments.args) == 1 and set(arguments.keywords) <= set(harmless)


def _computed(name: str, args: Sequence[Value], arguments: Arguments) -> Array | None:
    """A function that computes element by element, or with matrices: what it is given beyond is written into."""
    if not all(isinstance(value, (Array, Constant, Number)) for value in args):
        return None
    if len(args) != (2 if name in _MIXING or name in _FOR_TWO_FLOATS else 1):
        return None
    matrices = name in ("dot", "matmul", "cross")
    arrays = any(isinstance(value, Array) for value in args)
    dtypes = joined(args) if matrices else mixed(args) if arrays else of_numbers(args)
    if name in ("true_divide", "divide"):
        dtypes = _FLOAT64 if dtypes is not None and _is_whole(dtypes) else dtypes
    elif name in _FOR_FLOATS:
        dtypes = floated(dtypes)
    elif name in ("power", "mod") and dtypes is not None and "bool" in dtypes:
        dtypes = frozenset({"int8"})
    return Array(dtypes, None if matrices else scalar_of(args), arguments.node)


def _is_whole(dtypes: Dtypes) -> bool:
    return dtypes is not None and all(DTYPES[name].category < Category.FLOAT for name in dtypes)


def _clipped(array: Array, bounds: Sequence[Value], arguments: Arguments) -> Array:
    """`np.clip(array, low, high)` promotes all three."""
    bounds = [value for value in (*bounds, *arguments.keywords.values()) if value != NONE]
    known = set(arguments.keywords) <= {"min", "max", "a_min", "a_max"} and len(bounds) <= 2
    return Array(mixed([array, *bounds]) if known else None, scalar_of([array, *bounds]), arguments.node)


def _kept_dtypes(name: str, dtypes: Dtypes) -> Dtypes:
    """The dtypes of the first array, as a function of its numbers keeps them."""
    if dtypes is None:
        return None
    if name in ("abs", "absolute"):
        return frozenset(REAL_PARTS.get(dtype, dtype) for dtype in dtypes)
    lifted = {"square": "int8", **dict.fromkeys(_ROUNDING, "float16")}.get(name, "bool")
    return frozenset(lifted if dtype == "bool" else dtype for dtype in dtypes)


def _reduced(name: str, array: Array, arguments: Arguments, given: int = 1) -> Array:
    whole = len(arguments.args) <= given and not arguments.keywords and not name.startswith("cum")
    asked = name in _QUANTILES and not (
        len(arguments.args) <= 2
        and set(arguments.keywords) <= {"axis", "keepdims", "q"}
        and all(_is_fraction(name, value) for value in (*arguments.args[1:2], arguments.keywords.get("q", _HALF)))
    )
    dtypes = None if asked or {"out", "weights"} & set(arguments.keywords) else _reduced_dtypes(name, array.dtypes)
    return Array(dtypes, True if whole else None, arguments.node)


_HALF = Constant(0.5)


def _is_fraction(name: str, value: Value) -> bool:
    """Does it say for certain that numbers between those of the array are asked for? The quantiles 0 and 1 are none."""
    if isinstance(value, Array):
        return False
    category = category_of(value)
    return category is Category.FLOAT or (name == "percentile" and category is Category.INTEGER)


def _reduced_dtypes(name: str, dtypes: Dtypes) -> Dtypes:
    if name in _PICKS or dtypes is None or len(dtypes) != 1:
        return dtypes if name in _PICKS else None
    info = DTYPES[next(iter(dtypes))]
    if info.category >= Category.FLOAT:
        return frozenset({REAL_PARTS.get(info.name, info.name)}) if name in _SPREADS else dtypes
    if name in _AVERAGES:
        return _FLOAT64
    return frozenset({"uint64"}) if info.category is Category.INTEGER and info.min == 0 else _INT64


def _where(arguments: Arguments) -> Array:
    operands = arguments.args[1:]
    if any(isinstance(value, Array) for value in operands):
        return Array(mixed(operands), None, arguments.node)
    return Array(of_numbers(operands), None, arguments.node)


def _of_data(data: Value | None, arguments: Arguments) -> Array:
    """`np.array(data)`: of an array, a tensor, a picture, or literal numbers in lists."""
    if isinstance(data, Array):  # of a scalar an array without dimensions
        return replace(data, scalar=False if data.scalar is False else None)
    if isinstance(data, Picture):
        return Array(data.dtypes, False)
    if isinstance(data, Tensor):
        known = data.dtypes is not None and "bfloat16" not in data.dtypes
        return Array(data.dtypes if known else None, False if data.zero_dim is False else None)
    leaves = _leaves(data)
    shaped = False if isinstance(data, (Items, Iteration)) else None
    if leaves is None or any(isinstance(leaf, Tensor) for leaf in leaves):
        return Array(None, shaped)
    return Array(of_numbers(leaves), shaped)


def _leaves(data: Value | None) -> list[Value] | None:
    """The numbers and arrays in nested lists; None where those are not all in view."""
    if isinstance(data, Iteration):  # of none it is float64
        return [data.item] if category_of(data.item) is Category.FLOAT else None
    if not isinstance(data, Items):
        return None if data is None else [data]
    found: list[Value] = []
    for item in data.items:
        inner = _leaves(item)
        if inner is None or len(found) > 1_000:
            return None
        found += inner
    return found


def _random(name: str, arguments: Arguments) -> Value | None:
    """A draw of numpy.random: an array where sizes are given, else a Python number."""
    first, origin = arguments.args[0] if arguments.args else None, arguments.node
    size = arguments.keywords.get("size")
    if name in _DRAWS:
        sized = bool(arguments.args) or size is not None
        return Array(_FLOAT64, False, origin) if sized else Number(Category.FLOAT)
    if name in _DISTRIBUTIONS or name in _INTEGERS:
        asked = arguments.keywords.get("dtype")
        dtypes = _dtype(asked) if asked is not None else _FLOAT64 if name in _DISTRIBUTIONS else _INT64
        place = 1 if name in _OF_ONE_PARAMETER else 2
        if len(arguments.args) > place + 1:
            dtypes = None
        if size not in (None, NONE) or len(arguments.args) > place:
            return Array(dtypes, False, origin)
        numbers = all(isinstance(value, (Constant, Number)) for value in arguments.args) and asked is None
        category = Category.FLOAT if name in _DISTRIBUTIONS else Category.INTEGER
        return Number(category) if numbers and arguments.complete else None
    if name in ("permutation", "choice"):
        if isinstance(first, Array):  # one without dimensions is a count
            return Array(first.dtypes, None, origin) if first.scalar is False else None
        counted = isinstance(first, Number) or (isinstance(first, Constant) and isinstance(first.value, int))
        sized = name == "permutation" or size is not None or len(arguments.args) > 1
        return Array(_INT64, False, origin) if counted and sized else None
    return None


# -- methods ----------------------------------------------------------------------------------------------------------

_SHAPING = frozenset({"transpose", "ravel", "flatten", "copy", "swapaxes", "repeat", "squeeze", "reshape"})


def array_method(array: Array, method: str, arguments: Arguments) -> Value:
    """What a method of an array gives."""
    given = arguments.get(1 if method in _SUMS | _AVERAGES else 0, "dtype")
    if method in ("astype", "view"):
        return Array(_dtype(given), array.scalar, arguments.node) if given is not None else Array(None, None)
    if method in _SHAPING:
        return replace(array, scalar=False if array.scalar is False and method not in _UNSHAPED else None)
    if method == "round":
        return replace(array, dtypes=_kept_dtypes(method, array.dtypes))
    if method == "clip":
        return _clipped(array, arguments.args, arguments)
    if method in _SUMS or method in _AVERAGES:
        if given is not None and given != NONE:
            return Array(_dtype(given), None, arguments.node)
        return _reduced(method, array, arguments, 0)
    if method in _PICKS:
        return _reduced(method, array, arguments, 0)
    if method in ("argmax", "argmin", "argsort") and len(arguments.args) <= 1:
        return Array(_INT64, None, arguments.node)
    if method == "dot" and len(arguments.args) == 1:
        return Array(joined([array, arguments.args[0]]), None, arguments.node)
    if method == "item" and array.dtypes is not None and len(array.dtypes) == 1:
        return Number(DTYPES[next(iter(array.dtypes))].category)
    return UNKNOWN


# -- pictures ---------------------------------------------------------------------------------------------------------

_MODES = {
    **dict.fromkeys(("RGB", "RGBA", "L", "CMYK", "YCbCr", "HSV", "LAB", "P"), "uint8"),
    "F": "float32",
    "I": "int32",
}
"""The dtype of `np.array(image)` by the mode that an image of PIL was converted to."""


def picture_method(picture: Picture, method: str, arguments: Arguments) -> Value:
    """A method of an image of PIL that gives another."""
    if method == "convert":
        mode = arguments.get(0, "mode")
        dtype = _MODES.get(mode.value) if isinstance(mode, Constant) and isinstance(mode.value, str) else None
        return Picture(None if dtype is None else frozenset({dtype}))
    return picture if method in ("resize", "crop", "rotate", "transpose", "copy", "filter", "transform") else UNKNOWN


def _opened(name: str, arguments: Arguments) -> Value:
    return Picture()


def _read(name: str, arguments: Arguments) -> Value:
    """`cv2.imread(path)`: without flags always 8 bits."""
    return Array(_UINT8 if len(arguments.args) == 1 and not arguments.keywords else None, False, arguments.node)


def _decoded(name: str, arguments: Arguments) -> Value:
    """`to_tensor(image)`: a picture of 8 bits is divided by 255, whatever else keeps its dtype."""
    given = arguments.args[0] if arguments.args else None
    if isinstance(given, (Picture, Array)) and given.dtypes is not None:
        return Tensor(
            arguments.default if given.dtypes == _UINT8 else given.dtypes, zero_dim=False, origin=arguments.node
        )
    return Tensor(zero_dim=False, origin=arguments.node)


def _kept(name: str, arguments: Arguments) -> Value:
    given = arguments.args[0] if arguments.args else None
    return Array(given.dtypes if isinstance(given, Array) else None, False, arguments.node)


_PICTURES: dict[str, Maker] = {
    "PIL.Image.open": _opened,
    "cv2.imread": _read,
    "cv2.cvtColor": _kept,
    "cv2.resize": _kept,
    "torchvision.transforms.functional.to_tensor": _decoded,
}
