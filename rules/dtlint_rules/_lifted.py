"""Is what an expression gives float32 or wider for certain, because a tensor of that dtype met the others in it?

Inference says what is proved of a value. Of `torch.randn(3) * x`, where nothing is known of `x`, it says nothing: it may be
float32, float64 or complex. But it is not half, and that is all that a rule about half asks.
"""

from __future__ import annotations

import ast
import re
from enum import IntEnum
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import Tensor
from dtlint.infer.walk import nodes
from dtlint_rules._assignments import assignments
from dtlint_rules._effects import TORCH, WIDE
from dtlint_rules._functions import parameters
from dtlint_rules._kept import kept
from dtlint_rules._meanings import is_device, names_dtype
from dtlint_rules._names import last_name
from dtlint_rules._parts import given, keyword
from dtlint_rules._statements import around, block_of
from dtlint_rules._within import statement_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.infer.events import Flow

__all__ = ["is_lifted"]


class _Width(IntEnum):
    """What is certain of an expression."""

    UNKNOWN = 0
    WIDE = 1
    """It is no half tensor. One of no dimensions lifts nothing that it meets."""
    LIFTS = 2
    """It has dimensions besides: what it meets in arithmetic is as wide as it."""


_SIZED = frozenset({"zeros", "ones", "empty", "rand", "randn"})
_SPACED = frozenset({"linspace", "logspace"})
_DRAWN = frozenset({"rand", "randn", "random", "random_sample", "normal", "uniform", "standard_normal"})
"""Functions of `np.random` that give float64."""
_EACH = frozenset(
    {
        *("abs", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "square", "sin", "cos", "tanh", "sigmoid", "neg"),
        *("reciprocal", "relu", "clamp", "clip", "clamp_min", "softmax", "log_softmax", "masked_fill", "detach"),
        *("clone", "contiguous", "cpu", "cuda", "round", "floor", "ceil", "cumsum", "roll", "flip", "triu", "tril"),
        *("view", "reshape", "unsqueeze", "transpose", "permute", "t", "expand", "repeat", "requires_grad_"),
        *("topk", "sort"),
    }
)
"""Methods and functions that give the dtype of their tensor, with at least one dimension where it has one; under autocast,
too, for none of them is computed in half there."""
_REDUCING = frozenset({"sum", "mean", "std", "var", "norm", "prod", "amax", "amin", "squeeze", "nansum", "nanmean"})
"""Those that may leave none. `view(())` does, and nobody writes it."""
_DIMENSIONED = frozenset({"softmax", "log_softmax", "softmin", "cumsum", "cumprod"})
"""Those that cast to the `dtype` that they are told, and give at least one dimension."""
_WITH_INDICES = frozenset({"topk", "sort"})
"""What gives values and then their indices."""
_FLOATS = frozenset({"float32", "float64", "float", "double"})
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
"""A product `a @ b` is none of it: it promotes nothing, and is half under autocast."""
_SAYS_FLOAT32 = re.compile(r"(?:^|_)(?:fp|f|float)32(?:_|$)")
"""Names that say what they hold: `state_fp32`, `c_f32`."""
_DEEPEST = 12


def is_lifted(node: ast.expr, flow: Flow) -> bool:
    """Is what the running function computes there for certain no half tensor?"""
    return _Reading(flow).width(node, flow.statement, 0) > _Width.UNKNOWN


