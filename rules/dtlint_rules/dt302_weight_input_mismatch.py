"""DT302: a layer or a model gets an input that has not the dtype of its weights."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._facts import op_name
from dtlint_rules._needs import CASTS, DTYPES, ENGINES, TORCH
from dtlint_rules._refusals import finding, if_half, is_layer, refused
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["WeightInputMismatch"]


class WeightInputMismatch(Rule):
    """A layer or a model gets an input that has not the dtype of its weights.

    ## What it does
    Reports a linear, convolutional, recurrent or normalizing layer whose input is known to have another dtype than its
    weights: what was cast, `model.half()`, and called with float32, there or in a function or file behind; and float64 that
    a function gives to a layer that it makes, whose weights are float32 unless float64 is the default dtype.

    Conditional, and reported with `--preview` only: a module that gives its own layer what is float32 whatever the caller
    gives, such as frequencies of positions or a one-hot tensor that is cast by hand, so that half weights raise.

    ## Why it matters
    Linear, convolutional and recurrent layers do not promote: "mat1 and mat2 must have the same dtype, but got Float and
    Half". A module whose `forward` works in float32 raises as soon as somebody calls `.half()` on it.

    ## Example
    ```python
    import torch


    class Positions(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.project = torch.nn.Linear(1, width)

        def forward(self, n: int) -> torch.Tensor:
            steps = torch.arange(n, dtype=torch.float32, device=self.project.weight.device)
            return self.project(steps[:, None] / n)
    ```

    ## Use instead
    ```python
    import torch


    class Positions(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.project = torch.nn.Linear(1, width)

        def forward(self, n: int) -> torch.Tensor:
            steps = torch.arange(n, dtype=torch.float32, device=self.project.weight.device)
            return self.project((steps[:, None] / n).to(self.project.weight.dtype))
    ```

    ## References
    - [torch.nn.Linear](https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html)
    - [Module.half](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.half)
    """

    code, name = "DT302", "weight-input-mismatch"
    triggers = (*CASTS, *DTYPES, *ENGINES, "*dtype*", "numpy")
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        yield from refused(facts, self.code)
        for seen, wide, _ in if_half(facts, is_layer):
            if _stays_float32(facts, seen.node):
                continue
            name = op_name(seen.what.op)
            given = f"`{short(wide.node)}` is" if wide.node is not None and not seen.behind else "its input is"
            yield finding(
                seen,
                None,
                f"`{name}` raises if its weights are half: {given} float32",
                "Cast the input to the dtype of the weights",
                conditional=True,
            )


def _stays_float32(facts: ModuleFacts, node: ast.AST) -> bool:
    """Is the layer of a call, `self.head(x)`, made with a dtype, cast to one by the class, or kept in float32 by its name,
    as transformers' `_keep_in_fp32_modules` does?"""
    path = path_of(node.func) if isinstance(node, ast.Call) else None
    owner = facts.around.owner(node)
    if path is None or owner is None:
        return False
    for one in facts.around.within(owner):
        if isinstance(one, ast.Constant) and one.value == path.rpartition(".")[2]:
            return True
        if isinstance(one, ast.Call) and path_of(one.func) in (f"{path}.float", f"{path}.to"):
            return True
        if isinstance(one, ast.Assign) and any(path_of(target) == path for target in one.targets):
            made = one.value
            if isinstance(made, ast.Call) and any(keyword.arg == "dtype" for keyword in made.keywords):
                return True
    return False
