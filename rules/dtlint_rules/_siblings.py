"""Of two tensors that belong together, one is cast and the other is not: two attributes of one object, of which one is
cast to the dtype of what both meet, and two operands that are computed in the same steps."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.walk import nodes
from dtlint.rule import Finding
from dtlint_rules._assignments import assignments
from dtlint_rules._casts import TOLD
from dtlint_rules._effects import NO_TENSOR
from dtlint_rules._functions import own_nodes
from dtlint_rules._half import half_at
from dtlint_rules._masks import is_mask
from dtlint_rules._meanings import is_setting
from dtlint_rules._names import last_name
from dtlint_rules._origin import Kind
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import given, receiver
from dtlint_rules._texts import short
from dtlint_rules._widths import cast_to, is_foreign, is_open, meets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Operation
    from dtlint_rules._origins import Origins

__all__ = ["may_be_siblings", "of_siblings", "of_steps"]

_PAIRS = (
    *({"mean", "std"}, {"mean", "var"}, {"scale", "shift"}, {"scale", "bias"}, {"weight", "bias"}, {"cos", "sin"}),
    *({"gamma", "beta"}, {"scale", "zero"}, {"min", "max"}, {"alpha", "beta"}, {"alpha", "sigma"}),
)
"""What things are called that go together."""
_PAIRED = frozenset[str]().union(*_PAIRS)
_PACKAGES = frozenset({"", "torch", "nn", "torch.nn", "np", "numpy", "math"})
"""What no tensor is an attribute of, and what has no attributes."""
_IN_FAMILIES = frozenset({ast.Attribute, ast.Subscript})
_TO_FLOAT = ("float", "")
_WORDS = re.compile(r"[a-z]+|\d+")


def may_be_siblings(casts: Iterable[ast.Call], scope: ast.AST) -> bool:
    """May a function cast one of two siblings, and not the other? Ask it before origins are read."""
    return _takes_attribute(casts, scope) and _has_siblings(scope)


def of_siblings(operands: list[ast.expr], origins: Origins, scope: ast.AST) -> Iterator[Finding]:
    """Of two attributes of one object, one is cast to the dtype of a tensor, and both meet it."""
    for cast in operands:
        tensor = cast_to(origins[cast])
        if tensor is None or not any(path_of(other) == tensor or meets(origins[other], tensor) for other in operands):
            continue
        cast_from = [inner for root in origins[cast] for inner in root.of if inner.kind == Kind.GIVEN]
        of_tensor = frozenset(root for other in operands if path_of(other) == tensor for root in origins[other])
        for other in operands if len(cast_from) == 1 else ():
            roots = origins[other]
            if len(roots) != 1 or roots & of_tensor or not is_foreign(roots, tensor):
                continue
            (root,), (sibling,) = roots, cast_from
            if root.kind != Kind.GIVEN or not _are_siblings(root.text, sibling.text):
                continue
            place = _where_bound(other, scope)
            yield Finding(
                place,
                f"`{root.text}` promotes a half `{tensor}`: only `{sibling.text}` is cast",
                help=f"Cast it too: `.to({tensor}.dtype)`",
                notes=((next(iter(origins[cast])).node, f"`{sibling.text}` is cast here"),),
                conditional=True,
            )


def _are_siblings(one: str, other: str) -> bool:
    """Are two paths attributes of one object that go together: `bn.running_mean` and `bn.running_var`?"""
    family, _, name = one.rpartition(".")
    if one == other or not family or family != other.rpartition(".")[0]:
        return False
    words, others = set(name.lower().split("_")), set(other.rpartition(".")[2].lower().split("_"))
    return family != "self" or any(pair <= words | others and not pair <= words & others for pair in _PAIRS)


def _takes_attribute(casts: Iterable[ast.Call], scope: ast.AST) -> bool:
    """May one of some casts be of an attribute that another can be the sibling of: where it stands, or by a name that is
    bound to it?"""
    called = {call.func for call in facts(scope).calls}
    queue = [part for cast in casts for part in _what_is_cast(cast)]
    asked: set[str] = set()
    while queue:
        node = queue.pop()
        if node is None:
            return True  # taken apart: what it was is not told
        for part in nodes([node]):
            kind = type(part)
            if kind in _IN_FAMILIES:
                if part not in called and _may_have_sibling(_text_of(part)):  # type: ignore[arg-type]  # it is one of these
                    return True
            elif kind is ast.Name and part.id not in asked:  # type: ignore[attr-defined]
                asked.add(part.id)  # type: ignore[attr-defined]
                queue += [value for _, value in assignments(scope).get(part.id, ())]  # type: ignore[attr-defined]
    return False


def _may_have_sibling(path: str | None) -> bool:
    """May `_are_siblings` say yes to a path and another one?"""
    family, _, name = (path or "").rpartition(".")
    return family not in _PACKAGES and (family != "self" or not _PAIRED.isdisjoint(name.lower().split("_")))


def _what_is_cast(cast: ast.Call) -> list[ast.expr | None]:
    """The receiver of a method that casts, and what another function is given besides the dtype."""
    held = receiver(cast)
    of: list[ast.expr | None] = [] if held is None else [held]
    if last_name(cast) in TOLD:
        return of
    return [*of, *cast.args, *(keyword.value for keyword in cast.keywords if keyword.arg != "dtype")]


def _has_siblings(scope: ast.AST) -> bool:
    """Does a function use two attributes, or items of attributes, that are siblings?"""
    families: dict[str, set[str]] = {"self": set()}
    called = {call.func for call in facts(scope).calls}
    for node in own_nodes(scope):
        if type(node) not in _IN_FAMILIES or node in called:
            continue
        if (path := _text_of(node)) is None:  # type: ignore[arg-type]  # it is one of these
            continue
        family = path.rpartition(".")[0]
        if family in _PACKAGES:
            continue
        paths = families.setdefault(family, set())
        paths.add(path)
        if family != "self" and len(paths) > 1:
            return True
    return _hold_siblings(families["self"])


def _hold_siblings(paths: set[str]) -> bool:
    """Are two attributes of `self` siblings? Of anything else, any two are."""
    words = {word for path in paths for word in path.removeprefix("self.").lower().split("_")}
    return any(pair <= words for pair in _PAIRS) and any(_are_siblings(one, other) for one in paths for other in paths)


def _text_of(node: ast.Attribute | ast.Subscript) -> str | None:
    """An attribute or an item, as origins call it; None for what is no tensor."""
    if isinstance(node, ast.Attribute):
        path = path_of(node) if node.attr not in NO_TENSOR else None
        return path if path is not None and not is_setting(path) else None
    if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        path = path_of(node.value)
        return None if path is None else f"{path}[{node.slice.value!r}]"
    return None


def _where_bound(node: ast.expr, scope: ast.AST) -> ast.expr:
    """The value that a name was bound to last, before it is used there; the expression itself where it is no name."""
    if not isinstance(node, ast.Name):
        return node
    before = [value for line, value in assignments(scope).get(node.id, ()) if line < node.lineno]
    return before[-1] if before and before[-1] is not None else node


# -- in the same steps --------------------------------------------------------------------------------------------------


def of_steps(node: ast.BinOp, operation: Operation) -> Iterator[Finding]:
    """Of two operands of the same steps, one is cast: `a.float().unsqueeze(0).sigmoid() * b.unsqueeze(0).sigmoid()`."""
    sides = [(node.left, operation.left, *_steps(node.left)), (node.right, operation.right, *_steps(node.right))]
    for (wide, _, base, steps), (plain, value, other, rest) in (sides, sides[::-1]):
        cast = [step for step in steps if step == _TO_FLOAT]
        if len(cast) != 1 or not rest or _TO_FLOAT in rest or [step for step in steps if step != _TO_FLOAT] != rest:
            continue
        if not _are_alike(path_of(base), path_of(other)) or is_mask(base):
            continue
        flow = operation.flow
        if not is_open(value, origins_of(flow.scope)[other]) or half_at(flow, value, dtype=None) is None:
            continue
        yield Finding(
            plain,
            f"`{short(other)}` is not cast to float32 as `{short(base)}` is: if it is half, its steps run in half",
            help=f"Cast it too: `{ast.unparse(other)}.float()`",
            notes=((wide, f"`{ast.unparse(base)}` is cast here"),),
            conditional=True,
        )


def _steps(node: ast.expr) -> tuple[ast.expr, list[tuple[str, str]]]:
    """The expression that a chain of methods begins with, and the methods, last first, with their arguments."""
    steps = []
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        steps.append((node.func.attr, ", ".join(map(ast.unparse, given(node)))))
        node = node.func.value
    return node, steps


def _are_alike(one: str | None, other: str | None) -> bool:
    """Are two names, by a word that they share, of things of one kind: `cls_preds` and `obj_preds`, `q` and `k`?"""
    if one is None or other is None or one == other:
        return False
    words, others = set(_WORDS.findall(one.lower())), set(_WORDS.findall(other.lower()))
    return bool(words & others) or max(map(len, words | others), default=2) == 1