class _Reading:
    """One question, in one function, where the program is."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.default = not facts(flow.tree).sets_default
        """Is float32 the default dtype?"""

    def width(self, node: ast.expr, at: ast.AST, depth: int) -> _Width:
        """The width of an expression of a statement."""
        if depth > _DEEPEST:
            return _Width.UNKNOWN
        if isinstance(node, ast.Name):
            return self._named(node, at, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.width(node.operand, at, depth + 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
            return self._met(node, at, depth)
        if isinstance(node, ast.IfExp):
            return min(self.width(node.body, at, depth + 1), self.width(node.orelse, at, depth + 1))
        if isinstance(node, ast.Subscript):
            width = self.width(node.value, at, depth + 1)
            if width and _adds_dimension(node.slice):
                return _Width.LIFTS
            return width if _keeps_dimensions(node.slice) else min(_Width.WIDE, width)
        return self._called(node, at, depth) if isinstance(node, ast.Call) else _Width.UNKNOWN

    def _met(self, node: ast.BinOp, at: ast.AST, depth: int) -> _Width:
        left, right = self.width(node.left, at, depth + 1), self.width(node.right, at, depth + 1)
        if _Width.LIFTS in (left, right):
            return _Width.LIFTS
        if (left and (right or _is_number(node.right))) or (right and _is_number(node.left)):
            return _Width.WIDE
        return _Width.UNKNOWN

    def _named(self, node: ast.Name, at: ast.AST, depth: int) -> _Width:
        if node.id in _inside(self.flow.scope):
            return _Width.UNKNOWN
        if _SAYS_FLOAT32.search(node.id):
            return _Width.WIDE
        if (known := self._known(node)) is not _Width.UNKNOWN:
            return known
        found = _bound_before(node.id, at, self.flow.scope)
        return _Width.UNKNOWN if found is None else self.width(found.value, found, depth + 1)

    def _known(self, node: ast.Name) -> _Width:
        """What inference says of a name that is bound once, so that it is the same wherever it is read."""
        scope = self.flow.scope
        given = any(parameter.arg == node.id for parameter in parameters(scope))
        if given or len(assignments(scope).get(node.id, ())) != 1:
            return _Width.UNKNOWN
        value = self.flow.state.names.get(node.id)
        if not isinstance(value, Tensor):
            return _Width.UNKNOWN
        if value.dtypes is not None:
            if not value.dtypes or not value.dtypes <= _FLOATS:
                return _Width.UNKNOWN
            return _Width.LIFTS if value.zero_dim is False else _Width.WIDE
        met = value.symbol.met if value.symbol is not None else frozenset()
        return _Width.UNKNOWN if met.isdisjoint(_FLOATS) else _Width.LIFTS

    def _called(self, node: ast.Call, at: ast.AST, depth: int) -> _Width:
        if any(part.arg is None or part.arg in ("dtype", "out", "other") for part in node.keywords):
            return _told(node)
        if any(isinstance(part, ast.Starred) or names_dtype(part) for part in node.args) or not isinstance(
            node.func, ast.Attribute
        ):
            return _Width.UNKNOWN
        name, of = node.func.attr, path_of(node.func.value)
        if of in TORCH:
            return self._made(node, name, at, depth)
        if name in ("float", "double") and not node.args:
            return max(_Width.WIDE, self.width(node.func.value, at, depth + 1))
        if name == "to":
            moved = len(node.args) == 1 and is_device(node.args[0])
            return self.width(node.func.value, at, depth + 1) if moved or not node.args else _Width.UNKNOWN
        return self._kept(node.func.value, name, at, depth)

    def _made(self, node: ast.Call, name: str, at: ast.AST, depth: int) -> _Width:
        """What a function of torch makes."""
        if not node.args:
            return _Width.UNKNOWN
        first = node.args[0]
        if name in _SIZED:
            return _Width.LIFTS if self.default and _is_sized(node.args) else _Width.UNKNOWN
        if name in _SPACED:
            return _Width.LIFTS if self.default else _Width.UNKNOWN
        if name == "tensor":
            listed = self.default and (_lists_floats(first) or self._is_declared(first))
            return _Width.LIFTS if listed else _Width.UNKNOWN
        if name == "from_numpy":
            return _Width.LIFTS if _is_wide_array(first) else _Width.UNKNOWN
        return self._kept(first, name, at, depth)

    def _kept(self, tensor: ast.expr, name: str, at: ast.AST, depth: int) -> _Width:
        if name not in _EACH and name not in _REDUCING and name != "pow":
            return _Width.UNKNOWN
        width = self.width(tensor, at, depth + 1)
        return min(width, _Width.WIDE) if name in _REDUCING else width

    def _is_declared(self, node: ast.expr) -> bool:
        """Is it a parameter that is said to be a list of floats, and nothing else is bound to its name?"""
        if not isinstance(node, ast.Name) or node.id in assignments(self.flow.scope):
            return False
        said = next((part.annotation for part in parameters(self.flow.scope) if part.arg == node.id), None)
        return (
            isinstance(said, ast.Subscript)
            and last_name(said.value) in ("list", "List")
            and (path_of(said.slice) == "float")
        )


def _told(node: ast.Call) -> _Width:
    """`F.softmax(x, dim=-1, dtype=torch.float32)`, which casts before it computes."""
    dtype = path_of(keyword(node, "dtype") or node)
    if dtype not in WIDE or any(part.arg is None or part.arg == "out" for part in node.keywords):
        return _Width.UNKNOWN
    name = last_name(node)
    return _Width.LIFTS if name in _DIMENSIONED else _Width.WIDE if name in _REDUCING else _Width.UNKNOWN


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _keeps_dimensions(index: ast.expr) -> bool:
    """`x[:, None]` and `x[1:]`: an index may take the last dimension."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is None) for part in parts)


