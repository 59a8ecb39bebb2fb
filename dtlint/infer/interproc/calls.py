"""Calls of functions that are read as source: each is read for what it is given, and remembered with what it has read of
the heap, so that it is not read again where nothing of that has changed.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Any

from dtlint.infer.context import Frame, NeverReturns, Unfit
from dtlint.infer.domain.lattice import join, join_all, widen
from dtlint.infer.domain.values import (
    ABSENT,
    NO_TENSOR,
    TOP,
    Address,
    Const,
    Device,
    Dtype,
    External,
    Function,
    Generator,
    Instance,
    Many,
    Mapping,
    Number,
    Partial,
    ProjectClass,
    Ref,
    Tuple,
    Unknown,
    Value,
    choices,
    may_be_absent,
    present,
)
from dtlint.infer.interproc.functions import bound_arguments
from dtlint.infer.interproc.signatures import tells_of_dtypes
from dtlint.infer.interproc.summaries import Summary, moved
from dtlint.infer.models.casts import cast_module
from dtlint.infer.models.instance_dicts import ANYTHING
from dtlint.infer.semantics.annotations import declared_in, declared_result
from dtlint.infer.semantics.names import OUTER
from dtlint.infer.semantics.regions import GENERATOR_CONTEXT
from dtlint.infer.semantics.relocation import addresses_in
from dtlint.infer.semantics.statements import MOST_ROUNDS, ROUNDS_JOINED, result_of_body
from dtlint.infer.state import Footprint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dtlint.infer.context import Arguments, Context, Recorder
    from dtlint.infer.domain.values import CallPath
    from dtlint.infer.interproc.engine import Engine
    from dtlint.infer.interproc.functions import FunctionDefinition
    from dtlint.infer.state import Difference

__all__ = ["Calls", "calls_of"]

_DEEPEST = 60
"""Calls in one another; what is deeper is not followed."""
_MOST_RECURSIVE = 3
"""A function inside itself, with other arguments each time."""
_MOST_NESTED = 8
"""A method straight inside itself, of another object each time: wrappers around one another."""
_MOST_KEPT = 24
"""Summaries of one function with the same arguments."""


_OfModule = dict[tuple[Any, ...], "list[Summary]"]
"""Summaries of a module's functions, by what these were given."""
_Summaries = dict[Any, _OfModule]
"""The same of all modules."""


@dataclass(slots=True, eq=False)
class _Running:
    """A call under way. `assumed` is what a recursive call gives, until the result is known; None: it does not return. Calls
    within that rest on this are remembered in `provisional`. `first` is its first argument: the receiver of a method."""

    definition: FunctionDefinition
    key: tuple[Any, ...]
    first: Value | None = None
    assumed: Value | None = None
    recursive: bool = False
    provisional: dict[tuple[Any, ...], list[Summary]] = dataclass_field(default_factory=dict)


