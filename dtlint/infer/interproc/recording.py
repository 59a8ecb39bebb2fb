"""Records for rules what a reading shows: operators and calls with their operands, operations, events."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dtlint.infer.context import Recorder, region_in_view
from dtlint.infer.domain.lattice import join, join_all
from dtlint.infer.domain.values import (
    TOP,
    Bound,
    External,
    Function,
    Many,
    Partial,
    ProjectClass,
    Ref,
    Tensor,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.facts import Call, Evaluation, Event, Facts, Kept, Operation, Step
from dtlint.infer.models.plain_tensors import is_weight, plain
from dtlint.infer.models.protocols import UNKNOWN_CLASS
from dtlint.infer.state import Iteration

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from dtlint.infer.context import Arguments, Context, Frame
    from dtlint.infer.domain.values import CallPath
    from dtlint.infer.interproc.project import ModuleInfo

__all__ = ["Recording"]

_MOST_CONTEXTS = 8
"""Tuples of operands that are kept for one node, beside those of code that anybody may call."""


class Recording(Recorder):
    """A recorder for rules. See `context.Recorder`.

    Args:
        context: what reads. It is told of this recorder by whoever makes both.
        expected: the files that are going to be judged: what their bodies show is kept when they are run, which may be for
            another's import.
        whole: is the project judged as one? Then operations of all modules are kept together, and nothing else.
    """

    def __init__(self, context: Context, expected: Collection[Path] = (), *, whole: bool = False) -> None:
        self._context, self._expected, self._whole = context, expected, whole
        self.kept = Kept()
        self._module: ModuleInfo | None = None
        self._of: dict[str, Kept] = {}
        self._around: list[tuple[Kept, ModuleInfo | None]] = []
        self._count: dict[object, int] = {}
        self._refused: list[tuple[Kept, object]] = []
        self.told: Facts | None = None
        """Who is told what expressions of the module are, for people to be shown; None: nobody."""
        self.told_all = True
        """Is that what they are in calls, too? Else where anybody may call alone."""

    def judging(self, module: ModuleInfo) -> Kept:
        """From now on what is evaluated is told of this module."""
        self.kept, self._module = self._of.setdefault(module.name, Kept()), module
        return self.kept

    def forget(self, module: ModuleInfo) -> None:
        """Let go of what was kept of a module."""
        self._of.pop(module.name, None)
        self.kept, self._module = Kept(), None
        self._count.clear()
        self._refused.clear()

    def module_begins(self, module: ModuleInfo) -> None:
        """A module's body is going to be run, for whoever asks for something in it."""
        if self._whole:
            return
        self._around.append((self.kept, self._module))
        if module is self._module or module.path in self._expected:
            self.judging(module)
        else:
            self.kept, self._module = Kept(), None

    def module_ends(self) -> None:
        """The body has been run."""
        if not self._whole:
            self.kept, self._module = self._around.pop()

    def concerns(self, module: Any) -> bool:
        """Is what happens in a module recorded for its own sake, and not for that of a call alone?"""
        return self._whole or module is self._module

    def expression(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """An expression was evaluated, not for the first time perhaps."""
        if frame.module is not self._module:
            return
        if self.told is not None and (self.told_all or frame.path is None):
            self.told.expression(node, value, frame)
        values = self.kept.values if frame.path is None else self.kept.inner
        before = values.get(node)
        if before is None:
            values[node] = value
        elif before is not value and before != value:
            values[node] = join(before, value)

    def evaluated(self, node: ast.AST, operands: tuple[Value, ...], result: Value, ctx: Context) -> None:
        """An operator, a subscript or an assignment was evaluated."""
        frame = ctx.frame
        if frame.module is not self._module:
            return
        seen = self.kept.evaluations.get(node)
        if seen is None:
            seen = self.kept.evaluations[node] = []
        operands = tuple(map(self._plain, operands))
        is_open = frame.path is None
        if (not is_open and len(seen) >= _MOST_CONTEXTS) or any(
            one.operands == operands and one.result == result and (not one.calls) is is_open for one in seen
        ):
            return
        seen.append(Evaluation(node, operands, self._plain(result), region_in_view(ctx), _steps(frame)))

    def call(self, node: ast.AST, callee: Value, arguments: Arguments, result: Value | None, frame: Frame) -> None:
        """A call was evaluated."""
        if frame.module is not self._module or not isinstance(node, ast.Call):
            return
        if self.told is not None:
            self.told.call(node, callee, arguments, result, frame)
        region = region_in_view(self._context)
        seen = self.kept.calls.get(node)
        if seen is None:
            seen = self.kept.calls[node] = []
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        given = tuple(map(self._plain, arguments.args))
        keywords = {name: self._plain(value) for name, value in arguments.keywords.items()}
        is_open = frame.path is None
        for one in choices(callee):
            name, receiver, before = _called(one)
            if receiver is None and method and not name:
                owner = node.func.value  # type: ignore[attr-defined]
                receiver = self.kept.values.get(owner) or self.kept.inner.get(owner) or TOP
            receiver = None if receiver is None else self._plain(receiver)
            args = (*before, *given)
            if (not is_open and len(seen) >= _MOST_CONTEXTS) or any(
                (other.name, other.receiver, other.args, other.keywords, other.region, not other.calls)
                == (name, receiver, args, keywords, region, is_open)
                for other in seen
            ):
                continue
            gave = None if result is None else self._plain(result)
            seen.append(
                Call(node, name, method, receiver, args, keywords, arguments.complete, gave, region, _steps(frame))
            )

    def operation(
        self,
        op: str,
        args: Sequence[Value],
        keywords: Mapping[str, Value],
        result: Value | None,
        error: str | None,
        ctx: Context,
    ) -> None:
        """One of torch's ops was evaluated."""
        if ctx.site is None or (self._module is None and not self._whole):
            return
        if error is not None:
            ctx.semantics.tells()
        region = region_in_view(ctx)
        steps = _steps(ctx.frame)
        operations = self.kept.operations
        given, named = tuple(args), tuple(keywords.items())
        key = ctx.site, op, given, named, region, not steps
        if key in operations:
            return
        if steps:
            place = id(self.kept), ctx.site, op, error is None
            if self._count.get(place, 0) >= _MOST_CONTEXTS:
                return
            self._count[place] = self._count.get(place, 0) + 1
        operations[key] = Operation(ctx.site, ctx.frame.module, op, given, named, result, error, region, steps)
        if error is not None:
            self._refused.append((self.kept, key))

    def refusals(self) -> int:
        """How many operations that raise were recorded so far."""
        return len(self._refused)

    def withdraw(self, first: int, end: int) -> None:
        """Forget the refusals from one to another."""
        for kept, key in self._refused[first:end]:
            kept.operations.pop(key, None)

    def event(self, kind: str, ctx: Context, *about: Value) -> None:
        """A protocol took a step."""
        if ctx.site is not None and (self._module is not None or self._whole):
            steps = _steps(ctx.frame)
            key = ctx.site, kind, steps
            self.kept.events.setdefault(key, Event(ctx.site, ctx.frame.module, kind, about, steps))

    def _plain(self, value: Value) -> Value:
        """A weight is the tensor that it holds, also among others, as those of `module.parameters()` are."""
        if isinstance(value, Ref) and is_weight(value):
            return plain(self._context, value)
        if isinstance(value, Many) and not isinstance(value.item, (Tensor, Unknown)):
            return Many(join_all(map(self._plain, choices(value.item))) or TOP)
        return value


def _called(callee: Value) -> tuple[str, Value | None, tuple[Value, ...]]:
    """The name of what is called, the receiver, and arguments that it brings."""
    if isinstance(callee, External):
        return callee.name, None, ()
    if isinstance(callee, Bound):
        name = "" if callee.name.startswith(f"{UNKNOWN_CLASS}.") else callee.name
        return name, callee.receiver, ()
    if isinstance(callee, Function):
        made = callee.definition
        return made if isinstance(made, str) else made.qualified_name, callee.receiver, ()
    if isinstance(callee, ProjectClass):
        return callee.name, None, ()
    if isinstance(callee, Partial):
        name, receiver, before = _called(callee.callee)
        return name, receiver, (*before, *callee.args)
    if isinstance(callee, Ref):
        kind = callee.address.kind
        is_module = not isinstance(kind, str) and kind.definition.inherits("torch.nn.Module") is True
        owner = kind if isinstance(kind, str) else "torch.nn.Module" if is_module else kind.name
        return f"{owner}.__call__", callee, ()
    return "", None, ()


def _steps(frame: Frame) -> tuple[Step, ...]:
    """The calls under way, outermost first."""
    found: list[Step] = []
    path: CallPath | None = frame.path
    while path is not None:
        site = path.site[0] if isinstance(path.site, tuple) else path.site
        if not isinstance(site, Iteration):
            found.append(Step(site, path.module))
        path = path.caller
    return tuple(reversed(found))
