"""DT417: a formula that overflows, or loses what it computes, where an equal one does not."""

from __future__ import annotations

import ast
import math
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix
from dtlint.dtypes.dtype import FLOATING, LOW_PRECISION
from dtlint.infer.domain.values import Region, Tensor, Unknown, choices
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import bracketed
from dtlint_rules._uses import is_in_place, is_mended, is_rest, maker, peeled, uses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dtlint.infer.facts import Call, ModuleFacts
    from dtlint.source.place import Place
    from dtlint_rules._uses import Use

__all__ = ["UnstableFormulation"]

_OVERFLOWS = "`exp` overflows above 88.7 in float32, 11.1 in float16"
_LOGARITHMS = {
    "softmax": ("log_softmax", "-inf for a logit that is 104 below the greatest, or 17 in float16"),
    "sigmoid": ("logsigmoid", "-inf for a logit below -104, or -17 in float16"),
}
"""The functions that keep their range under a logarithm, and what goes wrong without."""


class UnstableFormulation(Rule):
    """A formula that overflows where an equal one does not.

    ## What it does
    Reports the logarithm of a softmax, of a sigmoid, of 1 less one of these, of a sum of exponentials and of `1 +
    exp(x)`, at once or by the name the inner value was given; a softmax by hand, `x.exp() / x.exp().sum()`, without the
    maximum subtracted; samples of `torch.multinomial(x.exp(), 1)`; and `x.exp() - 1 - x`, the estimate of a divergence of
    policies; and `1 - a[1:] / a[:-1]` of what is known not to be float64. What is known to be bounded, as by a clamp or
    `log_softmax`, is left alone, and so is what an epsilon is added to before the logarithm, and the probability of what
    was drawn, or of the most likely one: that is not 0.

    By default where an operand is known to be float16 or bfloat16, or an autocast region is open in view. Elsewhere float32
    reaches far, and the code may well have run for years: conditional, and so reported with `--preview` only. So, too,
    wherever they stand, are the samples, and the estimate, which is mostly for the log alone.

    ## Why it matters
    A softmax underflows to 0 where a logit lies 104 below the greatest in float32, and 17 in float16; the logarithm is
    -inf then and its gradient NaN; and a sigmoid of 17 is 1 in float32, so that `log(1 - p)` is -inf. `exp` overflows
    above 88.7 in float32 and above 11.1 in float16. `log_softmax`, `logsigmoid`, `logsumexp` and `softplus` compute the
    same without leaving the range, and faster. `torch.multinomial` raises where a probability is inf.
    `x.exp() - 1 - x` is inf for one token far off, and rounding for the many at which the policies nearly agree: at
    1e-4 float32 gives 1.7e-8 for 5e-9. Steps of a noise schedule, 1 less the ratio of neighbours, are as small, and float32
    knows a number near 1 to 1.2e-7.

    ## Example
    ```python
    import torch

    def log_probabilities(logits: torch.Tensor) -> torch.Tensor:
        return torch.log(torch.softmax(logits, dim=-1))
    ```

    ## Use instead
    ```python
    import torch

    def log_probabilities(logits: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.log_softmax(logits, dim=-1)
    ```

    ## Fix safety
    The fix replaces the two functions where they stand together; they are equal but for rounding, where the first does
    not overflow. Methods of what is not known to be a tensor are replaced as an unsafe fix.

    ## References
    - [torch.nn.functional.log_softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html)
    - [torch.logsumexp](https://docs.pytorch.org/docs/stable/generated/torch.logsumexp.html)
    """

    code, name = "DT417", "unstable-formulation"
    fix = Applicability.SAFE
    triggers = (".log", ".log1p", ".sum", ".exp", ".multinomial", "[:-1]")
    needs = (("softmax", "sigmoid", "exp", "expit", "Softmax", "Sigmoid", "[1:]"),)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        for use in uses(facts, "log", "log1p"):
            found = list(_logarithm(facts, use))
            if found and not is_mended(facts, use.node):
                yield from _where_short(facts, use, found)
        for use in uses(facts, "div"):
            yield from _where_short(facts, use, _softmax_by_hand(facts, use))
        for use in uses(facts, "multinomial"):
            made = maker(facts, use.nodes[0]) if use.nodes else None
            if made is not None and _grows(facts, made):
                yield Finding(
                    use.node,
                    f"`multinomial` raises where a probability is inf: {_OVERFLOWS}",
                    help="Sample from `torch.softmax(x, dim=-1)`",
                    conditional=True,
                )
        for use in uses(facts, "sub"):
            yield from _difference(facts, use)
            yield from _where_short(facts, use, _of_neighbours(facts, use))


