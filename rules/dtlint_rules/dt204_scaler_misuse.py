"""DT204: a GradScaler's scale, backward, unscale_, step and update are called in an order that cannot be right."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.around import parents
from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import Constant, GradScaler, Module, Optimizer, Tensor, Unknown
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._calls import calls_of
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._names import last_name, words
from dtlint_rules._parts import given, subject_of
from dtlint_rules._realms import binds, helpers, realm_of
from dtlint_rules._scaled_numbers import told_scaled
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from dtlint.infer.events import Call, Discard, End, Flow
    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.values import Key

__all__ = ["ScalerMisuse"]

_METHODS = frozenset({"scale", "unscale_", "step", "update", "zero_grad", "backward"})


@dataclass(slots=True, eq=False)
class _Done:
    """One call of the cycle, and when it is reached."""

    what: str
    """`scale`, `unscale_`, `step` or `update` of a scaler, `plain step` or `zero_grad` of an optimizer, `backward`."""
    scaler: str
    optimizer: str
    node: ast.Call
    conditions: frozenset[tuple[int, bool]]
    loops: tuple[ast.AST, ...]
    made: Key = ""
    """Of a call of a scaler, where it was made; "" where that is not known."""

    def leads_to(self, later: _Done) -> bool:
        """Has this surely been done, in the same iteration, whenever `later` is?"""
        return self.conditions <= later.conditions and self.loops == later.loops[: len(self.loops)]


_WRONG_STEPS = {
    "unscale twice": (
        "`unscale_` is called twice for one optimizer since the last `update`: it raises RuntimeError",
        "Unscale once, before the first use of the gradients",
    ),
    "unscale after step": (
        "`unscale_` is called after `step`, without an `update` between: it raises RuntimeError",
        "Call `scaler.update()` after the step, in each iteration",
    ),
    "step twice": (
        "`step` is called twice for one optimizer since the last `update`: it raises RuntimeError",
        "Call `scaler.update()` after the step, in each iteration",
    ),
    "update without step": (
        "`update` is called though no optimizer was stepped since the last one: it raises AssertionError",
        "Call `scaler.update()` only where `scaler.step(optimizer)` was called",
    ),
    "step of plain gradients": (
        "`step` unscales gradients of a loss that was never scaled",
        "Call `scaler.scale(loss).backward()`",
    ),
    "plain step of scaled gradients": (
        "The optimizer steps with gradients that are multiplied by the scale, 65536 at the start",
        "Call `scaler.step(optimizer)`, then `scaler.update()`",
    ),
}
"""Steps of the protocol that are certainly wrong: what happens, and what to do."""


class ScalerMisuse(Rule):
    """The methods of a GradScaler are called in an order that raises, or that trains on scaled gradients.

    ## What it does
    Follows what each function does with a GradScaler and reports where its cycle is broken on every path through the
    place: `unscale_` or `step` twice for one optimizer without an `update` between, `unscale_` after `step`, `update`
    before `step`, gradients that are set to zero before they are used, the optimizer stepped by itself beside or
    instead of `scaler.step`, `step` without `scale`, `step` of a scaler that nobody updates, or only gives a new scale
    now and then, a scaled loss that nobody uses, `scaler.scale(loss)` ahead of `loss.backward()`, and a scaler that is
    made anew in each iteration. As a warning, it reports a scaled loss that is told as the loss,
    `losses.append(scaler.scale(loss).item())`, unless the code computes with it, or speaks of a scaled one.

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
    triggers = ("*Scaler*", "*scaler*")
    calls = _METHODS | {"item"}

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in facts.events(*_WRONG_STEPS):
            message, advice = _WRONG_STEPS[seen.what.kind]
            yield Finding(
                seen.node,
                message,
                help=advice,
                elsewhere=tuple((step, "called from here") for step in seen.what.calls[-1:]),
            )

    def __init__(self) -> None:
        self.done: dict[ast.AST, list[_Done]] = {}
        """By function, in the order of execution."""
        self.enabled: dict[tuple[ast.AST, str], bool | None] = {}
        """By function and path, the scalers that this file makes, and whether they are on; None where the program decides."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.method == "item":
            return told_scaled(call)
        done = self._done(call)
        if done is not None:
            self.done.setdefault(call.flow.scope, []).append(done)
        return ()

    def on_discard(self, discard: Discard) -> Iterator[Finding]:
        call = discard.call
        if call.method != "scale" or not isinstance(call.node.func, ast.Attribute):
            return
        owner = last_name(call.node.func.value).lower()
        if isinstance(call.receiver, GradScaler):
            certain = call.receiver.enabled is not False
        else:
            certain = _is_unknown(call.receiver) and "scaler" in owner and "gradscaler" in words(call.flow.tree)
        backward = _unscaled_backward(call, discard.flow) if certain else None
        if backward is not None:
            loss, scaler = ast.unparse(call.node.args[0]), ast.unparse(call.node.func.value)
            yield Finding(
                call.node,
                f"The result of `{scaler}.scale({loss})` is discarded: the loss goes backward unscaled",
                help=f"Call `{scaler}.scale({loss}).backward()`",
                notes=((backward, "backward of the unscaled loss"),),
            )

    def on_end(self, end: End) -> Iterator[Finding]:
        flow = end.flow
        if flow.function is not None or not any(done.scaler for each in self.done.values() for done in each):
            return
        for scope, sequence in self.done.items():
            scalers = {done.scaler for done in sequence if done.scaler and not self._is_off(done.scaler, scope)}
            for scaler in sorted(scalers):
                own = [done for done in sequence if done.scaler == scaler]
                yield from _twice(own)
                yield from _update_first(own)
                yield from _unscaled_each_time(own)
                if not _unscales_by_hand(scope):
                    yield from _beside(scaler, sequence)
                yield from self._unscaled_loss(scaler, sequence, flow.tree, scope)
                yield from self._never_updated(scaler, own, flow.tree, scope)
                yield from self._unscaled_for_plain_step(scaler, sequence, flow.tree, scope)
                yield from _made_anew(scaler, own, scope)

    def _done(self, call: Call) -> _Done | None:
        node, receiver, method = call.node, call.receiver, call.method
        if not isinstance(node.func, ast.Attribute):
            return None
        path, owner = path_of(node.func.value) or "", last_name(node.func.value).lower()
        what, scaler, optimizer = method, "", ""
        if method == "backward":
            scaled = receiver.scaled if isinstance(receiver, (Tensor, Unknown)) else None
            what = "scaled backward" if scaled is not None else "backward"
        elif isinstance(receiver, GradScaler) or (_is_unknown(receiver) and "scaler" in owner):
            if not path or method == "zero_grad":
                return None
            scaler = path
            if isinstance(receiver, GradScaler):
                self.enabled[call.flow.scope, path] = receiver.enabled
            if method in ("step", "unscale_"):
                optimizer = path_of(node.args[0]) or "" if node.args else ""
        elif isinstance(receiver, Optimizer) or (
            _is_unknown(receiver) and ("optim" in owner or "opt" in owner.split("_"))
        ):
            if method not in ("step", "zero_grad"):
                return None
            what, optimizer = ("plain step" if method == "step" else method), path
        else:
            return None
        flow = call.flow
        conditions = frozenset((id(part.test), part.holds) for part in flow.conditions)
        made = receiver.key if isinstance(receiver, GradScaler) else ""
        return _Done(what, scaler, optimizer, node, conditions, tuple(loop.node for loop in flow.loops), made)

    def _is_off(self, scaler: str, scope: ast.AST) -> bool:
        """Is a scaler made with `enabled=False`, here or where this function may have it from?"""
        if (scope, scaler) in self.enabled:
            return self.enabled[scope, scaler] is False
        return any(path == scaler and enabled is False for (_, path), enabled in self.enabled.items())

    def _never_updated(self, scaler: str, own: list[_Done], tree: ast.Module, scope: ast.AST) -> Iterator[Finding]:
        steps = [done for done in own if done.what == "step" and done.loops]
        if not steps:
            return
        handed = (scope, scaler) not in self.enabled
        if handed and not _is_handed(scaler, scope, tree):
            return
        realm = tree if handed else realm_of(scaler, scope, tree)
        set_now_and_then = _scales_set(own, steps[0])
        away = _leaves_file(scaler, tree) if handed else _given_away(realm, scaler, tree)
        if not away and not _has_method(realm, scaler, "update", besides=set_now_and_then):
            yield Finding(
                steps[0].node,
                f"`{scaler}.update()` is never called: the second `step` raises RuntimeError",
                help=f"Call `{scaler}.update()` after the step, once per iteration",
            )

    def _unscaled_for_plain_step(
        self, scaler: str, sequence: list[_Done], tree: ast.Module, scope: ast.AST
    ) -> Iterator[Finding]:
        """`scaler.unscale_(optimizer)` and then `optimizer.step()`, of a scaler that never steps or updates."""
        pairs = [
            (unscale, step)
            for index, unscale in enumerate(sequence)
            if unscale.what == "unscale_" and unscale.scaler == scaler and unscale.loops and unscale.optimizer
            for step in sequence[index + 1 :]
            if step.what == "plain step" and step.optimizer == unscale.optimizer and unscale.leads_to(step)
        ]
        if (scope, scaler) not in self.enabled or not pairs:
            return
        realm = realm_of(scaler, scope, tree)
        if any(_has_method(realm, scaler, method) for method in ("update", "step")) or _given_away(realm, scaler, tree):
            return
        unscale, step = pairs[-1]
        yield Finding(
            step.node,
            f"`{scaler}.update()` is never called: the second `unscale_` raises RuntimeError",
            help=f"Call `{scaler}.step({step.optimizer})` instead, and then `{scaler}.update()`",
            notes=((unscale.node, "the gradients are unscaled here"),),
        )

    def _unscaled_loss(self, scaler: str, sequence: list[_Done], tree: ast.Module, scope: ast.AST) -> Iterator[Finding]:
        for index, step in enumerate(sequence):
            if step.what != "step" or step.scaler != scaler:
                continue
            backwards = [
                done for done in sequence[:index] if "backward" in done.what and done.loops[:1] == step.loops[:1]
            ]
            if not backwards or any(done.what == "scaled backward" for done in backwards):
                continue
            if not backwards[-1].leads_to(step):
                continue
            alone = not _has_method(tree, scaler, "scale") and not _given_away(tree, scaler, tree)
            if alone or self._is_alone(scaler, step, backwards[-1], tree, scope):
                raises = alone or ((scope, scaler) in self.enabled and not _has_method(scope, scaler, "scale"))
                perhaps = "" if raises else ", or unscales them"
                yield Finding(
                    step.node,
                    f"The loss goes backward without `{scaler}.scale`: `step` raises AssertionError{perhaps}",
                    help=f"Call `{scaler}.scale(loss).backward()`",
                    notes=((backwards[-1].node, "backward of the unscaled loss"),),
                )
                return

    def _is_alone(self, scaler: str, step: _Done, backward: _Done, tree: ast.Module, scope: ast.AST) -> bool:
        """Is nothing scaled in the loop of that step, though the file scales elsewhere: by another loop, another scaler?"""
        realm, here = realm_of(scaler, scope, tree), step.loops[0] if step.loops else scope
        if "." in scaler and (realm is tree or _has_method(realm, scaler, "scale")):
            return False
        if _given_away(realm, scaler, tree) or backward.node.args:
            return False
        if (scope, scaler) in self.enabled:
            on = self.enabled[scope, scaler] is True
        else:
            on = not any(_may_be_off(node) for node in nodes([tree]))
        loss = subject_of(backward.node)
        if not on or not isinstance(loss, ast.Name) or not binds(scope, loss.id):
            return False
        if any(parameter.arg == loss.id for parameter in parameters(scope)):
            return False
        code = own_nodes(scope) if here is tree else tuple(nodes([here]))
        return not any(_is_scale(node) for node in (*code, *nodes(helpers(code, tree))))


def _is_unknown(value: object) -> bool:
    return type(value) is Unknown or not isinstance(value, (Tensor, Module, Constant, Optimizer, GradScaler))


def _between(sequence: list[_Done], first: _Done, second: _Done) -> list[_Done]:
    return sequence[sequence.index(first) + 1 : sequence.index(second)]


_TWICE = {
    ("unscale_", "unscale_"): "`unscale_` is called twice for `{}` before `update`: the second raises RuntimeError",
    ("step", "unscale_"): "`unscale_` is called after `step` for `{}`: this raises RuntimeError",
    ("step", "step"): "`step` is called twice for `{}` before `update`: the second raises RuntimeError",
}


def _twice(own: list[_Done]) -> Iterator[Finding]:
    for index, later in enumerate(own):
        if later.what not in ("unscale_", "step") or not later.optimizer:
            continue
        for earlier in reversed(own[:index]):
            if earlier.what == "update":
                break
            message = _TWICE.get((earlier.what, later.what)) if earlier.optimizer == later.optimizer else None
            if message is not None and earlier.leads_to(later):
                note = (earlier.node, f"`{earlier.what}` is called here")
                yield Finding(
                    later.node,
                    message.format(later.optimizer),
                    help="Call scale, backward, unscale_, step and update once each, in this order",
                    notes=(note,),
                )
                break


def _update_first(own: list[_Done]) -> Iterator[Finding]:
    for index, step in enumerate(own):
        if step.what != "step" or any(done.what == "update" for done in own[index + 1 :]):
            continue
        for done in reversed(own[:index]):
            if done.what == "scale":
                break
            if done.what == "update" and done.leads_to(step) and done.loops == step.loops:
                if any(each.what == "unscale_" for each in own[:index]) or _scaled_anew(own, done, step):
                    break
                yield Finding(
                    done.node,
                    "`update` is called before `step`: this raises AssertionError",
                    help=f"Call `{done.scaler}.update()` after `{done.scaler}.step`",
                    notes=((step.node, "the step"),),
                )
                break


def _scaled_anew(own: list[_Done], update: _Done, step: _Done) -> bool:
    """Does the update end the cycle before: is nothing scaled ahead of it?"""
    before = own[: own.index(update)]
    return not any(done.what == "scale" and done.loops == step.loops for done in before)


def _unscaled_each_time(own: list[_Done]) -> Iterator[Finding]:
    """Gradients that are unscaled in every iteration, and stepped and updated in every n-th."""
    for unscale in own:
        if unscale.what != "unscale_" or not unscale.loops:
            continue
        ends = [
            done
            for done in own
            if done.what in ("step", "update") and done.loops[: len(unscale.loops)] == unscale.loops
        ]
        if len(ends) != 2 or {done.what for done in ends} != {"step", "update"}:
            continue
        if all(unscale.conditions < done.conditions and done.loops == unscale.loops for done in ends) and _counts(
            ends[0], unscale
        ):
            yield Finding(
                unscale.node,
                "`unscale_` runs in every iteration, `update` in some: the second `unscale_` raises RuntimeError",
                help="Unscale and clip where the step is taken",
                notes=((ends[-1].node, "the cycle ends here"),),
            )


def _counts(end: _Done, unscale: _Done) -> bool:
    """Is the step taken every so many iterations, by a test with a remainder?"""
    more = {test for test, _ in end.conditions - unscale.conditions}
    return any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)
        for loop in unscale.loops
        for branch in ast.walk(loop)
        if isinstance(branch, ast.If) and id(branch.test) in more
        for node in ast.walk(branch.test)
    )


def _beside(scaler: str, sequence: list[_Done]) -> Iterator[Finding]:
    """The optimizer's own step after a scaled backward, and zero_grad between that and the step."""
    if not any(each.scaler == scaler and each.what == "scale" for each in sequence):
        return
    for index, done in enumerate(sequence):
        if done.what not in ("plain step", "zero_grad") or not done.optimizer:
            continue
        backward = _reaching(sequence[:index], done)
        if backward is None:
            continue
        steps = [
            each
            for each in sequence
            if each.what == "step" and each.scaler == scaler and each.optimizer == done.optimizer
        ]
        if done.what == "zero_grad":
            yield from _zeroed(scaler, sequence, backward, done, steps)
        else:
            yield from _stepped_alone(scaler, sequence, backward, done, steps)


