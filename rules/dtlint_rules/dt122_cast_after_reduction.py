"""DT122: a result cast to a wider dtype, after it was computed in a narrow one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES
from dtlint.infer.domain.values import Const, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts
from dtlint_rules._needs import attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["CastAfterReduction"]


class CastAfterReduction(Rule):
    """A result cast to a wider dtype after it was computed in a narrow one.

    ## What it does
    Reports `(u8 * 256 + v8).long()`, where the operands are known to be int8, uint8 or int16, and `x.half().sum().float()`,
    where what is reduced is known to be float16 or bfloat16.

    ## Why it matters
    The cast comes too late. Integer arithmetic wraps around in the operands' dtype: for uint8, 200 * 2 is 144, and
    stays 144 as int64. A sum in float16 is inf beyond 65504, and stays inf in float32; in bfloat16 it keeps 8 bits of
    precision.

    ## Example
    ```python
    import torch

    image = torch.zeros(4, 4, 2, dtype=torch.uint8)
    depth = (image[..., 0] * 256 + image[..., 1]).long()
    ```

    ## Use instead
    ```python
    import torch

    image = torch.zeros(4, 4, 2, dtype=torch.uint8)
    depth = image[..., 0].long() * 256 + image[..., 1]
    ```

    ## References
    - [torch.sum](https://docs.pytorch.org/docs/stable/generated/torch.sum.html)
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name = "DT122", "cast-after-reduction"
    triggers = (").long(", ").to(", ").float(", ").double(", ").int(", ").short(", ").type(")
    needs = (attributes(("to", "type", "float", "double", "long", "int", "short")),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for cast in casts(facts):
            known = cast.value.dtypes if isinstance(cast.value, Tensor) else None
            if not known or len(known) != 1 or len(cast.dtypes) != 1:
                continue
            (narrow,), (wide,) = known, cast.dtypes
            if DTYPES[wide].bits <= DTYPES[narrow].bits:
                continue
            made = _reduction(facts, cast.subject) if narrow in ("float16", "bfloat16") else None
            if narrow in _SMALL and _may_wrap(facts, cast.subject, narrow):
                runs = f"The arithmetic runs in {narrow} and wraps around beyond {DTYPES[narrow].max:g}"
            elif made is not None:
                loses = "overflows beyond 65504" if narrow == "float16" else "keeps 8 bits of precision"
                runs = f"`{made}` runs in {narrow} and {loses}"
            else:
                continue
            yield Finding(
                cast.node,
                f"{runs}: the cast to {wide} comes too late",
                help=f"Cast the operands to {wide} first",
            )


_REDUCTIONS = frozenset({"sum", "mean", "norm", "prod", "var", "std", "cumsum", "logsumexp", "nansum", "nanmean"})
"""What may overflow, or loses the small summands, in half. Of integers, sums are int64."""
_SMALL = frozenset({"int8", "uint8", "int16"})


def _reduction(facts: ModuleFacts, node: ast.expr) -> str | None:
    """The reduction of torch that a call is; its result has the dtype that it runs in."""
    names = {call.name for call in facts.calls_at(node)} if isinstance(node, ast.Call) else set()
    package, _, name = names.pop().rpartition(".") if len(names) == 1 else ("", "", "")
    return name if name in _REDUCTIONS and package in ("torch", "torch.Tensor", "torch.linalg") else None


def _may_wrap(facts: ModuleFacts, node: ast.expr, dtype: str) -> bool:
    """May arithmetic leave the range? What is multiplied by a number may be a mask: then the number must not fit."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Mult, ast.Add, ast.LShift, ast.Pow)):
        return False
    sides = [facts.value(node.left), facts.value(node.right)]
    numbers = [value.value for value in sides if isinstance(value, Const)]
    if any(isinstance(value, Tensor) and value.range.high == 1 for value in sides):
        return False
    if not numbers:
        return all(isinstance(value, Tensor) for value in sides)
    is_shift = isinstance(node.op, ast.LShift)
    return isinstance(numbers[0], int) and (
        is_shift or (numbers[0] > DTYPES[dtype].max and isinstance(node.op, ast.Mult))
    )