def _where_short(facts: ModuleFacts, use: Use, found: Iterable[Finding]) -> Iterator[Finding]:
    """They are conditional, unless a half dtype or an autocast region is in view."""
    for one in found:
        one.conditional = not _is_short(facts, use)
        yield one


def _is_short(facts: ModuleFacts, use: Use) -> bool:
    """Is an autocast region open, or one of the operands, or what they were made of, known to be float16 or bfloat16?"""
    if any(isinstance(region, Region) for region in choices(use.region)):
        return True
    parts = [*use.values, use.result]
    for node in use.nodes:
        made = maker(facts, node)
        parts += [] if made is None else made.values
    return any(isinstance(one, (Tensor, Unknown)) and one.dtypes and one.dtypes <= LOW_PRECISION for one in parts)


def _logarithm(facts: ModuleFacts, use: Use) -> Iterator[Finding]:
    inner, _ = use.given(0, "input")
    negated = use.name == "log1p" and isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.USub)
    made = None if inner is None else maker(facts, inner.operand if negated else inner)  # type: ignore[attr-defined]
    if inner is None or made is None:
        return
    kind = made.name.lower()
    if negated:
        yield from _of_rest(facts, use, made)
    elif use.name == "log1p":
        if _is_open(facts, use, made):
            yield Finding(use.node, f"{_OVERFLOWS}, and `log1p` of it with it", help="Use `F.softplus`")
    elif kind in _LOGARITHMS:
        if (made.nodes and _is_near(facts.value(made.nodes[0]))) or _is_chosen(facts, inner):
            return
        better, happens = _LOGARITHMS[kind]
        fix = None
        if made.node is inner and kind == made.name and isinstance(made.node, ast.Call):
            is_method = isinstance(made.node.func, ast.Attribute) and made.node.func.value is made.nodes[0]
            fix = partial(_fix, made.node, better, is_method, not is_method or isinstance(made.values[0], Tensor))
        yield Finding(use.node, f"The logarithm of a {kind}: {happens}", help=f"Use `{better}`", fix=fix)
    elif made.name == "sum" and made.nodes:
        inside = maker(facts, made.nodes[0])
        if inside is not None and _grows(facts, inside):
            yield Finding(use.node, f"The logarithm of a sum: {_OVERFLOWS}", help="Use `torch.logsumexp`")
    elif made.name == "add":
        others = [maker(facts, node) for node, beside_one in _beside_one(made) if beside_one]
        if any(one is not None and _is_open(facts, use, one) for one in others):
            yield Finding(use.node, f"The logarithm of `1 + exp(x)`: {_OVERFLOWS}", help="Use `F.softplus`")
    elif made.name == "sub" and isinstance(made.node, ast.BinOp) and (rest := is_rest(made.node)) is not None:
        inside = maker(facts, rest)
        yield from () if inside is None else _of_rest(facts, use, inside)


def _is_near(value: object) -> bool:
    """Are the logits known, and less than 17 from 0, or from each other?"""
    return isinstance(value, Tensor) and value.range.high - value.range.low < 17 and value.range.magnitude < 17


def _is_chosen(facts: ModuleFacts, node: ast.expr) -> bool:
    """Is it the probability of what was drawn, or of the most likely one: `p[choices]`?"""
    picked = facts.around.definition(node)
    if not isinstance(picked, ast.Subscript):
        return False
    parts = [part for one in facts.around.made_of(picked.slice) for part in (one, _unpacked(facts, one))]
    return any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _CHOOSING
        for part in parts
    )


def _unpacked(facts: ModuleFacts, node: ast.AST) -> ast.AST | None:
    """What a target that unpacks is given: `x.max(1)`, of the second name in `values, indices = x.max(1)`."""
    stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    statement = facts.around.statement(node) if stored else None
    return statement.value if isinstance(statement, ast.Assign) else None


_CHOOSING = frozenset({"argmax", "max", "multinomial", "sample"})
"""What gives the index of one that is likely."""


