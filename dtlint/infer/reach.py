"""Can half precision reach this code? By what is known of a value, and else by what the file asks for.

A rule about range or resolution is noise in a program that only ever computes in float32. So a rule asks here, with the
values at hand, and is told how likely half is and which line says so. The first question goes through what the survey has noted.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, FLOATING, LOW_PRECISION, Category
from dtlint.infer.names import path_of
from dtlint.infer.survey import HALF_NAMES, scopes
from dtlint.infer.values import Array, Tensor
from dtlint.infer.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Flow
    from dtlint.infer.scopes import FunctionNode
    from dtlint.infer.values import Autocast, Value

__all__ = ["Reach", "Reached", "reach", "reach_of_file"]


class Reach(IntEnum):
    """How likely half precision is, from least to most."""

    NONE = 0
    """A program that computes in float32, or a value that is known and is not half."""
    LIBRARY = 1
    """Code on tensors that others import: the caller decides, and nothing here says what it expects."""
    ASKED = 2
    """The file asks for half: it casts to it, opens autocast, takes a dtype, asks for the dtype it is given."""
    PROVED = 3
    """The value can be half, on some path at least."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The answer.

    Attributes:
        level: how likely half is.
        dtypes: which: float16, bfloat16 or both, by all that says so.
        node: the place that says so, to be shown; None where it is the file as a whole.
        why: what stands there, as the message of a note.
        near: does it stand in the running function, or in its class?
    """

    level: Reach
    dtypes: frozenset[str] = frozenset()
    node: ast.expr | ast.stmt | None = None
    why: str = ""
    near: bool = False


_NOWHERE = Reached(Reach.NONE)
_LIBRARY = Reached(Reach.LIBRARY, LOW_PRECISION, None, "code that others call, in whatever dtype they compute")
_FLOAT16, _BFLOAT16 = frozenset({"float16"}), frozenset({"bfloat16"})


def reach(flow: Flow, *values: Value, dtype: str | None = None) -> Reached:
    """Can half reach the place where the program is, and these values?

    Values that are known decide: float32, integers, and what is promoted with float32 are no half. Where nothing is known
    of them the region in force does, then the file.

    Args:
        dtype: ask for this half dtype alone; for either where it is None.
    """
    asked = LOW_PRECISION if dtype is None else frozenset({dtype})
    for value in values:
        if isinstance(value, (Tensor, Array)) and (found := _known(value) & asked):
            return Reached(Reach.PROVED, found, value.origin, f"{' or '.join(sorted(found))} here", True)
    if values and all(_excludes(value, asked) for value in values):
        return _NOWHERE
    region = flow.autocast
    if region is not None and region.made is not None and (given := _of_region(region) & asked):
        return Reached(Reach.ASKED, given, region.made, _IS_REGION, True)
    return _nearest(flow, asked)


def reach_of_file(tree: ast.Module) -> Reached:
    """The answer for a file as a whole."""
    return _told(_survey(tree), LOW_PRECISION, [])


def _known(value: Tensor | Array) -> frozenset[str]:
    """The dtypes that are known of a value. A weight may be of any floating dtype, and that says nothing."""
    return frozenset() if value.dtypes is None or value.dtypes >= FLOATING else value.dtypes


def _excludes(value: Value, asked: frozenset[str]) -> bool:
    """Is the value known to be of none of these dtypes?"""
    if not isinstance(value, (Tensor, Array)):
        return False
    if known := _known(value):
        return not known & asked
    met = value.symbol.met if isinstance(value, Tensor) and value.symbol is not None else frozenset()
    return any(DTYPES[dtype].category is Category.FLOAT and DTYPES[dtype].bits >= 32 for dtype in met)


def _of_region(region: Autocast) -> frozenset[str]:
    return LOW_PRECISION if region.dtype is None else frozenset({region.dtype}) & LOW_PRECISION or _FLOAT16


def _nearest(flow: Flow, asked: frozenset[str]) -> Reached:
    """The file's answer, with the evidence that stands nearest to the running function."""
    around: list[ast.AST] = [] if flow.function is None else [flow.function.node]
    if flow.function is not None and flow.function.owner is not None:
        around.append(flow.function.owner.node)
    return _told(_survey(flow.tree), asked, around)


def _told(survey: _Survey, asked: frozenset[str], around: list[ast.AST]) -> Reached:
    """The evidence of a file for some half dtypes: in the innermost of these scopes that has any, else the surest."""
    evidence = [found for found in survey.asked if found.dtypes & asked]
    if not evidence:
        return replace(_LIBRARY, dtypes=asked) if survey.is_library else _NOWHERE
    every = frozenset[str]().union(*(found.dtypes for found in evidence)) & asked
    for place in around:
        for found in evidence:
            if found.node is not None and _holds(place, found.node):
                return replace(found, dtypes=every, near=True)
    return replace(evidence[0], dtypes=every)


def _holds(outer: ast.AST, inner: ast.AST) -> bool:
    first, last = getattr(outer, "lineno", 0), getattr(outer, "end_lineno", 0) or 0
    return bool(first <= getattr(inner, "lineno", 0) <= last)


# -- the file ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Survey:
    asked: list[Reached]
    """The places that ask for half, the surest first."""
    is_library: bool
    """Is it definitions for others, and nothing that runs or trains?"""


_KEPT = "_dtlint_reach"
"""The attribute of a syntax tree that its answers are kept in: they go with it."""


def _survey(tree: ast.Module) -> _Survey:
    known: _Survey | None = getattr(tree, _KEPT, None)
    if known is None:
        known = _look_over(tree)
        setattr(tree, _KEPT, known)
    return known


