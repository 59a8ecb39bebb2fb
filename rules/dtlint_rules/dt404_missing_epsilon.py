"""DT404: a spread that may be 0 is divided by, or a function is taken at the edge of where it is defined."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._uses import Use, is_edge, is_in_place, is_mended, maker, number_at, peeled, uses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["MissingEpsilon"]

_LOWEST, _HIGHEST = frozenset({"min", "amin"}), frozenset({"max", "amax"})
_ARCS = ("acos", "arccos", "asin", "arcsin")
_DOTS = frozenset({"matmul", "mm", "bmm", "dot", "sum", "einsum", "inner", "cosine_similarity"})
"""What gives a cosine of unit vectors: rounding takes it beyond 1."""
_EDGED = ("log", "log2", "log10", "rsqrt", "reciprocal")
_SPREADS = frozenset({"std", "var"})
_DRAWN = frozenset({"rand", "randn", "rand_like", "randn_like", "normal"})
"""Noise is never all equal."""
_BOUNDING = ("clamp", "clamp_min", "clip", "masked_fill", "add")


class MissingEpsilon(Rule):
    """Nothing keeps a divisor, a root, an arc cosine or a logarithm from where it gives NaN.

    ## What it does
    Reports `(x - x.mean()) / x.std()` and `(x - x.min()) / (x.max() - x.min())`, in steps, too, where no epsilon is added,
    no clamp stands before the spread and no test asks for it; a share of what is true, `(a & b).sum() / (a | b).sum()`,
    whose divisor is 0 for empty masks; a division by, a logarithm or a reciprocal root of what a `relu` gives, or of zeros;
    the arc cosine or arc sine of a dot product that is not clamped; and an epsilon on the wrong side of the line,
    `x / x.std() + eps` and `v.rsqrt() + eps`. Other divisions are left alone: that a norm or a sum may be 0 depends on the
    data, while equal values are to be expected of rewards, masks, constant images and batches of one.

    Conditional, and so reported with `--preview` only: the same of what is not known to be a tensor, ranges, which are
    taken to show a picture as a rule, and the mean of what a mask lets through, `(loss * mask).sum() / mask.sum()`.

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
    triggers = attributes(("mean", "min", "amin", "sum", "relu", "std", "rsqrt", *_ARCS))
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        for use in uses(facts, "div", "true_divide"):
            found = list(_divided(facts, use)) if len(use.nodes) == 2 else []
            if found and not _is_asked_for(facts, use.node, use.nodes[1]):
                yield from found
        for use in uses(facts, *_EDGED):
            yield from _at_zero(facts, use, 0, f"`{use.name}` is infinite there, and NaN in the gradients")
        for use in uses(facts, *_ARCS):
            yield from _arc(facts, use)
        for use in uses(facts, "add"):
            yield from _misplaced(facts, use)


def _divided(facts: ModuleFacts, use: Use) -> Iterator[Finding]:
    spread, made = _spread(facts, use.nodes[1]), maker(facts, use.nodes[1])
    if spread is not None:
        of, text, of_range = spread
        difference = _difference(facts, use.nodes[0])
        if difference is not None and (difference is of or _is_of(facts, difference.left, of)):
            yield Finding(
                use.node,
                f"{text} is 0 where all values are equal: the division gives NaN, 0/0",
                help="Add a small number, or clamp: 1e-6 in float32, 1e-3 in float16",
                conditional=of_range or not any(isinstance(value, Tensor) for value in use.values),
            )
    elif made is not None and _counts(facts, made):
        top = maker(facts, use.nodes[0])
        shares = top is not None and _counts(facts, top)
        if shares or (top is not None and top.name == "sum"):
            yield Finding(
                use.node,
                "The sum of a mask is 0 where nothing is true: the division gives NaN, 0/0",
                help="Clamp the count: `.clamp(min=1)`",
                conditional=not shares,
            )
    else:
        yield from _at_zero(facts, use, 1, "the division gives inf or NaN")


def _spread(facts: ModuleFacts, node: ast.expr) -> tuple[ast.expr, str, bool] | None:
    """What a divisor is the spread of, its name, and whether it is the range: `x` of `x.std()` and of `x.max() - x.min()`."""
    made = maker(facts, node)
    if made is None or not made.nodes:
        return None
    if made.name == "std":
        of = maker(facts, made.nodes[0])
        is_noise = of is not None and of.name in _DRAWN
        return None if is_noise else (made.nodes[0], "The standard deviation", False)
    if made.name in _HIGHEST:
        difference = _difference(facts, made.nodes[0])
        text = "The maximum of what the minimum was subtracted from"
        return None if difference is None else (difference, text, True)
    if made.name == "sub" and len(made.nodes) == 2:
        high, low = maker(facts, made.nodes[0]), maker(facts, made.nodes[1])
        if high is not None and low is not None and high.name in _HIGHEST and low.name in _LOWEST:
            return high.nodes[0], "The range", True
    return None


