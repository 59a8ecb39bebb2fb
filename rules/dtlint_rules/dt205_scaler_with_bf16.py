"""DT205: a GradScaler scales losses though autocast computes in bfloat16."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Ref, Value
from dtlint.rule import Finding, Rule
from dtlint_rules._scalers import SCALERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["ScalerWithBf16"]


class ScalerWithBf16(Rule):
    """A GradScaler is made for training in bfloat16.

    ## What it does
    Reports a GradScaler that is made where every autocast region of the same function, or of the same class, computes in
    bfloat16, and that only serves there. A scaler that is made under a test, or switched by `enabled`, is left alone.

    ## Why it matters
    bfloat16 has the exponent of float32, 8 bits: no gradient underflows in it that would not in float32. There is
    nothing to scale. The scaler still multiplies each loss by 65536, looks through all gradients for inf with a
    synchronization of the device in every step, and skips steps while it seeks its scale; a scale that doubles every
    2,000 good steps drives bfloat16 gradients towards overflow for nothing.

    ## Example
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(4, 8)).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    ```

    ## Use instead
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(4, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    ```

    ## References
    - [Gradient scaling](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling)
    """

    code, name = "DT205", "scaler-with-bf16"
    triggers = ("*Scaler*",)
    needs = (("*autocast*", "*bf16*", "*bfloat16*"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        regions = [(made, region) for made, region in facts.regions() if region.enabled is not False]
        for call in facts.calls(*SCALERS):
            realm = _realm(facts, call.node)
            own = [(made, region) for made, region in regions if _realm(facts, made) is realm]
            if not own or any(region.dtype != "bfloat16" for _, region in own) or _is_chosen(facts, call):
                continue
            if isinstance(call.result, Ref) and not _leaves(facts, call.result, realm):
                yield Finding(
                    call.node,
                    "GradScaler is used with bfloat16, which does not need it",
                    help="Leave the scaler out, or make it for float16 alone: `enabled=(dtype == torch.float16)`",
                    notes=((own[0][0], "autocast to bfloat16"),),
                )


def _realm(facts: ModuleFacts, node: ast.AST) -> ast.AST:
    """Whose losses a scaler scales: those of the class, or else of the function."""
    return facts.around.owner(node) or facts.around.scope(node)


def _is_chosen(facts: ModuleFacts, call: Call) -> bool:
    """Is the scaler made under a test, or switched?"""
    return (
        bool(facts.around.guards(call.node))
        or call.constant(None, "enabled") not in (None, True)
        or ("enabled" in call.keywords and call.constant(None, "enabled") is None)
    )


def _leaves(facts: ModuleFacts, scaler: Value, realm: ast.AST) -> bool:
    """Is the scaler handed to others, or given back?"""
    if any(scaler in (*call.args, *call.keywords.values()) for call in facts.calls()):
        return True
    returned = (
        one.value for one in facts.around.within(realm) if isinstance(one, ast.Return) and one.value is not None
    )
    return any(facts.value(part) == scaler for one in returned for part in ast.walk(one) if isinstance(part, ast.expr))
