"""DT104: a cast of a tensor whose result nobody keeps."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.infer.layers import AGREEING, LOOKUPS, NORMS
from dtlint.infer.names import path_of
from dtlint.infer.values import Class, External, Tensor, Trait, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._casts import CAST_METHODS
from dtlint_rules._names import last_name
from dtlint_rules._needs import CASTS
from dtlint_rules._parts import bound_to, receiver
from dtlint_rules._tensors import is_reckoned_with
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dtlint.infer.events import Call, Discard, Flow
    from dtlint.source.place import Place

__all__ = ["CastResultDiscarded"]

_EXPECTING = ("raises", "assertRaises", "assertRaisesRegex", "suppress", "warns", "assertWarns")
"""Contexts in which a call is made for what it raises, not for its result: pytest, unittest, contextlib."""
_HELD = frozenset({"weight", "bias", "running_mean", "running_var"})
"""The parameters and buffers that layers of torch.nn have, as their attributes."""
_HOLDING = AGREEING | LOOKUPS | NORMS | {"SyncBatchNorm", "RMSNorm", "PReLU"}
"""The layers that have some of them."""


class CastResultDiscarded(Rule):
    """The result of a tensor's cast is thrown away.

    ## What it does
    Reports a cast of a tensor that is a statement of its own, and a loop variable that is rebound to a cast and not
    used afterwards: `for p in model.parameters(): p = p.half()`. What comes in as an argument is a tensor where the
    function computes with it, `x * y`, `x.shape`; so are the weight and the bias of
    `self`, in a class made of a layer of torch.nn. A module is cast in place, and left alone.

    ## Why it matters
    A tensor's dtype is fixed when it is made: `x.half()` leaves `x` as it is and returns another tensor, which is lost
    here. `nn.Module.half()` is different, it casts the module in place; code moved from modules to tensors goes wrong
    without an error.

    ## Example
    ```python
    import torch

    x = torch.randn(4)
    x.half()
    ```

    ## Use instead
    ```python
    import torch

    x = torch.randn(4)
    x = x.half()
    ```

    ## Fix safety
    The fix assigns the result to the name or attribute that was cast. It is unsafe, for the program now really
    computes in the other dtype. There is none for a name of an outer scope, which the assignment would hide.

    ## References
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    - [torch.nn.Module.to](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to)
    """

    code, name = "DT104", "cast-result-discarded"
    fix = Applicability.UNSAFE
    triggers = CASTS
    calls = CAST_METHODS

    def __init__(self) -> None:
        self.casts: set[ast.Call] = set()
        self.expected: dict[ast.AST, set[ast.AST]] = {}
        """By scope, what stands in blocks that may raise as planned."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        if not isinstance(call.receiver, Tensor):
            if _is_statement(call) and (_is_computed_with(call) or _is_held_by_layer(call)):
                self.casts.add(call.node)
            return ()
        if not call.cast[0]:
            return ()
        self.casts.add(call.node)
        targets = bound_to(call.node, call.flow.statement)
        return self._rebound(call, targets) if targets and call.flow.loops else ()

    def on_discard(self, discard: Discard) -> Iterable[Finding]:
        call = discard.call
        return () if call.node not in self.casts else self._thrown_away(discard, call)

    def _thrown_away(self, discard: Discard, call: Call) -> Iterator[Finding]:
        tensor = call.receiver if isinstance(call.receiver, Tensor) else Tensor()
        if not isinstance(call.node.func, ast.Attribute):
            return
        is_cast, dtypes = call.cast
        if not is_cast or "inplace" in call.keywords or self._made_for_its_effects(discard):
            return
        became = f" to {next(iter(dtypes))}" if dtypes is not None and len(dtypes) == 1 else ""
        subject = path_of(call.node.func.value)
        fix = None
        if subject is not None and _can_be_assigned(subject, tensor, discard.flow):
            fix = _assigning(discard.node, call.node.func.value)
        yield Finding(
            call.node,
            f"The result of the cast{became} is discarded: `{short(call.node.func.value)}` keeps its dtype",
            help="Assign the result: tensors are never cast in place",
            fix=fix,
        )

    def _rebound(self, call: Call, targets: list[ast.expr]) -> Iterator[Finding]:
        """`for p in model.parameters(): p = p.half()`."""
        subject = receiver(call.node)
        for target in targets:
            if isinstance(target, ast.Name) and subject is not None and path_of(subject) == target.id:
                yield from self._lost(call, target)

    def _lost(self, call: Call, target: ast.Name) -> Iterator[Finding]:
        statement = call.flow.statement
        walk = call.flow.walk_over(target.id)
        if walk is None or _used_after(walk.node, target.id, statement):
            return
        model = "model" if walk.subject is None else ast.unparse(walk.subject)
        yield Finding(
            statement,
            f"Rebinding the loop variable `{target.id}` does not cast the {walk.kind} of `{model}`",
            help=f"Cast the module itself, in place: `{model}.to(dtype)`",
        )

    def _made_for_its_effects(self, discard: Discard) -> bool:
        """Is the cast run to see what it raises, or how long it takes?"""
        statement, scope = discard.node, discard.flow.scope
        loop = discard.flow.loops[-1].node if discard.flow.loops else None
        measures = loop is not None and path_of(loop.target) == "_"  # `for _ in range(100): x.half()`
        if loop is not None and measures and all(part is statement or _waits(part) for part in loop.body):
            return True
        if scope not in self.expected:
            self.expected[scope] = {part for block in _expecting(scope) for outer in block for part in ast.walk(outer)}
        return statement in self.expected[scope]


