"""DT403: a small number that guards against zero, and is zero in float16."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, LOW_PRECISION
from dtlint.infer.domain.values import Region, Tensor, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._attained import dtypes_of, only
from dtlint_rules._idle import lost_epsilons, lost_row_bounds
from dtlint_rules._needs import TORCH
from dtlint_rules._uses import Use, is_edge, is_open, is_settled, maker, number_at, uses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts

__all__ = ["EpsilonUnderflow"]

_TINY = tuple(f"1e-{exponent}" for exponent in range(8, 324))
"""How numbers that are 0 in float16 are written."""
_LOST = DTYPES["float16"].smallest / 2
"""Half of the smallest subnormal number is a tie, and goes to the even one: 0. Seen on torch 2.13."""
_NEAR_ONE = 2.0**-25
"""1 minus less than this is 1 in float32."""
_NEVER_NEGATIVE = frozenset(
    {"norm", "vector_norm", "std", "var", "abs", "square", "relu", "exp", "sigmoid", "softmax", "cdist"}
)


class EpsilonUnderflow(Rule):
    """An epsilon that is 0 in float16.

    ## What it does
    Reports numbers between 0 and 2.98e-8 that are added to a float16 tensor, that it is clamped to from below, or that
    are the eps of `F.normalize` or `F.cosine_similarity`, which are such by default (`--assume half`); and, whatever the
    dtype, bounds that are 1 in float32 already: `clamp(max=1 - 1e-8)`, and `x < -1 + 1e-8`, which compares
    with -1.

    Conditional, and so reported with `--preview` only: such numbers where it is up to a caller whether the tensor is half,
    and that keep from zero what is never negative, a norm, a variance, a probability, or what is divided by or given to a
    root or a logarithm; that take the place of zeros, `norm[norm == 0] = 1e-8`; and that `F.normalize` and
    `F.cosine_similarity` are given. The number may be the default of a parameter. Code behind a test for a dtype is left
    alone.

    ## Why it matters
    The smallest positive number of float16 is 5.96e-8, and whatever lies below half of it is 0. `x / (norm + 1e-8)` is
    NaN for a zero vector, `(p + 1e-12).log()` is -inf, and `clamp(min=1e-10)` clamps to 0, though all of it is right in
    float32 and bfloat16. CUDA's autocast computes sums, norms and logarithms in float32, so that it shows only in a
    model that is cast to float16 itself, or in what autocast leaves alone.

    ## Example
    ```python
    import torch

    def normalize(x: torch.Tensor) -> torch.Tensor:
        return x / (x.norm(dim=-1, keepdim=True) + 1e-8)
    ```

    ## Use instead
    ```python
    import torch

    def normalize(x: torch.Tensor) -> torch.Tensor:
        return x / (x.norm(dim=-1, keepdim=True) + torch.finfo(x.dtype).eps)
    ```

    ## References
    - [torch.finfo](https://docs.pytorch.org/docs/stable/type_info.html#torch.finfo)
    - [What autocast computes in float32](https://docs.pytorch.org/docs/stable/amp.html#cuda-ops-that-autocast-to-float32)
    """

    code, name = "DT403", "epsilon-underflow"
    triggers = _TINY
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        yield from lost_epsilons(facts)
        yield from lost_row_bounds(facts)
        yield from _bounds_at_one(facts)
        for use in uses(facts, "add", "clamp", "clip", "clamp_min", "max", "maximum"):
            yield from _guarded(facts, use)
        for use in uses(facts, "masked_fill", "where", "__setitem__"):
            tensor, number = (2, 1) if use.name == "where" else (0, 2)
            tested = use.given(0 if use.name == "where" else 1, "mask")[0]
            if len(use.nodes) > tensor and is_open(use.values[tensor]) and _is_zero_test(tested, use.nodes[tensor]):
                yield from _told(facts, use, use.given(number, "value")[0], "it replaces 0 by 0")
        for use in uses(facts, "normalize", "cosine_similarity"):
            if use.values and is_open(use.values[0]) and not _is_in_region(use):
                yield from _told(facts, use, use.given(3, "eps")[0], "a row of zeros becomes NaN")


def _is_in_region(use: Use) -> bool:
    return isinstance(use.region, Region) and use.region.enabled is not False


def _guarded(facts: ModuleFacts, use: Use) -> Iterator[Finding]:
    """An epsilon that is added to what may be zero, or is the least that it may be."""
    if use.name == "add":
        pairs = [(0, 1), (1, 0)] if isinstance(use.node, ast.BinOp) else [(0, 1)]
    else:
        pairs = [(0, 1)]
    for tensor, number in pairs:
        given = use.given(number, "min" if use.name in ("clamp", "clip", "clamp_min") else "other")[0]
        if tensor < len(use.nodes) and _may_be_half(facts, use, tensor) and _may_be_zero(facts, use, tensor):
            happens = "adding it changes nothing" if use.name == "add" else "it keeps nothing from 0"
            yield from _told(facts, use, given, happens)


def _may_be_half(facts: ModuleFacts, use: Use, place: int) -> bool:
    """Is it of an open dtype, or computed of half where a caller may have opened an autocast region?"""
    made = maker(facts, use.nodes[place])
    of_half = made is not None and bool(made.values) and only(made.values[0], LOW_PRECISION)
    return is_open(use.values[place]) or (of_half and not dtypes_of(use.values[place]))


def _may_be_zero(facts: ModuleFacts, use: Use, place: int) -> bool:
    """Is it never negative, or divided by, or given to what has no value at zero?"""
    value, made = use.values[place], maker(facts, use.nodes[place])
    if made is not None and made.name in _NEVER_NEGATIVE:
        return True
    return isinstance(value, Tensor) and (value.range.low == 0 or is_edge(facts, use.node))


def _told(facts: ModuleFacts, use: Use, node: ast.expr | None, happens: str) -> Iterator[Finding]:
    """The finding for a number that is 0 in float16."""
    number = number_at(facts, node)
    if number is None and node is not None:
        value = facts.value(node)
        filled = isinstance(value, Tensor) and value.range.low == value.range.high
        number = value.range.low if isinstance(value, Tensor) and filled else None
    if number is not None and 0 < number <= _LOST and not is_settled(facts, use.node):
        yield Finding(
            use.node,
            f"{number:g} is 0 in float16: {happens}",
            help="Use `torch.finfo(x.dtype).eps`, or compute this in float32",
            conditional=True,
        )


def _is_zero_test(test: ast.expr | None, tensor: ast.expr) -> bool:
    """`norm == 0` and `norm <= 0`, of the norm that is written."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], (ast.Eq, ast.LtE)):
        return False
    zero = test.comparators[0]
    return isinstance(zero, ast.Constant) and zero.value == 0 and ast.unparse(test.left) == ast.unparse(tensor)


def _bounds_at_one(facts: ModuleFacts) -> Iterator[Finding]:
    """`p.clamp(1e-8, 1 - 1e-8)`, `c < -1 + 1e-8`: the bound is 1, in float32 as well."""
    for use in uses(facts, "clamp", "clip", "clamp_max"):
        node, _ = use.given(1 if use.name == "clamp_max" else 2, "max")
        if use.values and _rounds(facts, node) and _is_no_double(use.values[0]):
            text = f"{ast.unparse(node)} rounds to 1 in float32: the upper bound does nothing" if node else ""
            yield Finding(use.node, text, help="Use 1 - 1e-6 in float32, and 1 - 1e-3 in float16")
    for seen in facts.evaluations(ast.Compare):
        if len(seen.operands) != 2:
            continue
        for node, value in zip((seen.node.comparators[0], seen.node.left), seen.operands, strict=True):
            if (
                isinstance(node, ast.BinOp)
                and isinstance(value, Tensor)
                and _is_no_double(value)
                and _rounds(facts, node)
            ):
                text = f"`{ast.unparse(node)}` rounds to {number_at(facts, node) or 0:.0f} in float32"
                yield Finding(seen.node, text, help="Compare with a number that float32 has, such as 1 - 1e-6")


def _rounds(facts: ModuleFacts, node: ast.expr | None) -> bool:
    number = number_at(facts, node)
    return number is not None and 0 < abs(abs(number) - 1) < _NEAR_ONE


def _is_no_double(value: Value) -> bool:
    return isinstance(value, (Tensor, Unknown)) and "float64" not in (value.dtypes or ())
