"""DT201: `.backward()` called while autocast is in force."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Span
from dtlint.infer.domain.values import Region
from dtlint.rule import Finding, Rule
from dtlint_rules._autocast import opened_around
from dtlint_rules._scalers import called_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["BackwardInAutocast"]

_ENDING = frozenset(
    {"backward", "step", "update", "zero_grad", "unscale_", "clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"}
)
"""What ends a training step, and is the same in autocast or out of it."""


class BackwardInAutocast(Rule):
    """`.backward()` is called inside an autocast region.

    ## What it does
    Reports `.backward()` of a loss where `torch.autocast` is in force, by `with`, as a decorator, or opened by a caller;
    and `accelerator.backward(loss)`, of Accelerate or of Lightning's Fabric, inside `with accelerator.autocast():`.

    ## Why it matters
    Autocast belongs around the forward pass and the loss; the backward of each operator runs in the dtype of its
    forward by itself. Called under autocast, the matrix products of the backward pass are cast a second time: those of
    layers that ran in float32, outside autocast or in a region that switches it off, are cast to the lower precision.
    With a float32 linear layer in a bfloat16 region the weight gradient is off by 0.4 %. Custom `autograd.Function`s
    and hooks are cast too, and autocast's copies of the weights stay in memory until the region ends.

    ## Example
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(4, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(4, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    ```

    ## Fix safety
    The fix moves the end of the region up to the call. It is offered where the call stands directly in the `with` block
    and nothing follows in it but the end of a training step: backward, unscale, clip, step, update, zero_grad, given
    nothing that is computed there. It is unsafe because gradients change, to the better.

    ## References
    - [torch.autocast: backward passes under autocast are not recommended](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
    - [Automatic mixed precision examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)
    """

    code, name = "DT201", "backward-in-autocast"
    fix = Applicability.UNSAFE
    triggers = ("*autocast*",)
    needs = (("backward",),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if facts.assumption is not None:
            return  # what calls backward is no part of what callers run under autocast
        for seen in facts.events("backward in region"):
            (region,) = seen.what.about
            dtype = region.dtype if isinstance(region, Region) else None
            around = opened_around(facts, seen.node)
            opened = around[0] if around is not None and isinstance(around[0], ast.With) else None
            rest = None if opened is None else _rest_of_region(facts, seen.node, opened)
            yield Finding(
                seen.node,
                f"`.backward()` runs under autocast, which computes float32 gradients in {dtype or 'half'}",
                help="Call `.backward()` after the autocast region",
                notes=() if around is None else ((around[1], "autocast begins here"),),
                elsewhere=called_from(seen),
                fix=None if opened is None or rest is None else partial(_moved_out, region=opened, statements=rest),
            )


def _rest_of_region(facts: ModuleFacts, call: ast.expr, region: ast.With) -> list[ast.stmt] | None:
    """The last statements of a region from the call on, if those can leave it."""
    statement = facts.around.statement(call)
    if len(region.items) != 1 or statement not in region.body[1:]:
        return None
    statements = region.body[region.body.index(statement) :]
    scalers = {
        ast.unparse(one.node.func.value)
        for one in facts.methods("scale", "unscale_", "update")
        if isinstance(one.node.func, ast.Attribute)
    }
    return statements if all(_ends_a_step(one, scalers) for one in statements) else None


def _ends_a_step(statement: ast.stmt, scalers: set[str]) -> bool:
    if isinstance(statement, ast.If):  # every so many steps, or where there is something to clip
        plain = not any(isinstance(node, ast.Call) for node in ast.walk(statement.test))
        return plain and all(_ends_a_step(one, scalers) for one in (*statement.body, *statement.orelse))
    call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, (ast.Attribute, ast.Name)):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if name not in _ENDING or (name in ("step", "update") and call.args and owner not in scalers):
        return False  # an optimizer that is given something runs the model, a metric computes with it
    return not any(_computes(node) for part in ast.iter_child_nodes(call) for node in ast.walk(part))


def _computes(node: ast.AST) -> bool:
    """Is something computed by a part of a statement: by a call, those of `scaler.scale(loss)` and `model.parameters()`
    aside, or by a matrix product? A lambda is a closure that runs the model."""
    if isinstance(node, ast.Call):
        return not (isinstance(node.func, ast.Attribute) and node.func.attr in ("scale", "parameters"))
    return isinstance(node, (ast.MatMult, ast.Lambda))


def _moved_out(place: Place, region: ast.With, statements: list[ast.stmt]) -> Fix | None:
    """Move statements out of the block by taking away indentation, line by line."""
    lines = place.source.lines
    outer = lines[region.lineno - 1][: place.source.span(region).column]
    first, last = statements[0].lineno, statements[-1].end_lineno or statements[-1].lineno
    inner = lines[first - 1][: place.source.span(statements[0]).column]
    if outer.strip() or inner.strip() or not inner.startswith(outer) or inner == outer:
        return None
    before = region.body[region.body.index(statements[0]) - 1]
    while first - 1 > (before.end_lineno or before.lineno) and lines[first - 2].startswith(inner + "#"):
        first -= 1  # a comment above the statement goes with it
    text = {line for statement in statements for line in _lines_of_text(statement)}
    edits = tuple(
        Edit(Span(line, len(outer), line, len(inner)), "")
        for line in range(first, last + 1)
        if line not in text and lines[line - 1].startswith(inner)
    )
    return Fix("End the autocast region before `.backward()`", edits, Applicability.UNSAFE)


def _lines_of_text(statement: ast.stmt) -> Iterator[int]:
    """The lines that begin inside a string, where indentation is part of the program."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            yield from range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
