"""DT303: one of two values is cast to the dtype of a tensor that it meets, and the other is not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._minded import minds
from dtlint_rules._needs import TORCH
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts

__all__ = ["MixedDtypePromotion"]

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)


class MixedDtypePromotion(Rule):
    """A value that is cast to float32 meets one whose dtype the function casts another value to.

    ## What it does
    Reports arithmetic of a tensor whose dtype the caller decides with one that is float32 by a cast, in a function that
    casts something else to the dtype of that input, and so expects others than float32.

    All of this is conditional, and reported with `--preview` only: it takes a half tensor.

    ## Why it matters
    Arithmetic promotes: one float32 operand with dimensions makes the result float32, with no word, although somebody took
    care to prevent it at the other place. It is noticed layers later, where half weights raise.

    ## Example
    ```python
    import torch


    def standardise(x: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
        mean = mean.to(x.dtype)
        return (x - mean) / std.float()
    ```

    ## Use instead
    ```python
    import torch


    def standardise(x: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
        mean = mean.to(x.dtype)
        return (x - mean) / std.to(x.dtype)
    ```

    ## References
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    - [torch.result_type](https://docs.pytorch.org/docs/stable/generated/torch.result_type.html)
    """

    code, name = "DT303", "mixed-dtype-promotion"
    triggers = (".dtype", "self.dtype", ".type_as")
    needs = (TORCH, (".float", "float32", ".to", ".type"))

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        told: set[ast.AST] = set()
        for seen in facts.evaluations(ast.BinOp):
            sides = zip((seen.node.left, seen.node.right), seen.operands, reversed(seen.operands), strict=True)
            for node, value, other in sides:
                if seen.node in told or not isinstance(seen.node.op, _ARITHMETIC) or not _is_wide(value):
                    continue
                if minds(facts, seen.node, other):
                    told.add(seen.node)
                    yield Finding(
                        seen.node,
                        f"`{short(node)}` is float32, and makes the result float32 where the input is half",
                        help="Cast it to the dtype of the input, too",
                        conditional=True,
                    )


def _is_wide(value: Value) -> bool:
    return isinstance(value, Tensor) and value.dtypes == frozenset({"float32"}) and value.rank != 0