def _zeroed(scaler: str, sequence: list[_Done], backward: _Done, done: _Done, steps: list[_Done]) -> Iterator[Finding]:
    step = next((each for each in sequence[sequence.index(done) :] if each in steps and done.leads_to(each)), None)
    if step is None or any("backward" in each.what for each in _between(sequence, done, step)):
        return
    if not any(each in steps for each in _between(sequence, backward, done)):
        yield Finding(
            done.node,
            f"The gradients of `{done.optimizer}` are zeroed before `{scaler}.step` uses them",
            help="Call `zero_grad` before backward, or after the step",
            notes=((step.node, "the step"),),
        )


def _stepped_alone(
    scaler: str, sequence: list[_Done], backward: _Done, done: _Done, steps: list[_Done]
) -> Iterator[Finding]:
    before = sequence[: sequence.index(done)]
    stepped = next((each for each in reversed(before) if each in steps and each.leads_to(done)), None)
    if stepped is not None and not any("backward" in each.what for each in _between(sequence, stepped, done)):
        yield Finding(
            done.node,
            f"`{scaler}.step` has already stepped `{done.optimizer}`: this steps again, even if gradients are inf",
            help=f"Remove `{done.optimizer}.step()`",
            notes=((stepped.node, "the scaler steps here"),),
        )
    elif not steps and not any(each.what == "unscale_" for each in sequence):
        yield Finding(
            done.node,
            f"`{done.optimizer}.step()` uses gradients that are still scaled, by 65536 at first",
            help=f"Call `{scaler}.step({done.optimizer})`, then `{scaler}.update()`",
            notes=((backward.node, "scaled here"),),
        )