def _of_rest(facts: ModuleFacts, use: Use, made: Use) -> Iterator[Finding]:
    """`log(1 - p)`, of what is 1 where a logit is large."""
    name = made.name.lower()
    if name in _LOGARITHMS and made.nodes and _is_unbounded(facts, made.nodes[0]):
        yield Finding(
            use.node,
            f"The logarithm of 1 less a {name}, which is 1 in float32 from 17 on: it is -inf there",
            help="Use `F.logsigmoid(-x)`" if name == "sigmoid" else "Compute it from the logits",
        )


def _beside_one(made: Use) -> list[tuple[ast.expr, bool]]:
    """The operands of a sum, each with whether the other one is 1."""
    if len(made.nodes) != 2:
        return []
    ones = [isinstance(node, ast.Constant) and node.value == 1 for node in made.nodes]
    return [(made.nodes[0], ones[1]), (made.nodes[1], ones[0])]


def _grows(facts: ModuleFacts, made: Use) -> bool:
    """Is it an exponential of what nothing bounds?"""
    return made.name == "exp" and bool(made.nodes) and _is_unbounded(facts, made.nodes[0])


def _is_open(facts: ModuleFacts, use: Use, made: Use) -> bool:
    """Is it an exponential of what nothing bounds, be it a difference of two things, `a - b`, or negated? Where the logarithm
    is added to one of these, that is the greater one."""
    if made.name != "exp" or not made.nodes:
        return False
    node, inner = peeled(facts, made.nodes[0]), maker(facts, made.nodes[0])
    parts: Sequence[ast.expr] = ()
    if inner is not None and inner.name == "sub" and len(inner.nodes) == 2:
        parts = inner.nodes
        around = facts.around.parent(use.node)
        if isinstance(around, ast.BinOp) and {ast.unparse(around.left), ast.unparse(around.right)}.intersection(
            map(ast.unparse, parts)
        ):
            return False
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        parts = [node.operand]
    if not parts:
        return _grows(facts, made)
    makers = [maker(facts, one) for one in parts]
    return not _has_bounds(facts.value(made.nodes[0])) and not any(
        one is not None and (one.name in _BOUNDED or one.name in _EXTREMES) for one in makers
    )


def _has_bounds(value: object) -> bool:
    return isinstance(value, Tensor) and (value.range.high < math.inf or value.range.low > -math.inf)


_EXTREMES = frozenset({"max", "amax", "min", "amin", "abs", "square", "pow", "norm", "cdist", "logsumexp"})
"""What leaves no number on one side, subtracted or negated."""


def _is_unbounded(facts: ModuleFacts, node: ast.expr) -> bool:
    """May it be any number, as far as one sees: no difference with a maximum, no logarithm, not clamped?"""
    value, made = facts.value(node), maker(facts, node)
    if _has_bounds(value):
        return False
    if made is not None and (made.name in _BOUNDED or (made.name == "div" and _is_negated(facts, made.nodes[0]))):
        return False
    return not _is_negated(facts, node) and not any(
        is_in_place(one.node) and ast.unparse(one.nodes[0]) == ast.unparse(node) for one in uses(facts, "sub")
    )


def _is_negated(facts: ModuleFacts, node: ast.expr) -> bool:
    """Is it `-x`, or a product or quotient that begins so, `-x ** 2 / width`?"""
    found = peeled(facts, node)
    while isinstance(found, ast.BinOp) and isinstance(found.op, (ast.Mult, ast.Div)):
        found = peeled(facts, found.left)
    return isinstance(found, ast.UnaryOp)


_BOUNDED = frozenset(
    {
        *("sub", "neg", "clamp", "clip", "log_softmax", "log", "minimum", "log_prob"),
        *("tensor", "as_tensor", "asarray", "from_numpy"),
    }
)
"""What makes numbers that are held in bounds, or stored, as logarithms of probabilities are: no layer has computed them."""


def _softmax_by_hand(facts: ModuleFacts, use: Use) -> Iterator[Finding]:
    if len(use.nodes) != 2:
        return
    top, total = maker(facts, use.nodes[0]), maker(facts, use.nodes[1])
    summed = maker(facts, total.nodes[0]) if total is not None and total.name == "sum" and total.nodes else None
    if top is None or summed is None or not _grows(facts, top) or summed.name != "exp":
        return
    if ast.unparse(top.nodes[0]) == ast.unparse(summed.nodes[0]):
        yield Finding(use.node, f"A softmax by hand: {_OVERFLOWS}", help="Use `torch.softmax`")