def _adds_dimension(index: ast.expr) -> bool:
    """`x[rows, None]`: there is one then, whatever the others take."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(part, ast.Constant) and part.value is None for part in parts)


def _is_sized(args: list[ast.expr]) -> bool:
    """Do the sizes that a factory is given make a dimension: `3`, `n, d`, `(n, d)`? A name may hold `()`."""
    first = args[0]
    if len(args) > 1 or _is_number(first):
        return True
    return (
        isinstance(first, (ast.Tuple, ast.List))
        and bool(first.elts)
        and not any(isinstance(part, ast.Starred) for part in first.elts)
    )


def _lists_floats(node: ast.expr) -> bool:
    """`[0.5, 1.0]`: numbers all, and one of them a float."""
    if not isinstance(node, ast.List) or not node.elts or not all(map(_is_number, node.elts)):
        return False
    return any(isinstance(part, ast.Constant) and type(part.value) is float for part in nodes(node.elts))


def _is_wide_array(node: ast.expr) -> bool:
    """An array of float32 or float64, as it is written: `np.random.rand(3)`, `a.astype("float32")`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if path_of(node.func.value) in ("np.random", "numpy.random"):
        return node.func.attr in _DRAWN and bool(given(node))
    if node.func.attr != "astype":
        return False
    dtype = node.args[0] if node.args else keyword(node, "dtype")
    if isinstance(dtype, ast.Constant):
        return dtype.value in ("float32", "float64")
    return path_of(dtype or node) in ("float", "np.float32", "np.float64", "numpy.float32", "numpy.float64")


# -- what a name holds ------------------------------------------------------------------------------------------------


def _bound_before(name: str, at: ast.AST, scope: ast.AST) -> ast.Assign | None:
    """The one assignment that a name has its value from at a statement; None where it may be another, or none.

    It is looked for from the statement backwards, in its block and in those around it.
    """
    inner = at if isinstance(at, ast.stmt) else statement_of(at, scope)
    for outer in around(inner, scope):
        for statement in reversed(_before(inner, outer)):
            if (
                isinstance(statement, ast.Assign)
                and any(
                    isinstance(target, ast.Name) and target.id == name for target in map(_values_of, statement.targets)
                )
                and (not isinstance(statement.targets[0], ast.Tuple) or last_name(statement.value) in _WITH_INDICES)
            ):
                return statement
            if _may_bind(name, statement):
                return None
        if isinstance(outer, _ENTERED) or (isinstance(outer, _LOOPS) and _may_bind(name, outer)):
            return None  # a handler runs from anywhere in its `try`, and a body may run again
        if isinstance(outer, (ast.With, ast.AsyncWith)) and any(_may_bind(name, item) for item in outer.items):
            return None
        inner = outer
    return None


def _values_of(target: ast.expr) -> ast.expr:
    """`values`, of `values, indices = ...`."""
    return target.elts[0] if isinstance(target, ast.Tuple) and len(target.elts) == 2 else target


_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ENTERED = (ast.ExceptHandler, ast.match_case, ast.Try)


def _before(inner: ast.AST, outer: ast.AST) -> Sequence[ast.stmt]:
    """The statements above one in its block."""
    block = block_of(inner, outer)
    return block[: block.index(inner)] if block else []


def _may_bind(name: str, root: ast.AST) -> bool:
    """May a piece of code let a name hold something else, or a tensor of another dtype? `x += y` leaves a tensor its own."""
    return name in _bound_in(root)


@kept
def _bound_in(root: ast.AST) -> frozenset[str]:
    return frozenset(_binding(root))


def _binding(root: ast.AST) -> Iterator[str]:
    kept_as_they_are = set()
    for part in nodes([root]):
        if isinstance(part, ast.AugAssign) and isinstance(part.op, _ARITHMETIC):
            kept_as_they_are.add(part.target)
        elif isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            if part not in kept_as_they_are:
                yield part.id
        elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
            yield path_of(part.value) or ""  # `x.data = y`
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield part.name
        elif isinstance(part, (ast.Global, ast.Nonlocal)):
            yield from part.names
        elif isinstance(part, ast.alias):
            yield (part.asname or part.name).partition(".")[0]
        elif isinstance(part, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
            yield part.name or ""


@kept
def _inside(scope: ast.AST) -> frozenset[str]:
    """The names that comprehensions and inner functions have for themselves: what they hold is not told by an assignment
    of the function."""
    found: set[str] = set()
    for part in nodes([scope]):
        if isinstance(part, ast.comprehension):
            found.update(name.id for name in nodes([part.target]) if isinstance(name, ast.Name))
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and part is not scope:
            found.update(parameter.arg for parameter in parameters(part))
        elif isinstance(part, (ast.Global, ast.Nonlocal)):
            found.update(part.names)
    return frozenset(found)