def _reaching(before: list[_Done], done: _Done) -> _Done | None:
    """The scaled backward that has surely been run before, none other since."""
    for each in reversed(before):
        if each.what == "scaled backward" and each.leads_to(done) and each.loops == done.loops:
            return each
        if "backward" in each.what:
            return None
    return None


def _may_be_off(node: ast.AST) -> bool:
    """Is a scaler made that may be off? Without one, `step` is the optimizer's own."""
    return (
        isinstance(node, ast.Call)
        and last_name(node).endswith("Scaler")
        and any(
            keyword.arg in ("enabled", None)
            and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is True)
            for keyword in node.keywords
        )
    )


def _unscales_by_hand(scope: ast.AST) -> bool:
    """Does a function ask for the scale, to divide the gradients by it itself?"""
    return any(isinstance(node, ast.Attribute) and node.attr in ("get_scale", "_scale") for node in own_nodes(scope))


def _is_scale(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("scale", "scale_loss")


def _unscaled_backward(call: Call, flow: Flow) -> ast.Call | None:
    """The backward of the very loss whose scaled value is thrown away, behind it and before the loss is bound anew."""
    loss = path_of(call.node.args[0]) if call.node.args else None
    if loss is None:
        return None
    behind = sorted(
        (
            node
            for node in own_nodes(flow.scope)
            if isinstance(node, (ast.Name, ast.Attribute)) and path_of(node) == loss and node.lineno > call.node.lineno
        ),
        key=lambda node: (node.lineno, node.col_offset),
    )
    known = parents(flow.tree)
    for node in behind:
        method = known.get(node)
        called = known.get(method) if method is not None else None
        if isinstance(node.ctx, ast.Store):
            return None
        if isinstance(method, ast.Attribute) and method.attr == "backward" and isinstance(called, ast.Call):
            return called
    return None


def _made_anew(scaler: str, own: list[_Done], scope: ast.AST) -> Iterator[Finding]:
    """A scaler that is made in the loop that steps an optimizer from outside of it."""
    steps = [done for done in own if done.what == "step" and done.made and done.optimizer]
    if not steps or "." in scaler:
        return
    for loop in statements(scope):
        if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)) or _ends(loop):
            continue
        for made in loop.body:
            if not isinstance(made, ast.Assign) or f"@{made.value.lineno}:{made.value.col_offset}" != steps[0].made:
                continue
            if _names(made.targets) == [scaler] and any(_is_of(loop, step) for step in steps):
                yield Finding(
                    made.value,
                    f"`{scaler}` is made in every iteration: its scale never adapts",
                    help="Make the scaler once, before the loop",
                    notes=((steps[0].node, "the step"),),
                )


