"""DT203: gradients are clipped while they are still multiplied by the GradScaler's scale."""

from __future__ import annotations

import ast
import math
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import GradScaler, Key, Optimizer, Phase, Unknown
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name, mentions, names, names_in, words
from dtlint_rules._needs import attributes
from dtlint_rules._parts import given
from dtlint_rules._statements import blocks, statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End
    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["ClipBeforeUnscale"]

_CLIPS = {
    "torch.nn.utils.clip_grad_norm_": "nearly every step is clipped",
    "torch.nn.utils.clip_grad_value_": "nearly every gradient is cut",
}
"""What clips gradients, and what happens to it when they are scaled by 65536."""
_STEPS = {
    **dict.fromkeys(("SGD", "ASGD"), "{} barely moves"),
    **dict.fromkeys(
        ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adagrad", "Adadelta"),
        "{} hides it",
    ),
}
"""What comes of it by the optimizer: Adam and its kin divide a gradient by its own size, and add eps to that."""

_HOOKING = frozenset({"allennlp.training.util.enable_gradient_clipping"})
"""Functions of libraries that hang hooks on parameters which clip their gradients."""
_CUTS = frozenset({"clamp", "clip", "clamp_", "clip_", "clamp_min", "clamp_max"})

_CYCLE = frozenset({"scale", "step", "update", "is_enabled", "state_dict", "load_state_dict"})
"""Of a GradScaler's methods those that neither unscale nor tell the scale."""
_SCALER_METHODS = frozenset({"step", "update", "unscale_", "get_scale"})
"""Methods by which one knows a GradScaler that was made elsewhere."""
_SWITCHES = ("scaler", "amp", "fp16", "half", "bf16", "precision", "autocast")
"""In names of a test by which a clip may be that of the other branch, without a scaler."""
_SCALES = frozenset({"inv_scale", "grad_scale", "loss_scale", "get_scale", "_scale"})
"""Names of what the author may divide the gradients by, or multiply the limit with."""


