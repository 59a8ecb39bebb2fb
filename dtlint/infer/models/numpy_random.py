"""What `numpy.random` draws: float64 and int64 arrays where sizes are given, else numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.lattice import category_of
from dtlint.infer.domain.values import NONE, TOP, Array, Const, Number, Value
from dtlint.infer.models.array_dtypes import dtype_named
from dtlint.infer.models.arrays import as_array
from dtlint.infer.models.numpy_models import FLOAT64, INT64
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

_LEGACY = ("numpy.random", "numpy.random.RandomState")
_GENERATOR = "numpy.random.Generator"
_FLOAT, _INTEGER = Number(Category.FLOAT), Number(Category.INTEGER)


@model("numpy.random.default_rng")
def _generator(ctx: Context, arguments: Arguments) -> Value:
    return ctx.allocate(arguments.node, _GENERATOR)


@model("numpy.random.RandomState")
def _state(ctx: Context, arguments: Arguments) -> Value:
    return ctx.allocate(arguments.node, "numpy.random.RandomState")


def _drawn(dtypes: frozenset[str] | None, number: Value, size: Value | None, numbers: bool) -> Value:
    """An array where a size is given, a number where none is and the parameters are numbers."""
    if size is not None and size != NONE:
        known = category_of(size) is Category.INTEGER or not isinstance(size, Const)
        return Array(dtypes, False if known else None)
    return number if numbers else TOP


def _parameters(arguments: Arguments, first: int, count: int) -> bool:
    """Are all parameters of a distribution Python's numbers?"""
    return all(category_of(value) is not None for value in arguments.args[first : first + count])


def _draw(owner: str, name: str, place: int) -> None:
    """`rand(3)`, `random(3)`: sizes alone, the first from `place` on."""
    first = 1 if owner != "numpy.random" else 0

    @model(f"{owner}.{name}")
    def draw(ctx: Context, arguments: Arguments) -> Value:
        asked = arguments.get(first + 1, "dtype") if owner == _GENERATOR else None
        dtypes = FLOAT64 if asked is None else dtype_named(asked)
        size = arguments.get(first, "size")
        if name in ("rand", "randn"):
            size = arguments.args[first] if len(arguments.args) > first else None
            return Array(dtypes, False) if size is not None else _FLOAT if arguments.complete else TOP
        return _drawn(dtypes, _FLOAT if asked is None else TOP, size, arguments.complete)


def _distribution(owner: str, name: str, count: int, integers: bool) -> None:
    """`normal(0, 1, 3)`: parameters, then the size."""
    first = 1 if owner != "numpy.random" else 0

    @model(f"{owner}.{name}")
    def draw(ctx: Context, arguments: Arguments) -> Value:
        dtypes, number = (INT64, _INTEGER) if integers else (FLOAT64, _FLOAT)
        size = arguments.get(first + count, "size")
        plain = arguments.complete and _parameters(arguments, first, count)
        plain = plain and all(category_of(one) is not None for key, one in arguments.keywords.items() if key != "size")
        return _drawn(dtypes, number, size, plain and not (integers and owner == _GENERATOR))


for _owner in (*_LEGACY, _GENERATOR):
    for _name in ("rand", "randn", "random", "random_sample", "standard_normal", "ranf", "sample"):
        _draw(_owner, _name, 0)
    for _name, _count in (
        *(("uniform", 2), ("normal", 2), ("beta", 2), ("gamma", 2), ("laplace", 2), ("lognormal", 2), ("gumbel", 2)),
        *(("logistic", 2), ("exponential", 1), ("rayleigh", 1), ("standard_gamma", 1), ("chisquare", 1), ("pareto", 1)),
    ):
        _distribution(_owner, _name, _count, False)
    for _name, _count in (("poisson", 1), ("binomial", 2), ("geometric", 1)):
        _distribution(_owner, _name, _count, True)


def _integers(owner: str, name: str) -> None:
    first = 1 if owner != "numpy.random" else 0

    @model(f"{owner}.{name}")
    def draw(ctx: Context, arguments: Arguments) -> Value:
        asked = arguments.get(first + 3, "dtype")
        size = arguments.get(first + 2, "size")
        dtypes = INT64 if asked is None else dtype_named(asked)
        plain = arguments.complete and _parameters(arguments, first, 2)
        if owner == _GENERATOR or asked is not None:
            return _drawn(dtypes, Array(dtypes, True) if owner == _GENERATOR else TOP, size, plain)
        return _drawn(dtypes, _INTEGER, size, plain)


for _owner in _LEGACY:
    _integers(_owner, "randint")
_integers(_GENERATOR, "integers")


def _choosing(owner: str) -> None:
    first = 1 if owner != "numpy.random" else 0

    @model(f"{owner}.choice")
    def choose(ctx: Context, arguments: Arguments) -> Value:
        given = arguments.get(first, "a")
        size = arguments.get(first + 1, "size")
        if given is None or not arguments.complete:
            return TOP
        if category_of(given) is Category.INTEGER:
            return _drawn(INT64, _INTEGER, size, True)
        made = as_array(ctx, given)
        if made is None or made.scalar is not False:
            return TOP
        alone = Array(made.dtypes, None)
        return _drawn(made.dtypes, alone, size, True)

    @model(f"{owner}.permutation")
    def permute(ctx: Context, arguments: Arguments) -> Value:
        given = arguments.get(first, "x")
        if given is None:
            return TOP
        if category_of(given) is Category.INTEGER:
            return Array(INT64, False)
        made = as_array(ctx, given)
        return TOP if made is None or made.scalar is not False else Array(made.dtypes, False)

    @model(f"{owner}.shuffle")
    def shuffle(ctx: Context, arguments: Arguments) -> Value:
        given = arguments.get(first, "x")
        if given is not None and not isinstance(given, Array):
            ctx.modules.escape(ctx, [given])
        return NONE

    @model(f"{owner}.seed")
    def seed(ctx: Context, arguments: Arguments) -> Value:
        return NONE


for _owner in (*_LEGACY, _GENERATOR):
    _choosing(_owner)
