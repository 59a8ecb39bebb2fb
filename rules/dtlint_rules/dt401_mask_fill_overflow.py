"""DT401: a mask is filled with a number that float16 does not have."""

from __future__ import annotations

import ast
import math
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.dtypes.dtype import DTYPES
from dtlint.infer.domain.values import Const, Number, Tensor, Unknown
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._beyond import MASKING, put_beyond
from dtlint_rules._fixes import limit_of
from dtlint_rules._needs import TORCH
from dtlint_rules._uses import Use, is_half, is_open, is_rest, is_settled, number_at, uses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts

__all__ = ["MaskFillOverflow"]

_TOP = DTYPES["float16"].max
LARGE = (
    *(f"1e{exponent}" for exponent in range(5, 309)),
    *("0**", "2**", "*00000*", "*65536*", "*99999*"),
)
"""How numbers beyond float16 are written."""
_MADE = ("tensor", "as_tensor", "new_tensor", "full", "full_like", "new_full")
"""What makes a tensor of one number."""


class MaskFillOverflow(Rule):
    """A mask is filled with a number beyond the range of float16.

    ## What it does
    Reports numbers beyond the largest of float16 or bfloat16 that a mask writes into a tensor of that dtype: by
    `masked_fill`, `torch.where`, or `scores[mask] = -1e9`, also where the number is a constant of the module, an attribute
    of the class, or a limit of another dtype such as `torch.finfo(torch.float32).min`.

    Conditional, and so reported with `--preview` only: such numbers beyond ±65504 where it is up to a caller whether the
    tensor is half, the default of a parameter, `(1 - mask) * -1e9`, and tensors that are made of such a number in the
    dtype of another, `scores.new_tensor(-1e9)`.

    ## Why it matters
    float16 ends at 65504. Under autocast, attention scores are float16, and
    `scores.masked_fill(mask, -1e9)` raises `value cannot be converted to type c10::Half without overflow`. A sum, a
    product, `torch.where` and an assignment by index do not raise: they give -inf, and a softmax over a row that is
    all -inf is NaN. A limit of float32 raises in bfloat16 as well.

    ## Example
    ```python
    import torch

    def attend(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = scores.masked_fill(mask, -1e9)
        return scores.softmax(dim=-1)
    ```

    ## Use instead
    ```python
    import torch

    def attend(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
        return scores.softmax(dim=-1)
    ```

    ## Fix safety
    The fix puts the limit of the tensor's own dtype in place of the number, where the tensor is a name. It is unsafe:
    scores may be that large themselves, which they are not beside -1e9 in float32.

    ## References
    - [torch.finfo](https://docs.pytorch.org/docs/stable/type_info.html#torch.finfo)
    - [torch.Tensor.masked_fill_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill_.html)
    """

    code, name = "DT401", "mask-fill-overflow"
    fix = Applicability.UNSAFE
    triggers = (*LARGE, "finfo")
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        yield from put_beyond(facts, MASKING)
        for use in uses(facts, "masked_fill", "where", "__setitem__", "mul", *_MADE):
            tensor, number = _filled(use)
            value = _value(facts, use, number)
            if value is None or not _TOP < abs(value) < math.inf or is_settled(facts, use.node):
                continue
            if value > 0 and (use.name not in ("masked_fill", "__setitem__") or value.is_integer()):
                continue  # what is filled with 100000 may be whole numbers
            path = None if tensor is None or use.name == "mul" or _is_added(facts, use.node) else path_of(tensor)
            fix = None
            if path is not None and number is not None and _is_written(number):
                fix = partial(limit_of, node=number, path=path, limit="min" if value < 0 else "max", verb="Fill with")
            yield Finding(
                use.node,
                f"{value:g} is beyond float16, which ends at 65504: {_OUTCOMES.get(use.name, 'there it is -inf')}",
                help="Use `torch.finfo(x.dtype).min`, or compute in float32",
                conditional=tensor is None or not _is_cast(facts.value(tensor)),
                fix=fix,
            )


_OUTCOMES = {"masked_fill": "this raises in half", "mul": "the product with a half mask is -inf"}


def _filled(use: Use) -> tuple[ast.expr | None, ast.expr | None]:
    """A tensor of an open dtype, and what is put into it where a mask says so."""
    pairs: tuple[tuple[int, int], ...] = ()
    if use.name == "masked_fill":
        pairs = ((0, 2),)
    elif use.name == "where" and len(use.nodes) == 3:
        pairs = tuple(at for at in ((1, 2), (2, 1)) if isinstance(use.values[at[1]], (Const, Number, Unknown)))
    elif use.name == "__setitem__" and _may_be_mask(use.values[1]):
        pairs = ((0, 2),)
    elif use.name == "mul" and isinstance(use.node, ast.BinOp):
        pairs = tuple(at for at in ((0, 1), (1, 0)) if is_rest(use.nodes[at[0]]) is not None)
    for tensor, number in pairs:
        if (is_open(use.values[tensor]) or _is_cast(use.values[tensor])) and not isinstance(
            use.nodes[tensor], ast.Attribute
        ):
            return use.nodes[tensor], use.given(number, "value")[0]
    return None, None


def _value(facts: ModuleFacts, use: Use, number: ast.expr | None) -> float | None:
    """The number that is put there, or that all of a tensor made in the dtype of another is."""
    if number is not None:
        return number_at(facts, number)
    made = use.result
    if not isinstance(made, Tensor) or made.symbol is None or not is_open(made) or made.range.low != made.range.high:
        return None
    return made.range.low


def _is_cast(value: Value) -> bool:
    """Is it float16 if it is a tensor, `x.half()`, which torch's operations do not tell of?"""
    return isinstance(value, Unknown) and is_half(value, frozenset({"float16"}))


def _is_written(number: ast.expr) -> bool:
    """Does a number stand here itself, `-1e9`, or as the limit of a dtype?"""
    inner = number.operand if isinstance(number, ast.UnaryOp) else number
    return isinstance(inner, ast.Constant) or "finfo(" in ast.unparse(inner)


def _is_added(facts: ModuleFacts, node: ast.AST) -> bool:
    """Is something added to what was filled? The limit of its dtype is -inf then."""
    names = {ast.unparse(node)}
    statement = facts.around.statement(node)
    if isinstance(statement, ast.Assign):
        names.update(map(ast.unparse, statement.targets))
    sums = (
        part for part in facts.around.within(facts.around.scope(node)) if isinstance(part, (ast.BinOp, ast.AugAssign))
    )
    terms = (
        (one.left, one.right) if isinstance(one, ast.BinOp) else (one.value,)
        for one in sums
        if isinstance(one.op, ast.Add)
    )
    return any(ast.unparse(term) in names for pair in terms for term in pair)


def _may_be_mask(index: Value) -> bool:
    return isinstance(index, (Tensor, Unknown)) and (index.dtypes is None or "bool" in index.dtypes)
