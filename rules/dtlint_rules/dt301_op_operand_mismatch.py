"""DT301: the operands of an op that does not promote differ in dtype."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import operand_text
from dtlint_rules._needs import KNOWN, TORCH
from dtlint_rules._refusals import finding, if_half, is_layer, is_loss, is_write, refused, written
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.source.place import Place

__all__ = ["OpOperandMismatch"]


class OpOperandMismatch(Rule):
    """Two operands of a product or its kin have different dtypes.

    ## What it does
    Reports a matrix product, convolution, attention, `einsum`, `grid_sample`, `lerp` or another op that does not promote,
    whose operands have dtypes that are known to differ: here, or in the function that a call leads to. What a function
    makes without a dtype counts as float32 beside half and float64.

    Conditional, and reported with `--preview` only: one operand is float32 whatever the caller gives, by a cast or by a
    factory, and the other has the dtype of a parameter or of the module's weights, so that half raises.

    ## Why it matters
    `torch.matmul`, `bmm`, `einsum`, `F.linear`, `F.layer_norm` and their kin do not promote: with a half operand beside the
    float32 one they raise "expected m1 and m2 to have the same dtype". In a float32 run nobody sees it.

    ## Example
    ```python
    import torch


    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(query, key.transpose(-1, -2)).float().softmax(-1)
        return torch.matmul(scores, value)
    ```

    ## Use instead
    ```python
    import torch


    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(query, key.transpose(-1, -2)).float().softmax(-1)
        return torch.matmul(scores.to(value.dtype), value)
    ```

    ## Fix safety
    The fix casts the float32 operand back to the dtype of the other. It is unsafe, for in half the op then rounds what was
    float32 until there: where the digits are needed, cast the other operand to float32 instead.

    ## References
    - [torch.matmul](https://docs.pytorch.org/docs/stable/generated/torch.matmul.html)
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name, severity = "DT301", "op-operand-mismatch", Severity.WARNING
    fix = Applicability.UNSAFE
    triggers = KNOWN
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        yield from refused(facts, self.code)
        for seen, wide, other in if_half(facts, _is_meant):
            name = written(seen.what)
            if wide.node is None or other.node is None:
                text, fix = f"`{name}` of a float32 operand raises if the other is half", None
            else:
                text = f"`{name}` raises if `{short(other.node)}` is half: `{short(wide.node)}` is float32"
                fix = partial(_as_other, wide.node, other.node)
            help = "Cast one operand to the dtype of the other"
            yield finding(seen, None, text, help, fix=fix, conditional=True)


def _is_meant(operation: Operation) -> bool:
    return not is_layer(operation) and not is_write(operation) and not is_loss(operation)


def _as_other(wide: ast.expr, other: ast.expr, place: Place) -> Fix | None:
    """`wide.to(other.dtype)`, where the other is a name."""
    if not isinstance(other, (ast.Name, ast.Attribute)):
        return None
    cast = f"{operand_text(place, wide)}.to({place.text(other)}.dtype)"
    return Fix("Cast it to the dtype of the other operand", (place.replace(wide, cast),), Applicability.UNSAFE)
