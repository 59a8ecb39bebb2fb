"""What was found, by syntax node: the only thing that rules, `infer` and editors read.

Values are joined over all contexts, for display. Operators and calls keep their operands as tuples, one for each context, for
joined values would invent mismatches: {half, float32} with {half, float32}.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.context import Recorder
from dtlint.infer.domain.lattice import join
from dtlint.infer.domain.values import (
    NO_TENSOR,
    TOP,
    Const,
    External,
    Function,
    Many,
    ProjectClass,
    Ref,
    Region,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.models.casts import dtype_of
from dtlint.infer.models.handed_over import SUPPOSED
from dtlint.infer.models.ops import refusal_as
from dtlint.infer.models.plain_tensors import is_weight, plain
from dtlint.infer.semantics.attributes import class_attribute
from dtlint.infer.surroundings import Guard, Surroundings
from dtlint.infer.walk import nodes
from dtlint.source.declared_packages import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dtlint.dtypes.assumption import Assumption
    from dtlint.infer.context import Arguments, Context, Frame
    from dtlint.source.declared_packages import Releases
    from dtlint.source.settings_file import SettingsFile

__all__ = [
    "Call",
    "Evaluation",
    "Event",
    "Facts",
    "Guard",
    "Kept",
    "ModuleFacts",
    "Operation",
    "Sighting",
    "Step",
    "dtype_of",
]


@dataclass(frozen=True, slots=True)
class Step:
    """A call on the way to where something happens.

    Attributes:
        node: the call.
        module: the module that holds it, a `ModuleInfo`.
    """

    node: Any
    module: Any


@dataclass(frozen=True)
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

    @cached_property
    def refusal(self) -> str | None:
        """What torch says where it raises for certain; or wherever no caller has opened an autocast region, of an operand that
        is half; or wherever the default dtype is float32, of one that is float64. A factory that is told no dtype gives
        float32."""
        if self.error is not None or self.result is None:
            return self.error
        known = list(self._known_dtypes())
        if len(set(known)) < 2:
            return None
        if any(one <= LOW_PRECISION for one in known):
            others: tuple[str, ...] = ("float16", "bfloat16", "float32")
        elif frozenset({"float64"}) in known:  # weights of unseen modules may be float64, too
            others = ("float16", "bfloat16", "float32", "float64")
        else:
            return None
        errors = [self.refusal_as(dtype) for dtype in others]
        return errors[0] if None not in errors else None

    @property
    def has_half(self) -> bool:
        """Is there an operand that is certainly float16 or bfloat16, on its own or among others?"""
        return any(one <= LOW_PRECISION for one in self._known_dtypes())

    def _known_dtypes(self) -> Iterator[frozenset[str]]:
        """What the dtypes of the operands can be, as far as that is known."""
        yield from (one.dtypes for one in self._operands() if isinstance(one, Tensor) and one.dtypes)

    @property
    def is_known(self) -> bool:
        """Are the dtypes of all operands known, and not taken for those of others?"""
        given = (one for one in self._operands() if isinstance(one, (Tensor, Unknown)))
        return not any(one.dtypes is None or SUPPOSED in one.extra for one in given)

    def _operands(self) -> Iterator[Value]:
        """The operands, those in lists and tuples, too."""
        waiting: list[Value] = [*self.args, *(value for _, value in self.keywords)]
        while waiting:
            value = waiting.pop()
            if isinstance(value, Tuple):
                waiting += value.items
            elif isinstance(value, Many):
                waiting.append(value.item)
            else:
                yield value

    def refusal_as(self, dtype: str) -> str | None:
        """What torch says where the floating dtypes that callers decide, weights among them, are one and the same, and the
        default dtype is float32; None where it need not raise then."""
        return refusal_as(self.op, self.args, dict(self.keywords), self.region, dtype)


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


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An operator, a subscript or an assignment, as it was evaluated in one context.

    Attributes:
        node: the `BinOp`, `UnaryOp`, `Compare` or `AugAssign` with its operands; the `Subscript` with what is looked into
            and the index; the target of an assignment with its owner, if it is an attribute or an item, and the index of an
            item. What is assigned is the `result` then.
        operands: their values, from left to right. Weights are the tensors that they hold.
        result: what it gave.
        region: the autocast region in force, the innermost that is opened in view: a `Region`, `Const(None)` outside of any,
            TOP where the caller decides.
        calls: the calls that led here, outermost first; empty in code that is read as called by anybody.
    """

    node: Any
    operands: tuple[Value, ...]
    result: Value
    region: Value
    calls: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A call, as it was evaluated in one context.

    Attributes:
        node: the `ast.Call`.
        name: the qualified name of what is called: `torch.nn.functional.softmax`; of a method by its receiver's class,
            `torch.Tensor.half`, `torch.nn.Module.half`, `torch.optim.Optimizer.step`; of an object that is called,
            `torch.nn.Linear.__call__`; of a function or class of the project with its module's. Empty where it is not known.
        method: the attribute that is called, whatever its owner is; empty for others.
        receiver: what the method is called on, or the object that is called; None for functions.
        args, keywords: the arguments, the receiver aside.
        complete: are these all? `*args` and `**kwargs` may bring others.
        result: what it gave; None where it raises, whatever happens.
        region, calls: as of an `Evaluation`.
    """

    node: ast.Call
    name: str
    method: str
    receiver: Value | None
    args: tuple[Value, ...]
    keywords: Mapping[str, Value]
    complete: bool
    result: Value | None
    region: Value
    calls: tuple[Step, ...]

    def argument(self, position: int | None, name: str) -> Value | None:
        """The value of an argument by its position, the receiver aside, or by its name; None where it is not given."""
        if position is not None and position < len(self.args):
            return self.args[position]
        return self.keywords.get(name)

    def argument_node(self, position: int | None, name: str) -> ast.expr | None:
        """The expression of that argument; None where it is not given, or comes out of a sequence that is spread."""
        given = self.node.args
        if position is not None and position < len(given) and not any(isinstance(one, ast.Starred) for one in given):
            return given[position]
        return next((keyword.value for keyword in self.node.keywords if keyword.arg == name), None)

    def constant(self, position: int | None, name: str) -> object:
        """The constant given for that argument; None where it is not given, or is none."""
        value = self.argument(position, name)
        return value.value if isinstance(value, Const) else None


class Kept:
    """What a reading has shown of one module, or of a whole project, as `interproc.recording` puts it here.

    Attributes:
        values: what expressions of the module are where nobody in view calls, or as its body runs.
        inner: what they are in functions that were only read for calls.
        calls, evaluations: by node, one for each context.
        operations, events: there, and behind the module's calls.
    """

    __slots__ = ("_index", "calls", "evaluations", "events", "inner", "operations", "values")

    def __init__(self) -> None:
        self.values: dict[ast.AST, Value] = {}
        self.inner: dict[ast.AST, Value] = {}
        self.calls: dict[ast.Call, list[Call]] = {}
        self.evaluations: dict[ast.AST, list[Evaluation]] = {}
        self.operations: dict[object, Operation] = {}
        self.events: dict[object, Event] = {}
        self._index: Index | None = None

    def index(self) -> Index:
        """The operations by what rules look them up by. The reading is over."""
        if self._index is None:
            self._index = Index(self.operations.values())
        return self._index


class Facts(Recorder):
    """What each expression of a program was found to be, for `infer`: a recorder."""

    def __init__(self) -> None:
        self.values: dict[ast.expr, Value] = {}
        """For each expression the join of the tensors that it was; NO_TENSOR where it never was one."""
        self.modules: dict[ast.expr, object] = {}
        self.context: Context | None = None
        self._calls: dict[ast.AST, dict[ast.Call, int]] = {}

    def expression(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """An expression was evaluated, not for the first time perhaps."""
        seen = self._as_tensor(value)
        known = self.values.get(node)
        if known is None:
            self.values[node] = seen
            self.modules[node] = frame.module
        elif known is not seen and known != seen:
            self.values[node] = _both(known, seen)

    def call(self, node: ast.AST, callee: Value, arguments: Arguments, result: Value | None, frame: Frame) -> None:
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

    def calls_of(self, function: ast.AST) -> Iterable[tuple[ast.Call, int]]:
        """The calls in view of a function, by its syntax, and how many parameters each fills in with a receiver."""
        return self._calls.get(function, {}).items()

    def over(self, others: Facts) -> Facts:
        """These facts, and those of others on expressions that these say nothing of."""
        merged = Facts()
        merged.context = self.context
        merged.values = others.values | self.values
        merged.modules = others.modules | self.modules
        merged._calls = others._calls | self._calls
        return merged

    def tensors(self) -> Iterator[tuple[ast.expr, object, Value]]:
        """Each expression that may be a tensor, with its module and its value."""
        opened = () if self.context is None else tuple(f"{one}." for one in self.context.modules.opened)
        asking: dict[Any, set[ast.AST]] = {}
        for node, value in self.values.items():
            module: Any = self.modules[node]
            if module not in asking:
                asking[module] = set(_asking_for_attributes(module.tree))
            if value != NO_TENSOR and node not in asking[module] and not f"{module.name}.".startswith(opened):
                yield node, module, value

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
        by_node: those at one node.
    """

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.by_module: dict[int, list[Operation]] = {}
        self.by_place: dict[tuple[object, str], list[Operation]] = {}
        self.by_op: dict[str, list[Operation]] = {}
        self.by_node: dict[object, list[Operation]] = {}
        for one in operations:
            for module in {id(one.module), *(id(step.module) for step in one.calls)}:
                self.by_module.setdefault(module, []).append(one)
            self.by_place.setdefault((one.node, one.op), []).append(one)
            self.by_op.setdefault(one.op, []).append(one)
            self.by_node.setdefault(one.node, []).append(one)


