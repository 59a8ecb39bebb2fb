"""Roots of differences whose terms cancel but for what was rounded: squared distances by their expansion,
`x2 + y2 - 2 * x @ y.T`, where two points are near, and variances as the mean of squares less the square of the mean, where
values are nearly equal. The rest may be negative, and its root is NaN."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint_rules._assignments import source_above, source_of
from dtlint_rules._distances import is_measured, is_trained
from dtlint_rules._edges import Edge, behind, is_kept, is_mended, is_tested, keeps
from dtlint_rules._effects import PRODUCTS
from dtlint_rules._names import last_name
from dtlint_rules._parts import given, keyword, receiver
from dtlint_rules._squares import squared
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call, Flow

__all__ = ["cancelled"]

_SUMMED = frozenset({"sum", "unsqueeze", "view", "reshape", "t", "transpose", "expand", "expand_as"})


def cancelled(node: ast.expr, call: Call) -> Edge | None:
    """The root of a squared distance or a variance by such a difference, which nothing keeps from below 0."""
    made = source_of(node, call.flow) or node
    return _distance(node, made, call) or _variance(node, made, call) or _clamped(node, call)


def _clamped(node: ast.expr, call: Call) -> Edge | None:
    """`(x2 + y2 - 2 * x @ y.T).clamp(min=0).sqrt()`, in code that gradients flow through: no less than 0 is as good as 0."""
    flow = call.flow
    clamp = source_of(node, flow) or node
    inner = _below_zero_clamp(clamp)
    if inner is None or not isinstance(clamp, ast.Call) or not is_trained(flow) or is_mended(flow.scope):
        return None
    made = source_above(inner, clamp.lineno, flow) or inner
    if not _is_distance(made, flow) or is_measured(call) or is_tested(inner, flow):
        return None
    if any(keeps(part) for part in behind(made, flow) if not _is_zero_clamp(part)):
        return None
    return Edge(
        f"`{short(clamp)}` is 0 for equal points, where the gradient of `sqrt` gives NaN",
        "Clamp to a small number, `.clamp(min=1e-12)` in float32, or use `torch.cdist`",
        made if made.lineno != call.node.lineno else None,
    )


_CLAMPS = frozenset({"clamp", "clamp_", "clip", "clamp_min", "clamp_min_", "maximum", "max"})


def _is_zero_clamp(node: ast.AST) -> bool:
    return isinstance(node, ast.expr) and _below_zero_clamp(node) is not None


def _below_zero_clamp(node: ast.expr) -> ast.expr | None:
    """`x`, of `x.clamp(min=0)`, `torch.clamp(x, 0.0)` and `torch.maximum(x, torch.zeros_like(x))`; not of
    `F.relu(x)`, whose gradient at 0 is 0."""
    if not isinstance(node, ast.Call) or last_name(node) not in _CLAMPS:
        return None
    held = receiver(node)
    if held is None:
        return None
    function = path_of(held) in _OF_TORCH
    values = node.args if function else [held, *node.args]
    if not values:
        return None
    least = values[1] if len(values) > 1 else keyword(node, "min") or keyword(node, "other")
    return values[0] if least is not None and _is_zero(least) else None


def _is_zero(node: ast.expr) -> bool:
    """`0`, `torch.zeros_like(x)`, `torch.tensor(0.0)`."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float) and node.value == 0
    if not isinstance(node, ast.Call):
        return False
    name = last_name(node)
    return name in ("zeros_like", "new_zeros", "zeros") or (
        name in ("tensor", "new_tensor") and bool(node.args) and _is_zero(node.args[0])
    )


def _variance(node: ast.expr, made: ast.expr, call: Call) -> Edge | None:
    """`(x ** 2).mean(0) - x.mean(0) ** 2`."""
    flow = call.flow
    if not isinstance(made, ast.BinOp) or not isinstance(made.op, ast.Sub):
        return None
    of_squares, of_values = _averaged(made.left, flow), squared(source_of(made.right, flow) or made.right)
    if of_squares is None or squared(source_of(of_squares, flow) or of_squares) is None or of_values is None:
        return None
    if _averaged(of_values, flow) is None or is_kept(node, flow) or is_mended(flow.scope):
        return None
    return Edge(
        f"Rounding makes `{short(made)}` negative for nearly equal values: its root is NaN",
        "Use `x.std()` or `x.var()`, or clamp before the root: `.clamp(min=0)`",
        made if made.lineno != call.node.lineno else None,
    )


