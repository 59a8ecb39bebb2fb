"""DT404: a spread that may be 0 is divided by, or a function is taken at the edge of where it is defined."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import scopes
from dtlint.infer.values import Constant
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._arcs import ARCS, arc, sine
from dtlint_rules._assignments import assignments
from dtlint_rules._cancelling import cancelled
from dtlint_rules._degrees import COUNTING, GATHERING, INVERTING, inverse_degree
from dtlint_rules._distances import ROOTS, distance, is_trained
from dtlint_rules._edges import is_called_epsilon, is_compared, is_mended, is_tested
from dtlint_rules._functions import parameters
from dtlint_rules._gradients import is_gradient_off
from dtlint_rules._imports import imports_torch, is_a_test
from dtlint_rules._kept import kept
from dtlint_rules._logarithms import one_sided
from dtlint_rules._masked_means import masked_mean
from dtlint_rules._misplaced import RECIPROCALS, beside_quotient, beside_reciprocal
from dtlint_rules._names import last_name
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._numbers import number_at
from dtlint_rules._pairs import named
from dtlint_rules._parts import below, keyword, receiver, same
from dtlint_rules._relative import relative_difference
from dtlint_rules._roots import epsilon_behind_root, rooted
from dtlint_rules._running import unguarded_variance
from dtlint_rules._statements import statements
from dtlint_rules._subjects import ABSENT, is_function, operand
from dtlint_rules._tensors import is_tensor, looks_like_tensor
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow, Operation
    from dtlint_rules._edges import Edge

__all__ = ["MissingEpsilon"]

_LOWEST, _HIGHEST = frozenset({"min", "amin"}), frozenset({"max", "amax"})


_DEGREES = tuple(sorted(COUNTING | GATHERING))
_ZERO_EPSILONS = ("eps=0", "eps:float=0", "epsilon=0", "epsilon:float=0")
"""How an epsilon of 0 is given by default, and larger ones, too."""


class MissingEpsilon(Rule):
    """Nothing keeps a divisor, a root, an arc cosine or a logarithm from where it gives NaN.

    ## What it does
    Reports `(x - x.mean()) / x.std()` and `(x - x.min()) / (x.max() - x.min())`, in steps, too, with the spread in
    place or by the name it was given, and perhaps spread along an axis, `std[:, None]`, where no epsilon is added, no
    clamp stands before it and no test asks for it; and a cosine that is computed by hand,
    `(x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1))`. Other divisions are left alone: that a norm or a sum may be 0
    depends on the data, while equal values are to be expected of rewards, masks, constant images and batches of one,
    and zeros of the rows that pad a batch. Tests, which know their values, are left alone.

    Reports also a share of what is true, `(a & b).sum() / (a | b).sum()`, whose divisor is 0 for empty masks; the arc
    cosine of a dot product that is not clamped, and the sine made of one, or of a parameter that is called a cosine,
    `torch.sqrt(1 - cos ** 2)`; one of `log(p + eps)` and `log(1 - p)` that has no epsilon; and, in `forward` and in
    functions that are named as losses, the row-wise distance by hand, `((a - b) ** 2).sum(-1).sqrt()`. These are left
    alone where the function tests the values or replaces what is NaN, and so are distances along the edges of a graph of
    neighbours that it makes itself, by `radius_graph` or `knn_graph`: they join points that lie apart. And the root of a
    squared distance by its expansion, `x2 + y2 - 2 * x @ y.T`, or of a variance as a difference,
    `(x ** 2).mean() - x.mean() ** 2`, which rounding takes below 0; in code that gradients flow through also where the
    former is clamped to 0 exactly, which is what equal points give.

    Reports besides the difference of two values by what they add up to, `(a - b).abs() / (a.abs() + b.abs())`, which is
    0/0 where both are 0, where it is returned, summed or averaged; and one over the degrees of a graph, or over their
    root, `deg.pow(-0.5)`, which is inf for a node without neighbours, where they come from a function for graphs or are
    sums of an adjacency matrix, nothing replaces it, the file joins no node with itself, and it is read for other nodes
    than those that were counted.

    Reports, too, in `forward` and in functions that are named as losses or norms, an epsilon behind the root of a
    variance, `(x - mean) / (x.var().sqrt() + eps)`: the value is kept, and the gradient of the root is NaN. That of
    `x.std()` is 0.

    Reports further an epsilon that is 0 by default, `def __init__(self, eps=0)` and `x / (std + self.eps)`, which
    stands beside a spread or a norm, where the file passes no other; one on the
    wrong side of the line, `x / x.std() + eps` and `v.rsqrt().add_(eps)`; the root of a `running_var` below the line in
    code that knows of no epsilon; and, in functions that are named as masked means, the division by the sum of the mask,
    where a function beside it asks whether such a sum is 0.

    Conditional, and so reported with `--preview` only: degrees, masked means, running variances and cosines that
    only their names tell of.

    ## Why it matters
    Where all values are equal their standard deviation is 0, and `std` of a single value is NaN. Half makes it more
    likely: values that differ by less than the resolution, 1/1024 of them in float16 and 1/256 in bfloat16, are equal
    there. The NaN goes through the loss into every weight. A dot product of unit vectors may be 1.0000001, and `acos`
    and the root are NaN there. The gradient of `sqrt` at 0 is infinite: the distance of two equal points by hand
    has a gradient of NaN, while that of `torch.linalg.vector_norm` is 0.

    ## Example
    ```python
    import torch

    def normalize(rewards: torch.Tensor) -> torch.Tensor:
        return (rewards - rewards.mean()) / rewards.std()
    ```

    ## Use instead
    ```python
    import torch

    def normalize(rewards: torch.Tensor) -> torch.Tensor:
        return (rewards - rewards.mean()) / (rewards.std() + 1e-6)
    ```

    ## References
    - [torch.std](https://docs.pytorch.org/docs/stable/generated/torch.std.html)
    - [torch.linalg.vector_norm](https://docs.pytorch.org/docs/stable/generated/torch.linalg.vector_norm.html)
    """

    code, name = "DT404", "missing-epsilon"
    triggers = (
        *attributes((*_LOWEST, "mean", "norm", "sum", "std_mean", "var_mean", "aminmax", *ROOTS, *ARCS, "log")),
        *(".abs", *_DEGREES, "*running_var*", *_ZERO_EPSILONS),
    )
    needs = (
        TORCH,
        (
            *attributes((*_HIGHEST, "std", "var", "norm", "sum", "std_mean", "var_mean", "aminmax", *ROOTS, *ARCS)),
            *(".log", ".rsqrt", ".abs", *_DEGREES, *_ZERO_EPSILONS),
        ),
    )
    calls = frozenset({*ROOTS, *RECIPROCALS, *INVERTING, *ARCS, "log"})
    operators = frozenset({ast.Div, ast.Pow})

    def on_call(self, call: Call) -> Iterator[Finding]:
        name = last_name(call.node)
        if name in INVERTING:
            edge = inverse_degree(call.node, call.flow)
            if edge is not None and _is_judged(call.flow.tree):
                yield _told(call.node, edge)
            if edge is not None or name not in RECIPROCALS:
                return
        subject, value = operand(call) or ABSENT
        if subject is None or (found := _edge(subject, call)) is None or not _is_judged(call.flow.tree):
            return
        only_of_tensors = name not in ROOTS
        if is_function(call) or only_of_tensors or is_tensor(subject, value, call.flow):
            yield _told(*found)

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node, flow = operation.node, operation.flow
        if isinstance(node, ast.BinOp) and (isinstance(node.op, ast.Pow) or isinstance(node.left, ast.Constant)):
            edge = inverse_degree(node, flow)
            return () if edge is None or not _is_judged(flow.tree) else (_told(node, edge),)
        if isinstance(operation.right, Constant) or isinstance(operation.operator, ast.Pow):
            return ()
        return self._divided(operation)

    def _divided(self, operation: Operation) -> Iterator[Finding]:
        node, flow = operation.node, operation.flow
        if isinstance(node, ast.BinOp):
            numerator, divisor = _difference(node.left, flow), node.right
        elif isinstance(node, ast.AugAssign):
            numerator, divisor = None, node.value
        else:
            return
        if (written := _zero_epsilon(divisor, flow)) is not None:
            top = node.left if isinstance(node, ast.BinOp) else node.target
            left = numerator.left if isinstance(numerator, ast.BinOp) else top
            tensors = (
                is_tensor(divisor, operation.right, flow)
                or is_tensor(top, operation.left, flow)
                or _is_input(left, flow)
                or looks_like_tensor(path_of(left) or "", flow.scope)
            )
            if tensors and _is_judged(flow.tree) and not _asked_for(divisor, flow):
                yield Finding(
                    written,
                    f"The epsilon of `{short(divisor)}` is 0 by default: {_leads_to_nan(node, flow)}",
                    help="Use a small number: 1e-6 in float32, 1e-3 in float16",
                    notes=((node, "divided here"),),
                )
            return
        late = epsilon_behind_root(_unspread(divisor), flow)
        if late is not None and _is_judged(flow.tree):
            yield _told(node, late)
            return
        spread = named(_unspread(divisor), flow)
        if isinstance(node, ast.BinOp) and (found := _beside(node, spread, flow)) is not None:
            if _is_judged(flow.tree):
                yield _told(*found)
            return
        if _is_scaled_by_maximum(node, spread, flow):
            if _is_judged(flow.tree) and not _asked_for(divisor, flow) and is_tensor(divisor, operation.right, flow):
                where = "`x.max() + eps`"
                yield from self._judged(node, "The maximum of what the minimum was subtracted from", where, flow)
            return
        if isinstance(node, ast.BinOp) and _counts(divisor, flow) and _counts(node.left, flow):
            if is_tensor(divisor, operation.right, flow):
                yield from _shared(node, flow)
            return
        if isinstance(node, ast.BinOp) and (edge := relative_difference(node, flow)) is not None:
            if _is_judged(flow.tree):
                yield _told(node, edge)
            return
        if isinstance(node, ast.BinOp) and (normed := _norms(spread, flow)) is not None:
            yield from _cosine(node, normed, operation)
            return
        if not isinstance(numerator, ast.BinOp) or not isinstance(numerator.op, ast.Sub):
            return
        told = _spread(numerator, spread, flow)
        if told is None or not _is_judged(flow.tree) or _asked_for(divisor, flow):
            return
        if not is_tensor(numerator.left, operation.left, flow) and not (
            any(is_tensor(part, operation.right, flow) for part in (numerator.right, divisor))
            or _is_input(numerator.left, flow)
        ):
            return
        happens, where = told
        yield from self._judged(node, happens, where, flow)

    def _judged(self, node: ast.expr | ast.stmt, happens: str, where: str, flow: Flow) -> Iterator[Finding]:
        yield Finding(
            node,
            f"{happens} is 0 where all values are equal: {_leads_to_nan(node, flow)}",
            help=f"Add a small number, {where}, or clamp: 1e-6 in float32, 1e-3 in float16",
        )


def _told(node: ast.expr | ast.stmt, edge: Edge) -> Finding:
    made = ((edge.made, edge.why),) if edge.made is not None else ()
    return Finding(node, edge.happens, help=edge.help, notes=made, conditional=edge.by_name)


def _is_judged(tree: ast.Module) -> bool:
    """Is it code of torch, and no test, which knows the values that it gives?"""
    return imports_torch(tree) and not is_a_test(tree)


def _leads_to_nan(node: ast.AST, flow: Flow) -> str:
    gives = "the division gives NaN, 0/0"
    if is_gradient_off(node, flow) or not is_trained(flow):
        return gives
    return f"{gives}, also in the gradients"


def _edge(subject: ast.expr, call: Call) -> tuple[ast.expr, Edge] | None:
    """The edge that a root, an arc cosine or a logarithm is taken at, and the expression that goes beyond it."""
    name, flow = last_name(call.node), call.flow
    if name in RECIPROCALS and (found := beside_reciprocal(call.node, subject, flow)) is not None:
        return found
    edge = None
    if name in ARCS:
        edge = arc(subject, name, flow)
    elif name == "log":
        edge = one_sided(subject, call)
    else:
        edge = unguarded_variance(subject, call)
        if edge is None and name in ROOTS:
            edge = sine(subject, flow) or distance(subject, call) or cancelled(subject, call)
    return None if edge is None else (call.node, edge)


def _beside(node: ast.BinOp, divisor: ast.expr, flow: Flow) -> tuple[ast.expr, Edge] | None:
    """What a quotient alone shows to be wrong: an epsilon that is added to it, and a divisor that counts any mask."""
    if (found := beside_quotient(node, divisor, flow)) is not None:
        return found
    edge = masked_mean(node, flow)
    return None if edge is None else (node, edge)


_MOST_SUMS = 3
_LOGICAL = frozenset({"logical_and", "logical_or", "bitwise_and", "bitwise_or"})
_SAME_COUNT = ("float", "double", "to", "type", "squeeze", "unsqueeze", "view")


def _counts(node: ast.expr, flow: Flow) -> bool:
    """Is it a number of things that are true, `(masks > threshold).sum(-1)`?"""
    node = below(named(below(node, _SAME_COUNT), flow), _SAME_COUNT)
    summed = False
    for _ in range(_MOST_SUMS):  # `n = n.sum()` stands for itself without end
        if not isinstance(node, ast.Call) or last_name(node) != "sum":
            break
        of_torch = path_of(node.func) in ("torch.sum", "th.sum")
        inner = node.args[0] if of_torch and node.args else receiver(node)
        if inner is None or path_of(inner) in ("np", "numpy"):
            return False
        node, summed = named(below(inner, _SAME_COUNT), flow), True
    if not summed:
        return False
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and not isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.BitAnd, ast.BitOr))
    return isinstance(node, ast.Call) and last_name(node) in _LOGICAL


def _shared(node: ast.BinOp, flow: Flow) -> Iterator[Finding]:
    """`(a & b).sum() / (a | b).sum()`."""
    if not _is_judged(flow.tree) or _asked_for(node.right, flow) or is_compared(below(node.right, _SAME_COUNT), flow):
        return
    if is_tested(node.right, flow) or is_mended(flow.scope):
        return
    yield Finding(
        node,
        f"`{short(node.right)}` is 0 for empty masks: 0/0 is NaN",
        help="Clamp the divisor: `.clamp(min=1)`",
    )


def _is_scaled_by_maximum(node: ast.BinOp | ast.AugAssign, divisor: ast.expr, flow: Flow) -> bool:
    """`x = x / x.max()`, and before it `x = x - x.min()`."""
    if last_name(divisor) not in _HIGHEST:
        return False
    subject = node.left if isinstance(node, ast.BinOp) else node.target
    path = path_of(subject)
    if path is None or not _is_reduction(divisor, _HIGHEST, subject) or _is_tested(path, flow):
        return False
    before: ast.stmt | None = None
    drawn = assignments(flow.scope).get(path, ())
    if any(isinstance(value, ast.Call) and last_name(value).startswith("rand") for _, value in drawn):
        return False  # random numbers are not equal
    for statement in statements(flow.scope):
        if isinstance(statement, (ast.Assign, ast.AugAssign)) and statement.lineno < node.lineno:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if any(path_of(target) == path for target in targets) and (
                before is None or before.lineno < statement.lineno
            ):
                before = statement
    if isinstance(before, ast.AugAssign):
        return isinstance(before.op, ast.Sub) and _is_reduction(before.value, _LOWEST, subject)
    taken = before.value if isinstance(before, ast.Assign) else None
    if not isinstance(taken, ast.BinOp) or not isinstance(taken.op, ast.Sub):
        return False
    return _is_reduction(named(taken.right, flow), _LOWEST, taken.left)


def _is_tested(path: str, flow: Flow) -> bool:
    """Does a test of the function compare what is computed of a name: `if x.max() > 0`?"""
    return any(
        path_of(part) == path
        for node in nodes([flow.scope])
        if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert))
        for part in nodes([node.test])
        if isinstance(part, (ast.Name, ast.Attribute))
    )


def _norms(divisor: ast.expr, flow: Flow) -> tuple[ast.expr, ast.expr] | None:
    """What `x.norm(dim=1) * y.norm(dim=1)` takes the norms of, row by row; None where it is no such product."""
    if not isinstance(divisor, ast.BinOp) or not isinstance(divisor.op, ast.Mult):
        return None
    first, second = (_of_norm(named(side, flow)) for side in (divisor.left, divisor.right))
    return None if first is None or second is None or same(first, second) else (first, second)


def _of_norm(node: ast.expr) -> ast.expr | None:
    """`x`, of `x.norm(dim=-1)`, `torch.norm(x, dim=-1)` and `torch.linalg.norm(x, dim=-1)`."""
    if not isinstance(node, ast.Call) or last_name(node) not in ("norm", "vector_norm"):
        return None
    if keyword(node, "dim") is None:
        return None
    of_torch = (path_of(node.func) or "").rpartition(".")[0] in ("torch", "torch.linalg", "LA", "th")
    return (node.args[0] if node.args else None) if of_torch else receiver(node)


def _cosine(node: ast.BinOp, normed: tuple[ast.expr, ast.expr], operation: Operation) -> Iterator[Finding]:
    """The finding where what is divided is made of both."""
    flow = operation.flow
    if not _is_judged(flow.tree) or _asked_for(node.right, flow):
        return
    if not any(is_tensor(part, operation.right, flow) for part in (*normed, node.right)):
        return
    made = {path_of(part) for part in ast.walk(named(node.left, flow)) if isinstance(part, (ast.Name, ast.Attribute))}
    first, second = map(path_of, normed)
    if first is not None and second is not None and {first, second} <= made:
        yield Finding(
            node,
            f"A row of zeros in `{first}` or `{second}` has the norm 0: {_leads_to_nan(node, flow)}",
            help="Use `torch.nn.functional.cosine_similarity`, or clamp the product of the norms",
        )


_SPREADING = ("unsqueeze", "view", "reshape", "expand", "expand_as", "repeat")


def _unspread(node: ast.expr) -> ast.expr:
    """`std`, of `std.unsqueeze(-1)`, `std.view(n, 1, 1).expand_as(x)` and `std[:, None]`."""
    node = below(node, _SPREADING)
    if isinstance(node, ast.Subscript) and any(
        isinstance(part, ast.Constant) and part.value is None for part in ast.walk(node.slice)
    ):
        return node.value
    return node


_MOST_FACTORS = 4


def _difference(node: ast.expr, flow: Flow) -> ast.expr:
    """What is divided, what it is multiplied with aside: `x - mean` of `self.gain * (x - mean)`."""
    node = named(node, flow)
    for _ in range(_MOST_FACTORS):  # `x = x * gain` stands for itself without end
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            break
        left, right = named(node.left, flow), named(node.right, flow)
        node = right if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Sub) else left
    return node


def _zero_epsilon(divisor: ast.expr, flow: Flow) -> ast.expr | None:
    """Where an epsilon that a divisor gets is written, `std + self.eps`, if what is written is 0."""
    made = named(_unspread(divisor), flow)
    if not isinstance(made, ast.BinOp) or not isinstance(made.op, ast.Add):
        return None
    for side in (made.right, made.left):
        if isinstance(side, (ast.Name, ast.Attribute)) and is_called_epsilon(side):
            number = number_at(side, flow)
            if number is None or number.value != 0 or _is_passed(flow.tree, last_name(side)):
                return None
            return number.written if _is_of_spread(made.left if side is made.right else made.right, flow) else None
    return None


_SPREADS = frozenset({"std", "norm", "vector_norm"})
_SPREAD = re.compile(r"(?:^|_)(?:std|stds|stddev|norms?|range)(?:_|$)")


def _is_of_spread(node: ast.expr, flow: Flow) -> bool:
    """Is it a standard deviation, the root of a variance, a norm, a product of norms or a range, which may be 0?"""
    made = named(_unspread(node), flow)
    if isinstance(made, (ast.Name, ast.Attribute)):
        return _SPREAD.search(last_name(made).lower()) is not None
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Mult):
        return _is_of_spread(made.left, flow) and _is_of_spread(made.right, flow)
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Sub):
        return last_name(named(made.left, flow)) in _HIGHEST and last_name(named(made.right, flow)) in _LOWEST
    if isinstance(made, ast.Call) and last_name(made) in _SPREADS:
        return True
    inner = rooted(made)
    return inner is not None and last_name(named(inner, flow)) == "var"


@kept
def _is_passed(tree: ast.Module, name: str) -> bool:
    """Does a file pass an epsilon of its own, `Norm(4, eps=1e-6)`, or a small number by position?"""
    return any(
        any(each.arg == name and _is_small(each.value, zero=False) for each in part.keywords)
        or any(map(_is_small, part.args))
        for _, own in scopes(tree)
        for part in own.calls
    )


def _is_small(node: ast.expr, *, zero: bool = True) -> bool:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, (int, float)):
        return not zero
    return 0 < node.value < _SMALL if zero else node.value != 0


_SMALL = 0.01


def _is_input(node: ast.expr, flow: Flow) -> bool:
    """Is it what the forward of a module is called with?"""
    function = flow.function
    if not isinstance(node, ast.Name) or function is None or function.name != "forward" or function.owner is None:
        return False
    return function.owner.is_module and any(each.arg == node.id for each in parameters(function.node))


def _spread(numerator: ast.BinOp, divisor: ast.expr, flow: Flow) -> tuple[str, str] | None:
    """Is the divisor the spread of what the numerator subtracts from? How it is called, and how it is mended."""
    subject = numerator.left
    subtracted = named(_unspread(numerator.right), flow)
    if _is_reduction(subtracted, frozenset({"mean"}), subject):
        if _is_reduction(divisor, frozenset({"std"}), subject):
            return f"The standard deviation of `{short(subject)}`", "`x.std() + eps`"
        if _is_root_of_variance(divisor, subject, flow):
            return f"The variance of `{short(subject)}`", "`(x.var() + eps).sqrt()`"
    if (
        _is_reduction(subtracted, _LOWEST, subject)
        and isinstance(divisor, ast.BinOp)
        and isinstance(divisor.op, ast.Sub)
    ):
        highest, lowest = named(divisor.left, flow), named(divisor.right, flow)
        if _is_reduction(highest, _HIGHEST, subject) and _is_reduction(lowest, _LOWEST, subject):
            return f"The range of `{short(subject)}`", "`x.max() - x.min() + eps`"
    return None


def _is_reduction(node: ast.expr, names: frozenset[str], subject: ast.expr) -> bool:
    """Is it `subject.name(...)` or `torch.name(subject, ...)`, or the values of `subject.max(...)`?"""
    if isinstance(node, ast.Attribute) and node.attr == "values":
        node = node.value
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == 0:
        node = node.value
    if not isinstance(node, ast.Call) or last_name(node) not in names:
        return False
    if isinstance(node.func, ast.Attribute) and _reads_as(node.func.value, subject):
        return True
    of_torch = (path_of(node.func) or "").rpartition(".")[0] in ("torch", "th")
    return of_torch and bool(node.args) and _reads_as(node.args[0], subject)


def _reads_as(node: ast.expr, subject: ast.expr) -> bool:
    """Do they read alike, even if one is the target of an assignment?"""
    path = path_of(subject)
    return same(node, subject) if path is None else path_of(node) == path


def _is_root_of_variance(node: ast.expr, subject: ast.expr, flow: Flow) -> bool:
    """`x.var().sqrt()`, `torch.sqrt(x.var())`, `x.var() ** 0.5`."""
    inner = rooted(node)
    return inner is not None and _is_reduction(named(inner, flow), frozenset({"var"}), subject)


def _asked_for(divisor: ast.expr, flow: Flow) -> bool:
    """Does a test speak of the divisor, or of what it is the difference of, or does anything replace zeros in it?"""
    parts = [divisor, _unspread(divisor), named(_unspread(divisor), flow)]
    parts += [side for part in parts if isinstance(part, ast.BinOp) for side in (part.left, part.right)]
    paths: set[str | None] = {path for part in parts if (path := path_of(part)) is not None}
    for node in ast.walk(flow.scope) if paths else ():
        if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)) and any(
            path_of(part) in paths for part in ast.walk(node.test) if isinstance(part, (ast.Name, ast.Attribute))
        ):
            return True
        if isinstance(node, ast.Call) and last_name(node).endswith("_") and path_of(receiver(node) or node) in paths:
            return True  # `std.clamp_(min=1e-6)`
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Subscript) and path_of(target.value) in paths:
                    return True
                if isinstance(node, ast.AugAssign) and path_of(target) in paths:
                    return True
    return False
