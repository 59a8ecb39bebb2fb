"""Factories that are told no dtype: what they are made after, and what is said of them.

A tensor is made after another where it takes its shape or its device from that: `torch.zeros(x.shape[0], device=x.device)`.
"""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.walk import nodes
from dtlint.rule import Finding
from dtlint_rules._assignments import assignments
from dtlint_rules._effects import FACTORIES, KEEPING, UNTOLD
from dtlint_rules._functions import parameters
from dtlint_rules._meanings import counts
from dtlint_rules._names import last_name
from dtlint_rules._origin import Kind, in_order
from dtlint_rules._parts import given, receiver
from dtlint_rules._provenance import measures
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dtlint.infer.events import Flow
    from dtlint.source.place import Place
    from dtlint_rules._origin import Origin, Roots
    from dtlint_rules._origins import Origins

__all__ = [
    "HELPERS",
    "MAKERS",
    "fix_after",
    "into_model",
    "is_in",
    "is_noise",
    "is_total",
    "made_after",
    "may_be_after",
    "roots_told",
    "says",
    "tensors_after",
]

HELPERS = frozenset({"randn_tensor", "rand_tensor"})
"""What libraries call their own `torch.randn` for any device; with `dtype=` like it."""
MAKERS = frozenset({*FACTORIES, *UNTOLD, *HELPERS, "where"})
"""The functions whose result is of the default dtype, unless they are told another or given tensors."""
_NOISE = frozenset({"randn", "rand", *HELPERS})
_PLAIN = frozenset({"str", "int", "float", "bool", "Path", "os.PathLike", "SparseTensor", "np.ndarray"})
"""Annotations of what is no tensor of torch: a path, a number, a matrix of another package."""
_TOTALS = re.compile(
    r"loss|total|accum|(?:^|_)(?:acc|sum|count|hist|metrics?|stats?|cost|scores?|example|dummy)(?:$|_|\d)",
    re.IGNORECASE,
)
"""Names of what is added up, in float32 for good reason, and of inputs to try a model with."""
_SAYS = "`{name}` without `dtype=` is float32"
_MAKES = "`{name}` makes float32"


def is_noise(factory: ast.Call) -> bool:
    """Does it make random numbers?"""
    return last_name(factory) in _NOISE


def is_total(name: str) -> bool:
    """Is it the name of what is added up, in float32 for good reason, or of an input to try a model with?"""
    return _TOTALS.search(name) is not None


def may_be_after(factory: ast.Call, place: Flow) -> bool:
    """May a factory be made after a tensor, or is it noise? Ask it before origins are read."""
    if last_name(factory) == "where" or is_noise(factory):
        return True
    parts = list(nodes(_given(factory, place)))
    if any(map(measures, parts)):
        return True
    names, scope = {part.id for part in parts if isinstance(part, ast.Name)}, place.scope
    return bool(names & (assignments(scope).keys() | facts(scope).bound_inside)) if names else False


def tensors_after(factory: ast.Call, origins: Origins, place: Flow) -> dict[Origin, ast.expr | None]:
    """The tensors that a factory's is made after, each with the expression where it stands in the call itself."""
    plain = {each.arg for each in parameters(place.scope) if each.annotation and path_of(each.annotation) in _PLAIN}
    return {
        origin: part
        for part, roots in made_after(factory, origins, place)
        for origin in roots
        if not counts(origin) and not _is_of_plain(origin, plain)
    }


def made_after(factory: ast.Call, origins: Origins, place: Flow) -> Iterator[tuple[ast.expr | None, Roots]]:
    """What a factory's shape and device are taken of, each with the expression where it stands in the call itself."""
    if last_name(factory) == "where":
        for part in ast.walk(factory.args[0]):
            if isinstance(part, (ast.Name, ast.Attribute)):
                yield None, origins[part]
    for argument in _given(factory, place):
        direct = argument.value if isinstance(argument, ast.Attribute) else None
        yield direct, origins.measured(argument)


