"""Roots of a variance that an epsilon is added to too late.

The gradient of `sqrt` at 0 is infinite, and what computes that 0 multiplies it by 0: NaN. Torch's `std` has the gradient 0
there.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint_rules._assignments import source_of
from dtlint_rules._distances import ROOTS, is_trained
from dtlint_rules._edges import Edge, behind, is_called_epsilon, is_mended, is_tested, keeps
from dtlint_rules._gradients import OFF, is_gradient_off
from dtlint_rules._names import last_name
from dtlint_rules._numbers import number_at
from dtlint_rules._pairs import named
from dtlint_rules._parts import below, keyword, receiver
from dtlint_rules._squares import mean_of_squares
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["epsilon_behind_root", "rooted"]

_CLAMPS = frozenset({"clamp", "clamp_min"})

_OF_TORCH = frozenset({"torch", "th"})
_SHAPING = ("unsqueeze", "squeeze", "view", "reshape", "flatten", "transpose", "contiguous", "expand_as", "expand")
_CUT = frozenset({"detach", "detach_", "data", "item", "numpy", *OFF})
_NORMALIZING = re.compile(r"(?:layer|instance|group|channel|batch|rms|scale)_?norm|adaptive_instance")
_REFERENCE = re.compile(r"test|ref(?:_|erence|$)|naive|backward|bwd|numpy|grad")
_GIVEN = re.compile(
    r"wav|audio|speech|signal|imag|img|pixel|input_values|reward|return|advantage|obs|target|label|spec|mel|past|series|noise|grad|^gt|truth|^true|ref|^y(?:_true)?$"
)
"""Data, which needs no gradient."""


def epsilon_behind_root(divisor: ast.expr, flow: Flow) -> Edge | None:
    """`x / (x.var(-1).sqrt() + eps)`: the epsilon that keeps the quotient finite comes too late for the gradient."""
    kept = _below_epsilon(divisor, flow)
    if kept is None:
        return None
    root = below(source_of(kept, flow) or kept, _SHAPING)
    if isinstance(kept, ast.Name) and _below_epsilon(root, flow) is not None:
        return None
    inner = rooted(root)
    if inner is None or (subject := _varies(below(named(inner, flow), _SHAPING), flow)) is None:
        return None
    function = flow.function
    if function is None or not (is_trained(flow) or _is_normalizing(function.name.lower())):
        return None
    if is_mended(flow.scope) or is_gradient_off(divisor, flow) or is_tested(kept, flow):
        return None
    if _is_given(subject, flow):
        return None
    if any(map(_is_cut, behind(divisor, flow))) or any(map(keeps, behind(inner, flow))):
        return None
    of_square = mean_of_squares(below(source_of(inner, flow) or inner, _SHAPING), flow)
    centred = of_square is None or _is_difference(of_square, flow)
    return Edge(
        f"The gradient of `sqrt` is NaN where all values are {'equal' if centred else '0'}: the epsilon comes after the root",
        f"Add it before the root: `({short(inner)} + eps).sqrt()`",
        root if root.lineno != divisor.lineno else None,
        "the root",
    )


def _below_epsilon(divisor: ast.expr, flow: Flow) -> ast.expr | None:
    """What a small number is added to, or keeps from 0: `std` of `std + eps`, `std.clamp(min=eps)` and `(std + eps)[:, None]`."""
    made = below(divisor, _SHAPING)
    for node in (made, below(source_of(made, flow) or made, _SHAPING)):
        kept = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if _is_epsilon(other, flow):
                    kept = one
        elif isinstance(node, ast.Call) and last_name(node) in _CLAMPS and isinstance(node.func, ast.Attribute):
            of_torch = path_of(node.func.value) in _OF_TORCH
            given = node.args if of_torch else [node.func.value, *node.args]
            lowest = given[1] if len(given) > 1 else keyword(node, "min")
            kept = given[0] if given and lowest is not None and _is_epsilon(lowest, flow) else None
        if kept is not None:
            return below(kept, _SHAPING)
    return None


def _is_epsilon(node: ast.expr, flow: Flow) -> bool:
    number = number_at(node, flow)
    return 0 < number.value < 1e-1 if number is not None else is_called_epsilon(node)


def rooted(node: ast.expr) -> ast.expr | None:
    """What a root is taken of: `v.sqrt()`, `torch.sqrt(v)`, `v ** 0.5`, `v.pow(0.5)`."""
    if isinstance(node, ast.BinOp):
        return node.left if _is_root(node) else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    of_torch = path_of(node.func.value) in _OF_TORCH
    if last_name(node) in ROOTS:
        return (node.args[0] if node.args else None) if of_torch else (None if node.args else receiver(node))
    given = node.args if of_torch else [node.func.value, *node.args]
    return given[0] if last_name(node) == "pow" and len(given) == 2 and _is_half(given[1]) else None


def _is_root(node: ast.BinOp) -> bool:
    return isinstance(node.op, ast.Pow) and _is_half(node.right)


def _is_half(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0.5


def _varies(node: ast.expr, flow: Flow) -> ast.expr | None:
    """What the variance or the mean of squares is taken of."""
    found = mean_of_squares(node, flow)
    if found is not None or not isinstance(node, ast.Call) or last_name(node) != "var":
        return found
    return (node.args[0] if node.args else None) if path_of(node.func) in ("torch.var", "th.var") else receiver(node)


def _is_normalizing(name: str) -> bool:
    return _NORMALIZING.search(name) is not None and _REFERENCE.search(name) is None


def _is_given(node: ast.expr, flow: Flow) -> bool:
    return any(_GIVEN.search(part.id.lower()) for part in behind(node, flow) if isinstance(part, ast.Name))


def _is_difference(node: ast.expr, flow: Flow) -> bool:
    made = source_of(node, flow) or node
    return isinstance(made, ast.BinOp) and isinstance(made.op, ast.Sub)


def _is_cut(part: ast.AST) -> bool:
    return isinstance(part, (ast.Attribute, ast.Call)) and last_name(part) in _CUT
