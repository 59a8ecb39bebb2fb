"""Libraries: functions and methods that are read as called by anybody, for parameters whose dtypes are symbols.

A method starts from what `__init__` leaves in `self`, joined with what all other functions may leave there and in globals.
Whoever has a module may have cast it: its weights have symbols, too. The autocast region around a call is not known, nor
is the default dtype, unless the file sets it. What they are given, and what else is known of a call, the callers say.
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
from dtlint.infer.interproc.callers import AssumedCallers, Callers, Entry
from dtlint.infer.interproc.calls import calls_of
from dtlint.infer.interproc.changed_state import forget_changed, forget_changed_globals
from dtlint.infer.interproc.entry_regions import enter_region, region_under
from dtlint.infer.interproc.learning import Examples, Learning
from dtlint.infer.interproc.open_objects import name_what_it_holds, unknown_at
from dtlint.infer.interproc.own_contexts import OwnContexts
from dtlint.infer.models import scaling
from dtlint.infer.models.handed_over import SUPPOSING
from dtlint.infer.models.module_trees import is_module
from dtlint.infer.models.ops import GOES_ON
from dtlint.infer.semantics.annotations import made_by_anybody
from dtlint.infer.semantics.attributes import class_attribute
from dtlint.infer.state import AMBIENT
from dtlint.source.definitions import classes, functions, nested_classes
from dtlint.source.examples import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from collections.abc import Mapping as MappingOf

    from dtlint.infer.context import Context, Frame
    from dtlint.infer.domain.values import Address, CallPath
    from dtlint.infer.interproc.by_signature import Signature
    from dtlint.infer.interproc.functions import FunctionDefinition
    from dtlint.infer.interproc.program import Program
    from dtlint.infer.interproc.project import ModuleInfo
    from dtlint.infer.interproc.summaries import Summary
    from dtlint.infer.state import Difference

__all__ = ["OpenContexts"]

_MOST_ROUNDS = 4
"""Readings of all functions, until what they leave behind stays as it is."""


class OpenContexts:
    """Reads a library: its functions, and the methods of its classes.

    Args:
        recorder: who is told what expressions are.
        callers: who calls the functions.
        with_callees: is the recorder told of what the functions call, too, with what these are given? Rules ask what happens in
            an object that was just made: everything is read once then.
        signatures: what functions give where their parameters are symbols, as far as it is known. Calls that tell nothing of
            dtypes are not followed.
    """

    def __init__(
        self,
        main: ModuleInfo,
        recorder: Recorder,
        callers: Callers,
        *,
        with_callees: bool = False,
        signatures: dict[FunctionDefinition, Signature],
    ) -> None:
        self.main = main
        self.broken_off: type[Exception] | None = None
        """What has kept the reading of a function from its end, RecursionError or TooLong."""
        self.finished: set[FunctionDefinition] = set()
        """The functions that were read to their ends."""
        self._callers = callers
        self._own = OwnContexts(recorder, main, tells_of_constructors=callers.assumption is not None)
        self._told: Recorder = recorder if with_callees else self._own
        """Who is told what is evaluated."""
        self._with_callees = with_callees
        self._signatures = signatures
        self._entry: FunctionDefinition | None = None
        self._is_within = False
        """Is something asked for as within a function that is read?"""
        self._summaries: dict[Entry, Summary] = {}
        self._bound: dict[Entry, dict[str, Value]] = {}
        """What their parameters were."""
        self._entries: set[Entry] = set()
        """The functions that are read, as soon as the objects are there whose methods they are."""
        self._results: dict[Entry, Value] = {}
        """What calls of these give."""

    def readings(self) -> Iterator[tuple[FunctionDefinition, Value | None, MappingOf[str, Value], Summary]]:
        """What was read: each function with the object whose method it is, what its parameters were, and what it does."""
        for entry, summary in self._summaries.items():
            yield (*entry, self._bound[entry], summary)

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
        if self._with_callees:  # else what functions leave is read
            forget_changed_globals(ctx, modules.address_of(self.main), self.main.tree)
        top = map(modules.defined_function, filter(wanted, functions(self.main.tree.body)))
        alone = [Entry(one) for one in top if one is not None]
        methods: list[Entry] = []
        self._entries = set(alone)
        for node in filter(wanted, nested_classes(self.main.tree.body)):
            cls = modules.class_at(node)
            if cls is not None and cls.definition.inherits("enum.Enum") is not True:
                made = self._made(ctx, cls)
                methods += [Entry(one, made) for one in self._methods(modules, cls) if wanted(one.node)]
                self._entries.update(methods)
        if isinstance(self._callers, AssumedCallers):
            self._learn(ctx, self._callers, [*alone, *methods])
        entries = [one for one in (*alone, *methods) if only is None or one.definition.node in only]
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
        calls, assumption = calls_of(ctx), self._callers.assumption
        if self._with_callees:
            calls.at_open_end = self._read_inner
        calls.signature = self._by_signature
        ctx.set_ambient(GOES_ON, Const(True))
        ctx.set_ambient("region", TOP if assumption is None else region_under(assumption))
        if assumption is not None:
            ctx.set_ambient("default dtype", Const("float32"))
            ctx.set_ambient("assumed", Const(assumption.inputs))
            ctx.set_ambient(SUPPOSING, Const(self._with_callees))
        if ctx.store.read(AMBIENT, "default dtype") is None:
            ctx.set_ambient("default dtype", TOP)

    def _learn(self, ctx: Context, callers: AssumedCallers, entries: Sequence[Entry]) -> None:
        """Read all functions for what they give one another, until that tells no more of their parameters."""
        ctx.recorder = callers.examples
        self._follow_examples(ctx, callers.assumption.inputs)
        learning = ctx.recorder = callers.learning
        for _ in range(_MOST_ROUNDS):
            learning.more = False
            for entry in entries:
                self._entered(ctx, entry)
            self._summaries.clear()
            self._results.clear()
            if not learning.more:
                break
        ctx.recorder = self._told

    def _follow_examples(self, ctx: Context, dtype: str) -> None:
        """Read the examples in docstrings for what they give to functions, where floats are of the assumed dtype by
        default. What cannot be followed shows nothing."""
        if dtype not in FLOATING:
            return
        calls = calls_of(ctx)
        around = ctx.ambient("default dtype")
        ctx.set_ambient("default dtype", Const(dtype))
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        for body in examples(self.main.tree):
            node = ast.FunctionDef("example", nothing, body, [], lineno=1, col_offset=0)
            definition = ctx.modules.function(self.main, node, None)
            definition.set_defaults({})
            with suppress(NeverReturns):
                calls.openly(ctx, Function(definition, None), {})
        ctx.set_ambient("default dtype", around)

    def _methods(self, modules: Program, cls: ProjectClass) -> Iterator[FunctionDefinition]:
        """The methods of a class and of those that it inherits from, as far as they are in the library itself."""
        for one in cls.definition.order:
            if isinstance(one, ProjectClass) and one.definition.module is self.main:
                for node in functions(one.definition.node.body):
                    found = modules.defined_function(node)
                    if found is not None and not found.is_constructor and found.name != "__init_subclass__":
                        yield found

    def _read_until_nothing_changes(self, ctx: Context, entries: Sequence[Entry]) -> None:
        """Read all functions from one state: what each of them leaves, any other may find."""
        store = ctx.store
        rounds = 1 if self._with_callees else _MOST_ROUNDS
        for count in range(rounds):
            left = [self._left_by(ctx, entry) for entry in entries]
            changed = [one for one in left if one]
            if not changed or count == rounds - 1:
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

    def _left_by(self, ctx: Context, entry: Entry) -> Difference:
        """What a function leaves behind, as called by anybody; nothing where it cannot be followed to its end."""
        if not self._with_callees:
            return self._entered(ctx, entry).changes
        store, frame = ctx.store, ctx.frame
        mark = store.mark()
        try:
            return self._entered(ctx, entry).changes
        except (RecursionError, TooLong) as error:
            self.broken_off = type(error)
            store.undo(mark)
            ctx.frame = frame
            return {}

    def _entered(self, ctx: Context, entry: Entry, outer: Address | None = None) -> Summary:
        """What a function does from here, as called by anybody.

        Args:
            outer: the variables of the function that it is defined in.
        """
        definition = entry.definition
        around = ctx.ambient("region"), ctx.ambient("opened")
        caller, self._entry = self._entry, definition
        if not self._with_callees:
            self._own.enter(definition)
        scaling.forget(ctx)
        self._enter_region(ctx, definition)
        try:
            known = self._summaries.get(entry)
            if known is not None and _holds(ctx, known):
                return known
            bound, summary = self._read_entry(ctx, entry, outer)
        finally:
            self._entry = caller
            if not self._with_callees:
                self._own.enter(caller)
            ctx.set_ambient("region", around[0])
            ctx.set_ambient("opened", around[1])
        self._summaries[entry], self._bound[entry] = summary, bound
        self.finished.add(definition)
        return summary

    def _read_entry(self, ctx: Context, entry: Entry, outer: Address | None) -> tuple[dict[str, Value], Summary]:
        """What a function is given, and what it does then."""
        definition, receiver = entry
        bound = self._callers.parameters(ctx, definition)
        if entry.own is not None:
            of_class = "classmethod" in definition.decorators and isinstance(receiver, Ref)
            bound[entry.own] = receiver.address.kind if of_class else receiver  # type: ignore
        bound = self._callers.given(ctx, entry, bound)
        tensors = self._callers.as_tensors(definition, bound)
        calls, function = calls_of(ctx), Function(definition, outer)
        summary = calls.openly(ctx, function, bound | tensors, _apart(ctx, entry))
        if tensors and summary.result is None:  # they are something else
            return bound, calls.openly(ctx, function, bound)
        return bound | tensors, summary

    def _read_inner(self, ctx: Context, frame: Frame) -> None:
        """Read the functions and classes inside a function that no call in view has run: others call them, with what they
        find in its variables at its end."""
        calls = calls_of(ctx)
        for node in frame.function.inner:
            definition = ctx.modules.function(frame.module, node, None)
            if definition.defaults is not None and definition not in calls.readings:
                bound = self._callers.parameters(ctx, definition)
                calls.openly(ctx, Function(definition, frame.address), bound)
        if self._callers.assumption is None:
            for cls in map(ctx.modules.class_at, classes(frame.function.node.body)):  # type: ignore[attr-defined]
                if cls is not None:
                    self._read_class(ctx, cls, frame.address)

    def _read_class(self, ctx: Context, cls: ProjectClass, outer: Address) -> None:
        """Read the methods of a class that a function defines; the state is as before afterwards. One that it inherits, and
        in which it is defined, is under way."""
        calls, store = calls_of(ctx), ctx.store
        mark = store.mark()
        made = self._made(ctx, cls)
        for definition in self._methods(ctx.modules, cls):  # type: ignore[arg-type]
            if not calls.is_under_way(definition):
                self._entered(ctx, Entry(definition, made), outer)
        store.undo(mark)

    def _by_signature(self, ctx: Context, function: Function, bound: dict[str, Value]) -> Value | None:
        """What a call gives by the function's signature; None where it is to be followed, for it tells of dtypes, or is part
        of a program that runs."""
        definition: FunctionDefinition = function.definition
        if isinstance(ctx.recorder, (Learning, Examples)) and definition.module is self.main:
            ctx.recorder.called(definition, bound)
        if self._entry is None and not self._is_within:
            return None
        if definition.module is self.main and not self._with_callees:
            return None  # the file alone is read, and its own functions are followed
        if is_followed(ctx, function, bound):
            return None
        first = next(iter(bound.values()), None)
        entry = Entry(definition, None if definition.owner is None else first)
        is_own = entry in self._entries
        if self._callers.assumption is not None and definition.owner is not None:
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
        return applied(known, definition, bound, of_itself=is_own and entry.receiver is not None)

    def _is_of_assumed(self, value: Value) -> bool:
        """Is it a tensor of the assumed dtype?"""
        assumed = self._callers.assumption
        return assumed is not None and isinstance(value, Tensor) and value.dtypes == frozenset({assumed.inputs})

    def _store_tensors(self, ctx: Context, receiver: Ref, summary: Summary | None) -> None:
        """Set the attributes of an object to the tensors that a method of it sets them to, whose call is not followed."""
        for (address, name), value in summary.changes.items() if summary is not None else ():
            if address == receiver.address and isinstance(value, Tensor) and value.dtypes:
                ctx.store.overwrite(address, name, value)

    def _result(self, ctx: Context, entry: Entry) -> Value:
        """What a function gives that is read anyway; TOP where it does not return, or calls itself."""
        known = self._results.get(entry)
        if known is None:
            self._results[entry] = TOP
            recorder, ctx.recorder = ctx.recorder, self._told
            try:
                with ctx.store.aside():
                    known = self._results[entry] = self._entered(ctx, entry).result or TOP
            finally:
                ctx.recorder = recorder
        return known

    def _made(self, ctx: Context, cls: ProjectClass) -> Ref:
        """An object of a class as `__init__` leaves it, whatever that is given."""
        definition = cls.definition
        made = Ref(ctx.store.allocate(made_by_anybody(ctx, cls)))
        init = class_attribute(ctx, definition.order, "__init__")
        if isinstance(init, Function) and not definition.made:
            summary = self._entered(ctx, Entry(init.definition, made), init.frame)
            if summary.result is not None:
                ctx.store.apply(summary.changes)
        else:
            given: dict[str, Value] = {}
            if definition.made:
                given = {field.name: unknown_at(f"self.{field.name}") for field in definition.fields}
            with suppress(NeverReturns):
                ctx.semantics.initialise(ctx, made, cls, Arguments([], given, definition.made, definition.node))
        # A class that is no module has made its models for itself: nothing is known of their dtype.
        is_module_class = definition.inherits("torch.nn.Module") is not False
        name_what_it_holds(ctx, made, self._callers.assumption if is_module_class else None)
        if self._with_callees:
            forget_changed(ctx, made, definition.order)
        return made

    def _enter_region(self, ctx: Context, definition: FunctionDefinition) -> None:
        """The region that a function begins in: that of its caller, or of the assumption, unless a decorator opens one."""
        enter_region(ctx, definition)
        assumption = self._callers.assumption
        if assumption is not None and ctx.ambient("region") == TOP and ctx.ambient("opened") == NONE:
            ctx.set_ambient("region", region_under(assumption))


def _before(trail: Sequence[tuple[Address, object, Value]], cell: tuple[Address, object]) -> Value:
    return next(old for address, field, old in trail if (address, field) == cell)


def _holds(ctx: Context, summary: Summary) -> bool:
    """Would it be read the same again?"""
    objects = ctx.store.objects
    return all(
        objects.get(address, {}).get(field, ABSENT) == value for (address, field), value in summary.reads.items()
    )


def _apart(ctx: Context, entry: Entry) -> CallPath | None:
    """Where an inherited `__init__` makes what belongs to objects of another class: their weights are others."""
    definition, receiver = entry
    if definition.name != "__init__" or not isinstance(receiver, Ref) or receiver.address.kind == definition.owner:
        return None
    cls: ProjectClass = receiver.address.kind
    return ctx.store.path(None, cls.definition.node, cls.definition.module)
