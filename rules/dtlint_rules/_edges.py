"""Where functions end: the root and its gradient at 0, the arc cosine at 1, and `x * log(x)` at 0.

Beyond the edge they are NaN, and at the edge itself their gradient is; what is computed by hand comes there by rounding, by
equal points, or by a probability that underflows.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.walk import nodes
from dtlint_rules._assignments import assignments, source_of
from dtlint_rules._names import last_name, names_in
from dtlint_rules._parts import below, receiver, root_of, same
from dtlint_rules._squares import squared
from dtlint_rules._subjects import ABSENT, operand
from dtlint_rules._within import parents_in, within

if TYPE_CHECKING:
    from dtlint.infer.events import Call, Flow

__all__ = ["ARCS", "ROOTS", "Edge", "edge_of"]

ROOTS = frozenset({"sqrt", "sqrt_"})
ARCS = frozenset({"acos", "arccos", "acos_", "arccos_"})

_COSINE = re.compile(
    r"(?:^|_)(?:cos(?:ine)?s?|cos(?:ine)?_?(?:theta|angle|sim|similarity|dist|phi|alpha|beta|omega|half)\w*|dots?|"
    r"dot_?prod\w*|inner_?prod\w*|rot_?trace|trace)(?:_|$)"
)
"""Names of cosines of angles, and of dot products of unit vectors."""
_PRODUCTS = frozenset({"dot", "vdot", "bmm", "matmul", "mm", "mv", "einsum", "inner", "cosine_similarity", "trace"})
"""What computes cosines of unit vectors; rounding takes it beyond 1."""
_KEEPING = re.compile(
    r"^(?:clamp|clip|min|max|amin|amax|minimum|maximum|where|tanh|hardtanh|cos|sin|sigmoid|nan_to_num|masked_fill|"
    r"relu|softplus|exp|safe\w*|abs|rand|rand_like|uniform|linspace|arange)(?:_|$)|clamp|clip"
)
"""What keeps a value from the edge, or shows that it comes from elsewhere."""
_SMALL = re.compile(r"(?:^|_)(?:eps|epsilon|tiny|delta|tol)(?:_|$|\d)")
_SUMS = frozenset({"sum", "mean", "nansum", "nanmean"})
_SCATTERED = re.compile(r"^(?:scatter|segment|global)_?(?:add|sum|mean|csr|pool|add_pool|mean_pool)?$|^scatter_add_?$")
_SHAPING = ("unsqueeze", "squeeze", "view", "reshape", "flatten", "transpose", "permute", "contiguous", "t")
_TRAINED = re.compile(r"loss|dist|std|criterion|penalty|regulari")
"""Functions whose results gradients flow through."""
_MEASURING = re.compile(
    r"metric|eval|test|val(?:_|idat|$)|score|extract|process|accuracy|predict|generate|sample|plot|optim|diagnos"
)
"""Code whose results nobody takes a gradient of."""
_PROBABILITY = re.compile(
    r"^(?:p|q|ps|qs|pi|py|pxy?)$|prob|(?:^|_)(?:attn|attention|mask|weights?|assign\w*|dist)(?:_|$)"
)
_MOST_STEPS = 8


@dataclass(frozen=True, slots=True)
class Edge:
    """What happens at the edge, what to write instead, and where the value comes from."""

    happens: str
    help: str
    made: ast.expr | None = None


def edge_of(call: Call) -> Edge | None:
    """The edge that a root, an arc cosine or a logarithm is taken at, with nothing that keeps its argument from there."""
    node, _ = operand(call) or ABSENT
    if node is None or (path_of(call.node.func) or "").startswith(("np.", "numpy.", "math.", "cmath.", "jnp.", "tf.")):
        return None
    name = last_name(call.node)
    if name in ARCS:
        return _arc(node, name, call.flow)
    if name in ROOTS:
        return _sine(node, call.flow) or _distance(node, call)
    return _entropy(node, call) or _one_sided(node, call) if name == "log" else None


def _arc(node: ast.expr, name: str, flow: Flow) -> Edge | None:
    if not _is_cosine(node, flow) or _is_kept(node, flow):
        return None
    return Edge(
        f"Rounding takes the cosine `{_short(node)}` beyond 1, where `{name}` is NaN; at 1 itself its gradient is infinite",
        "Clamp it: `x.clamp(-1 + 1e-6, 1 - 1e-6)`",
    )


def _sine(node: ast.expr, flow: Flow) -> Edge | None:
    """`torch.sqrt(1 - cos ** 2)`."""
    made = source_of(node, flow) or node
    if not isinstance(made, ast.BinOp) or not isinstance(made.op, ast.Sub) or not _is_one(made.left):
        return None
    cosine = squared(made.right)
    if cosine is None or not _is_cosine(cosine, flow) or _is_kept(cosine, flow):
        return None
    return Edge(
        f"Rounding takes the cosine `{_short(cosine)}` beyond 1, where the root of `{_short(made)}` is NaN; at 1 itself its "
        "gradient is infinite",
        f"Clamp it: `({_short(made)}).clamp(min=1e-6).sqrt()`",
        made if made is not node else None,
    )


def _is_cosine(node: ast.expr, flow: Flow) -> bool:
    """Is it a cosine by its name, or a product of vectors?"""
    for part in (node, source_of(node, flow)):
        if part is None:
            continue
        part = below(part, (*_SHAPING, "mean"))
        if _COSINE.search(last_name(root_of(part)).lower()) is not None and not isinstance(root_of(part), ast.Call):
            return True
        if _is_product(part):
            return True
        if isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Div, ast.Mult)):
            # `dot / (norm * norm)`, and the angle of a rotation, `(trace - 1) / 2`
            top = (
                part.left.left if isinstance(part.left, ast.BinOp) and isinstance(part.left.op, ast.Sub) else part.left
            )
            made = source_of(top, flow)
            if _COSINE.search(last_name(top).lower()) is not None or any(map(_is_product, filter(None, (top, made)))):
                return True
    return False


def _is_product(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    if not isinstance(node, ast.Call):
        return False
    if last_name(node) in _PRODUCTS:
        return True
    summed = receiver(node) if not node.args or path_of(node.func) not in ("torch.sum", "th.sum") else node.args[0]
    return last_name(node) == "sum" and isinstance(summed, ast.BinOp) and isinstance(summed.op, ast.Mult)


def _is_kept(node: ast.expr, flow: Flow) -> bool:
    """Is a value kept from the edge: by a clamp, by an epsilon, or by a test?"""
    queue: list[ast.expr] = [node]
    asked: set[str] = set()
    while queue:
        for part in nodes([queue.pop()]):
            if isinstance(part, ast.Call) and _KEEPING.search(last_name(part)) is not None:
                return True
            if isinstance(part, (ast.Name, ast.Attribute)) and _SMALL.search(last_name(part).lower()) is not None:
                return True
            if isinstance(part, ast.Constant) and isinstance(part.value, float) and 0 < abs(part.value) < 1e-2:
                return True
            if isinstance(part, ast.Constant) and isinstance(part.value, float) and 0.9 < abs(part.value) < 1:
                return True
            if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Compare):
                return True
            if isinstance(part, ast.Name) and part.id not in asked and len(asked) < _MOST_STEPS:
                asked.add(part.id)
                queue += [value for _, value in assignments(flow.scope).get(part.id, ()) if value is not None]
    return _is_tested(asked, flow.scope)


def _is_tested(names: set[str], scope: ast.AST) -> bool:
    """Does a test ask for one of the names, or is one of them changed in place?"""
    for part in nodes([scope]):
        if isinstance(part, (ast.If, ast.IfExp, ast.Assert, ast.While)):
            if any(
                isinstance(test, ast.Compare) and not names.isdisjoint(names_in(test)) for test in nodes([part.test])
            ):
                return True
        elif (
            isinstance(part, ast.Call) and last_name(part).endswith("_") and last_name(receiver(part) or part) in names
        ):
            return True
        elif isinstance(part, ast.Assign):
            for target in part.targets:
                if isinstance(target, ast.Subscript) and last_name(target.value) in names:
                    return True
    return False


def _distance(node: ast.expr, call: Call) -> Edge | None:
    """`((a - b) ** 2).sum(-1).sqrt()`, in code that gradients flow through."""
    flow = call.flow
    found = _difference(node, flow)
    if found is None or not _is_trained(flow) or _is_measured(call) or not _may_be_equal(found, flow):
        return None
    return Edge(
        f"The gradient of `sqrt` at 0 is infinite, and where `{_short(found)}` is 0 the gradient of the square is 0: their "
        "product is NaN",
        "Add a small number before the root, 1e-12 in float32, or use `torch.linalg.vector_norm`, whose gradient is 0 there",
        found if found.lineno != call.node.lineno else None,
    )


def _difference(node: ast.expr, flow: Flow) -> ast.expr | None:
    """`a - b`, whose squares are added up, perhaps by several statements, and nothing else added."""
    line = flow.statement.lineno
    summed = False
    for _ in range(_MOST_STEPS):
        node = below(node, _SHAPING)
        if isinstance(node, ast.Name):
            above = [each for each in assignments(flow.scope).get(node.id, ()) if each[0] < line]
            if not above or above[-1][1] is None:
                return None
            line, node = above[-1]  # type: ignore[assignment]
            continue
        square = squared(node)
        if square is not None:
            made = square
            if isinstance(square, ast.Name):
                above = [each for each in assignments(flow.scope).get(square.id, ()) if each[0] <= line]
                made = (above[-1][1] if above else None) or square
            return made if summed and isinstance(made, ast.BinOp) and isinstance(made.op, ast.Sub) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            node = node.left
        elif isinstance(node, ast.Call):
            name = last_name(node)
            of_torch = path_of(node.func) in (f"torch.{name}", f"th.{name}")
            if name in _SUMS:
                inner = node.args[0] if of_torch and node.args else receiver(node)
            elif name == "var" and summed is False:
                return node
            elif name == "mse_loss" and len(node.args) > 1:
                return ast.copy_location(ast.BinOp(node.args[0], ast.Sub(), node.args[1]), node)
            elif _SCATTERED.search(name) is not None and not isinstance(node.func, ast.Attribute) and node.args:
                inner = node.args[0]
            else:
                return None
            if inner is None:
                return None
            node, summed = inner, True
        else:
            return None
    return None


def _may_be_equal(difference: ast.expr, flow: Flow) -> bool:
    """Is what is subtracted computed or given, and no number?"""
    return not any(isinstance(side, ast.Constant) for side in ast.iter_child_nodes(difference))


def _is_trained(flow: Flow) -> bool:
    """Do gradients flow through it: is it the forward of a module, or a function that is named as losses and distances are?"""
    function = flow.function
    if function is None:
        return False
    names = [function.name.lower()] + ([function.owner.node.name.lower()] if function.owner is not None else [])
    if any(_MEASURING.search(name) is not None for name in names):
        return False
    if any(last_name(part) in ("no_grad", "inference_mode", "all_reduce") for part in nodes([flow.scope])):
        return False
    is_forward = function.name == "forward" and function.owner is not None and function.owner.is_module
    return is_forward or any(_TRAINED.search(name) is not None for name in names)


_NO_GRADIENT = frozenset(
    {"item", "detach", "numpy", "tolist", "bucketize", "argmin", "argmax", "topk", "sort", "searchsorted"}
)
"""Methods and functions that give numbers, orders and copies without a gradient."""


def _is_measured(call: Call) -> bool:
    """Is the root, or the name that it gets, taken for a number, compared with one, or cut from the graph?"""
    for part in within(call.node, call.flow):
        if isinstance(part, ast.Compare) or _cuts(part) or last_name(part) in ("clamp", "clamp_min"):
            return True
    bound = {last_name(target) for target in getattr(call.flow.statement, "targets", ())} - {""}
    known = parents_in(call.flow.scope) if bound else {}
    for node in nodes([call.flow.scope]) if bound else ():
        if isinstance(node, ast.Name) and node.id in bound and isinstance(node.ctx, ast.Load):
            around: ast.AST | None = node
            while isinstance(around, ast.expr):
                if isinstance(around, ast.Compare) or _cuts(around):
                    return True
                around = known.get(around)
    return False


def _cuts(node: ast.AST) -> bool:
    return isinstance(node, (ast.Attribute, ast.Call)) and last_name(node) in _NO_GRADIENT


def _entropy(node: ast.expr, call: Call) -> Edge | None:
    """`-(p * p.log()).sum()`."""
    flow = call.flow
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        node = node.left  # `p * (p / q).log()`
    if (
        not isinstance(root_of(node), (ast.Name, ast.Attribute))
        or _PROBABILITY.search(last_name(root_of(node)).lower()) is None
    ):
        return None
    child: ast.AST = call.node
    for around in within(call.node, flow):
        if isinstance(around, ast.BinOp) and isinstance(around.op, ast.Mult):
            break
        if not isinstance(around, ast.UnaryOp) and not (
            isinstance(around, ast.BinOp) and isinstance(around.op, ast.Sub) and around.left is child
        ):
            return None  # `p * (p.log() - q.log())` is a divergence
        child = around
    else:
        return None
    other = around.left if around.right is child else around.right
    other = other.operand if isinstance(other, ast.UnaryOp) else other
    if not same(other, node) or _is_kept(node, flow) or _is_smooth(node, flow):
        return None
    if any(
        isinstance(part, ast.Call) and _KEEPING.search(last_name(part)) is not None for part in within(call.node, flow)
    ):
        return None
    return Edge(
        f"Where `{_short(node)}` is 0 its logarithm is -inf, and 0 times -inf is NaN",
        f"Use `torch.special.entr({_short(node)})`, which is `-x * log(x)` and 0 at 0, or `torch.xlogy`",
    )


def _one_sided(node: ast.expr, call: Call) -> Edge | None:
    """`torch.log(p + eps) + torch.log(1 - p)`: one logarithm is kept from 0, and its counterpart is not."""
    flow = call.flow
    rest = _rest_of_one(node)
    plain = node if rest is None else rest
    if path_of(plain) is None or _is_kept(plain, flow):
        return None
    for other in facts(flow.scope).calls:
        if last_name(other) != "log" or other is call.node or abs(other.lineno - call.node.lineno) > _NEAR:
            continue
        given = other.args[0] if other.args else receiver(other)
        if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Add) and _is_small(given.right):
            counterpart = _rest_of_one(given.left)
            if same(given.left, plain) if rest is not None else counterpart is not None and same(counterpart, plain):
                return Edge(
                    f"Where `{_short(node)}` is 0 its logarithm is -inf: only the counterpart is kept from that",
                    f"Add the epsilon here as well: `{_short(node)} + {ast.unparse(given.right)}`",
                    other,
                )
    return None


_NEAR = 3


def _rest_of_one(node: ast.expr) -> ast.expr | None:
    """`p`, of `1 - p`."""
    return node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_one(node.left) else None


def _is_small(node: ast.expr) -> bool:
    """Is it a small number, or called an epsilon?"""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < node.value < 1e-2
    return _SMALL.search(last_name(node).lower()) is not None


def _is_smooth(node: ast.expr, flow: Flow) -> bool:
    """Is it a softmax, of which the logarithm is a formula of its own, or an exponential, which is 0 by underflow alone?"""
    made = source_of(node, flow)
    return made is not None and any(
        isinstance(part, ast.Call) and last_name(part) in ("softmax", "exp", "gumbel_softmax", "logsumexp")
        for part in nodes([made])
    )


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else text[:37] + "..."
