"""DT201: `.backward()` called while autocast is in force."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Span
from dtlint.infer.around import around
from dtlint.infer.names import path_of
from dtlint.infer.values import Tensor, Unknown
from dtlint.infer.walk import SCOPES
from dtlint.rule import Finding, Rule
from dtlint_rules._imports import imports
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call, Flow
    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["BackwardInAutocast"]

_BACKWARD_KEYWORDS = frozenset({"gradient", "retain_graph", "create_graph", "inputs"})
"""Of Tensor.backward; whoever is given others, or positional arguments, is an engine of some kind."""

_AFTER_FORWARD = {
    "backward": re.compile("loss|err", re.IGNORECASE),
    "step": re.compile("opt|scaler|sched", re.IGNORECASE),
    "update": re.compile("scaler", re.IGNORECASE),
    **dict.fromkeys(("zero_grad", "unscale_", "clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"), re.compile("")),
}
"""What ends a training step, and is the same in autocast or out of it, by the names of those who do it: `update` of a
moving average or a metric may well compute something."""


class BackwardInAutocast(Rule):
    """`.backward()` is called inside an autocast region.

    ## What it does
    Reports `.backward()` of a loss where `torch.autocast` is in force, by `with` or as a decorator, and
    `accelerator.backward(loss)`, of Accelerate or of Lightning's Fabric, inside `with accelerator.autocast():`.

    Conditional, and so reported with `--preview` only: `accelerator.backward` in a file that does not import the
    library.

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
    and nothing follows in it but the end of a training step: backward, unscale, clip, step, update, zero_grad, of what
    is called a loss, an optimizer, a scaler or a scheduler, and given nothing that is computed there. It is unsafe
    because gradients change, to the better.

    ## References
    - [torch.autocast: backward passes under autocast are not recommended](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
    - [Automatic mixed precision examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)
    """

    code, name = "DT201", "backward-in-autocast"
    fix = Applicability.UNSAFE
    triggers = ("*autocast*",)
    needs = (("backward",),)
    calls = frozenset({"backward"})

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in facts.events("backward in region"):
            yield Finding(
                seen.node,
                "`.backward()` runs under autocast, in a region that a caller has opened",
                help="Call `.backward()` behind the autocast region",
                elsewhere=tuple((step, "called from here") for step in seen.what.calls[-1:]),
            )

    def on_call(self, call: Call) -> Iterator[Finding]:
        region = call.flow.autocast
        if region is None and call.method == "backward" and len(call.node.args) == 1:
            yield from _by_library(call)
        if region is None or not _is_backward(call):
            return
        rest = _rest_of_region(call.flow)
        yield Finding(
            call.node,
            f"`.backward()` runs under autocast, which computes float32 gradients in {region.dtype or 'half'}",
            help="Call `.backward()` after the autocast region",
            notes=() if region.made is None else ((region.made, "autocast begins here"),),
            fix=None if rest is None else lambda place: _fix(place, *rest),
        )


def _by_library(call: Call) -> Iterator[Finding]:
    """`accelerator.backward(loss)` inside `with accelerator.autocast():`, of the same object. What else has a `backward` that
    takes an argument is an engine of some kind."""
    owner = path_of(call.node.func.value) if isinstance(call.node.func, ast.Attribute) else None
    if owner is None or not isinstance(call.receiver, Unknown):
        return
    seen = not _LIBRARIES.isdisjoint(imports(call.flow.tree))
    if not seen and _OF_LIBRARIES.search(owner) is None:
        return
    made = _library_region(call, owner)
    if made is not None:
        yield Finding(
            call.node,
            f"`{owner}.backward()` runs under autocast, which computes float32 gradients in half",
            help=f"Call `{owner}.backward()` after the autocast region",
            notes=((made, "autocast begins here"),),
            conditional=not seen,
        )


_OF_LIBRARIES = re.compile(r"(?:^|[._])(?:accelerator|fabric)$")
_LIBRARIES = frozenset({"accelerate", "lightning_fabric"})


def _library_region(call: Call, owner: str) -> ast.expr | None:
    """`owner.autocast()` of the innermost `with` around a call in its function. One that is told something may be off."""
    for part in around(call.node, call.flow.tree):
        if isinstance(part, SCOPES):
            return None
        for item in part.items if isinstance(part, (ast.With, ast.AsyncWith)) else ():
            made = item.context_expr
            if isinstance(made, ast.Call) and last_name(made) == "autocast":
                return made if path_of(made.func) == f"{owner}.autocast" and not (made.args or made.keywords) else None
    return None


def _is_backward(call: Call) -> bool:
    """Is it the backward of a tensor, as far as one can know: called without arguments that no tensor takes, with such
    as only tensors do, on what was computed in the region, or on what is called a loss?"""
    if call.method != "backward" or call.args or not call.complete or not call.keywords.keys() <= _BACKWARD_KEYWORDS:
        return False
    receiver = call.receiver
    if not isinstance(receiver, Unknown):
        return isinstance(receiver, Tensor)
    if receiver.under is not None or receiver.scaled is not None or call.keywords:
        return True
    assert isinstance(call.node.func, ast.Attribute)
    path = path_of(call.node.func.value)
    return path is not None and "loss" in path.rpartition(".")[2].lower()


def _rest_of_region(flow: Flow) -> tuple[ast.With, list[ast.stmt]] | None:
    """The `with` statement of the region, and its last statements from the running one on, if those can leave it."""
    statements = flow.block[flow.block.index(flow.statement) :]
    first, *others = statements
    if first is flow.block[0] or not _goes_backward(first) or not all(map(_ends_a_step, others)):
        return None
    region = _regions(flow.scope).get(id(flow.block))
    return (region, statements) if region is not None and len(region.items) == 1 else None


@kept
def _regions(scope: ast.AST) -> dict[int, ast.With]:
    """The `with` statements of a function, by the identity of their bodies."""
    return {id(node.body): node for node in ast.walk(scope) if isinstance(node, ast.With)}


def _goes_backward(statement: ast.stmt) -> bool:
    """Is it `loss.backward()` or `scaler.scale(loss).backward()`, and does it compute nothing else?"""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "backward":
        return False
    return _is_loss(call.func.value) and not _computes(call)


def _is_loss(node: ast.expr) -> bool:
    """Is it a name, or what a scaler makes of one?"""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "scale":
        return path_of(node.func.value) is not None and not _computes(node)
    return path_of(node) is not None


def _ends_a_step(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        # Every so many steps, or where there is something to clip; a test that calls may compute something.
        plain = not any(isinstance(node, ast.Call) for node in ast.walk(statement.test))
        return plain and all(map(_ends_a_step, (*statement.body, *statement.orelse)))
    call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if not isinstance(call, ast.Call) or _computes(call):
        return False
    method = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owners = _AFTER_FORWARD.get(method)
    if owners is None:
        return False
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if method == "backward" and isinstance(owner, ast.Call):
        return _goes_backward(statement)
    path = "" if owner is None else path_of(owner)
    if path is None or owners.search(path.rpartition(".")[2]) is None:
        return False
    # An argument of an optimizer's step is a closure, which runs the model.
    return method != "step" or "opt" not in path.rpartition(".")[2].lower() or not call.args


def _computes(call: ast.Call) -> bool:
    """Is something computed in the arguments: by a call, but for that of `model.parameters()`, or a matrix product?"""
    return any(
        isinstance(node, ast.MatMult) or (isinstance(node, ast.Call) and not _lists_parameters(node))
        for argument in (*call.args, *call.keywords)
        for node in ast.walk(argument)
    )


def _lists_parameters(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "parameters" and path_of(call.func) is not None


def _fix(place: Place, region: ast.With, statements: list[ast.stmt]) -> Fix | None:
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