class Calls:
    """Follows calls, and remembers them.

    Args:
        budget: how many calls are followed; the rest give Top.
        most_readings: how often one function is read for other arguments; the rest is as if it were not seen.
    """

    def __init__(self, budget: int, most_readings: int = 400) -> None:
        self.budget = budget
        self.most_readings = most_readings
        self._gives_first: dict[FunctionDefinition, bool] = {}
        """Has a function always given its first argument back, as most decorators do?"""
        self.followed = 0
        self.told = 0
        """What was recorded so far that every call has to tell anew."""
        self.asked: list[set[Any]] = [set()]
        """The modules that something was asked for in, for each call under way."""
        self.readings: dict[FunctionDefinition, set[object]] = {}
        """What each function was given so far."""
        self._summaries: dict[type[Recorder | None], _Summaries] = {}
        """By the kind of recorder that was told: another one is to hear of a call as well."""
        self.left_out: set[FunctionDefinition] = set()
        """The functions under way where a call that tells of dtypes was not followed, for the budget: they may do more than
        was seen."""
        self._running: list[_Running] = []
        self._thawed = 0
        self.signature: Callable[[Context, Function, dict[str, Value]], Value | None] | None = None
        """What a call gives that is not followed, by the function's signature; None where it is followed."""
        self.at_open_end: Callable[[Context, Frame], None] | None = None
        """What else is read where a function ends that nobody is seen to call: the functions that it has defined, and that
        others call."""

    def call(self, ctx: Context, function: Function, arguments: Arguments) -> Value:
        """The result of calling a function.

        Raises:
            NeverReturns: it raises for these arguments.
        """
        definition: FunctionDefinition = function.definition
        is_overridden = isinstance(function.receiver, Instance) or (definition.is_abstract and definition.model is None)
        if is_overridden:  # perhaps, by its class
            ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
            return declared_result(ctx, definition) or TOP
        if function.receiver is not None:
            arguments = arguments.before(function.receiver)
        if definition.model is not None:
            return definition.model(ctx, arguments)
        bound = bound_arguments(definition, arguments)
        if bound is None:  # another function is called, which is not seen
            ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
            raise Unfit
        for name, annotation in definition.plain_parameters.items():
            if _is_open(bound[name]):
                stated = declared_in(ctx, definition.module, annotation)
                bound[name] = bound[name] if stated is None else stated
        if definition.is_generator and "contextmanager" not in definition.decorators:
            return Generator(Function(definition, function.frame), tuple(bound.items()))
        if not definition.decorators.isdisjoint(_CACHING):
            return self._cached(ctx, function, bound, arguments.node)
        if definition.is_generator:
            return Partial(GENERATOR_CONTEXT, (function, *bound.values()), tuple(bound.items()))
        try:
            result = self.run(ctx, function, bound, arguments.node)
        except NeverReturns:
            if not isinstance(definition.node, ast.AsyncFunctionDef):
                raise
            return TOP  # the call gives a coroutine at once, which may run on for ever
        if _is_open(result):
            stated = declared_result(ctx, definition)
            if stated is not None and all(isinstance(one, _PLAIN) or one == NO_TENSOR for one in choices(stated)):
                return stated
        return result

    def _cached(self, ctx: Context, function: Function, bound: dict[str, Value], site: Any) -> Value:
        """What a function under `functools.cache` gives: what it gave before for the same arguments."""
        store = ctx.store
        cache = store.address(None, function.definition, "functools.cache")
        key = "cached", function.frame, tuple(bound.values())
        known = store.read(cache, key) if cache in store.objects else None
        if known is not None and not may_be_absent(known) and all(map(_is_certain, bound.values())):
            return known
        result = self.run(ctx, function, bound, site)
        for field in store.fields(cache) if not all(map(_is_certain, bound.values())) else ():
            other = store.read(cache, field)
            before = None if other is None else present(other)
            result = result if before is None else join(result, before)
        earlier = None if known is None else present(known)
        result = result if earlier is None else join(result, earlier)
        if cache not in store.objects:
            store.allocate(cache)
        store.overwrite(cache, key, result)
        return result

    def run(
        self,
        ctx: Context,
        function: Function,
        bound: dict[str, Value],
        site: Any,
        on_yield: Callable[[Value], Value] | None = None,
    ) -> Value:
        """The result for arguments that are bound to the parameters."""
        definition: FunctionDefinition = function.definition
        if self.signature is not None and on_yield is None:
            known = self.signature(ctx, function, bound)
            if known is not None:
                return known
        store = ctx.store
        path = store.path(ctx.frame.path, site, ctx.frame.module)
        key = definition, function.frame, tuple(bound.values()), on_yield is None
        # what a decorator puts around one function and around another are two functions
        inside = [one for one in self._running if one.key[:2] == key[:2]]
        for one in inside:
            if one.key == key:
                one.recursive = True
                if one.assumed is None:
                    raise NeverReturns
                return one.assumed
        straight = inside == self._running[len(self._running) - len(inside) :] and _of_other_objects(bound, inside)
        most = _MOST_NESTED if straight else _MOST_RECURSIVE
        if len(inside) >= most or path.depth > _DEEPEST or self.followed > self.budget:
            if self.followed > self.budget:
                ctx.notes.append("following what it calls takes too long")
            self._leave_out(ctx, function, bound)
            return TOP
        if self._thawed != store.thawed:
            self._thawed = store.thawed
            self._summaries.clear()
        given = self.readings.setdefault(definition, set())
        if on_yield is None and key not in given and len(given) >= self.most_readings:
            self._leave_out(ctx, function, bound)
            first = next(iter(bound.values()), None)
            return first if first is not None and self._gives_first.get(definition) else TOP
        given.add(key)
        if on_yield is None:
            for summary in self._known(self._remembered(ctx, definition), key):
                if not summary.tells and _holds(ctx, summary.reads):
                    if summary.path is not None and summary.path is not path:
                        if summary.defines_classes:
                            continue
                        summary = moved(ctx.store, summary, path)
                    if definition in self.left_out:
                        self.left_out.update(one.definition for one in self._running)
                    return self._again(ctx, summary)
        first = next(iter(bound.values()), None)
        summary = self._settled(ctx, function, bound, path, key, on_yield)
        self._gives_first[definition] = self._gives_first.get(definition, True) and summary.result == first
        if on_yield is None:
            # within a recursion this rests on what is assumed of its result, and holds until that changes
            around = next((one for one in reversed(self._running) if one.recursive), None)
            kept = self._remembered(ctx, definition) if around is None else around.provisional
            summaries = kept.setdefault(key, [])
            if len(summaries) >= _MOST_KEPT:
                summaries.pop(0)
            summaries.append(summary)
        return self._again(ctx, summary)

    def _leave_out(self, ctx: Context, function: Function, bound: dict[str, Value]) -> None:
        """What a call may do that is not followed, though its source is there: it is as if that were not seen, but what it
        casts has any dtype afterwards, and an object that it was to initialise may have any attribute."""
        definition: FunctionDefinition = function.definition
        if tells_of_dtypes(bound.values()):
            self.left_out.update(one.definition for one in self._running)
        ctx.modules.escape(ctx, list(bound.values()))
        if definition.speaks_of_casts:
            for value in bound.values():
                cast_module(ctx, value, None, None)
        owner = next(iter(bound.values()), None)
        if definition.name == "__init__" and isinstance(owner, Ref):
            ctx.store.overwrite(owner.address, ANYTHING, Const(True))

    def begin_run(self) -> None:
        """A program is going to be run: how often functions were read for others does not count."""
        self.readings.clear()

    def begin(self, module: Any = None) -> None:
        """A file of its own is going to be read.

        Args:
            module: whose functions are read anew, for what is to be recorded of them; those of all, where none is given: then
                what is found does not depend on what was read before.
        """
        self.readings.clear()
        self.left_out.clear()
        self.followed = 0
        self.asked = [set()]
        if module is None:
            self._summaries.clear()
        for summaries in self._summaries.values():
            summaries.pop(module, None)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is read meanwhile is of use for other files as well: it depends on nothing that was read for this one, nor on
        how much that was."""
        saved = self.readings, self.followed, self._summaries
        self.readings, self.followed, self._summaries = {}, 0, {}
        try:
            yield
        finally:
            self.readings, self.followed, self._summaries = saved

    def is_under_way(self, definition: FunctionDefinition) -> bool:
        """Is a function being read?"""
        return any(one.definition is definition for one in self._running)

    def openly(
        self, ctx: Context, function: Function, bound: dict[str, Value], path: CallPath | None = None
    ) -> Summary:
        """What a function does that nobody is seen to call. The state is as before; nothing is remembered.

        Args:
            path: tells objects that it makes from those of another such reading.
        """
        summary = self._settled(ctx, function, bound, path, (function.definition, "openly"), None)
        self.asked[-1] |= summary.rests_on
        return summary

    def _settled(
        self,
        ctx: Context,
        function: Function,
        bound: dict[str, Value],
        path: CallPath | None,
        key: tuple[Any, ...],
        on_yield: Callable[[Value], Value] | None,
    ) -> Summary:
        """Read a function until what its calls of itself give is what it gives."""
        running = _Running(function.definition, key, next(iter(bound.values()), None))
        self._running.append(running)
        rounds = 0
        try:
            while True:
                running.provisional.clear()
                summary = self._read(ctx, function, bound, path, on_yield)
                if running.recursive and summary.result is None and running.assumed is None:
                    running.assumed = TOP  # what it has changed until there makes the inner call return
                    continue
                if not running.recursive or summary.result == running.assumed or summary.result is None:
                    return summary
                known, rounds = running.assumed, rounds + 1
                running.assumed = summary.result if known is None else _next_assumed(known, summary.result, rounds)
                if running.assumed == known:
                    return summary
        finally:
            self._running.pop()

    def _remembered(self, ctx: Context, definition: FunctionDefinition) -> _OfModule:
        """The summaries of the functions of a module, as the recorder that is told now has heard of them."""
        return self._summaries.setdefault(type(ctx.recorder), {}).setdefault(definition.module, {})

    def _known(self, remembered: _OfModule, key: tuple[Any, ...]) -> Iterator[Summary]:
        """What earlier calls with these arguments were found to do."""
        yield from reversed(remembered.get(key, ()))
        for one in self._running:
            if one.recursive:
                yield from one.provisional.get(key, ())

    def _again(self, ctx: Context, summary: Summary) -> Value:
        """What a call does that is known already."""
        store = ctx.store
        self.asked[-1] |= summary.rests_on
        footprint = store.footprints[-1]
        for cell, value in summary.reads.items():
            if cell[0] not in footprint.made and cell not in footprint.writes and cell[0] not in store.frozen:
                footprint.reads.setdefault(cell, value)
        if store.watches:
            for (address, field), value in summary.seen.items():
                store.note(address, field, value)
        if summary.result is None:
            raise NeverReturns
        store.repeat(summary.changes)
        return summary.result

    def _read(
        self,
        ctx: Context,
        function: Function,
        bound: dict[str, Value],
        path: CallPath | None,
        on_yield: Callable[[Value], Value] | None,
    ) -> Summary:
        """Run the body from here; the state is as before afterwards."""
        definition: FunctionDefinition = function.definition
        self.followed += 1
        told = self.told
        self.asked.append({definition.module})
        store, caller, place = ctx.store, ctx.frame, ctx.site
        mark = store.mark()
        footprint = Footprint()
        store.footprints.append(footprint)
        store.watch(footprint.made)
        address = store.address(path, definition, "frame")
        frame = Frame(address, path, definition.module, definition, mark, on_yield=on_yield)
        # `__getitem__` says by an exception that there is no such item: what it looks for may be missing
        frame.trying = int(definition.name == "__getitem__")
        frame.undecided = ctx.undecided
        ctx.frame = frame
        try:
            self._enter(ctx, function, bound, address)
            result = self._body(ctx, definition, frame)
            changes = {} if result is None else store.difference(mark)
        finally:
            asked = frozenset(self.asked.pop())
            seen = store.unwatch()
            store.footprints.pop()
            ctx.frame, ctx.site = caller, place
        made = {cell[0] for cell in changes if cell[1] == "*made"} | footprint.made
        kept = _reachable(changes, made, result) if result is not None else set()
        changes = {cell: value for cell, value in changes.items() if cell[0] not in made or cell[0] in kept}
        store.undo(mark)
        reads = {
            cell: value
            for cell, value in footprint.reads.items()
            if cell[0] not in made and cell[0] not in store.frozen
        }
        if on_yield is not None:  # what the block of the `with` does is the caller's
            store.footprints[-1].absorb(footprint)
        return Summary(reads, changes, result, path if kept else None, seen, self.told > told, asked)

    def _enter(self, ctx: Context, function: Function, bound: dict[str, Value], address: Address) -> None:
        """The variables of a call, at its beginning."""
        store = ctx.store
        definition = function.definition
        if address in store.objects:  # of an earlier round of a loop: those variables are gone
            for field in store.fields(address):
                store.overwrite(address, field, ABSENT)
        store.allocate(address)
        store.footprints[-1].made.add(address)
        given = definition.node.args
        for name, value in bound.items():
            if given.kwarg is not None and name == given.kwarg.arg and isinstance(value, Mapping):
                held = store.allocate(store.address(ctx.frame.path, given.kwarg, "builtins.dict"), value)
                value = Ref(held)
            store.overwrite(address, name, value)
        if function.frame is not None:
            store.overwrite(address, OUTER, Ref(function.frame))
        if definition.owner is not None and bound:
            store.overwrite(address, "__class__", definition.owner)
            store.overwrite(address, "*receiver", next(iter(bound.values())))

    def _body(self, ctx: Context, definition: FunctionDefinition, frame: Frame) -> Value | None:
        """Run the statements; the state behind is where all returns meet. None where there are none."""
        store = ctx.store
        if isinstance(definition.node, ast.Lambda):
            try:
                return ctx.semantics.evaluate(ctx, definition.node.body)
            except NeverReturns:
                return None
        result = result_of_body(ctx, definition.node.body)
        ends = result is not None and not frame.returns and not self._running[-1].recursive
        if frame.returns or result is None:
            if result is not None:
                frame.returns.append((store.difference(frame.mark), result))
            store.undo(frame.mark)
            if not frame.returns:
                if frame.yields:
                    return Many(join_all(frame.yields) or TOP)
                return None
            store.merge([changed for changed, _ in frame.returns])
            result = join_all(value for _, value in frame.returns)
        if self.at_open_end is not None and frame.path is None:
            self.at_open_end(ctx, frame)
        if definition.is_generator and ends and frame.in_order and 0 < len(frame.yields) <= _MOST_YIELDED:
            return Tuple(tuple(frame.yields))
        if definition.is_generator:
            return Many(join_all(frame.yields) or TOP)
        return result


def calls_of(ctx: Context) -> Calls:
    """The calls of the engine that reads."""
    engine: Engine = ctx.semantics  # type: ignore[assignment]
    return engine.calls


def _next_assumed(known: Value, found: Value, rounds: int) -> Value:
    """What a recursive call is assumed to give next: what it was assumed to, and what was found for that."""
    if rounds > MOST_ROUNDS:
        return TOP
    return join(known, found) if rounds <= ROUNDS_JOINED else widen(known, found)


def _is_open(value: Value) -> bool:
    """Is nothing known of it?"""
    return type(value) is Unknown and not value.dtypes and value != NO_TENSOR


_MOST_YIELDED = 64
"""What a generator gives is told one by one where it is no more."""
_PLAIN = (Const, Device, Dtype, Number)
"""What a function that nothing else is known of gives, where it is declared so."""
_CACHING = frozenset({"lru_cache", "cache"})


def _of_other_objects(bound: dict[str, Value], inside: Sequence[_Running]) -> bool:
    """Is each call of a function under way one of an object of its own?"""
    owners = [next(iter(bound.values()), None), *(one.first for one in inside)]
    return len(set(owners)) == len(owners) and all(isinstance(one, Ref) for one in owners)


def _is_certain(value: Value) -> bool:
    """Is it one thing each time, as far as a cache tells things apart?"""
    return isinstance(value, (Const, Dtype, External, Function, ProjectClass, Ref))


def _holds(ctx: Context, reads: Difference) -> bool:
    """Do cells hold what they held?"""
    objects = ctx.store.objects
    for (address, field), value in reads.items():
        fields = objects.get(address)
        now = ABSENT if fields is None else fields.get(field, ABSENT)
        if now is not value and now != value:
            return False
    return True


def _reachable(changes: Difference, made: set[Address], result: Value) -> set[Address]:
    """The objects that a call has made and that outlive it: its result, and what it stored, lead to them."""
    if not made:
        return set()
    fields: dict[Address, list[Value]] = {}
    waiting: list[Value] = [result]
    for (address, _), value in changes.items():
        if address in made:
            fields.setdefault(address, []).append(value)
        else:
            waiting.append(value)
    found: set[Address] = set()
    while waiting:
        for address in addresses_in(waiting.pop()):
            if address in made and address not in found:
                found.add(address)
                waiting += fields.get(address, ())
    return found
