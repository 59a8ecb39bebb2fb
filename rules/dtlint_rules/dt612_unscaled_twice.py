"""DT612: accelerate's gradients are unscaled twice before a step."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Ref
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["UnscaledTwice"]

_ACCELERATOR = "accelerate.accelerator.Accelerator"
_UNSCALING = tuple(f"{_ACCELERATOR}.{name}" for name in ("clip_grad_norm_", "clip_grad_value_", "unscale_gradients"))


class UnscaledTwice(Rule):
    """accelerate clips twice before it steps, which float16 does not allow.

    ## What it does
    Reports `accelerator.clip_grad_norm_` inside of `accelerator.accumulate(...)` without a test of
    `accelerator.sync_gradients`, where gradients are accumulated over several batches, and a second clip in the same block
    with no step between. Conditional where the launcher decides on the precision or the number of batches.

    ## Why it matters
    With `mixed_precision="fp16"` each of these unscales the gradients of all optimizers, and accelerate's GradScaler is
    updated by a step alone: the second raises "unscale_() has already been called on this optimizer since the last
    update()". Without float16 the gradients of a part of the batches are clipped, as if they were all.

    ## Example
    ```python
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=4)

    def train(model, optimizer, loader):
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(batch).mean())
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## Use instead
    ```python
    import torch
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=4)

    def train(model, optimizer, loader):
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(batch).mean())
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
    ```

    ## References
    - [Gradient accumulation](https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation)
    - [Gradient clipping](https://huggingface.co/docs/accelerate/package_reference/accelerator#accelerate.Accelerator.clip_grad_norm_)
    """

    code, name = "DT612", "unscaled-twice"
    triggers = (".clip_grad_norm_", ".clip_grad_value_", ".unscale_gradients")
    needs = (("Accelerator",),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        made = {id(call.node): call for call in facts.calls("accelerate.Accelerator")}
        before: dict[int, ast.Call] = {}
        for call in sorted(facts.calls(*_UNSCALING), key=lambda one: one.node.lineno):
            own = made.get(id(call.receiver.address.site)) if isinstance(call.receiver, Ref) else None
            precision = None if own is None else own.constant(3, "mixed_precision")
            if own is None or precision in ("no", "bf16", "fp8"):
                continue
            is_float16 = precision == "fp16"
            block = _block(facts, call.node)
            earlier = before.get(id(block))
            if block is not None:
                before[id(block)] = call.node
            if (
                earlier is not None
                and earlier is not call.node
                and block is not None
                and not _steps_between(block, earlier, call.node)
            ):
                yield Finding(
                    call.node,
                    "Raises in float16: the gradients were unscaled before, and no step was taken since",
                    help="Clip all parameters at once, or step each optimizer before the next is clipped",
                    notes=((earlier, "unscaled here"),),
                    conditional=not is_float16,
                )
            elif _accumulates(facts, call):
                batches = own.constant(4, "gradient_accumulation_steps")
                if batches == 1 or (batches is None and "gradient_accumulation_steps" not in own.keywords):
                    continue
                yield Finding(
                    call.node,
                    "Raises in float16 at the second batch: gradients are unscaled for each batch, and stepped after several",
                    help="Clip under `if accelerator.sync_gradients:`",
                    conditional=not (is_float16 and isinstance(batches, int)),
                )


def _accumulates(facts: ModuleFacts, call: Call) -> bool:
    """Does it stand in a block that accumulates, with no test of whether this batch is stepped?"""
    guards = facts.around.guards(call.node)
    if any(isinstance(part, ast.Attribute) and "sync" in part.attr for one in guards for part in ast.walk(one.test)):
        return False
    return any(
        isinstance(item.context_expr, ast.Call)
        and isinstance(item.context_expr.func, ast.Attribute)
        and item.context_expr.func.attr == "accumulate"
        for one in facts.around.around(call.node)
        if isinstance(one, ast.With)
        for item in one.items
    )


def _block(facts: ModuleFacts, node: ast.Call) -> list[ast.stmt] | None:
    """The statements among which a call stands, as one of its own."""
    statement = facts.around.statement(node)
    parent = None if statement is None else facts.around.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        held = getattr(parent, name, None)
        if isinstance(held, list) and statement in held:
            return held
    return None


def _steps_between(block: list[ast.stmt], first: ast.Call, last: ast.Call) -> bool:
    """Is an optimizer stepped between two calls in a block, or the block left?"""
    between = [one for one in block if first.lineno < one.lineno < last.lineno]
    return any(
        isinstance(node, (ast.Return, ast.Continue, ast.Break))
        or (isinstance(node, ast.Attribute) and node.attr in ("step", "update", "prepare"))
        for node in nodes(between)
    )