def _difference(facts: ModuleFacts, use: Use) -> Iterator[Finding]:
    """`x.exp() - 1 - x`."""
    if len(use.nodes) != 2:
        return
    less, of = use.nodes[0], use.nodes[1]
    if not isinstance(less, ast.BinOp) or not isinstance(less.op, ast.Sub):
        return
    pairs = ((less.left, less.right, of), (less.left, of, less.right))
    for grown, one, rest in pairs:
        made = maker(facts, grown)
        if (
            not (isinstance(one, ast.Constant) and one.value == 1)
            or made is None
            or made.name != "exp"
            or not made.nodes
        ):
            continue
        value = facts.value(made.nodes[0])
        bounded = isinstance(value, Tensor) and value.range.high < math.inf
        if not bounded and ast.unparse(made.nodes[0]) == ast.unparse(rest):
            yield Finding(
                use.node,
                "`x.exp() - 1 - x` overflows for one value far off, and is rounding for those near 0",
                help="Use `torch.expm1(x) - x`, of what is clamped",
                conditional=True,
            )
            return


def _of_neighbours(facts: ModuleFacts, use: Use) -> Iterator[Finding]:
    """`1 - a[1:] / a[:-1]`, as a noise schedule takes its steps from what is left of the signal."""
    rest = is_rest(use.node) if isinstance(use.node, ast.BinOp) else None
    ratio = None if rest is None else peeled(facts, rest)
    if not isinstance(ratio, ast.BinOp) or not isinstance(ratio.op, ast.Div):
        return
    if not _are_neighbours(ratio.left, ratio.right):
        return
    made = [part for part in facts.around.made_of(ratio) if isinstance(part, ast.Call)]
    dtypes = {part: getattr(facts.value(part), "dtypes", None) for part in made}
    short = [part for part, known in dtypes.items() if known and known <= FLOATING and known != _DOUBLE]
    if not short or _DOUBLE in dtypes.values():
        return
    factories = [
        part for part in short if any(call.receiver is None and _is_factory(call) for call in facts.calls_at(part))
    ]
    yield Finding(
        factories[0] if len(factories) == 1 else use.node,
        "1 less the ratio of neighbours, which is near 1: float32 knows that to 1.2e-7, and so the difference",
        help="Compute this in float64, and cast the result",
        notes=((use.node, "the difference"),) if len(factories) == 1 else (),
    )


def _is_factory(call: Call) -> bool:
    """Does it make a tensor of none?"""
    return call.name in ("torch.linspace", "torch.arange", "torch.ones", "torch.full", "torch.tensor")


_DOUBLE = frozenset({"float64"})
"""Where a factory is told no dtype, it is any of FLOATING, and float32 as torch comes."""


def _are_neighbours(one: ast.expr, other: ast.expr) -> bool:
    return (
        isinstance(one, ast.Subscript)
        and isinstance(other, ast.Subscript)
        and ast.unparse(one.value) == ast.unparse(other.value)
        and {ast.unparse(one.slice), ast.unparse(other.slice)} == {"1:", ":-1"}
    )


def _fix(inner: ast.Call, last: str, is_method: bool, trusted: bool, place: Place) -> Fix | None:
    """One call in place of two: the inner one, by its new name, with its arguments."""
    whole = place.abstract
    if not isinstance(whole, ast.Call) or len(whole.args) + len(whole.keywords) > 1:
        return None  # `torch.log(torch.softmax(x, -1), out=y)`
    text, called = place.text(inner), place.text(inner.func)
    if not text.startswith(called):
        return None
    kept, imports = text, tuple[Edit, ...]()
    function = f"torch.nn.functional.{last}"
    if not is_method or not isinstance(inner.func, ast.Attribute):
        if len(inner.args) > 2 or any(one.arg == "out" for one in inner.keywords):
            return None  # what the other function takes elsewhere, or not
        name, imports = place.spelled(function)
        replaced = name + text[len(called) :]
    elif last == "logsigmoid":
        kept = place.text(inner.func.value)
        name, imports = place.spelled(function)
        replaced = f"{name}({kept})"
    else:
        # The receiver as it is written: the parentheses around it are no part of its node.
        replaced = called[: -len(inner.func.attr)] + last + text[len(called) :]
    if place.text(whole).count("#") != kept.count("#"):
        return None
    edit = place.replace(whole, bracketed(replaced))
    return Fix(f"Use `{last}`", (edit, *imports), Applicability.SAFE if trusted else Applicability.UNSAFE)
