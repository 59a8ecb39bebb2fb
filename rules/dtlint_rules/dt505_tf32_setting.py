"""DT505: code that others import changes the precision of float32 products for the whole process."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Const, External
from dtlint.rule import Finding, Rule
from dtlint_rules._scripts import is_library

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Evaluation, ModuleFacts

__all__ = ["Tf32Setting"]

_FLAGS = frozenset({"torch.backends.cuda.matmul.allow_tf32", "torch.backends.cudnn.allow_tf32"})
_PRECISIONS = frozenset(
    f"torch.backends.{name}fp32_precision" for name in ("", "cuda.matmul.", "cudnn.", "cudnn.conv.", "cudnn.rnn.")
)


class Tf32Setting(Rule):
    """Importing a module lowers the precision of float32 products.

    ## What it does
    Reports `torch.backends.cuda.matmul.allow_tf32 = True`, `torch.set_float32_matmul_precision("high")` and the like
    among the own statements of a module that others import. Programs may set what they like.

    ## Why it matters
    The setting is one for the process. With TensorFloat-32, products of float32 have 10 bits of precision instead of
    23: an error of 1e-3 instead of 1e-7. Who imports a library for one function gets that in all of the program,
    geometry and solvers included, and finds no line that asks for it.

    ## Example
    ```python
    import torch

    torch.set_float32_matmul_precision("high")

    def similarity(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b.T
    ```

    ## Use instead
    ```python
    import torch

    def similarity(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b.T

    if __name__ == "__main__":
        torch.set_float32_matmul_precision("high")
    ```

    ## References
    - [TensorFloat-32](https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices)
    - [torch.set_float32_matmul_precision](https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html)
    """

    code, name = "DT505", "tf32-setting"
    triggers = ("allow_tf32", "set_float32_matmul_precision", "fp32_precision")

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        set_by = [
            *(one.node for one in facts.assignments() if isinstance(one.node, ast.Attribute) and _lowers(one)),
            *(
                call.node
                for call in facts.calls("torch.set_float32_matmul_precision")
                if call.constant(0, "precision") in ("high", "medium")
            ),
        ]
        for node in set_by:
            if facts.around.function(node) is None and not facts.around.guards(node) and is_library(facts.tree):
                yield Finding(
                    node,
                    "Importing this module switches float32 products of the process to TF32, with errors of 1e-3",
                    help="Leave the setting to the program, or restore it afterwards",
                )


def _lowers(assigned: Evaluation) -> bool:
    owner, value = assigned.operands[0], assigned.result
    if not isinstance(owner, External) or not isinstance(value, Const):
        return False
    name = f"{owner.name}.{assigned.node.attr}"
    return (name in _FLAGS and value.value is True) or (name in _PRECISIONS and value.value in ("tf32", "bf16"))
