"""DT415: an optimizer whose state has the dtype of the parameters."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import pass_dtype
from dtlint_rules._needs import attributes
from dtlint_rules._uses import uses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.facts import ModuleFacts

__all__ = ["OptimizerStateDtype"]

_MAKERS = ("zeros_like", "ones_like", "full_like", "empty_like")
_OPTIMIZERS = ("torch.optim.Optimizer", "torch.optim.optimizer.Optimizer")


class OptimizerStateDtype(Rule):
    """An optimizer keeps its state in the dtype of the parameters.

    ## What it does
    Reports `state["exp_avg"] = torch.zeros_like(p)` without a `dtype`, in a class that derives from an optimizer. The
    rule is off unless it is selected: torch's own optimizers do the same, and it does harm only where parameters are
    half. Select it for an optimizer that has to train models in float16 or bfloat16.

    All of this is conditional, and reported with `--preview` only: it takes half parameters.

    ## Why it matters
    A moving average of squares loses in half what it is there for: with beta 0.999 each step changes it by a
    thousandth, which rounds away in bfloat16, and the square of a gradient of 1e-4 is 0 in float16, so that the update
    divides by eps alone. `load_state_dict` casts the state to the parameter's dtype, too.

    ## Example
    ```python
    import torch

    class Momentum(torch.optim.Optimizer):
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    state["momentum"] = torch.zeros_like(p)
    ```

    ## Use instead
    ```python
    import torch

    class Momentum(torch.optim.Optimizer):
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    state["momentum"] = torch.zeros_like(p, dtype=torch.float32)
    ```

    ## Fix safety
    The fix adds `dtype=torch.float32`. It is unsafe: the state takes twice the memory of a half one, and the update has
    to be cast to the parameter's dtype.

    ## References
    - [torch.optim.Optimizer.load_state_dict](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.load_state_dict.html)
    """

    code, name = "DT415", "optimizer-state-dtype"
    fix = Applicability.UNSAFE
    default = False
    triggers = attributes(_MAKERS)
    needs = (("*Optim*",), ("*state*",))

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        bases = {node for node, _ in facts.names(*_OPTIMIZERS)}
        for use in uses(facts, *_MAKERS):
            owner, statement = facts.around.owner(use.node), facts.around.statement(use.node)
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            kept = isinstance(target, ast.Subscript) and "state" in ast.unparse(target)
            if owner is None or bases.isdisjoint(owner.bases) or not kept or "dtype" in use.keywords or not use.nodes:
                continue
            yield Finding(
                use.node,
                f"The state has the dtype of `{ast.unparse(use.nodes[0])}`: in half, squares below 6e-8 are 0",
                help="Pass `dtype=torch.float32`",
                conditional=True,
                fix=partial(pass_dtype, name="torch.float32", message="Keep the state in float32"),
            )
