"""Libraries: functions and methods that are read as called by anybody, for parameters whose dtypes are symbols.

A method starts from what `__init__` leaves in `self`, joined with what all other functions may leave there and in globals.
Whoever has a module may have cast it: its weights have symbols, too. The autocast region around a call is not known, nor
is the default dtype, unless the file sets it.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.context import Arguments, NeverReturns, Recorder, TooLong
from dtlint.infer.domain.values import (
    ABSENT,
    NONE,
    TOP,
    Const,
    Function,
    ProjectClass,
    Ref,
    Tensor,
    Value,
)
from dtlint.infer.interproc.by_signature import applied, is_followed, result_of
from dtlint.infer.interproc.changed_state import forget_changed, forget_changed_globals
from dtlint.infer.interproc.entry_regions import enter_region, region_under
from dtlint.infer.interproc.long_parameters import Search, as_index, declared_long, int64_parameters
from dtlint.infer.interproc.misuses import Misuses
from dtlint.infer.interproc.open_objects import name_what_it_holds, unknown_at
from dtlint.infer.interproc.open_parameters import (
    as_operands,
    is_open,
    numbers,
    open_parameters,
    usual_numbers,
    usual_parts,
)
from dtlint.infer.interproc.parameter_kinds import ParameterKinds
from dtlint.infer.models import scaling
from dtlint.infer.models.handed_over import SUPPOSING
from dtlint.infer.models.module_trees import is_module
from dtlint.infer.models.ops import GOES_ON
from dtlint.infer.semantics.annotations import made_by_anybody
from dtlint.infer.semantics.attributes import class_attribute
from dtlint.infer.state import AMBIENT
from dtlint.infer.walk import SCOPES, nodes
from dtlint.source.definitions import classes, functions, nested_classes
from dtlint.source.examples import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from collections.abc import Mapping as MappingOf

    from dtlint.dtypes.assumption import Assumption
    from dtlint.infer.context import Context, Frame
    from dtlint.infer.domain.values import Address, CallPath
    from dtlint.infer.interproc.by_signature import Signature
    from dtlint.infer.interproc.engine import Engine
    from dtlint.infer.interproc.functions import FunctionDefinition
    from dtlint.infer.interproc.program import Program
    from dtlint.infer.interproc.project import ModuleInfo
    from dtlint.infer.interproc.summaries import Summary
    from dtlint.infer.state import Difference

__all__ = ["OpenContexts"]

_MOST_ROUNDS = 4
"""Readings of all functions, until what they leave behind stays as it is."""


class OpenContexts(Recorder):
    """Reads a library: its functions, and the methods of its classes.

    Unless what functions call is told, too, it is the recorder meanwhile: of a function of the library only its own open
    context is told, for what others in view give it is one case of that.

    Args:
        recorder: who is told what expressions are.
        with_callees: is the recorder told of what the functions call, too, with what these are given?
        rounds: how often everything is read. Once is enough for who asks what happens in an object that was just made.
        signatures: what functions give where their parameters are symbols, as far as it is known. Then calls that tell
            nothing of dtypes are not followed.
        assumption: the dtypes that parameters and weights have instead of symbols, and the region around each call.
        operands_are_tensors: are parameters that a function reckons with taken for floating tensors?
        targets: the keys of the parameters that losses take as targets.
    """

    def __init__(
        self,
        main: ModuleInfo,
        recorder: Recorder,
        *,
        with_callees: bool = False,
        rounds: int = _MOST_ROUNDS,
        signatures: dict[FunctionDefinition, Signature] | None = None,
        assumption: Assumption | None = None,
        operands_are_tensors: bool = False,
        targets: frozenset[str] = frozenset(),
    ) -> None:
        self.main = main
        self._assumption = assumption
        self._signatures = signatures
        self.broken_off: type[Exception] | None = None
        """What has kept the reading of a function from its end, RecursionError or TooLong."""
        self.finished: set[FunctionDefinition] = set()
        """The functions that were read to their ends."""
        self._recorder = recorder
        self._told: Recorder = recorder if with_callees else self
        """Who is told what is evaluated."""
        self._with_callees = with_callees
        self._rounds = rounds
        self._believes_masks = assumption is not None or not with_callees
        self._operands_are_tensors = operands_are_tensors
        self._entry: FunctionDefinition | None = None
        self._is_within = False
        """Is something asked for as within a function that is read?"""
        self._search: Search | None = None
        """What is told instead of the recorder, where a function is read for this alone."""
        self._misuses: Misuses | None = None
        """The same, where it is read for the kinds of its parameters."""
        self._kinds = None
        if assumption is not None:
            self._kinds = ParameterKinds(assumption.inputs, targets, assumption.targets, supposes=with_callees)
        self._asks_for_certain_kinds = assumption is not None and not with_callees
        """Claims rest on what is certain; for findings what may be a floating tensor is one."""
        self._is_preparing = False
        self._follows_example = False
        self._learned = False
        """Has a call in view given a function what was not known to be given to it?"""
        self._indices: dict[tuple[FunctionDefinition, Value | None], frozenset[str]] = {}
        self._inside: frozenset[ast.AST] = frozenset()
        self._summaries: dict[tuple[FunctionDefinition, Value | None], Summary] = {}
        self._bound: dict[tuple[FunctionDefinition, Value | None], dict[str, Value]] = {}
        """What their parameters were."""
        self._entries: set[tuple[FunctionDefinition, Value | None]] = set()
        """The functions that are read, with the object whose methods they are, as soon as that is there."""
        self._results: dict[tuple[FunctionDefinition, Value | None], Value] = {}
        """What calls of these give."""

    def readings(self) -> Iterator[tuple[FunctionDefinition, Value | None, MappingOf[str, Value], Summary]]:
        """What was read: each function with the object whose method it is, what its parameters were, and what it does."""
        for entry, summary in self._summaries.items():
            yield (*entry, self._bound[entry], summary)

    # -- as a recorder ---------------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """An expression was evaluated."""
        if self._kinds is not None and self._is_learning():
            self._learned |= self._kinds.other_floats.expression(value, frame.function)
        elif self._is_told(frame):
            self._recorder.expression(node, value, frame)

    def call(self, node: ast.AST, callee: Value, arguments: Arguments, result: Value | None, frame: Frame) -> None:
        """A call was evaluated."""
        if self._kinds is not None and self._is_learning():
            self._learned |= self._kinds.other_floats.call(callee, result)
        elif self._misuses is not None:
            self._misuses.call(node, callee, result)
        elif self._search is not None:
            self._search.call(node, arguments)
        elif self._is_told(frame):
            self._recorder.call(node, callee, arguments, result, frame)

    def evaluated(self, node: ast.AST, operands: tuple[Value, ...], result: Value, ctx: Context) -> None:
        """An operator, a subscript or an assignment was evaluated."""
        if self._is_told(ctx.frame):
            self._recorder.evaluated(node, operands, result, ctx)

    def operation(
        self,
        op: str,
        args: Sequence[Value],
        keywords: MappingOf[str, Value],
        result: Value | None,
        error: str | None,
        ctx: Context,
    ) -> None:
        """One of torch's ops was evaluated."""
        if self._misuses is not None:
            self._misuses.operation(op, ctx.site, [*args, *keywords.values()], result, error)
        elif self._search is not None:
            self._search.operation(op, args, keywords, error)
        elif self._is_told(ctx.frame):
            self._recorder.operation(op, args, keywords, result, error, ctx)

    def refusals(self) -> int:
        """How many operations that raise were recorded so far."""
        return self._recorder.refusals()

    def withdraw(self, first: int, end: int) -> None:
        """Forget the refusals from one to another."""
        self._recorder.withdraw(first, end)

    def module_begins(self, module: ModuleInfo) -> None:
        """A module's body is going to be run."""
        self._recorder.module_begins(module)

    def module_ends(self) -> None:
        """The body has been run."""
        self._recorder.module_ends()

    def event(self, kind: str, ctx: Context, *about: Value) -> None:
        """A protocol took a step."""
        if self._is_told(ctx.frame):
            self._recorder.event(kind, ctx, *about)

    def _is_learning(self) -> bool:
        """Is a function read for what it gives to others?"""
        is_asking = self._misuses is not None or self._search is not None or self._follows_example
        return self._is_preparing and not is_asking

    def _is_told(self, frame: Frame) -> bool:
        function: FunctionDefinition | None = frame.function
        if self._search is not None or self._misuses is not None or self._is_preparing:
            return False
        if function is None:
            return True
        if self._entry is None:  # what the module's body calls
            return True
        if self._asks_for_certain_kinds and self._entry.name == "__init__" and function.module is self.main:
            return True  # before anybody has cast the module
        return function.node in self._inside and (function is not self._entry or frame.path is None)

    # -- reading ---------------------------------------------------------------------------------------------------------

    def read(self, ctx: Context) -> None:
        """Read the module's body, then everything that it defines."""
        ctx.recorder = self._told
        ctx.modules.run_main(ctx, self.main)
        self.read_definitions(ctx)

    def read_definitions(
        self,
        ctx: Context,
        wanted: Callable[[Any], bool] = lambda node: True,
        only: Collection[ast.AST] | None = None,
    ) -> None:
        """Read everything that the module defines, behind its body.

        Args:
            wanted: is a function, a class or one of its methods to be read?
            only: the functions and methods to which the reading is confined; what others give them is as it would be.
        """
        self._begin(ctx)
        modules: Program = ctx.modules  # type: ignore[assignment]
        if self._rounds == 1:  # else what functions leave is read
            forget_changed_globals(ctx, modules.address_of(self.main), self.main.tree)
        top = filter(wanted, functions(self.main.tree.body))
        alone = [(one, None) for one in map(self._defined(modules), top) if one is not None]
        methods: list[tuple[FunctionDefinition, Value | None]] = []
        self._entries = set(alone)
        for node in filter(wanted, nested_classes(self.main.tree.body)):
            cls = modules.class_at(node)
            if cls is not None and cls.definition.inherits("enum.Enum") is not True:
                made = self._made(ctx, cls)
                methods += [(one, made) for one in self._methods(modules, cls) if wanted(one.node)]
                self._entries.update(methods)
        if self._asks_for_certain_kinds:
            self._learn_kinds(ctx, [*alone, *methods])
        entries = [one for one in (*alone, *methods) if only is None or one[0].node in only]
        self._read_until_nothing_changes(ctx, entries)

    def within(self, ctx: Context, ask: Callable[[], None]) -> None:
        """Do what functions of the library do when they are read: ask for something in modules that have not been run."""
        self._begin(ctx)
        self._is_within = True
        ask()
        self._is_within = False

    def _begin(self, ctx: Context) -> None:
        """From now on functions are read as called by anybody."""
        ctx.recorder = self._told
        engine: Engine = ctx.semantics  # type: ignore[assignment]
        if self._with_callees:
            engine.calls.at_open_end = self._read_inner
        engine.calls.signature = None if self._signatures is None else self._by_signature
        ctx.set_ambient(GOES_ON, Const(True))
        ctx.set_ambient("region", TOP if self._assumption is None else region_under(self._assumption))
        if self._assumption is not None:
            ctx.set_ambient("default dtype", Const("float32"))
            ctx.set_ambient("assumed", Const(self._assumption.inputs))
            ctx.set_ambient(SUPPOSING, Const(not self._asks_for_certain_kinds))
        if ctx.store.read(AMBIENT, "default dtype") is None:
            ctx.set_ambient("default dtype", TOP)

    def _learn_kinds(self, ctx: Context, entries: Sequence[tuple[FunctionDefinition, Value | None]]) -> None:
        """Read all functions for what they give one another, until that tells no more of their parameters."""
        self._is_preparing = True
        self._follow_examples(ctx)
        for _ in range(_MOST_ROUNDS):
            self._learned = False
            for definition, receiver in entries:
                self._entered(ctx, definition, receiver)
            self._summaries.clear()
            self._results.clear()
            if not self._learned:
                break
        self._is_preparing = False

    def _follow_examples(self, ctx: Context) -> None:
        """Read the examples in docstrings for what they give to functions, where floats are of the assumed dtype by
        default. What cannot be followed shows nothing."""
        assert self._kinds is not None
        (dtype,) = self._kinds.floating
        if dtype not in FLOATING:
            return
        engine: Engine = ctx.semantics  # type: ignore[assignment]
        around = ctx.ambient("default dtype")
        self._follows_example = True
        ctx.set_ambient("default dtype", Const(dtype))
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        for body in examples(self.main.tree):
            node = ast.FunctionDef("example", nothing, body, [], lineno=1, col_offset=0)
            definition = ctx.modules.function(self.main, node, None)
            definition.set_defaults({})
            with suppress(NeverReturns), engine.calls.asking():
                engine.calls.openly(ctx, Function(definition, None), {})
        ctx.set_ambient("default dtype", around)
        self._follows_example = False

    def _defined(self, modules: Program) -> Any:
        def defined(node: ast.FunctionDef | ast.AsyncFunctionDef) -> FunctionDefinition | None:
            return modules.defined_function(node)

        return defined

    def _methods(self, modules: Program, cls: ProjectClass) -> Iterator[FunctionDefinition]:
        """The methods of a class and of those that it inherits from, as far as they are in the library itself."""
        for one in cls.definition.order:
            if isinstance(one, ProjectClass) and one.definition.module is self.main:
                for node in functions(one.definition.node.body):
                    found = modules.defined_function(node)
                    if found is not None and found.name not in ("__init__", "__new__", "__init_subclass__"):
                        yield found

    def _read_until_nothing_changes(
        self, ctx: Context, entries: Sequence[tuple[FunctionDefinition, Value | None]]
    ) -> None:
        """Read all functions from one state: what each of them leaves, any other may find."""
        store = ctx.store
        for count in range(self._rounds):
            left = [self._left_by(ctx, definition, receiver) for definition, receiver in entries]
            changed = [one for one in left if one]
            if not changed or count == self._rounds - 1:
                return
            mark = store.mark()
            store.merge([{}, *changed])
            grown = {
                cell: value
                for cell, value in store.difference(mark).items()
                if cell[1] != "*made" and _before(store.trail[mark:], cell) != value
            }
            if not grown:
                return
            if count >= _MOST_ROUNDS - 2:
                for address, field in grown:
                    store.overwrite(address, field, TOP)

    def _left_by(self, ctx: Context, definition: FunctionDefinition, receiver: Value | None) -> Difference:
        """What a function leaves behind, as called by anybody; nothing where it cannot be followed to its end."""
        if not self._with_callees:
            return self._entered(ctx, definition, receiver).changes
        store, frame = ctx.store, ctx.frame
        mark = store.mark()
        try:
            return self._entered(ctx, definition, receiver).changes
        except (RecursionError, TooLong) as error:
            self.broken_off = type(error)
            store.undo(mark)
            ctx.frame = frame
            return {}

    def _entered(
        self, ctx: Context, definition: FunctionDefinition, receiver: Value | None, outer: Address | None = None
    ) -> Summary:
        """What a function does from here, as called by anybody.

        Args:
            outer: the variables of the function that it is defined in.
        """
        around = ctx.ambient("region"), ctx.ambient("opened")
        if not self._with_callees:
            self._inside = frozenset(part for part in nodes([definition.node]) if isinstance(part, SCOPES))
        entry, self._entry = self._entry, definition
        scaling.forget(ctx)
        self._enter_region(ctx, definition)
        try:
            known = self._summaries.get((definition, receiver))
            if known is not None and _holds(ctx, known):
                return known
            of_numbers = definition.name in ("__init__", "__new__")  # mostly: sizes, rates, flags
            bound = self._parameters(ctx, definition, of_numbers=of_numbers)
            if self._assumption is not None:
                bound |= usual_numbers(definition)
            if self._assumption is not None and not self._asks_for_certain_kinds:
                bound |= usual_parts(definition)
            first = next(iter(bound), None)
            if receiver is not None and first is not None and "staticmethod" not in definition.decorators:
                of_class = "classmethod" in definition.decorators and isinstance(receiver, Ref)
                bound[first] = receiver.address.kind if of_class else receiver  # type: ignore[attr-defined]
            if self._asks_for_certain_kinds and not of_numbers:
                bound |= self._of_their_kinds(ctx, definition, receiver, bound, None if receiver is None else first)
            if not self._with_callees:
                bound |= self._with_indices(ctx, definition, receiver, bound)
            engine: Engine = ctx.semantics  # type: ignore[assignment]
            if self._operands_are_tensors:
                bound |= numbers(definition, bound)
            elif self._kinds is not None and self._asks_for_certain_kinds:
                bound |= self._kinds.usual(definition, numbers(definition, bound))
            operands = as_operands(definition, bound) if self._operands_are_tensors and not of_numbers else {}
            function = Function(definition, outer)
            summary = engine.calls.openly(ctx, function, bound | operands, _apart(ctx, definition, receiver))
            if operands and summary.result is None:  # they are something else
                summary = engine.calls.openly(ctx, function, bound)
            else:
                bound |= operands
        finally:
            self._entry = entry
            ctx.set_ambient("region", around[0])
            ctx.set_ambient("opened", around[1])
        self._summaries[definition, receiver] = summary
        self._bound[definition, receiver] = bound
        self.finished.add(definition)
        return summary

    def _of_their_kinds(
        self,
        ctx: Context,
        definition: FunctionDefinition,
        receiver: Value | None,
        bound: dict[str, Value],
        own: str | None,
    ) -> dict[str, Value]:
        """The parameters that are of the assumed dtype if they are floating tensors, the method's own object aside."""
        assert self._kinds is not None
        engine: Engine = ctx.semantics  # type: ignore[assignment]
        usual = open_parameters(ctx, definition)
        assumed = {name: value for name, value in bound.items() if name in usual and is_open(usual[name])}
        is_static = "staticmethod" in definition.decorators
        assumed = {
            name: value for name, value in assumed.items() if value != usual[name] and (name != own or is_static)
        }

        (dtype,) = self._kinds.floating

        def read(given: MappingOf[str, Value]) -> Misuses:
            self._misuses, around = Misuses(dtype, engine.tells), self._misuses
            try:
                with engine.calls.asking():
                    summary = engine.calls.openly(ctx, Function(definition, None), {**bound, **given})
                self._misuses.returns = summary.result is not None
                return self._misuses
            finally:
                self._misuses = around

        return self._kinds.certain(definition, receiver, assumed, read)

    def _with_indices(
        self, ctx: Context, definition: FunctionDefinition, receiver: Value | None, bound: dict[str, Value]
    ) -> dict[str, Value]:
        """The parameters that are declared as LongTensor, and that are int64 by what the function does with them."""
        long = declared_long(definition)
        if not long:
            return {}
        found = self._indices.get((definition, receiver))
        if found is None:
            engine: Engine = ctx.semantics  # type: ignore[assignment]

            def read(search: Search, names: frozenset[str]) -> None:
                self._search = search
                try:
                    engine.calls.openly(
                        ctx, Function(definition, None), bound | {name: as_index(bound[name]) for name in names}
                    )
                finally:
                    self._search = None

            found = self._indices[definition, receiver] = int64_parameters(definition, long, read)
        return {name: as_index(bound[name]) for name in long if name in found}

    def _read_inner(self, ctx: Context, frame: Frame) -> None:
        """Read the functions and classes inside a function that no call in view has run: others call them, with what they
        find in its variables at its end."""
        engine: Engine = ctx.semantics  # type: ignore[assignment]
        for node in frame.function.inner:
            definition = ctx.modules.function(frame.module, node, None)
            if definition.defaults is not None and definition not in engine.calls.readings:
                engine.calls.openly(ctx, Function(definition, frame.address), self._parameters(ctx, definition))
        if self._assumption is None:
            for cls in map(ctx.modules.class_at, classes(frame.function.node.body)):  # type: ignore[attr-defined]
                if cls is not None:
                    self._read_class(ctx, cls, frame.address)

    def _read_class(self, ctx: Context, cls: ProjectClass, outer: Address) -> None:
        """Read the methods of a class that a function defines; the state is as before afterwards. One that it inherits, and
        in which it is defined, is under way."""
        engine: Engine = ctx.semantics  # type: ignore[assignment]
        store = ctx.store
        mark = store.mark()
        made = self._made(ctx, cls)
        for definition in self._methods(ctx.modules, cls):  # type: ignore[arg-type]
            if not engine.calls.is_under_way(definition):
                self._entered(ctx, definition, made, outer)
        store.undo(mark)

    def _parameters(
        self, ctx: Context, definition: FunctionDefinition, *, of_numbers: bool = False
    ) -> dict[str, Value]:
        """The parameters of a function, as anybody may give them, or as the assumption says.

        Args:
            of_numbers: are these mostly numbers? Then those alone are tensors that are shown to be.
        """
        kinds = None if of_numbers and self._asks_for_certain_kinds else self._kinds
        shows_numbers = self._kinds is not None or not self._with_callees
        return open_parameters(
            ctx, definition, kinds, self._believes_masks, of_numbers=of_numbers, shows_numbers=shows_numbers
        )

    def _by_signature(self, ctx: Context, function: Function, bound: dict[str, Value]) -> Value | None:
        """What a call gives by the function's signature; None where it is to be followed, for it tells of dtypes, or is part
        of a program that runs."""
        assert self._signatures is not None
        definition: FunctionDefinition = function.definition
        is_learning = self._kinds is not None and self._is_preparing and not self._misuses
        if self._kinds is not None and is_learning and definition.module is self.main:
            if self._follows_example:
                self._kinds.exemplified(definition, bound)
            else:
                self._learned |= self._kinds.called(definition, bound)
        if self._entry is None and not self._is_within:
            return None
        if definition.module is self.main and not self._with_callees:
            return None  # the file alone is read, and its own functions are followed
        if is_followed(ctx, function, bound):
            return None
        first = next(iter(bound.values()), None)
        entry = definition, None if definition.owner is None else first
        is_own = entry in self._entries
        if self._assumption is not None and definition.owner is not None:
            if definition.name == "__init__":
                return None  # which makes the weights that the assumption is about
            if not is_own and isinstance(first, Ref):
                return None  # it may give what the object holds, which is of the assumed dtype
        known = self._result(ctx, entry) if is_own else result_of(ctx, definition, self._signatures)
        if self._is_of_assumed(known) and TOP in list(bound.values())[definition.owner is not None :]:
            return None  # it has the assumed dtype for what it was read with, and nothing is known of what it is given here
        if definition.speaks_of_casts and is_module(known):
            return None  # its module is an object, which a signature does not have, and may be half
        ctx.modules.escape(ctx, list(bound.values()))
        if is_own and isinstance(first, Ref):
            self._store_tensors(ctx, first, self._summaries.get(entry))
        return applied(known, definition, bound, of_itself=is_own and entry[1] is not None)

    def _is_of_assumed(self, value: Value) -> bool:
        """Is it a tensor of the assumed dtype?"""
        assumed = self._assumption
        return assumed is not None and isinstance(value, Tensor) and value.dtypes == frozenset({assumed.inputs})

    def _store_tensors(self, ctx: Context, receiver: Ref, summary: Summary | None) -> None:
        """Set the attributes of an object to the tensors that a method of it sets them to, whose call is not followed."""
        for (address, name), value in summary.changes.items() if summary is not None else ():
            if address == receiver.address and isinstance(value, Tensor) and value.dtypes:
                ctx.store.overwrite(address, name, value)

    def _result(self, ctx: Context, entry: tuple[FunctionDefinition, Value | None]) -> Value:
        """What a function gives that is read anyway; TOP where it does not return, or calls itself."""
        known = self._results.get(entry)
        if known is None:
            self._results[entry] = TOP
            recorder, ctx.recorder = ctx.recorder, self._told
            try:
                with ctx.store.aside():
                    known = self._results[entry] = self._entered(ctx, *entry).result or TOP
            finally:
                ctx.recorder = recorder
        return known

    def _made(self, ctx: Context, cls: ProjectClass) -> Ref:
        """An object of a class as `__init__` leaves it, whatever that is given."""
        engine: Engine = ctx.semantics  # type: ignore[assignment]
        definition = cls.definition
        made = Ref(ctx.store.allocate(made_by_anybody(ctx, cls)))
        init = class_attribute(ctx, definition.order, "__init__")
        if isinstance(init, Function) and not definition.made:
            summary = self._entered(ctx, init.definition, made, init.frame)
            if summary.result is not None:
                ctx.store.apply(summary.changes)
        else:
            given: dict[str, Value] = {}
            if definition.made:
                given = {field.name: unknown_at(f"self.{field.name}") for field in definition.fields}
            with suppress(NeverReturns):
                engine.initialise(ctx, made, cls, Arguments([], given, definition.made, definition.node))
        # A class that is no module has made its models for itself: nothing is known of their dtype.
        is_module_class = definition.inherits("torch.nn.Module") is not False
        name_what_it_holds(ctx, made, self._assumption if is_module_class else None)
        if self._rounds == 1:
            forget_changed(ctx, made, definition.order)
        return made

    def _enter_region(self, ctx: Context, definition: FunctionDefinition) -> None:
        """The region that a function begins in: that of its caller, or of the assumption, unless a decorator opens one."""
        enter_region(ctx, definition)
        if self._assumption is not None and ctx.ambient("region") == TOP and ctx.ambient("opened") == NONE:
            ctx.set_ambient("region", region_under(self._assumption))


def _before(trail: Sequence[tuple[Address, object, Value]], cell: tuple[Address, object]) -> Value:
    return next(old for address, field, old in trail if (address, field) == cell)


def _holds(ctx: Context, summary: Summary) -> bool:
    """Would it be read the same again?"""
    objects = ctx.store.objects
    return all(
        objects.get(address, {}).get(field, ABSENT) == value for (address, field), value in summary.reads.items()
    )


def _apart(ctx: Context, definition: FunctionDefinition, receiver: Value | None) -> CallPath | None:
    """Where an inherited `__init__` makes what belongs to objects of another class: their weights are others."""
    if definition.name != "__init__" or not isinstance(receiver, Ref) or receiver.address.kind == definition.owner:
        return None
    cls: ProjectClass = receiver.address.kind
    return ctx.store.path(None, cls.definition.node, cls.definition.module)
