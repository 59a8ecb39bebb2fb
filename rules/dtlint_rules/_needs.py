"""Groups of words that several rules need to stand in a file: what makes half, whole numbers, or any dtype that is known.

A group has to be complete: where none of its words stands, no value of the file is what the group is about. Two things
come without a word, and no group has them: a comparison gives bool, and arithmetic of bool and numbers the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import ALIASES, LEGACY_TENSORS, Category
from dtlint.dtypes.dtype import DTYPES as _DTYPES
from dtlint_rules._casts import CAST_METHODS
from dtlint_rules._effects import FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "CASTS",
    "COMPARED_NUMBERS",
    "DTYPES",
    "ENGINES",
    "HALF",
    "HALF_BY_NAME",
    "INTEGERS",
    "KNOWN",
    "LEGACY",
    "SMALL",
    "STRINGS",
    "TORCH",
    "attributes",
]


def attributes(names: Iterable[str], *, of_self: bool = False) -> tuple[str, ...]:
    """The words for methods of tensors and functions of torch, by their last names: neither is an attribute of `self`,
    unless a rule judges what is called on that, too."""
    last = sorted({name.rpartition(".")[2] for name in names})
    return tuple(f"{before}.{name}" for before in (("", "self") if of_self else ("",)) for name in last)


TORCH = ("torch",)
"""Who imports nothing of torch has no tensors that inference knows, but for parameters on which methods are called that
only tensors have. A dtype of those that is wrong for certain has not been met in any such file."""

CASTS = attributes(CAST_METHODS)

HALF_BY_NAME = (".half", "self.half", '"half', "float16", "bfloat16", "HalfTensor", "BFloat16Tensor")
"""How a program asks for half itself."""
ENGINES = ("deepspeed",)
"""What casts the weights of a model to half as a file of settings says."""
HALF = (*HALF_BY_NAME, *ENGINES, "autocast", "Float16", "BFloat16")
"""What makes a tensor half: autocast and DeepSpeed do, and jaxtyping says so."""

SMALL = (
    *("int8", "uint8", "int16", "uint16", ".char", ".byte", ".short"),
    *("CharTensor", "ByteTensor", "ShortTensor", "read_image"),
)
"""What makes a tensor of integers of a byte or two."""

_INTEGRAL = {name for name, dtype in _DTYPES.items() if dtype.category <= Category.INTEGER}
_INTEGER_CASTS = {method for method, dtype in ALIASES.items() if dtype in _INTEGRAL} | {"bool"}
INTEGERS = (
    *attributes(_INTEGER_CASTS),
    *sorted(_INTEGRAL - {"bool"}),
    *sorted(name for name, dtype in LEGACY_TENSORS.items() if dtype in _INTEGRAL),
    *("dtype=int", "dtype=bool", 'dtype":int', 'dtype":bool', "(int)", "(bool)"),
    *("numpy", "jaxtyping"),
    # factories that make whole numbers of whole numbers, or of none
    *attributes(("randint", "randint_like", "randperm", "arange", "range", "full", "tensor", "as_tensor", "asarray")),
    *attributes(("where", "one_hot", "from_numpy", "frombuffer", "tril_indices", "triu_indices", "bincount")),
    # ops whose result is of integers or bools, whatever they are given: tests/rules/test_needs.py asks the operator table
    *attributes(("all", "any", "argmax", "argmin", "argsort", "argwhere", "bucketize", "count_nonzero", "nonzero")),
    *attributes(
        ("cummax", "cummin", "kthvalue", "max", "median", "min", "mode", "nanmedian", "sort", "topk", "unique")
    ),
    *attributes(("eq", "ne", "ge", "gt", "le", "lt", "greater", "greater_equal", "less", "less_equal", "not_equal")),
    *attributes(
        ("equal", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "signbit")
    ),
    *attributes(("logical_and", "logical_not", "logical_or", "logical_xor", "multinomial", "searchsorted", "frexp")),
    *attributes(("cholesky_ex", "hash_tensor", "inv_ex", "ldl_factor", "ldl_factor_ex", "lstsq", "lu_factor", "clip")),
    *attributes(("lu_factor_ex", "matrix_rank", "solve_ex")),
    "return_indices",  # of pooling
    "*_with_indices*",
)
"""What makes a tensor of integers or bools, but for comparisons."""

KNOWN = (
    *INTEGERS,
    *CASTS,
    *attributes((*FACTORIES, "hann_window", "hamming_window")),
    *sorted(_DTYPES.keys() - {"bool"}),
    *LEGACY_TENSORS,
    "autocast",
    *ENGINES,
)
"""What gives a tensor a dtype that is known, but for comparisons."""

DTYPES = attributes((*_DTYPES, *ALIASES))
"""The dtypes of torch, as programs name them."""
STRINGS = ('"torch', *(f'"{name}' for name in (*_DTYPES, *ALIASES)))
"""Strings that name a dtype or a type of tensors."""
LEGACY = tuple(LEGACY_TENSORS)
COMPARED_NUMBERS = tuple(
    compared
    for number in ("float", "int", "bool")
    for compared in (
        *(f"{operator}{number}" for operator in ("==", "!=", "is", "isnot", "in(")),
        *(f"{number}{operator}" for operator in ("==", "!=")),
    )
)
"""Comparisons with Python's types of numbers."""
