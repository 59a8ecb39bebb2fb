"""NumPy, as far as torch meets it: the dtypes of arrays, so that `from_numpy` and `torch.tensor` are known.

Promotion is NumPy 2's: Python's numbers are weak, NumPy's own scalars are not. Source: NEP 50; every line of the tests
was run on NumPy 2.4. Before NumPy 2 the platform's integer is int32 on Windows.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.dtypes.promotion import promote
from dtlint.infer.values import (
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

__all__ = ["array_call", "array_method", "array_operator", "as_operand", "of_arrays", "picture_method"]

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


# -- promotion --------------------------------------------------------------------------------------------------------


def _promoted(left: str, right: str) -> str | None:
    """`numpy.promote_types` for the dtypes that both have: an integer that a float cannot hold lifts it."""
    a, b = DTYPES[left], DTYPES[right]
    if a.category > b.category:
        a, b = b, a
    if a.category is Category.INTEGER and b.category is Category.FLOAT:
        lifted = "float64" if a.bits >= 32 else "float32" if a.bits == 16 else "float16"
        return lifted if DTYPES[lifted].bits > b.bits else b.name
    if a.category is b.category is Category.INTEGER and (a.min < 0) is not (b.min < 0):
        unsigned = a if a.min == 0 else b
        needed = max(a.bits, b.bits) if unsigned.bits < max(a.bits, b.bits) else 2 * unsigned.bits
        return f"int{needed}" if needed <= 64 else "float64"
    if a.category is b.category:
        return a.name if a.bits >= b.bits else b.name
    return b.name if a.category is Category.BOOL else promote(left, right) if b.category is Category.COMPLEX else None


def _with_number(dtype: str, number: Category) -> str:
    """The dtype of an array and a Python number: the array's, unless the number is of a higher category."""
    if DTYPES[dtype].category >= number:
        return dtype
    return {Category.INTEGER: "int64", Category.FLOAT: "float64"}.get(number, "complex128")


def _strong(value: Value) -> Dtypes:
    return value.dtypes if isinstance(value, Array) else None


def _mixed(operands: Sequence[Value]) -> Dtypes:
    """The dtype of an elementwise operation on arrays and numbers; None where it is not known."""
    from dtlint.infer.symbols import category_of

    result: str | None = None
    numbers: list[Category] = []
    for value in operands:
        if isinstance(value, Array):
            if value.dtypes is None or len(value.dtypes) != 1:
                return None
            (dtype,) = value.dtypes
            result = dtype if result is None else _promoted(result, dtype)
            if result is None:
                return None
        else:
            category = category_of(value)
            if category is None:
                return None
            numbers.append(category)
    if result is None:
        return None
    for category in numbers:
        result = _with_number(result, category)
    return frozenset({result})


def _scalar(operands: Sequence[Value]) -> bool | None:
    """Is what an elementwise operation gives a scalar?"""
    arrays = [value for value in operands if isinstance(value, Array)]
    if any(value.scalar is False for value in arrays):
        return False
    return True if all(value.scalar for value in arrays) else None


def _floated(dtypes: Dtypes) -> Dtypes:
    """What a function for floats makes of a dtype: a small integer becomes a small float."""
    if dtypes is None or len(dtypes) != 1:
        return None
    info = DTYPES[next(iter(dtypes))]
    if info.category >= Category.FLOAT:
        return dtypes
    return frozenset({"float16" if info.bits <= 8 else "float32" if info.bits == 16 else "float64"})


def array_operator(operator: ast.operator, left: Value, right: Value, node: ast.expr | None) -> Value:
    """Arithmetic on arrays and numbers."""
    dtypes = _mixed((left, right))
    if isinstance(operator, ast.Div) and dtypes is not None:
        dtypes = dtypes if DTYPES[next(iter(dtypes))].category >= Category.FLOAT else _FLOAT64
    return Array(dtypes, _scalar((left, right)), node)


