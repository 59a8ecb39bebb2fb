"""DT203: gradients are clipped while they are still multiplied by the GradScaler's scale."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.rule import Finding, Rule
from dtlint_rules._scalers import called_from, calls_of, first_scale, is_scaler, spelled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["ClipBeforeUnscale"]


class ClipBeforeUnscale(Rule):
    """Gradients are clipped before the GradScaler has unscaled them.

    ## What it does
    Reports `torch.nn.utils.clip_grad_norm_` and `clip_grad_value_` between `scaler.scale(loss).backward()` and
    `scaler.step(optimizer)` where no `scaler.unscale_(optimizer)` stands before it, in one function or through the calls
    that lead there. Where the program asks for `scaler.get_scale()` it is taken to unscale by itself.

    ## Why it matters
    After `scaler.scale(loss).backward()` every gradient is multiplied by the scale, 65536 at the start. Clipped to norm
    1 then, they have norm 1/65536 once `scaler.step` has divided by the scale. With SGD the model hardly learns, and
    nothing says so. Measured on a linear layer: the norm is 128251 instead of 1.96, and SGD's step 1.3e-5 instead of
    0.86. Adam divides by the size of the gradients, and its step stays about as large (0.281 instead of 0.283 there)
    while that is far above its eps of 1e-8; but every gradient is clipped, not just those that are too large.

    ## Example
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    loss = model(torch.randn(4, 8)).pow(2).mean()
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    ```

    ## Use instead
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    loss = model(torch.randn(4, 8)).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    ```

    ## Fix safety
    The fix inserts `scaler.unscale_(optimizer)` before the clip. It is offered where one `scaler.step(optimizer)`
    follows in the same function, and one clip stands before it, so that it is clear which optimizer is meant and that
    nothing is unscaled twice. It is unsafe because it changes the training: the clipping gets the strength that it was
    meant to have, and a learning rate that made up for it may be too large now.

    ## References
    - [Working with unscaled gradients](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#working-with-unscaled-gradients)
    - [torch.amp.GradScaler.unscale_](https://docs.pytorch.org/docs/stable/amp.html#torch.amp.GradScaler.unscale_)
    """

    code, name = "DT203", "clip-before-unscale"
    fix = Applicability.UNSAFE
    triggers = ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm")
    needs = (("*scale*", "*Scale*"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        fixed: set[ast.AST] = set()
        for seen in facts.events("clip scaled", "clip perhaps scaled"):
            clip, (scaler, *_) = seen.node, seen.what.about
            if not isinstance(clip, ast.Call) or not is_scaler(facts, scaler) or _only_measures(facts, clip):
                continue
            if seen.what.kind == "clip perhaps scaled" and _is_of_another_branch(facts, clip, scaler):
                continue
            if _is_where_nothing_is_scaled(facts, clip):
                continue
            scope = facts.around.scope(clip)
            steps = [
                one for one in calls_of(facts, scaler, "step") if facts.around.scope(one.node) is scope and one.args
            ]
            nodes = {one.node for one in steps}
            name = spelled(facts, scaler, "scaler")
            step = nodes.pop() if len(nodes) == 1 else None
            optimizer = ast.unparse(step.args[0]) if step is not None and step.args else "optimizer"
            named = step is not None and isinstance(step.args[0], (ast.Name, ast.Attribute))
            offered = step is not None and named and scope not in fixed and _is_before(facts, clip, step, scaler)
            fixed.add(scope)
            scale = first_scale(facts, scaler)
            cut = (
                "nearly every gradient is cut" if "value" in ast.unparse(clip.func) else "nearly every step is clipped"
            )
            yield Finding(
                clip,
                f"Gradients are clipped while scaled{'' if scale is None else f', by {scale} at first'}: {cut}",
                help=f"Call `{name}.unscale_({optimizer})` before",
                elsewhere=called_from(seen),
                fix=partial(_unscale, facts.around.statement(clip), f"{name}.unscale_({optimizer})")
                if offered
                else None,
            )


def _only_measures(facts: ModuleFacts, clip: ast.Call) -> bool:
    """Is the limit infinite, so that nothing is clipped and the norm alone is wanted?"""
    given = next((one.argument_node(1, "max_norm") for one in facts.calls_at(clip)), None)
    if given is None:
        return False
    text = given.args[0] if isinstance(given, ast.Call) and ast.unparse(given.func) == "float" and given.args else given
    if isinstance(text, ast.Constant) and str(text.value).lower().lstrip("+") in ("inf", "infinity"):
        return True
    return ast.unparse(text) in ("math.inf", "np.inf", "numpy.inf", "torch.inf")


def _is_of_another_branch(facts: ModuleFacts, clip: ast.Call, scaler: Value) -> bool:
    """Does what decides whether the loss is scaled decide, too, whether this clips?"""
    here = _tested(facts, clip)
    return any(not here.isdisjoint(_tested(facts, call.node)) for call in calls_of(facts, scaler, "scale"))


def _is_where_nothing_is_scaled(facts: ModuleFacts, clip: ast.Call) -> bool:
    """Does a test hold wherever the module scales a loss, perhaps in another function, that does not hold here?"""
    here = {(ast.unparse(guard.test), guard.holds) for guard in facts.around.guards(clip)}
    scales = [
        facts.around.guards(call)
        for call in facts.around.of_kind(ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "scale"
    ]
    return bool(scales) and all(
        any((ast.unparse(guard.test), not guard.holds) in here for guard in guards) for guards in scales
    )


def _tested(facts: ModuleFacts, node: ast.AST) -> set[str]:
    """The variables and attributes that the tests speak of which hold at a node."""
    return {
        ast.unparse(part)
        for guard in facts.around.guards(node)
        for part in ast.walk(guard.test)
        if isinstance(part, (ast.Name, ast.Attribute)) and not (isinstance(part, ast.Name) and part.id == "self")
    }


def _is_before(facts: ModuleFacts, clip: ast.Call, step: ast.Call, scaler: Value) -> bool:
    """Does a clip that is a statement of its own stand before the step, whenever that is taken, and no unscale between?"""
    around = facts.around
    statement = around.statement(clip)
    whole = isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign)) and statement.value is clip
    block = around.block(step)
    inside = statement in block or any(isinstance(one, ast.If) and one in block for one in around.around(statement))
    unscaled = [one.node.lineno for one in calls_of(facts, scaler, "unscale_")]
    return (
        whole
        and inside
        and clip.lineno < step.lineno
        and not any(clip.lineno < line < step.lineno for line in unscaled)
    )


def _unscale(statement: ast.stmt, text: str, place: Place) -> Fix:
    line = place.insert_line(statement, text)
    return Fix(f"Call `{text}` before the clip", (line,), Applicability.UNSAFE)
