"""DT204: a GradScaler's scale, backward, unscale_, step and update are called in an order that cannot be right."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.domain.values import Function, Ref, Value
from dtlint.rule import Finding, Rule
from dtlint_rules._scalers import SCALERS, called_from, calls_of, is_scaler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["ScalerMisuse"]

_SCALER = "torch.amp.GradScaler"
_WRONG_STEPS = {
    "unscale twice": (
        "`unscale_` is called twice for one optimizer since the last `update`: it raises RuntimeError",
        "Unscale once, before the first use of the gradients",
    ),
    "unscale again": (
        "`unscale_` runs in every iteration, `update` in some: the second `unscale_` raises RuntimeError",
        "Unscale and clip where the step is taken",
    ),
    "unscale after step": (
        "`unscale_` is called after `step`, without an `update` between: it raises RuntimeError",
        "Call `scaler.update()` after the step, in each iteration",
    ),
    "unscale after a step again": (
        "`unscale_` is called after `step`, without an `update` between: it raises RuntimeError",
        "Call `scaler.update()` after the step, in each iteration",
    ),
    "step twice": (
        "`step` is called twice for one optimizer since the last `update`: it raises RuntimeError",
        "Call `scaler.update()` after the step, in each iteration",
    ),
    "step again": (
        "The scaler is never updated: the second `step` raises RuntimeError",
        "Call `scaler.update()` after the step, in each iteration",
    ),
    "update without step": (
        "`update` is called though no optimizer was stepped since the last one: it raises AssertionError",
        "Call `scaler.update()` only where `scaler.step(optimizer)` was called",
    ),
    "unscale of plain gradients": (
        "`unscale_` is called for gradients of a loss that was never scaled",
        "Call `scaler.scale(loss).backward()`",
    ),
    "step of plain gradients": (
        "`step` unscales gradients of a loss that was never scaled",
        "Call `scaler.scale(loss).backward()`",
    ),
    "step of cleared gradients": (
        "`step` finds no gradients: they were set to zero since the backward pass",
        "Call `zero_grad` before backward, or after the step",
    ),
    "plain step of scaled gradients": (
        "The optimizer steps with gradients that are multiplied by the scale, 65536 by default",
        "Call `scaler.step(optimizer)`, then `scaler.update()`",
    ),
    "step beside the scaler": (
        "The scaler has already stepped this optimizer: this steps again, even if gradients are inf",
        "Remove it: `scaler.step(optimizer)` steps the optimizer",
    ),
}
"""Steps of the protocol that are wrong: what happens, and what to do."""


class ScalerMisuse(Rule):
    """The methods of a GradScaler are called in an order that raises, or that trains on scaled gradients.

    ## What it does
    Follows each GradScaler through its cycle, in a function and through the calls that it makes, and reports where that is
    broken on every path to the place: `unscale_` or `step` twice for one optimizer without an `update` between,
    `unscale_` after `step`, `update` where nothing was stepped, gradients that are set to zero before they are used, the
    optimizer stepped by itself beside or instead of `scaler.step`, `step` of gradients whose loss was never scaled, and
    `step` in a loop of a scaler that nothing in the file updates. Also a scaled loss that nobody uses,
    `scaler.scale(loss)` ahead of `loss.backward()`, and a scaler that is made anew in each iteration.

    A function is taken to be called with the scaler in any phase, unless the file calls it.

    ## Why it matters
    The cycle is scale, backward, unscale_ (where gradients are looked at), step, update. Most other orders raise, but
    only once they are reached; two go unnoticed: `optimizer.step()` on gradients that are 65536 times too large, and a
    second step on the same gradients, which is not skipped where they are inf.

    ## Example
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(1):
        loss = model(torch.randn(4, 8)).pow(2).mean()
        scaler.scale(loss).backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(1):
        loss = model(torch.randn(4, 8)).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    ```

    ## References
    - [Automatic mixed precision examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)
    - [torch.amp.GradScaler](https://docs.pytorch.org/docs/stable/amp.html#torch.amp.GradScaler)
    """

    code, name, severity = "DT204", "scaler-misuse", Severity.ERROR
    triggers = ("*scaler*", "*Scaler*", ".scale", ".unscale_")

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        beside: set[tuple[Value, ast.AST]] = set()
        for seen in facts.events(*_WRONG_STEPS):
            scaler, kind = seen.what.about[0], seen.what.kind
            if not is_scaler(facts, scaler) or not _CONDITIONS.get(kind, _always)(facts, seen.what.about, seen.node):
                continue
            cycle = scaler, facts.around.scope(seen.node)
            if kind == "plain step of scaled gradients":
                beside.add(cycle)
            elif kind == "update without step" and cycle in beside:
                continue  # that is where it should have been stepped
            message, advice = _WRONG_STEPS[kind]
            yield Finding(seen.node, message, help=advice, elsewhere=called_from(seen))
        yield from _scaled_for_nothing(facts)
        for step in facts.calls(f"{_SCALER}.step"):
            yield from _never_scaled(facts, step)
        for made in facts.calls(*SCALERS):
            yield from _made_anew(facts, made)


def _always(facts: ModuleFacts, about: tuple[Value, ...], node: ast.Call) -> bool:
    return True


def _is_optimizer(facts: ModuleFacts, about: tuple[Value, ...], node: ast.Call) -> bool:
    """Is what steps itself an optimizer, and no schedule: the scaler steps it elsewhere, or its gradients are zeroed?"""
    if isinstance(about[-1], Ref):
        return True
    owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    return any(
        owner
        == ast.unparse(call.node.args[0] if call.method != "zero_grad" and call.node.args else call.node.func.value)
        for call in facts.methods("zero_grad", "step", "unscale_")
        if isinstance(call.node.func, ast.Attribute) and call.node is not node
    )


def _is_never_updated(facts: ModuleFacts, about: tuple[Value, ...], node: ast.Call) -> bool:
    scaler = about[0]
    if facts.happens("update", scaler):
        return False
    leaving = (one for one in _given(facts, scaler) if not isinstance(facts.value(one.func), Function))
    return isinstance(scaler, Ref) and not any(facts.methods("update")) and not any(leaving)


def _given(facts: ModuleFacts, scaler: Value) -> Iterator[ast.Call]:
    """The calls that a scaler is handed to."""
    return (call.node for call in facts.calls() if scaler in (*call.args, *call.keywords.values()))


def _is_updated_nowhere(facts: ModuleFacts, about: tuple[Value, ...], node: ast.Call) -> bool:
    return not facts.happens("update", about[0])


def _is_updated_now_and_then(facts: ModuleFacts, about: tuple[Value, ...], node: ast.Call) -> bool:
    """Does every update that belongs to an `unscale_` stand in its loop, under more tests than that?"""
    around = facts.around
    loop, tests = next(around.loops(node), None), around.guards(node)
    updates = [call.node for call in facts.methods("update") if around.scope(call.node) is around.scope(node)]
    return bool(updates) and all(
        next(around.loops(one), None) is loop and set(tests) < set(around.guards(one)) for one in updates
    )


_CONDITIONS = {
    "plain step of scaled gradients": _is_optimizer,
    "step again": _is_never_updated,
    "unscale after a step again": _is_updated_nowhere,
    "unscale again": _is_updated_now_and_then,
}
"""What must hold besides, by the kind of an event."""


def _scaled_for_nothing(facts: ModuleFacts) -> Iterator[Finding]:
    """`scaler.scale(loss)` as a statement, ahead of `loss.backward()`."""
    around = facts.around
    for call in facts.methods("scale"):
        scaled = call.node.args[0] if len(call.node.args) == 1 else None
        if scaled is None or call.receiver is None or not around.is_discarded(call.node):
            continue
        backward = next(
            (
                one.node
                for one in facts.methods("backward")
                if around.scope(one.node) is around.scope(call.node)
                and isinstance(one.node.func, ast.Attribute)
                and ast.unparse(one.node.func.value) == ast.unparse(scaled)
                and one.node.lineno > call.node.lineno
            ),
            None,
        )
        if backward is not None and (call.name == f"{_SCALER}.scale" or is_scaler(facts, call.receiver)):
            yield Finding(
                call.node,
                f"The scaled loss is thrown away, and `{ast.unparse(scaled)}` goes backward unscaled",
                help=f"Call `{ast.unparse(call.node)}.backward()`",
                notes=((backward, "the unscaled loss"),),
            )


def _never_scaled(facts: ModuleFacts, step: Call) -> Iterator[Finding]:
    """`scaler.step(optimizer)` behind a backward pass, of a scaler that the file makes, hands to nobody, and scales nothing
    with."""
    scaler, scope = step.receiver, facts.around.scope(step.node)
    if not isinstance(scaler, Ref) or any(calls_of(facts, scaler, "scale")):
        return
    if any(one.receiver != scaler for one in facts.calls_at(step.node)):
        return  # on other paths it is another, which may have scaled
    if any(_given(facts, scaler)):
        return
    backward = [one.node for one in facts.methods("backward") if facts.around.scope(one.node) is scope]
    if not any(one.result == scaler and facts.around.scope(one.node) is scope for one in facts.calls(*SCALERS)) and any(
        _may_be_given(facts, one.func.value) for one in backward if isinstance(one.func, ast.Attribute)
    ):
        return  # who calls the function may have scaled the loss with it
    if backward and backward[0].lineno < step.node.lineno and not backward[0].args:
        unscaling = [
            one.node
            for one in calls_of(facts, scaler, "unscale_")
            if facts.around.scope(one.node) is scope and backward[0].lineno < one.node.lineno < step.node.lineno
        ]
        kind = "unscale of plain gradients" if unscaling else "step of plain gradients"
        for node in unscaling or [step.node]:
            yield Finding(
                node,
                _WRONG_STEPS[kind][0],
                help="Call `scaler.scale(loss).backward()`",
                notes=((backward[0], "nothing has scaled this loss"),),
            )


def _may_be_given(facts: ModuleFacts, loss: ast.expr) -> bool:
    """Is a loss a parameter of the function, or a multiple of one?"""
    waiting: list[ast.AST] = [loss]
    seen: set[ast.AST] = set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.arg):
            return True
        if one in seen:
            continue
        seen.add(one)
        if isinstance(one, ast.Name):
            waiting += facts.around.definitions(one)
        elif isinstance(one, ast.BinOp):
            waiting += (one.left, one.right)
        elif isinstance(one, ast.IfExp):
            waiting += (one.body, one.orelse)
        elif isinstance(one, ast.AugAssign):
            waiting.append(one.target)
    return False


def _made_anew(facts: ModuleFacts, made: Call) -> Iterator[Finding]:
    """A scaler that is made in the loop that steps an optimizer from outside of it."""
    around = facts.around
    loop = next(around.loops(made.node), None)
    if loop is None or made.result is None:
        return
    for step in calls_of(facts, made.result, "step"):
        if next(around.loops(step.node), None) is not loop or not step.node.args:
            continue
        optimizer = around.definition(step.node.args[0])
        if loop not in around.around(optimizer) or isinstance(optimizer, (ast.Name, ast.Attribute)):
            yield Finding(
                made.node,
                "The scaler is made in every iteration: its scale never adapts",
                help="Make the scaler once, before the loop",
                notes=((step.node, "the step"),),
            )
            return