def _is_of(loop: ast.For | ast.AsyncFor | ast.While, step: _Done) -> bool:
    """Is a step taken once in an iteration of that loop, of an optimizer that is not made in it?"""
    inner = [node for node in statements(loop) if isinstance(node, (ast.For, ast.AsyncFor, ast.While))]
    if any(node is step.node for each in inner for node in ast.walk(each)):
        return False
    optimizer = step.optimizer.partition(".")[0]
    return any(node is step.node for node in ast.walk(loop)) and not binds(loop, optimizer)


def _ends(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Does a loop surely end in its first iteration?"""
    return any(isinstance(statement, (ast.Break, ast.Return, ast.Raise)) for statement in loop.body)


def _names(targets: list[ast.expr]) -> list[str]:
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _scales_set(own: list[_Done], step: _Done) -> set[ast.expr]:
    """What is called by `scaler.update(scale * 2)` under a test: a new scale now and then, and no end of the cycle. On both
    sides of a test it ends it."""
    updates = [done for done in own if done.what == "update" and done.node.args]
    under = [done for done in updates if not done.conditions <= step.conditions]
    tests = {part for done in under for part in done.conditions}
    if any((test, not holds) in tests for test, holds in tests):
        return set()
    return {done.node.func for done in under}


def _is_handed(scaler: str, scope: ast.AST, tree: ast.Module) -> bool:
    """Is the scaler a parameter of a function that this file calls, with a GradScaler that it makes?"""
    if not isinstance(scope, ast.FunctionDef) or all(part.arg != scaler for part in parameters(scope)):
        return False
    if not calls_of("GradScaler", tree):
        return False
    own = facts(scope).calls
    return any(
        isinstance(node.func, ast.Name) and node not in own and any(last_name(value) == scaler for value in given(node))
        for node in calls_of(scope.name, tree)
    )


def _leaves_file(scaler: str, tree: ast.Module) -> bool:
    """Is what the file calls so handed to anything but its own functions, which call it the same, and a checkpoint?"""
    known, defined = parents(tree), {node.name: node for node in nodes([tree]) if isinstance(node, ast.FunctionDef)}
    for node in nodes([tree]):
        if not isinstance(node, ast.Name) or node.id != scaler or not isinstance(node.ctx, ast.Load):
            continue
        parent = known.get(node)
        if isinstance(parent, ast.keyword):
            parent = known.get(parent)
        if isinstance(parent, (ast.Attribute, ast.Compare, ast.If, ast.IfExp, ast.BoolOp, ast.UnaryOp)):
            continue
        called = last_name(parent) if isinstance(parent, ast.Call) and node is not parent.func else ""
        function = defined.get(called)
        if function is not None and any(part.arg == scaler for part in parameters(function)):
            continue
        if not called.startswith(("save_", "load_")):
            return True
    return False


def _has_method(realm: ast.AST, scaler: str, method: str, besides: Container[ast.AST] = ()) -> bool:
    name = scaler.rpartition(".")[2]
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == method
        and last_name(node.value) == name
        and node not in besides
        for node in nodes([realm])
    )


def _given_away(realm: ast.AST, scaler: str, tree: ast.Module) -> bool:
    """Is the scaler handed to something that may do the rest: an argument, a result, an attribute?"""
    name = scaler.rpartition(".")[2]
    known = parents(tree)
    for node in nodes([realm]):
        if not isinstance(node, (ast.Name, ast.Attribute)) or last_name(node) != name:
            continue
        if not isinstance(node.ctx, ast.Load):
            continue
        parent = known.get(node)
        if not isinstance(parent, (ast.Attribute, ast.Compare, ast.If, ast.IfExp, ast.BoolOp, ast.UnaryOp)):
            return True
    return False