def _both(known: Value, value: Value) -> Value:
    if known == NO_TENSOR:
        return value
    if value == NO_TENSOR:
        return known
    return join(known, value)


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
        kept: what the reading has shown.
        module: the module, a `ModuleInfo`.
        judged: the modules that rules judge: what a call leads to is told of the innermost call in one of these.
        around: the syntax of the module, where another reading of it has looked at that.
    """

    def __init__(self, kept: Kept, module: Any, judged: Iterable[object], around: Surroundings | None = None) -> None:
        self._kept, self.module, self._judged = kept, module, set(map(id, judged))
        self.tree: ast.Module = module.tree
        self.around = around or Surroundings(module.tree)
        self.assumption: Assumption | None = None
        """What parameters and weights are taken to be; None: their dtypes are symbols."""
        self.without: ModuleFacts = self
        """The facts without the assumption: they alone have what the module's body names."""
        self.broken_off: type[Exception] | None = None
        """What kept the reading from its end, RecursionError or TooLong: there may be more than the facts tell."""
        self.unfinished: frozenset[ast.AST] = frozenset()
        """The functions of the module of which the same is to be said: not all that they call was followed."""
        self.declared: tuple[tuple[str, Releases], ...] = ()
        """The releases of frameworks that the project declares."""
        self.settings_file: Callable[[str], SettingsFile | None] = lambda path: None
        """The settings file that a path in the module names; None where there is none."""

    def releases(self, package: str) -> Releases:
        """The releases of a framework that the project declares."""
        return next((releases for name, releases in self.declared if name == package), UNKNOWN)

    # -- what stands in the module ---------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Value:
        """What an expression is: as its function is called by anybody, or else as the calls in view have it. TOP where it
        is not known, or is never reached."""
        kept = self._kept
        if isinstance(node, ast.Constant):
            return Const(node.value)
        return kept.values.get(node) or kept.inner.get(node) or TOP

    def items(self, node: ast.expr) -> tuple[Value, ...] | None:
        """What a tuple holds, or a list or a set that is written out, perhaps in an assignment to the variable that is
        read; None for others."""
        value = self.value(node)
        if isinstance(value, Tuple):
            return value.items
        display = self.around.definition(node)
        return tuple(map(self.value, display.elts)) if isinstance(display, (ast.List, ast.Set, ast.Tuple)) else None

    def calls(self, *names: str) -> Iterator[Call]:
        """The calls in the module of what has one of these qualified names; of anything, where none is given. A name that
        ends in a dot stands for all that begin with it.

        Each context is told for itself: for a function that anybody may call the open one alone, in which its parameters
        are symbols; for others those of the calls in view.
        """
        by_name = self._calls[0]
        if not names:
            for found in by_name.values():
                yield from found
        for wanted in names:
            if wanted.endswith("."):
                for name, found in by_name.items():
                    if name.startswith(wanted):
                        yield from found
            else:
                yield from by_name.get(wanted, ())

    def methods(self, *names: str) -> Iterator[Call]:
        """The calls of attributes by these names, whatever they are called on: `half`, `to`."""
        for name in names:
            yield from self._calls[1].get(name, ())

    @cached_property
    def _calls(self) -> tuple[dict[str, list[Call]], dict[str, list[Call]]]:
        """The calls by what is called, and by the attribute that is."""
        by_name: dict[str, list[Call]] = {}
        by_method: dict[str, list[Call]] = {}
        for seen in self._kept.calls.values():
            for call in _open(seen):
                by_name.setdefault(call.name, []).append(call)
                if call.method:
                    by_method.setdefault(call.method, []).append(call)
        return by_name, by_method

    def calls_at(self, node: ast.Call) -> Sequence[Call]:
        """How a call was evaluated, in each context."""
        return _open(self._kept.calls.get(node, []))

    def evaluations(self, *kinds: type[ast.AST]) -> Iterator[Evaluation]:
        """The evaluations of nodes of these kinds, `ast.BinOp`, `ast.Subscript`; the contexts are those of `calls`. Targets
        of assignments are not among them."""
        for node, seen in self._kept.evaluations.items():
            if isinstance(node, kinds) and not isinstance(getattr(node, "ctx", None), ast.Store):
                yield from _open(seen)

    def regions(self) -> Iterator[tuple[ast.expr, Region]]:
        """What opens autocast regions: the contexts of `with` statements, and decorators, with the region that each is."""
        around = self.around
        opening = [item.context_expr for node in around.with_statements() for item in node.items]
        opening += [one for function in around.functions() for one in function.decorator_list]
        for one in opening:
            yield from ((one, region) for region in choices(self.value(one)) if isinstance(region, Region))

    def tensor(self, node: ast.expr) -> Value:
        """What an expression is where a tensor is wanted: of an attribute that is a weight, the tensor in it."""
        for seen in (*self._kept.evaluations.get(node, ()), *self._kept.calls.get(node, ())):  # type: ignore[call-overload]
            if isinstance(seen.result, Tensor):
                return seen.result
        return self.value(node)

    def operations_at(self, node: ast.AST) -> Sequence[Operation]:
        """The operations that happen at a node of the module, one for each context."""
        return self._kept.index().by_node.get(node, ())

    def ways(self, node: ast.AST) -> list[tuple[Step, ...]]:
        """The calls that lead to a node, outermost first, in each context, or in each in which it raises if it does so in any.
        The shortest come first: none, where anybody may call."""
        at: ast.AST | None = node
        while at is not None and not isinstance(at, ast.Module):
            operations = self.operations_at(at)
            seen: list[Operation | Evaluation | Call] = [one for one in operations if one.error is not None]
            seen = seen or [*operations]
            seen = seen or [*self._kept.evaluations.get(at, ()), *self._kept.calls.get(at, ())]  # type: ignore[call-overload]
            if seen:
                return sorted((one.calls for one in seen), key=len)
            at = self.around.parent(at)
        return [()]

    def region(self, node: ast.expr) -> Value:
        """The region in which a call, an operator or an assignment's target is evaluated, as of a `Call`; TOP for others."""
        seen = (*self._kept.calls.get(node, ()), *self._kept.evaluations.get(node, ()))  # type: ignore[call-overload]
        return next((one.region for one in seen), TOP)

    def assignments(self) -> Iterator[Evaluation]:
        """What is bound to names, attributes and items: the nodes are the targets."""
        for node, seen in self._kept.evaluations.items():
            if isinstance(getattr(node, "ctx", None), ast.Store):
                yield from _open(seen)

    def names(self, *wanted: str) -> Iterator[tuple[ast.Name | ast.Attribute, str]]:
        """Where something is named that is not read as source, by its qualified name: `torch.half`, called or not; of any,
        where none is given. A name that ends in a dot stands for all that begin with it."""
        whole = frozenset(wanted)
        starts = tuple(name for name in wanted if name.endswith("."))
        for node, name in self._named:
            if not wanted or name in whole or (starts and name.startswith(starts)):
                yield node, name

    @cached_property
    def _named(self) -> list[tuple[ast.Name | ast.Attribute, str]]:
        return [
            (node, value.name)
            for values in (self._kept.values, self._kept.inner)
            for node, value in values.items()
            if isinstance(value, External) and isinstance(node, (ast.Name, ast.Attribute))
        ]

    def origin(self, node: ast.expr) -> ast.expr | None:
        """The expression that gave a tensor its dtype: the cast, the factory or the operator behind the variables that it
        went through; None where that is not known."""
        found = self.around.definition(node)
        return None if isinstance(found, ast.Name) else found

    # -- what happens, there and behind its calls ------------------------------------------------------------------------

    def operations(self, which: Callable[[Operation], bool] = lambda operation: True) -> Iterator[Sighting[Operation]]:
        """The operations that concern the module, of those that are asked for: what holds for all calls in view is told
        where it happens, what holds for some of them where these are."""
        index = self._kept.index()
        for one in index.by_module.get(id(self.module), ()):
            if not which(one):
                continue
            others = index.by_place[one.node, one.op]
            near = self._call_behind(one, [(other, which(other)) for other in others if other.calls])
            if id(one.module) in self._judged and (
                near is None or all(which(other) for other in others if other.calls)
            ):
                if one.module is self.module:
                    yield Sighting(one, one.node, False, near)
            elif near is not None and near.module is self.module:
                yield Sighting(one, near.node, True)

    def anywhere(self, ops: Iterable[str]) -> Iterator[Operation]:
        """The operations of some ops in the whole project."""
        for op in ops:
            yield from self._kept.index().by_op.get(op, ())

    def refusals(self) -> Iterator[Sighting[Operation]]:
        """Those with which torch raises for all that the operands can be."""
        return self.operations(lambda one: one.error is not None)

    def guards_at(self, what: Operation | Event) -> tuple[Guard, ...]:
        """The tests that hold where something happens, in whatever module that is."""
        around = self.around if what.module is self.module else Surroundings(what.module.tree)
        return around.guards(what.node)

    def events(self, *kinds: str) -> Iterator[Sighting[Event]]:
        """The events of some kinds that concern the module. They stand where they happen, whoever calls."""
        for event in self._kept.events.values():
            if event.kind in kinds and event.module is self.module:
                yield Sighting(event, event.node, False)

    def happens(self, kind: str, about: Value) -> bool:
        """Does an event of a kind concern an object first of all, or one that is made at its place when a program is run with
        other options, anywhere in what was read?"""
        wanted = about.address.site if isinstance(about, Ref) else about
        return any(
            event.kind == kind and (about.address.site if isinstance(about, Ref) else about) == wanted
            for event in self._kept.events.values()
            for about in event.about[:1]
        )

    def place(self, made: Value) -> ast.AST | None:
        """Where in the module an object is made, or the call that leads there; None where that is elsewhere."""
        if not isinstance(made, Ref):
            return None
        if isinstance(made.address.site, ast.AST) and self.around.parent(made.address.site) is not None:
            return made.address.site
        path = made.address.path
        while path is not None and (path.module is not self.module or not isinstance(path.site, ast.AST)):
            path = path.caller
        return None if path is None else path.site  # type: ignore[return-value]

    def _call_behind(self, operation: Operation, others: Sequence[tuple[Operation, bool]]) -> Step | None:
        """The call by which the program came into the operation's module, or else the last. Calls that another program makes,
        too, and is well, are passed over for one further out; and those of a function that is well as anybody calls it.

        Args:
            others: those of the same place behind calls, and whether they are such as are asked for.
        """
        if not operation.calls:
            return None
        steps = [step for step in reversed(operation.calls) if id(step.module) in self._judged]
        steps = [step for step in steps if step.module is not operation.module] or steps
        begin = operation.calls[0]
        well = [other.calls for other, is_asked_for in others if not is_asked_for and other.is_known]
        shared = {step.node for calls in well if calls[0].module is not begin.module for step in calls}
        by_anybody = {calls[0].node for calls in well if self._function(calls[0]) is not self._function(begin)}
        shared |= by_anybody - {other.calls[0].node for other, is_asked_for in others if is_asked_for}
        own = [step for step in steps if step.node not in shared]
        return next(iter(own or steps), None)

    def _function(self, step: Step) -> ast.AST | None:
        """The function of this module that makes a call."""
        return self.around.function(step.node) if step.module is self.module else None


_Seen = TypeVar("_Seen", Call, Evaluation)


def _open(seen: Sequence[_Seen]) -> Sequence[_Seen]:
    """The contexts in which anybody may call, if there are any."""
    return [one for one in seen if not one.calls] or seen


def _asking_for_attributes(tree: ast.Module) -> Iterator[ast.AST]:
    """The syntax of what is run for an attribute that an object has not. Who asks for one is not all seen: it may be asked of
    whatever is unknown."""
    for node in nodes(tree.body):
        if isinstance(node, ast.FunctionDef) and node.name in ("__getattr__", "__getattribute__"):
            yield from nodes(node.body)
