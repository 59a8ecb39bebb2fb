"""What was found, by syntax node: the only thing that rules, `infer` and editors read.

Values are joined over all contexts, for display. Operators keep their operands as tuples, one for each context, for joined
values would invent mismatches: {half, float32} with {half, float32}.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dtlint.infer.domain.lattice import join
from dtlint.infer.domain.values import (
    NO_TENSOR,
    Function,
    ProjectClass,
    Ref,
    Tensor,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.models.plain_tensors import is_weight, plain
from dtlint.infer.semantics.attributes import class_attribute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dtlint.infer.context import Arguments, Context, Frame
    from dtlint.infer.domain.values import CallPath

__all__ = ["Event", "Facts", "ModuleFacts", "Operation", "Sighting", "Step"]

MOST_CONTEXTS = 8
"""Tuples of operands that are kept for one operator, of one name."""


@dataclass(frozen=True, slots=True)
class Step:
    """A call on the way to where something happens.

    Attributes:
        node: the call.
        module: the module that holds it, a `ModuleInfo`.
    """

    node: Any
    module: Any


@dataclass(frozen=True, slots=True)
class Operation:
    """One of torch's ops, with the operands that it had in one context.

    Attributes:
        node: the call or the operator.
        module: the module that holds it.
        op: its qualified name, "torch.add"; a layer goes by its class, and its weight is the first operand.
        args, keywords: the operands.
        result: what it gave; None where torch raises.
        error: what torch says where it raises for all that the operands can be.
        region: the autocast region in force.
        calls: the calls that led here, outermost first; empty in code that is read as called by anybody.
    """

    node: Any
    module: Any
    op: str
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    result: Value | None
    error: str | None
    region: Value
    calls: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """A step of a protocol, where it is certainly wrong, or may be.

    Attributes:
        kind: what happens: "clip scaled", "unscale twice", "backward in region", ...
        about: the values concerned, by kind.
    """

    node: Any
    module: Any
    kind: str
    about: tuple[Value, ...]
    calls: tuple[Step, ...]


class Facts:
    """Remembers what a reading shows: the recorder of its context.

    Args:
        detailed: are operators and events kept, for rules, instead of what each expression was?
    """

    def __init__(self, *, detailed: bool = False) -> None:
        self.values: dict[ast.expr, Value] = {}
        """For each expression the join of the tensors that it was; NO_TENSOR where it never was one."""
        self.modules: dict[ast.expr, object] = {}
        self.context: Context | None = None
        self._calls: dict[ast.AST, dict[ast.Call, int]] = {}
        self._detailed = detailed
        self._operations: dict[tuple[object, ...], Operation] = {}
        self._count: dict[object, int] = {}
        self._events: dict[tuple[object, ...], Event] = {}
        self._index: Index | None = None
        self.judged: list[object] = []
        """The modules that rules judge: what a call leads to is told of the innermost call in one of these."""

    # -- as a recorder ---------------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """An expression was evaluated, not for the first time perhaps."""
        if self._detailed:
            return
        seen = self._as_tensor(value)
        known = self.values.get(node)
        if known is None:
            self.values[node] = seen
            self.modules[node] = frame.module
        elif known is not seen and known != seen:
            self.values[node] = _both(known, seen)

    def call(self, node: ast.AST, callee: Value, arguments: Arguments, result: Value, frame: Frame) -> None:
        """A call was evaluated."""
        if not isinstance(node, ast.Call):
            return
        for one in choices(callee):
            function: Value | None = one
            bound = True
            if isinstance(one, Ref) and isinstance(one.address.kind, ProjectClass) and self.context is not None:
                function = class_attribute(self.context, one.address.kind.definition.order, "forward")
            elif isinstance(one, Function):
                bound = one.receiver is not None
            if isinstance(function, Function):
                self._calls.setdefault(function.definition.node, {})[node] = int(bound)

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
        if not self._detailed or ctx.site is None:
            return
        region = ctx.ambient("region")
        key = ctx.site, op, tuple(args), tuple(keywords.items()), region
        place = ctx.site, op
        if key in self._operations or self._count.get(place, 0) >= MOST_CONTEXTS:
            return
        self._count[place] = self._count.get(place, 0) + 1
        self._index = None
        self._operations[key] = Operation(
            ctx.site, ctx.frame.module, op, key[2], key[3], result, error, region, _steps(ctx.frame)
        )

    def event(self, kind: str, ctx: Context, *about: Value) -> None:
        """A protocol took a step."""
        if self._detailed and ctx.site is not None:
            steps = _steps(ctx.frame)
            key = ctx.site, kind, steps
            self._events.setdefault(key, Event(ctx.site, ctx.frame.module, kind, about, steps))

    # -- as rules ask it -------------------------------------------------------------------------------------------------

    def operations(self) -> Iterable[Operation]:
        """All operations, in the order in which they were first evaluated."""
        return self._operations.values()

    def index(self) -> Index:
        """The operations by what rules look them up by. The reading is over."""
        if self._index is None:
            self._index = Index(self._operations.values(), self.judged)
        return self._index

    def events(self, *kinds: str) -> Iterator[Event]:
        """The events of some kinds."""
        return (event for event in self._events.values() if event.kind in kinds)

    def calls_of(self, function: ast.AST) -> Iterable[tuple[ast.Call, int]]:
        """The calls in view of a function, by its syntax, and how many parameters each fills in with a receiver."""
        return self._calls.get(function, {}).items()

    def tensors(self) -> Iterator[tuple[ast.expr, object, Value]]:
        """Each expression that may be a tensor, with its module and its value."""
        for node, value in self.values.items():
            if value != NO_TENSOR:
                yield node, self.modules[node], value

    def _as_tensor(self, value: Value) -> Value:
        """A tensor, something that may be one, or nothing of the kind."""
        kind = type(value)
        if kind is Tensor or kind is Unknown:
            return value
        result: Value = NO_TENSOR
        for one in choices(value):
            if isinstance(one, Ref) and is_weight(one) and self.context is not None:
                one = plain(self.context, one)
            if isinstance(one, (Tensor, Unknown)):
                result = _both(result, one)
        return result


class Index:
    """Operations, by what they are looked up by.

    Attributes:
        by_module: those that happen in a module, or that calls in it lead to.
        by_place: those of one op at one node.
        by_op: those of one op.
        judged: the modules that rules judge, by identity.
    """

    def __init__(self, operations: Iterable[Operation], judged: Iterable[object]) -> None:
        self.judged = set(map(id, judged))
        self.by_module: dict[int, list[Operation]] = {}
        self.by_place: dict[tuple[object, str], list[Operation]] = {}
        self.by_op: dict[str, list[Operation]] = {}
        for one in operations:
            for module in {id(one.module), *(id(step.module) for step in one.calls)}:
                self.by_module.setdefault(module, []).append(one)
            self.by_place.setdefault((one.node, one.op), []).append(one)
            self.by_op.setdefault(one.op, []).append(one)


def _both(known: Value, value: Value) -> Value:
    if known == NO_TENSOR:
        return value
    if value == NO_TENSOR:
        return known
    return join(known, value)


def _steps(frame: Frame) -> tuple[Step, ...]:
    """The calls under way, outermost first."""
    found: list[Step] = []
    path: CallPath | None = frame.path
    while path is not None:
        site = path.site[0] if isinstance(path.site, tuple) else path.site
        found.append(Step(site, path.module))
        path = path.caller
    return tuple(reversed(found))


_What = TypeVar("_What", "Operation", "Event", covariant=True)


@dataclass(frozen=True, slots=True)
class Sighting(Generic[_What]):
    """An operation or an event, as one module sees it.

    Attributes:
        what: the operation, or the event.
        node: where it stands in the module: itself, or the call of the module that leads there.
        behind: is `node` such a call?
        call: where `node` is no such call, the one that leads to it; None for code that is read as called by anybody.
    """

    what: _What
    node: Any
    behind: bool
    call: Step | None = None


class ModuleFacts:
    """What the facts tell of one module: what happens in it, and what its calls lead to elsewhere.

    What is wrong for all calls in view stands where it happens; what only some of them make wrong stands at these.

    Args:
        module: the module, a `ModuleInfo`.
    """

    def __init__(self, facts: Facts, module: object) -> None:
        self._facts, self.module = facts, module

    def operations(self, which: Callable[[Operation], bool] = lambda operation: True) -> Iterator[Sighting[Operation]]:
        """The operations that concern the module, of those that are asked for: what holds for all calls in view is told
        where it happens, what holds for some of them where these are."""
        index = self._facts.index()
        for one in index.by_module.get(id(self.module), ()):
            if not which(one):
                continue
            near = self._call_behind(one)
            others = index.by_place[one.node, one.op]
            if id(one.module) in index.judged and (
                near is None or all(which(other) for other in others if other.calls)
            ):
                if one.module is self.module:
                    yield Sighting(one, one.node, False, near)
            elif near is not None and near.module is self.module:
                yield Sighting(one, near.node, True)

    def anywhere(self, ops: Iterable[str]) -> Iterator[Operation]:
        """The operations of some ops in the whole project."""
        for op in ops:
            yield from self._facts.index().by_op.get(op, ())

    def refusals(self) -> Iterator[Sighting[Operation]]:
        """Those with which torch raises for all that the operands can be."""
        return self.operations(lambda one: one.error is not None)

    def events(self, *kinds: str) -> Iterator[Sighting[Event]]:
        """The events of some kinds that concern the module. They stand where they happen, whoever calls."""
        for event in self._facts.events(*kinds):
            if event.module is self.module:
                yield Sighting(event, event.node, False)

    def _call_behind(self, operation: Operation) -> Step | None:
        """The call by which the program came into the operation's module, or else the last."""
        judged = self._facts.index().judged
        steps = [step for step in reversed(operation.calls) if id(step.module) in judged]
        return next((step for step in steps if step.module is not operation.module), steps[0] if steps else None)