def _given(factory: ast.Call, place: Flow) -> Iterator[ast.expr]:
    """What a factory is given, and the methods that are called on its result at once, `torch.zeros(n).to(x.device)`, or on
    what is made of it there: `torch.triu(torch.ones(n, n)).to(x.device)`."""
    yield from given(factory)
    known = parents_at(factory, place)
    node: ast.AST = factory
    while (outer := known.get(node)) is not None:
        call = known.get(outer) if isinstance(outer, ast.Attribute) else None
        if isinstance(call, ast.Call) and call.func is outer:
            yield from given(call)
            node = call
        elif isinstance(outer, (ast.List, ast.Tuple, ast.UnaryOp, ast.Subscript)) or _keeps(outer, node):
            node = outer
        else:
            break
    if isinstance(outer, ast.Assign) and len(outer.targets) == 1 and isinstance(outer.targets[0], ast.Name):
        yield from _moved_to(outer.targets[0].id, factory, place)


def _moved_to(name: str, factory: ast.Call, place: Flow) -> Iterator[ast.expr]:
    """What `mask = torch.ones(3, 3)` is moved to below: `mask = mask.to(x.device)`."""
    for call in facts(place.scope).calls:
        if last_name(call) == "to" and call.lineno > factory.lineno and path_of(receiver(call) or call) == name:
            yield from given(call)


def _keeps(outer: ast.AST, node: ast.AST) -> bool:
    """Has what is computed the dtype of what is given there: `torch.triu(x, 1)`, `-0.5 * x`?"""
    if isinstance(outer, ast.BinOp):
        other = outer.left if node is outer.right else outer.right
        return isinstance(other, (ast.Constant, ast.UnaryOp))
    return (
        isinstance(outer, ast.Call)
        and node is not outer.func
        and (last_name(outer) in KEEPING or last_name(outer) in ("stack", "cat"))
        and path_of(outer.func) in (f"torch.{last_name(outer)}", f"F.{last_name(outer)}")
    )


def _is_of_plain(origin: Origin, plain: set[str]) -> bool:
    """Is it such a parameter, annotated as no tensor, or what a function makes of nothing else: `read(folder, name)`?"""
    if origin.kind == Kind.CALLED and origin.of:
        return all(_is_of_plain(inner, plain) for inner in origin.of)
    return origin.kind == Kind.GIVEN and origin.text in plain


def roots_told(roots: Roots, factory: ast.Call) -> Iterator[Origin]:
    """What a tensor has its dtype from, and what that was computed from; not behind a cast to a dtype that is written out."""
    for origin in in_order(roots):
        if origin.node is factory or (origin.kind == Kind.CAST and origin.text.startswith("torch.")):
            continue
        yield origin
        if origin.kind in (Kind.CALLED, Kind.CAST):
            yield from roots_told(origin.of, factory)  # cast to the dtype of another tensor, which may be half as well


def is_in(factory: ast.Call, operands: Iterable[ast.expr], origins: Origins) -> bool:
    """Is what a factory makes among some operands, or a part of one?"""
    return any(origin.node is factory for operand in operands for origin in origins[operand])


def says(factory: ast.Call) -> str:
    """What is said of a factory, or of what calls one."""
    name = last_name(factory)
    return (_SAYS if name in MAKERS - UNTOLD else _MAKES).format(name=name)


def into_model(factory: ast.Call, node: ast.Call, model: str) -> Finding:
    """What is said of one that goes into a model or a layer uncast."""
    return Finding(
        factory,
        f"{says(factory)}: `{model}` raises if its weights are half",
        help=f"Pass the dtype of `{model}`",
        notes=((node, f"it goes into `{model}` here"),),
        conditional=True,
    )


def fix_after(tensor: str) -> Callable[[Place], Fix | None]:
    """The fix that makes it in the dtype of a tensor."""
    return partial(_pass_dtype_of, tensor)


def _pass_dtype_of(tensor: str, place: Place) -> Fix | None:
    if last_name(place.abstract) in UNTOLD or not place.is_bound(tensor):
        return None  # it takes none, or the tensor is made below
    edit = place.append_argument(f"dtype={tensor}.dtype")
    return Fix(f"Make it in the dtype of `{tensor}`", (edit,), Applicability.UNSAFE)