def _is_statement(call: Call) -> bool:
    return isinstance(call.flow.statement, ast.Expr) and call.flow.statement.value is call.node


def _is_computed_with(call: Call) -> bool:
    """Is what is cast no module, by what the function does with its name? Arrays have no such method."""
    subject = receiver(call.node)
    return (
        isinstance(subject, ast.Name)
        and isinstance(call.receiver, Unknown)
        and call.cast[0]
        and is_reckoned_with(subject.id, call.node.lineno, call.flow.scope)
    )


def _is_held_by_layer(call: Call) -> bool:
    """Is what is cast the weight of a layer by its name, `self.weight`, `self.bias.data`, in a class that is made of a layer
    of torch.nn, and of nothing that may bind the name otherwise?"""
    subject = receiver(call.node)
    if isinstance(subject, ast.Attribute) and subject.attr == "data":
        subject = subject.value
    if not isinstance(subject, ast.Attribute) or subject.attr not in _HELD or path_of(subject.value) != "self":
        return False
    owner = None if call.flow.function is None else call.flow.function.owner
    if owner is None or not isinstance(call.receiver, Unknown) or not call.cast[0]:
        return False
    if subject.attr in owner.assigned_in or owner.method(subject.attr) is not None:
        return False
    if any(subject.attr in info.body for info in owner.lineage):
        return False
    bases = [base for info in owner.lineage for base in info.bases if not isinstance(base, Class)]
    names = [base.name if isinstance(base, External) else "" for base in bases]
    return bool(names) and all(name.startswith("torch.nn.") and name.rpartition(".")[2] in _HOLDING for name in names)


def _assigning(statement: ast.Expr, subject: ast.expr) -> Callable[[Place], Fix | None]:
    def fix(place: Place) -> Fix | None:
        if not place.can_assign(subject):
            return None
        edits = (place.insert_before(statement, f"{path_of(subject)} = "),)
        return Fix(f"Assign the result: `{path_of(subject)} = {ast.unparse(statement)}`", edits, Applicability.UNSAFE)

    return fix


def _can_be_assigned(subject: str, tensor: Tensor, flow: Flow) -> bool:
    """Would binding the name help? Not of a loop's variable, and a module refuses a tensor for its parameter."""
    if subject.rpartition(".")[2] in _HELD:
        return False
    looped = {node.id for loop in flow.loops for node in ast.walk(loop.node.target) if isinstance(node, ast.Name)}
    return subject.partition(".")[0] not in looped and Trait.PARAMETER not in tensor.traits


def _waits(statement: ast.stmt) -> bool:
    """Is it `torch.cuda.synchronize()`, without which a measurement ends before the kernels do?"""
    return isinstance(statement, ast.Expr) and last_name(statement.value) == "synchronize"


def _expecting(scope: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks in which something may be raised as planned."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Try):
            expecting = bool(node.handlers)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            expecting = any(last_name(item.context_expr) in _EXPECTING for item in node.items)
        else:
            continue
        if expecting:
            yield node.body


def _used_after(loop: ast.For | ast.AsyncFor, name: str, statement: ast.stmt) -> bool:
    """Does the loop's body read the name behind a statement?"""
    end = statement.end_lineno or statement.lineno
    return any(
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
        and (node.lineno, node.col_offset) > (end, statement.end_col_offset or 0)
        for part in loop.body
        for node in ast.walk(part)
    )