def as_operand(value: Value) -> Value:
    """An array as torch's arithmetic takes it: a tensor of its dtype, with dimensions whatever it has."""
    if isinstance(value, Array) and value.scalar is False:
        return Tensor(value.dtypes, zero_dim=False, origin=value.origin)
    return value


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
_FOR_FLOATS = frozenset(
    {"sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "tanh"}
    | {"sinh", "cosh", "deg2rad", "rad2deg", "radians", "degrees", "exp2", "cbrt", "arctan2", "hypot", "true_divide"}
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
_MIXING = frozenset(
    {"add", "subtract", "multiply", "maximum", "minimum", "power", "mod", "dot", "matmul", "cross", "fmax"}
)
_JOINING = frozenset({"concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"})
_AVERAGES = frozenset({"mean", "std", "var", "median", "average", "nanmean", "nanstd", "percentile", "quantile"})
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
_INTEGERS = frozenset({"randint", "integers", "poisson", "binomial", "geometric"})


def array_call(name: str, arguments: Arguments) -> Value | None:
    """What a function of NumPy, PIL or OpenCV gives, by its qualified name; None for one that is not known."""
    if name in _PICTURES:
        return _PICTURES[name](name, arguments)
    package, _, last = name.rpartition(".")
    if package == "numpy":
        return _numpy(last, arguments)
    return _random(last, arguments) if package == "numpy.random" else None


def _numpy(name: str, arguments: Arguments) -> Value | None:
    first = arguments.get(0, "a")
    given = arguments.keywords.get("dtype")
    origin = arguments.node
    if given is not None and not (isinstance(given, Constant) and given.value is None):
        scalar = None if name in _SUMS | _AVERAGES | {"array", "asarray", "full"} else False
        return Array(_dtype(given), scalar, origin) if name in _MADE else None
    if not arguments.complete:
        return None
    if name in _ZEROS:
        place = {"zeros": 1, "ones": 1, "empty": 1}.get(name)
        positional = arguments.args[place] if place is not None and len(arguments.args) > place else None
        return Array(_FLOAT64 if positional is None else _dtype(positional), False, origin)
    if name in ("array", "asarray", "asanyarray", "ascontiguousarray"):
        second = arguments.args[1] if len(arguments.args) > 1 else None
        made = _of_data(first, arguments)
        return replace(made, dtypes=made.dtypes if second is None else _dtype(second), origin=origin)
    if name in ("arange", "full"):
        numbers = arguments.args[1:2] if name == "full" else arguments.args[:3]
        return Array(_of_numbers(numbers), False if name == "arange" else None, origin)
    if name in _DTYPES and name not in ("float", "int", "bool", "complex"):
        inner = arguments.args[0] if arguments.args else None
        shaped = inner.scalar if isinstance(inner, Array) else not isinstance(inner, Items)
        return Array(frozenset({_DTYPES[name]}), shaped, origin)
    if name in ("frombuffer", "fromfile", "genfromtxt", "loadtxt"):
        return Array(_FLOAT64 if name == "loadtxt" else None, None, origin)
    if name == "where" and len(arguments.args) == 3:
        return _where(arguments)
    return _of_arrays(name, arguments)


_MADE = (
    _ZEROS
    | _LIKE
    | _SUMS
    | _AVERAGES
    | {"array", "asarray", "asanyarray", "ascontiguousarray", "arange", "full", "frombuffer"}
) | {"fromfile", "fromiter", "loadtxt", "genfromtxt", "memmap"}
"""Functions that give an array of the dtype that they are asked for."""


def _of_arrays(name: str, arguments: Arguments) -> Value | None:
    """A function of one array, or several."""
    first, origin = arguments.args[0] if arguments.args else None, arguments.node
    if name in _JOINING:
        items = first.items if isinstance(first, Items) else (first.item,) if isinstance(first, Iteration) else ()
        return Array(_mixed(items) if items else None, False, origin)
    if name in _INDICES:
        return Array(_INT64, None, origin)
    operands = [value for value in arguments.args if isinstance(value, (Array, Constant, Number))]
    if not isinstance(first, Array):
        if name in _FOR_FLOATS and isinstance(first, (Constant, Number)):
            return Array(_FLOAT64, True, origin)
        return (
            Array(_of_numbers(operands), _scalar(operands), origin) if name in _MIXING and len(operands) == 2 else None
        )
    if name in _LIKE:
        return Array(first.dtypes, first.scalar, origin)
    if name in _KEEPING:
        return Array(first.dtypes, False if first.scalar is False and name not in ("amax", "amin") else None, origin)
    if name in _FOR_FLOATS:
        return Array(_floated(first.dtypes if len(operands) == 1 else _mixed(operands)), _scalar(operands), origin)
    if name in _MIXING:
        known = len(operands) == len(arguments.args) >= 2
        return Array(
            _mixed(operands[:2]) if known else None, None if name in ("dot", "matmul") else _scalar(operands), origin
        )
    if name in _AVERAGES or name in _SUMS or name in _PICKS:
        return _reduced(name, first, arguments)
    return Array(frozenset({"bool"}), None, origin) if name in _TRUTHS else None


def _reduced(name: str, array: Array, arguments: Arguments, given: int = 1) -> Array:
    whole = len(arguments.args) <= given and not arguments.keywords and not name.startswith("cum")
    return Array(_reduced_dtypes(name, array.dtypes), True if whole else None, arguments.node)


def _reduced_dtypes(name: str, dtypes: Dtypes) -> Dtypes:
    if name in _PICKS or dtypes is None or len(dtypes) != 1:
        return dtypes if name in _PICKS else None
    info = DTYPES[next(iter(dtypes))]
    if info.category >= Category.FLOAT:
        return dtypes
    if name in _AVERAGES:
        return _FLOAT64
    return frozenset({"uint64"}) if info.category is Category.INTEGER and info.min == 0 else _INT64


def _where(arguments: Arguments) -> Array:
    operands = arguments.args[1:]
    if any(isinstance(value, Array) for value in operands):
        return Array(_mixed(operands), None, arguments.node)
    return Array(_of_numbers(operands), None, arguments.node)


def _of_numbers(values: Sequence[Value]) -> Dtypes:
    """The dtype that NumPy gives Python's numbers."""
    from dtlint.infer.symbols import category_of

    if not values:
        return None
    categories = [category_of(value) if not isinstance(value, Array) else None for value in values]
    if None in categories:
        return _mixed(values) if any(isinstance(value, Array) for value in values) else None
    highest = max(category for category in categories if category is not None)
    return frozenset({"bool"}) if highest is Category.BOOL else frozenset({_with_number("bool", highest)})


def _of_data(data: Value | None, arguments: Arguments) -> Array:
    """`np.array(data)`: of an array, a tensor, a picture, or literal numbers in lists."""
    if isinstance(data, Array):
        return data
    if isinstance(data, Picture):
        return Array(data.dtypes, False)
    if isinstance(data, Tensor):
        known = data.dtypes is not None and "bfloat16" not in data.dtypes
        return Array(data.dtypes if known else None, False if data.zero_dim is False else None)
    leaves = _leaves(data)
    shaped = False if isinstance(data, (Items, Iteration)) else None
    if leaves is None or any(isinstance(leaf, Tensor) for leaf in leaves):
        return Array(None, shaped)
    return Array(_of_numbers(leaves), shaped)


def _leaves(data: Value | None) -> list[Value] | None:
    """The numbers and arrays in nested lists; None where those are not all in view."""
    if not isinstance(data, Items):
        return [data.item] if isinstance(data, Iteration) else None if data is None else [data]
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
        if size is not None or len(arguments.args) > 2:
            return Array(dtypes, False, origin)
        numbers = all(isinstance(value, (Constant, Number)) for value in arguments.args) and asked is None
        category = Category.FLOAT if name in _DISTRIBUTIONS else Category.INTEGER
        return Number(category) if numbers and arguments.complete else None
    if name in ("permutation", "choice"):
        if isinstance(first, Array):
            return Array(first.dtypes, None, origin)
        counted = isinstance(first, Number) or (isinstance(first, Constant) and isinstance(first.value, int))
        sized = name == "permutation" or size is not None or len(arguments.args) > 1
        return Array(_INT64, False, origin) if counted and sized else None
    return None


# -- methods ----------------------------------------------------------------------------------------------------------

_SHAPING = frozenset(
    {"reshape", "transpose", "ravel", "flatten", "squeeze", "copy", "swapaxes", "repeat", "clip", "round"}
)


def array_method(array: Array, method: str, arguments: Arguments) -> Value:
    """What a method of an array gives."""
    given = arguments.get(1 if method in _SUMS | _AVERAGES else 0, "dtype")
    if method in ("astype", "view"):
        return Array(_dtype(given), array.scalar, arguments.node) if given is not None else Array(None, None)
    if method in _SHAPING:
        return replace(array, scalar=False if array.scalar is False else None)
    if method in _SUMS or method in _AVERAGES:
        if given is not None:
            return Array(_dtype(given), None, arguments.node)
        return _reduced(method, array, arguments, 0)
    if method in _PICKS:
        return _reduced(method, array, arguments, 0)
    if method in ("argmax", "argmin", "argsort"):
        return Array(_INT64, None, arguments.node)
    if method == "dot" and arguments.args:
        return Array(_mixed([array, arguments.args[0]]), None, arguments.node)
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
    return Array(_strong(given) if given is not None else None, False, arguments.node)


_PICTURES: dict[str, Maker] = {
    "PIL.Image.open": _opened,
    "cv2.imread": _read,
    "cv2.cvtColor": _kept,
    "cv2.resize": _kept,
    "torchvision.transforms.functional.to_tensor": _decoded,
}