class ClipBeforeUnscale(Rule):
    """Gradients are clipped before the GradScaler has unscaled them.

    ## What it does
    Reports `torch.nn.utils.clip_grad_norm_` and `clip_grad_value_` between `scaler.scale(loss).backward()` and
    `scaler.step(optimizer)` where no `scaler.unscale_(optimizer)` stands before it; also where the loss is scaled in
    another function than that which clips and steps, in a file that never unscales. A limit that is multiplied by
    `scaler.get_scale()`, and gradients that are divided by it by hand, are accepted. Reports also hooks that clip
    gradients, `p.register_hook(lambda grad: grad.clamp(-1, 1))`, in a class or a function with a GradScaler: they run
    in backward.

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
    follows in the same block, or in one around it, so that it is clear which optimizer is meant and that nothing is
    unscaled twice. It is unsafe because it changes the training: the clipping gets the strength that it was meant to
    have, and a learning rate that made up for it may be too large now.

    ## References
    - [Working with unscaled gradients](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#working-with-unscaled-gradients)
    - [torch.amp.GradScaler.unscale_](https://docs.pytorch.org/docs/stable/amp.html#torch.amp.GradScaler.unscale_)
    """

    code, name = "DT203", "clip-before-unscale"
    fix = Applicability.UNSAFE
    triggers = (*attributes((*_CLIPS, *_HOOKING)), ".clip_grad_norm", "register_hook")
    needs = (("*scale*", "*Scale*"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in facts.events("clip scaled"):
            yield Finding(
                seen.node,
                "Gradients are clipped while they are multiplied by the scale, 65536 at the start",
                help="Call `scaler.unscale_(optimizer)` before",
                elsewhere=tuple((step, "called from here") for step in seen.what.calls[-1:]),
            )

    def __init__(self) -> None:
        self.spelled: dict[Key, str] = {}
        """The path by which a scaler's `scale` was called."""
        self.off: set[Key] = set()
        """Scalers that are made with `enabled=False`, and scale by 1."""
        self.unscalers: set[str] | None = None
        """Functions of the file that unscale, or get the scale."""
        self.otherwise: dict[tuple[ast.AST, str, Phase], bool] = {}
        """By function, scaler and phase: may the gradients be unscaled in another way?"""
        self.clipped: set[tuple[int, Key]] = set()
        """Functions in which one clip has its fix: behind it the gradients are unscaled."""
        self.suspected: list[tuple[Finding, ast.Call | None]] = []
        """With the scaler's step that follows, where it is one."""
        self.classes: dict[Key, str] = {}
        """Optimizers, and their classes."""
        self.stepped: dict[ast.Call, Key] = {}
        """Calls of a scaler's step, and the optimizers that they are given."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        if isinstance(call.result, Optimizer):
            self.classes[call.result.key] = call.target.rpartition(".")[2]
        stepped = call.argument(0, "optimizer") if call.method == "step" else None
        if isinstance(stepped, Optimizer):
            self.stepped[call.node] = stepped.key
        if isinstance(call.receiver, GradScaler) and call.receiver.enabled is False:
            self.off.add(call.receiver.key)
        scaled = call.result.scaled if call.method == "scale" and isinstance(call.result, Unknown) else None
        if scaled is not None and isinstance(call.node.func, ast.Attribute):
            self.spelled[scaled] = path_of(call.node.func.value) or ""
        if call.target in _CLIPS and not _only_measures(call):
            self._clip(call)
        elif call.method == "register_hook" or call.target in _HOOKING:
            return self._hook(call)
        return ()

    def _hook(self, call: Call) -> Iterator[Finding]:
        hook = call.node.args[0] if call.node.args else None
        cuts = call.target in _HOOKING or (isinstance(hook, ast.Lambda) and _cuts(hook))
        function = call.flow.function
        within = function.owner.node if function is not None and function.owner is not None else call.flow.scope
        if cuts and _scales(within):
            yield Finding(
                call.node,
                "The hook clips gradients that are still scaled, by 65536 at first",
                help="Clip between `scaler.unscale_(optimizer)` and `scaler.step(optimizer)`",
            )

    def on_end(self, end: End) -> Iterator[Finding]:
        if end.flow.function is not None:
            return
        for finding, step in self.suspected:
            made = self.classes.get(self.stepped.get(step, "")) if step is not None else None
            if made in _STEPS:
                finding.message += f"; {_STEPS[made].format(made)}"
            yield finding

    def _clip(self, call: Call) -> None:
        scope = call.flow.scope
        for key, phase in call.flow.state.scalers.items():
            scaler = self.spelled.get(key)
            if not scaler or key in self.off or phase not in (Phase.SCALED, Phase.PERHAPS_SCALED):
                continue
            if not _is_scaler(scope, scaler) or self._unscaled_otherwise(call, scaler, phase):
                continue
            first = (id(scope), key) not in self.clipped
            self.clipped.add((id(scope), key))
            steps = _steps(scope, scaler)
            finding = Finding(
                call.node,
                f"Gradients are clipped while scaled, by 65536 at first: {_CLIPS[call.target]}",
                help=f"Call `{scaler}.unscale_({steps[0][1] if len(steps) == 1 else 'optimizer'})` before",
                fix=partial(_fix, call, scaler, steps, scope) if first else None,
            )
            self.suspected.append((finding, steps[0][0] if len(steps) == 1 else None))
            return
        if all(phase is Phase.IDLE for phase in call.flow.state.scalers.values()):
            self._clip_for_step(call)

    def _clip_for_step(self, call: Call) -> None:
        """A clip ahead of `scaler.step(optimizer)`, in a function that is called when the loss has been scaled and gone
        backward in another one, of a file that never unscales."""
        scope = call.flow.scope
        if call.flow.function is None or self.off or mentions(call.flow.conditions, _SWITCHES):
            return
        scaler, step, optimizer = next(
            (found for found in _stepped_by_scaler(scope) if found[1].lineno > call.node.lineno), ("", None, "")
        )
        if step is None or not _scales_elsewhere(call.flow.tree, scope):
            return
        self.suspected.append(
            (
                Finding(
                    call.node,
                    f"Gradients are clipped while scaled by `{scaler}`: {_CLIPS[call.target]}",
                    help=f"Call `{scaler}.unscale_({optimizer or 'optimizer'})` before",
                    notes=((step, "unscaled here"),),
                ),
                step,
            )
        )

    def _unscaled_otherwise(self, call: Call, scaler: str, phase: Phase) -> bool:
        """May the gradients be unscaled by hand, by another function, or on the path that has been taken?"""
        key = (call.flow.scope, scaler, phase)
        if key not in self.otherwise:
            if self.unscalers is None:
                self.unscalers = set(_unscalers(call.flow.tree))
            self.otherwise[key] = self._unscaled_in(*key, self.unscalers)
        return self.otherwise[key]

    def _unscaled_in(self, scope: ast.AST, scaler: str, phase: Phase, unscalers: set[str]) -> bool:
        for node in ast.walk(scope):
            if isinstance(node, ast.Attribute) and path_of(node.value) == scaler:
                if node.attr not in _CYCLE and (node.attr != "unscale_" or phase is Phase.PERHAPS_SCALED):
                    return True
            elif isinstance(node, (ast.Attribute, ast.Name)):
                name = last_name(node)
                if "unscale" in name or name in _SCALES or (name in unscalers and not _is_name_of(scope, name)):
                    return True
            elif isinstance(node, ast.Call) and any(path_of(part) == scaler for part in given(node)):
                return True
        return False


def _cuts(hook: ast.Lambda) -> bool:
    """Does a hook cut its gradient to limits that know nothing of a scale?"""
    names = set(names_in(hook.body))
    return not names.isdisjoint(_CUTS) and not any("scale" in name for name in names)


@kept
def _scales(scope: ast.AST) -> bool:
    """Does a class or a function train with a GradScaler: `self._scaler.scale(loss)`, `scaler.step(optimizer)`?"""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("scale", "step") and "scaler" in last_name(node.value).lower()
        for node in ast.walk(scope)
    )


def _only_measures(call: Call) -> bool:
    """Is the limit infinite, so that nothing is clipped and the norm alone is wanted?"""
    if call.constant(1, "max_norm") == math.inf:
        return True
    limit = call.argument_node(1, "max_norm")
    if isinstance(limit, ast.Call) and path_of(limit.func) == "float" and len(limit.args) == 1:
        (text,) = limit.args
        return isinstance(text, ast.Constant) and str(text.value).lower().lstrip("+") in ("inf", "infinity")
    return limit is not None and last_name(limit) == "inf"


@kept
def _is_scaler(scope: ast.AST, path: str) -> bool:
    """Is what has a method `scale` a GradScaler: by its name, or by the methods that are called of it?"""
    return "scaler" in path.lower() or any(
        isinstance(node, ast.Attribute) and node.attr in _SCALER_METHODS and path_of(node.value) == path
        for node in ast.walk(scope)
    )


def _is_name_of(scope: ast.AST, name: str) -> bool:
    return getattr(scope, "name", None) == name


def _unscalers(tree: ast.Module) -> Iterator[str]:
    """The functions of a module that unscale gradients, or ask for the scale."""
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
            isinstance(node, ast.Attribute) and node.attr in ("unscale_", "get_scale") for node in ast.walk(function)
        ):
            yield function.name


@kept
def _stepped_by_scaler(scope: ast.AST) -> tuple[tuple[str, ast.Call, str], ...]:
    """The calls of `scaler.step(optimizer)` of what is called a scaler, and the paths of both."""
    return tuple(
        (path_of(node.func.value) or "", node, path_of(node.args[0]) or "")
        for node in ast.walk(scope)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "step"
        and node.args
        and "scaler" in last_name(node.func.value).lower()
    )


def _scales_elsewhere(tree: ast.Module, scope: ast.AST) -> bool:
    """Does a file scale a loss with a scaler outside of a function, and nowhere unscale or ask for the scale?"""
    if "unscale" in words(tree) or not names(tree).isdisjoint(_SCALES):
        return False
    inside = {id(node) for node in ast.walk(scope) if isinstance(node, ast.Attribute)}
    scaled = [
        node
        for node in nodes([tree])
        if isinstance(node, ast.Attribute) and node.attr == "scale" and "scaler" in last_name(node.value).lower()
    ]
    return bool(scaled) and all(id(node) not in inside for node in scaled)


@kept
def _steps(scope: ast.AST, scaler: str) -> list[tuple[ast.Call, str]]:
    """The calls of `scaler.step(optimizer)` in a function, and their optimizers, where those are names."""
    steps = []
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and path_of(node.func) == f"{scaler}.step":
            steps.append((node, path_of(node.args[0]) or "" if node.args else ""))
    return steps


def _fix(call: Call, scaler: str, steps: list[tuple[ast.Call, str]], scope: ast.AST, place: Place) -> Fix | None:
    if len(steps) != 1 or not steps[0][1] or steps[0][0].lineno <= call.node.lineno:
        return None
    step, optimizer = steps[0]
    clip = _statement_of(call.node, scope, step)
    behind = [each for each in facts(scope).calls if call.node.lineno < each.lineno < step.lineno]
    if clip is None or any(path_of(each.func) == f"{scaler}.unscale_" for each in behind):
        return None  # the one behind the clip would be the second of its cycle, and raise
    line = place.insert_line(clip, f"{scaler}.unscale_({optimizer})")
    return Fix(f"Call `{scaler}.unscale_({optimizer})` before the clip", (line,), Applicability.UNSAFE)


def _statement_of(clip: ast.Call, scope: ast.AST, step: ast.Call) -> ast.stmt | None:
    """The statement that clips, if it stands in the block of the step, or there in the branch of an `if`."""
    for block in chain.from_iterable(map(blocks, (scope, *statements(scope)))):
        if any(_calls(statement, step) for statement in block):
            return next((found for statement in block for found in _found(statement, clip)), None)
    return None


def _calls(statement: ast.stmt, call: ast.Call) -> bool:
    return isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign)) and statement.value is call


def _found(statement: ast.stmt, call: ast.Call) -> Iterator[ast.stmt]:
    if _calls(statement, call):
        yield statement
    elif isinstance(statement, ast.If):
        for inner in (*statement.body, *statement.orelse):
            yield from _found(inner, call)