def _averaged(node: ast.expr, flow: Flow) -> ast.expr | None:
    """What an average is taken of: `x`, of `x.mean(0)`, `torch.mean(x)`, `F.avg_pool2d(x, 3)`."""
    made = source_of(node, flow) or node
    if not isinstance(made, ast.Call) or last_name(made) not in _AVERAGES:
        return None
    held = receiver(made)
    return next(iter(made.args), None) if held is None or path_of(held) in _OF_TORCH else held


_AVERAGES = frozenset({"mean", "avg_pool1d", "avg_pool2d", "avg_pool3d"})
_OF_TORCH = frozenset({"torch", "th", "F", "torch.nn.functional", "nn.functional"})


def _distance(node: ast.expr, made: ast.expr, call: Call) -> Edge | None:
    """`x2 + y2 - 2 * x @ y.T`."""
    flow = call.flow
    if not _is_distance(made, flow) or is_kept(node, flow) or is_mended(flow.scope):
        return None
    return Edge(
        f"Rounding makes `{short(made)}` negative for close points: its root is NaN",
        "Use `torch.cdist`, or clamp before the root: `.clamp(min=0)`",
        made if made.lineno != call.node.lineno else None,
    )


def _is_distance(made: ast.expr, flow: Flow) -> bool:
    terms = list(_terms(made, 1))
    if len(terms) < 3 or not any(sign < 0 and _is_double_product(term, flow) for sign, term in terms):
        return False
    return sum(sign > 0 and _is_square(term, flow) for sign, term in terms) >= 2


def _terms(node: ast.expr, sign: int) -> Iterator[tuple[int, ast.expr]]:
    """What is added up, with the signs."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from _terms(node.left, sign)
        yield from _terms(node.right, sign if isinstance(node.op, ast.Add) else -sign)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _terms(node.operand, -sign)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _is_two(node.left, negative=True):
        yield -sign, ast.BinOp(ast.Constant(2), node.op, node.right)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) and _is_doubled(node.left, negative=True):
        yield -sign, ast.BinOp(ast.BinOp(ast.Constant(2), ast.Mult(), node.left), node.op, node.right)
    else:
        yield sign, node


def _is_double_product(node: ast.expr, flow: Flow) -> bool:
    """`2 * x @ y.T`, `2 * torch.mm(x, y.t())`, `x.mm(y.t()).mul(2)`, with the two where it is due."""
    if isinstance(node, ast.Call) and last_name(node) == "mul" and len(node.args) == 1 and _is_two(node.args[0]):
        node = ast.BinOp(ast.Constant(2), ast.Mult(), receiver(node) or node)
    if not isinstance(node, ast.BinOp):
        return False
    if isinstance(node.op, ast.MatMult):  # `2 * x @ y` is `(2 * x) @ y`
        return _is_doubled(node.left)
    if not isinstance(node.op, ast.Mult):
        return False
    other = node.right if _is_two(node.left) else node.left if _is_two(node.right) else None
    made = None if other is None else source_of(other, flow) or other
    return (isinstance(made, ast.BinOp) and isinstance(made.op, ast.MatMult)) or (
        isinstance(made, ast.Call) and last_name(made) in PRODUCTS
    )


def _is_square(node: ast.expr, flow: Flow) -> bool:
    """The squares of the rows: `(x ** 2).sum(1, keepdim=True)`, `x_norm * x_norm`, or a name of such."""
    made = source_of(node, flow) or node
    for _ in range(4):
        if squared(made) is not None:
            return True
        if not isinstance(made, ast.Call) or last_name(made) not in _SUMMED:
            return False
        held = receiver(made)
        inner = next(iter(given(made)), None) if held is None or last_name(held) in ("torch", "th") else held
        if inner is None:
            return False
        made = source_of(inner, flow) or inner
    return False


def _is_doubled(node: ast.expr, *, negative: bool = False) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _is_two(node.left, negative=negative)


def _is_two(node: ast.expr, *, negative: bool = False) -> bool:
    if negative:
        return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and _is_two(node.operand)
    return isinstance(node, ast.Constant) and node.value in (2, 2.0)