def _difference(facts: ModuleFacts, node: ast.expr) -> ast.BinOp | None:
    """`x - x.mean()`, a factor before it left out."""
    node = facts.around.definition(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _difference(facts, node.left) or _difference(facts, node.right)
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return None
    made = maker(facts, node.right)
    return node if made is not None and made.name in ("mean", *_LOWEST) else None


def _is_of(facts: ModuleFacts, node: ast.expr, of: ast.expr) -> bool:
    """Is it the tensor that the spread is of, perhaps cast or moved?"""
    spelled = {ast.unparse(one) for one in (of, peeled(facts, of))}
    return not spelled.isdisjoint({ast.unparse(one) for one in (node, peeled(facts, node))})


def _is_asked_for(facts: ModuleFacts, node: ast.AST, value: ast.expr) -> bool:
    """Does a test ask for a value or what it is made of, are its zeros replaced, or what is NaN?"""
    about = {part.id for one in (value, peeled(facts, value)) for part in ast.walk(one) if isinstance(part, ast.Name)}
    tests = [guard.test for guard in facts.around.guards(node)]
    tests += [facts.around.definition(part) for test in tests for part in ast.walk(test) if isinstance(part, ast.Name)]
    tests += [one.nodes[0] for one in uses(facts, "__setitem__")]
    tests += [one.nodes[0] for one in uses(facts, *_BOUNDING) if is_in_place(one.node)]
    if any(isinstance(part, ast.Name) and part.id in about for test in tests for part in ast.walk(test)):
        return True
    return is_mended(facts, node)


def _counts(facts: ModuleFacts, made: Use) -> bool:
    """Is it a number of things that are true?"""
    summed: Use | None = made
    while summed is not None and summed.name == "sum" and summed.nodes:
        node = peeled(facts, summed.nodes[0])
        value = facts.value(node)
        if isinstance(value, Tensor) and value.dtypes == frozenset({"bool"}):
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
            return isinstance(value, Tensor)
        summed = maker(facts, node)
    return False


def _at_zero(facts: ModuleFacts, use: Use, place: int, happens: str) -> Iterator[Finding]:
    """The output of a relu, or zeros, where zero is no good."""
    if place >= len(use.nodes):
        return
    value, made = use.values[place], maker(facts, use.nodes[place])
    zeros = isinstance(value, Tensor) and value.range.low == value.range.high == 0
    if zeros or (made is not None and made.name in ("relu", "ReLU")):
        what = "This is 0" if zeros else "What a relu gives is 0 wherever its input is negative"
        yield Finding(use.node, f"{what}: {happens}", help="Add a small number, or clamp")


def _arc(facts: ModuleFacts, use: Use) -> Iterator[Finding]:
    made = maker(facts, use.nodes[0]) if use.nodes else None
    if made is not None and made.name == "div" and made.nodes:
        made = maker(facts, made.nodes[0])
    if made is None or made.name not in _DOTS or not made.values:
        return
    if not isinstance(made.values[0], Tensor) and made.name != "einsum":
        return
    value = use.values[0]
    bounded = isinstance(value, Tensor) and value.range.magnitude <= 1
    if not bounded and not _is_asked_for(facts, use.node, use.nodes[0]):
        yield Finding(
            use.node,
            f"`{use.name}` of a dot product is NaN where rounding takes it beyond 1",
            help="Clamp it to -1 + 1e-6 and 1 - 1e-6 first",
        )


def _misplaced(facts: ModuleFacts, use: Use) -> Iterator[Finding]:
    """`x / x.std() + eps` and `v.rsqrt() + eps`."""
    number = number_at(facts, use.given(1, "other")[0])
    made = maker(facts, use.nodes[0]) if use.nodes else None
    if number is None or not 0 < number < 1e-3 or made is None or not made.nodes:
        return
    rooted = maker(facts, made.nodes[0])
    if is_edge(facts, use.node) or (rooted is not None and rooted.name == "add"):
        return
    divisor = maker(facts, made.nodes[1]) if made.name == "div" and len(made.nodes) == 2 else None
    if made.name == "rsqrt" or (divisor is not None and divisor.name in _SPREADS):
        yield Finding(
            use.node,
            "The epsilon is added to the quotient: the divisor may still be 0",
            help="Add it to the divisor: `x / (x.std() + eps)`",
        )