def _look_over(tree: ast.Module) -> _Survey:
    """The places of a file that ask for half, the surest first: casts and regions, then dtypes that are handed in."""
    found: list[Reached] = []
    runs = False
    for scope, own in scopes(tree):
        for call in own.asking:
            name = next(_last(call.func), "")
            if name not in _RUNS:
                found += _asked_by_call(call, name)
            elif isinstance(call.func, ast.Attribute) and len(call.args) < _KERNEL_TAKES:
                runs = True
        found += [place for node in own.halves for place in _named(node)]
        found += [place for node in own.dtype_tests for place in _asked_by_test(node)]
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            found += _asked_by_function(scope)
    found.sort(key=lambda place: (_ORDER.index(place.why), *_where(place.node)))
    return _Survey(found, not runs and _only_defines(tree))


def _where(node: ast.AST | None) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


_CASTS = {"half": _FLOAT16, "bfloat16": _BFLOAT16}
_PARAMETERS = {
    **dict.fromkeys(
        ("dtype", "torch_dtype", "weight_dtype", "compute_dtype", "param_dtype", "model_dtype"), LOW_PRECISION
    ),
    **dict.fromkeys(
        ("mixed_precision", "precision_type", "use_amp", "amp", "half", "use_half", "low_precision"), LOW_PRECISION
    ),
    **dict.fromkeys(("fp16", "use_fp16", "is_fp16", "float16", "amp_dtype"), _FLOAT16),
    **dict.fromkeys(("bf16", "use_bf16", "bfloat16"), _BFLOAT16),
}
"""Parameters, options and settings by which a program is told to compute in half."""

_IS_CAST, _IS_REGION, _IS_SCALER = "half is asked for here", "autocast is entered here", "a GradScaler is made here"
_IS_QUESTION, _IS_RANGE = (
    "the code asks here whether it is given half",
    "the range of the dtype that is given is asked for here",
)
_IS_PARAMETER = "the dtype is handed in here"
_ORDER = (_IS_CAST, _IS_REGION, _IS_SCALER, _IS_QUESTION, _IS_RANGE, _IS_PARAMETER)


def _named(node: ast.Attribute) -> Iterator[Reached]:
    """A half dtype of torch, by its name."""
    if _is_of_torch(node):
        yield Reached(Reach.ASKED, HALF_NAMES[node.attr], node, _IS_CAST)


def _asked_by_test(node: ast.Compare) -> Iterator[Reached]:
    """What a comparison of a dtype says of half."""
    named = frozenset[str]().union(
        *(HALF_NAMES.get(name, frozenset()) for part in nodes(node.comparators) for name in _last(part))
    )
    if named:
        yield Reached(Reach.ASKED, named, node, _IS_QUESTION)


def _asked_by_function(function: FunctionNode) -> Iterator[Reached]:
    """What the parameters of a function say of half, and its decorators."""
    given = function.args
    for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        dtypes = _PARAMETERS.get(argument.arg)
        if dtypes is not None:
            yield Reached(Reach.ASKED, dtypes, _as_place(argument), _IS_PARAMETER)
        if type(argument.annotation) is ast.Attribute and argument.annotation.attr in HALF_NAMES:
            yield from _named(argument.annotation)
    for decorator in () if isinstance(function, ast.Lambda) else function.decorator_list:
        if (path_of(decorator) or "").endswith("autocast"):
            yield Reached(Reach.ASKED, LOW_PRECISION, decorator, _IS_REGION)


def _asked_by_call(node: ast.Call, name: str) -> Iterator[Reached]:
    """What a call that is noted for its name says of half."""
    if name in _CASTS and isinstance(node.func, ast.Attribute) and not node.args:
        yield Reached(Reach.ASKED, _CASTS[name], node, _IS_CAST)
    elif name == "autocast":
        yield Reached(Reach.ASKED, LOW_PRECISION, node, _IS_REGION)
    elif name == "GradScaler":
        yield Reached(Reach.ASKED, _FLOAT16, node, _IS_SCALER)
    elif name == "finfo" and node.args:
        given = node.args[0]
        if (path_of(given) or "").endswith("dtype"):
            yield Reached(Reach.ASKED, LOW_PRECISION, node, _IS_RANGE)
    elif name == "add_argument":
        for given in node.args:
            option = given.value if isinstance(given, ast.Constant) else None
            dtypes = _PARAMETERS.get(option.lstrip("-").replace("-", "_")) if isinstance(option, str) else None
            if dtypes is not None:
                yield Reached(Reach.ASKED, dtypes, node, _IS_PARAMETER)


def _last(node: ast.AST) -> Iterator[str]:
    """The last part of a name."""
    if isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Name):
        yield node.id


def _is_of_torch(node: ast.AST) -> bool:
    """Is it `torch.float16`, and no method of something: `x.half` is one of a tensor or module, found where it is called?"""
    base = path_of(node.value) if isinstance(node, ast.Attribute) else None
    return base is not None and (base in ("torch", "th") or base.startswith("torch."))


def _as_place(node: ast.AST) -> ast.expr:
    """A parameter, as an expression of its place: notes point at expressions."""
    place = ast.Name(node.arg, ast.Load())  # type: ignore[attr-defined]
    ast.copy_location(place, node)
    return place


_RUNS = frozenset({"backward", "zero_grad"})
"""Methods of a training loop."""
_KERNEL_TAKES = 2
"""What a `backward` takes at least that is no step of training: that of an extension, `kernels.backward(grad, x)`."""


def _only_defines(tree: ast.Module) -> bool:
    """Is the file definitions for others: classes or functions, and nothing that runs?"""
    defines = False
    for statement in tree.body:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            defines = True
        elif isinstance(statement, (ast.For, ast.While, ast.With)) or (
            isinstance(statement, ast.If) and _asks_for_main(statement.test)
        ):
            return False
    return defines


def _asks_for_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
