"""Functions in context: a call reads a function for its own arguments, and remembers what that gave.

What gets out of sight, because it is handed to code that is not seen, may be called with anything: it is loose, and is
read for anybody at the end."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.events import Flow
from dtlint.infer.interpreter import autocast_in, result_of
from dtlint.infer.names import path_of
from dtlint.infer.program.binding import bound_names
from dtlint.infer.program.frames import Frames, Write
from dtlint.infer.program.held import shares
from dtlint.infer.program.promises import meeting
from dtlint.infer.program.signature import signature
from dtlint.infer.program.sizes import sizes_in
from dtlint.infer.program_state import Cast, State, merged_casts
from dtlint.infer.scopes import ClassInfo, FunctionInfo, FunctionNode
from dtlint.infer.survey import facts
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Autocast,
    Class,
    Constant,
    Dtypes,
    Either,
    External,
    Function,
    Instance,
    Items,
    Iteration,
    Key,
    Module,
    NullContext,
    Number,
    Partial,
    Table,
    Unknown,
    Value,
    identities,
    join,
    options,
)
from dtlint.infer.walk import SCOPES, nodes

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, MutableMapping, Sequence, Set

    from dtlint.infer.interproc.project import ModuleInfo, Project
    from dtlint.infer.program.objects import Store

__all__ = ["ANYBODY", "ANY_REGION", "MOST_READINGS", "RUNNING", "Functions", "Managed"]

_DEEPEST = 60
"""Calls inside one another that are followed."""
MOST_READINGS = 6_000
"""Readings of functions in one round; past it, calls give Unknown."""
_MOST_CONTEXTS = 12
"""Readings of one function by the constants it is given; past it, numbers and strings are unknown to it."""
_SHORT = 12
"""Lines of a function that is read again for the same arguments, where an attribute was missing the first time."""
_MOST_LINES = 2_000
"""A short function may be read more often: as long as its readings come to fewer lines than these."""
ANYBODY = "?"
"""Begins the key of an instance that code may have that is not seen: its weights may have been cast to anything."""


ANY_REGION = Autocast(None, None, None)
"""The autocast region of code that is called from where nobody sees: there may be one, for any device, or none."""

_INTEGER = Number(Category.INTEGER)
_NO_PATHS: Mapping[str, Value] = {}

SUPPOSED = "~"
"""Begins the call path of what is read for anybody."""


class Functions(Frames):
    """An interpreter that reads a function once for each way in which it is called."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.readings = 0
        """Readings of functions in this round."""
        self.stores_of: dict[int, frozenset[Store]] = {}
        """The attributes that each function was seen to assign, in any round, by the identity of its syntax."""
        self.known: dict[Hashable, _Outcome] = {}
        """What reading a function in a context gave."""
        self.in_progress: set[tuple[int, Hashable]] = set()
        """The calls that are being read, each by the identity of the function's syntax and by what it is given."""
        self.contexts_of: dict[int, int] = {}
        self.missing = 0
        """Counts the attributes that were asked for and not there: they may be assigned later."""
        self.frames: list[State] = []
        """The states of those who wait for what is read to end: callers, and the code that they were called from."""
        self.around_frames: list[tuple[MutableMapping[str, Value], ...]] = []
        """What each of them finds around it: the names of enclosing functions, and of its module."""
        self.reaches = 0
        """The outermost of them, by its place, of which what is read just now has changed a container, or kept one."""
        self.cached_results: dict[Hashable, Value] = {}
        """What functions that keep their results have given in this round, by what they were given."""
        self.changed_containers: set[int] = set()
        """Containers that have changed in this round, by their identity: what a call gave of them it would give otherwise."""
        self.cached_containers: dict[int, Hashable] = {}
        """Which of them a container is of, or in, by its identity."""
        self.reading_now = 0
        """The reading of a function that is under way, by its number; 0 outside of all."""
        self.made_by: dict[Key, int] = {}
        """The reading in which each object was made, by its identity: one that a second makes stands for both."""
        self.casting_themselves: set[Key] = set()
        """Modules whose class says by `_apply` what a cast does to them."""
        self.class_made_at: dict[Key, ast.ClassDef] = {}
        """The class of what each place has made first: another has keys of its own."""
        self.classes_made: set[int] = set()
        """The classes that objects were made of, and their bases, by the identity of their syntax."""
        self.made_here: list[Key] = []
        """The objects that were made, one after the other."""
        self.casts_at_returns: dict[Key, Cast] | None = None
        self.yields: list[Value] = []
        self.doubts: tuple[int, ...] = (0,)
        """The reading of a function, and in it the undecided branches and the loops around the place that is read."""
        self.doubt_count = 0
        self.left_early = False
        """Has a path through the function that is read ended before this place?"""
        self.defaults_set: list[Dtypes] = []
        """The default dtypes that were set in this round, one after the other."""
        self.defaults_at_yield: list[Dtypes] = []
        """The default dtype at each `yield` of the function that is read, or was read last."""
        self.casts_at_yield: list[dict[Key, Cast]] = []
        """The casts of modules at each of them."""
        self.given_up: set[int] = set()
        """Functions of which a call was not read, by the identity of their syntax: they were called with anything."""
        self.called_unread = False
        """Is what is read for anybody a function that was seen to be called, and given up?"""
        self.managing: set[int] = set()
        """Generator functions that were made context managers: a `with` runs them, in the order in which it is read."""
        self.contexts_at_entry = 0
        self.regions_at_yield: dict[int, list[Autocast | None]] = {}
        """The autocast regions that generators have open where they yield, by the identity of their syntax."""
        self.in_its_place: dict[int, list[FunctionInfo]] = {}
        """What was put in the place of a method, by the identity of the method's syntax."""
        self.loose: dict[int, FunctionInfo] = {}
        """Functions that code may call that is not seen, by the identity of their syntax."""
        self.reached: set[int] = set()
        self.functions: dict[int, FunctionInfo] = {}
        self.classes: dict[int, ClassInfo] = {}
        """What definitions outside functions have made, once and for all rounds, by the identity of their syntax."""
        self.defined: dict[int, FunctionInfo] = {}
        """Functions of the main module, by the identity of their syntax."""

    @property
    def supposed(self) -> bool:
        """Is what is being read only supposed to run, because code may call it that is not seen?"""
        return self.call_path[:1] == [SUPPOSED]

    # -- what gets out of sight

    def lose(self, value: Value, depth: int = 0) -> None:
        """Nobody follows this value any more: what can be called of it may be called with anything."""
        if depth > 3:
            return
        if isinstance(value, Function):
            self.loosen(value.info)
        elif isinstance(value, (Module, Instance, Class)) and value.info is not None:
            self.loosen_class(value.info)
        elif isinstance(value, (Items, Either)):
            for item in value.items if isinstance(value, Items) else value.choices:
                self.lose(item, depth + 1)
        elif isinstance(value, Table):
            for item in value.items.values():
                self.lose(item, depth + 1)
        elif isinstance(value, Iteration):
            self.lose(value.item, depth + 1)
        elif isinstance(value, Partial):
            self.lose(value.callee, depth + 1)
        elif isinstance(value, Managed):
            self.loosen(value.function.info)

    def lost(self, value: Value) -> Value:
        self.lose(value)
        return UNKNOWN

    def loosen(self, info: FunctionInfo) -> None:
        self.loose.setdefault(id(info.node), info)
        self.loosen_closure(info)

    def loosen_class(self, info: ClassInfo) -> None:
        for parent in info.lineage:
            for method in parent.methods.values():
                self.loosen(method)

    # -- definitions

    def define_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ClassInfo | None = None
    ) -> FunctionInfo:
        kind = _accessor(node)
        if kind is not None and owner is not None and node.name in owner.methods:
            getter = owner.methods[node.name]
            setter = self.accessor(node, owner)
            if kind == "setter":
                owner.setters[node.name] = setter
            return getter
        decorators = [self.value(decorator) for decorator in node.decorator_list]
        scope = self.scope()
        contexts = [context for context in map(autocast_in, decorators) if context is not None]
        if self.flow.function is None and not self.loops_open:
            info = self.functions.get(id(node))
            if info is None:
                info = self.functions[id(node)] = FunctionInfo(node, scope, owner, contexts, module=self.module)
        else:
            info = self.closure(node, scope)
            info.owner, info.contexts = owner, contexts
        info.defaults = self.defaults_of(node)
        if self.module is self.main:
            self.defined[id(node)] = info
        value: Value = Function(info)
        for decorator in reversed(decorators):
            value = self.decorated(decorator, value)
        if owner is None:
            self.bind_name(node.name, value)
        if isinstance(value, Function):
            if value.info is info:
                return info
            return replace(value.info, owner=owner, _decorated=info.decorated)  # what wraps a static method is one
        if owner is not None and isinstance(value, Managed) and value.function.info is info:
            self.managing.add(id(info.node))
            info.managed = True
            return info
        if owner is not None or not isinstance(value, Managed):
            self.loosen(info)
        return replace(info, module=None)

    def accessor(self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ClassInfo) -> FunctionInfo:
        """The setter or deleter of a property: it does not take the property's name."""
        info = self.functions.get(id(node)) if self.flow.function is None else self.closure(node, self.scope())
        if info is None:
            info = self.functions[id(node)] = FunctionInfo(node, self.scope(), owner, [], module=self.module)
        info.owner = owner
        if self.module is self.main:
            self.defined[id(node)] = info
        return info

    def setter_of(self, info: ClassInfo | None, name: str) -> FunctionInfo | None:
        """The function that assigning to the attribute calls, if there is one."""
        for parent in () if info is None else info.lineage:
            if name in parent.methods:
                return parent.setters.get(name)
        return None

    def class_of(self, node: ast.ClassDef, bases: list[Value]) -> ClassInfo:
        if self.flow.function is not None or self.loops_open:
            return super().class_of(node, bases)
        info = self.classes.get(id(node))
        if info is None:
            info = self.classes[id(node)] = ClassInfo(node, bases)
        return info

    def define_class(self, node: ast.ClassDef) -> None:
        """A decorator of a class is read for it: it may change the class, keep it, or give another."""
        super().define_class(node)
        made = self.quietly(ast.Name(node.name, ast.Load()))
        if isinstance(made, Class):
            self.tell_bases(made, node)
        for part in reversed(node.decorator_list):
            decorators = options(self.quietly(part))
            for decorator in decorators:
                if isinstance(made, Class):
                    made = self.decorated_class(made, part, decorator, len(decorators) == 1)
                    if not isinstance(made, Class) or made.info.node is not node:
                        self.bind_name(node.name, made)

    def decorated_class(self, made: Class, node: ast.expr, decorator: Value, certain: bool) -> Value:
        """What a decorator makes of a class; one of several that it may be is read for what it keeps of it."""
        if not isinstance(decorator, Function):
            called = self.quietly(node.func) if isinstance(node, ast.Call) else decorator
            if isinstance(decorator, Unknown) and type(called) is Unknown:
                self.lose(made)  # a registry perhaps
            return made
        rewriting = certain and _rewrites(decorator.info, made.info)
        if not rewriting and not _keeps_class(decorator.info.node):
            return made
        given = self.apply(decorator.info, decorator.receiver, [made], {}, True)
        if given != made:
            self.lose(made)
        return given if rewriting else made

    def tell_bases(self, made: Class, node: ast.ClassDef) -> None:
        """A base of a class hears of it, by `__init_subclass__`."""
        for parent in made.info.lineage[1:]:
            hearing = parent.methods.get("__init_subclass__")
            if hearing is not None:
                keywords = {word.arg: self.quietly(word.value) for word in node.keywords if word.arg}
                keywords.pop("metaclass", None)
                self.apply(hearing, made, [], keywords, True)
                return

    def put_in_place(self, owner: ClassInfo, name: str, value: Value) -> None:
        """A class's method is replaced, or one is added: calls that go before have the one, and those behind the other."""
        method = owner.method(name)
        function = value.info if isinstance(value, Function) else None
        if method is None and function is None:
            return
        if method is None and function is not None:
            hidden = isinstance(function.node, ast.Lambda)  # whether it is bound to the instance nobody asks
            self.lose(value)
            owner.methods[name] = replace(function, owner=owner, module=None if hidden else function.module)
            self.method_changed()
        elif method is not None and (function is None or function.node is not method.node):
            others = self.in_its_place.setdefault(id(method.node), [])
            other = function or replace(method, module=None)
            if function is None:
                self.lose(value)
            if all(known.node is not other.node for known in others):
                others.append(other)
                self.method_changed()

    def method_changed(self) -> None:
        """What was read before a method was replaced, may have called either."""

    def defaults_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> dict[str, Value]:
        arguments = node.args
        positional = arguments.posonlyargs + arguments.args
        with_default = positional[len(positional) - len(arguments.defaults) :]
        given = {arg.arg: self.value(value) for arg, value in zip(with_default, arguments.defaults, strict=True)}
        for arg, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if value is not None:
                given[arg.arg] = self.value(value)
        return self.kept_defaults(node, given)

    def kept_defaults(self, node: FunctionNode, given: dict[str, Value]) -> dict[str, Value]:
        """The defaults of a function, which are made once for all its calls."""
        return given

    def decorated(self, decorator: Value, value: Value) -> Value:
        """What a decorator makes of a function."""
        decorator = self.resolved(decorator)
        if isinstance(decorator, (Autocast, NullContext)):
            return value
        if isinstance(decorator, External) and (decorator.name in _KEEPING or decorator.name.startswith("torch.jit.")):
            return value
        if decorator == External("contextlib.contextmanager") and isinstance(value, Function):
            return Managed(value)
        if isinstance(decorator, Function):
            return self.apply(decorator.info, decorator.receiver, [value], {}, True)
        self.lose(value)
        return UNKNOWN

    # -- calls

    def apply(
        self,
        info: FunctionInfo,
        receiver: Value | None,
        args: Sequence[Value],
        keywords: dict[str, Value],
        complete: bool,
        paths: Mapping[str, Value] = _NO_PATHS,
    ) -> Value:
        """Read a function for the arguments it is given, and what was put in its place.

        Args:
            paths: what attributes of its arguments hold when it begins, by their dotted paths in its body.
        """
        result = self.apply_itself(info, receiver, args, keywords, complete, paths)
        if _is_cached(info.node):
            result = self.cached_result(info, receiver, args, result)
        for other in self.in_its_place.get(id(info.node), ()):
            result = join(result, self.apply_itself(other, receiver, args, keywords, complete, paths))
        return result

    def cached_result(self, info: FunctionInfo, receiver: Value | None, args: Sequence[Value], result: Value) -> Value:
        """What a function gives that is run once for the same arguments: what it gave then, or does now."""
        given = args if receiver is None else (receiver, *args)
        place = (id(info.node), tuple(map(signature, given)))
        before = self.cached_results.get(place)
        self.cached_results[place] = result if before is None else join(before, result)
        self.cached_containers.update(dict.fromkeys(identities(result), place))
        return self.cached_results[place]

    def apply_itself(
        self,
        info: FunctionInfo,
        receiver: Value | None,
        args: Sequence[Value],
        keywords: dict[str, Value],
        complete: bool,
        paths: Mapping[str, Value],
    ) -> Value:
        """The same, without what was put in its place."""
        if info.module is None:  # what a decorator has made of it is not seen
            for value in (*args, *keywords.values()):
                self.lose(value)
            return UNKNOWN
        if receiver is not None:
            args = [receiver, *args]
        left_out = {name: self.kept_aside(value) for name, value in info.defaults.items()}
        bound = bound_names(info, list(args), keywords, complete, left_out) | dict(paths)
        read = self.contexts_of.get(id(info.node), 0)
        most = max(_MOST_CONTEXTS, _MOST_LINES // _lines(info))
        self.defaults_at_yield, self.casts_at_yield = [], []
        if read >= 2 * most and not any(isinstance(value, Function) for value in bound.values()):
            self.give_up(info)
            self.not_read(info, bound)
            return UNKNOWN
        if read >= most:  # functions among them stay: a decorator is given another each time
            bound = {name: UNKNOWN if isinstance(value, Constant) else value for name, value in bound.items()}
        key = (
            id(info.node),
            tuple(map(id, info.names[:-1])),
            tuple((name, signature(value)) for name, value in bound.items()),
            tuple((name, signature(value)) for name, value in self.seen_outside([Function(info), *bound.values()])),
            tuple((k, v) for k, v in sorted(self.flow.state.casts.items())),
            tuple(map(signature, _in_force(self.flow.contexts))),
        )
        in_progress = (id(info.node), key)
        known = self.known.get(key)
        if known is not None and self.changed_containers.isdisjoint(identities(known.result)):
            self.made_again(known.made)
            self.flow.state.casts = known.casts.copy()
            self.defaults_set += known.defaults
            self.objects.stored |= known.stored
            self.forget_stored(known.stored)
            for frame, name, value in known.written:
                frame.replay(name, value)
            self.defaults_at_yield, self.casts_at_yield = known.defaults_at_yield, known.casts_at_yield
            return known.result
        if in_progress in self.in_progress:  # it is being read for just that
            self.forget_stored_by(info)
            self.run_anywhen(info)
            self.not_read(info, bound)
            return UNKNOWN
        if len(self.in_progress) >= _DEEPEST or self.readings >= MOST_READINGS:
            self.give_up(info)
            self.not_read(info, bound)
            for value in bound.values():
                self.lose(value)
            return UNKNOWN
        self.contexts_of[id(info.node)] = self.contexts_of.get(id(info.node), 0) + 1
        self.in_progress.add(in_progress)
        missing, set_before, made_before = self.missing, len(self.defaults_set), len(self.made_here)
        written_before = len(self.written)
        outer_stored, self.objects.stored = self.objects.stored, set()
        outer_reach, self.reaches = self.reaches, len(self.frames) + 1
        result, casts = self.reading_of(info, bound)
        for_this_call = self.reaches <= len(self.frames) or shares(result, bound.values())
        self.reaches = min(outer_reach, self.reaches)
        stored, self.objects.stored = frozenset(self.objects.stored), outer_stored
        outer_stored |= stored
        self.stores_of[id(info.node)] = stored | self.stores_of.get(id(info.node), frozenset())
        self.forget_stored(stored)
        self.in_progress.discard(in_progress)
        if not for_this_call and (self.missing == missing or _lines(info) > _SHORT):
            defaults = tuple(dict.fromkeys(self.defaults_set[set_before:]))
            self.known[key] = _Outcome(
                *(result, casts, defaults, self.defaults_at_yield, tuple(self.made_here[made_before:]), stored),
                casts_at_yield=self.casts_at_yield,
                written=tuple(self.written[written_before:]),
            )
        self.flow.state.casts = casts.copy()
        return result

    def not_read(self, info: FunctionInfo, bound: dict[str, Value]) -> None:
        """A call is not read: what it does to the lists and dicts that it is given is not seen."""

    def made_again(self, keys: Sequence[Key]) -> None:
        """A call makes others of the objects that one like it has made."""

    def forget_stored(self, stored: Set[Store]) -> None:
        """A call has stored attributes."""

    def forget_stored_by(self, info: FunctionInfo) -> None:
        """A call is not read, of a function that may store attributes."""

    def give_up(self, info: FunctionInfo) -> None:
        """A call is not read: what it does is what it may do to anybody."""
        self.forget_stored_by(info)
        self.loosen(info)
        self.given_up.add(id(info.node))

    def read_for_anybody(self, info: FunctionInfo, receiver: Value | None = None) -> None:
        """Read a function as code may call it that is not seen: all that it is given is unknown, and so is the region
        in which it is called.

        Args:
            receiver: what the function is bound to, where that is known.
        """
        arguments = info.node.args
        given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        bound: dict[str, Value] = {argument.arg: Unknown() for argument in given if argument is not None}
        owner = info.owner
        if owner is not None and info.is_plain_method and bound:
            first = next(iter(bound))
            key = f"{ANYBODY}{owner.node.name}@{owner.node.lineno}"
            bound[first] = Module(owner.node.name, key, owner) if owner.is_module else Instance(owner, key)
            if isinstance(receiver, (Module, Instance)):
                bound[first] = receiver
        path, self.call_path = self.call_path, [SUPPOSED]  # what it makes is no object of the calls in view
        self.flow.contexts.append(ANY_REGION)
        self.called_unread = id(info.node) in self.given_up
        for one in self.as_made(info):
            self.reading_of(one, bound)
        self.flow.contexts.pop()
        self.call_path = path

    def reading_of(self, info: FunctionInfo, bound: dict[str, Value]) -> tuple[Value, dict[Key, Cast]]:
        """Read a function's body from the names and paths it begins with: its result, and the casts it leaves behind."""
        self.readings += 1
        outer_reading, self.reading_now = self.reading_now, self.readings
        self.reached.add(id(info.node))
        self.looks_up(info)
        assert info.module is not None
        saved = (self.flow, self.outer, self.returned, self.alive, self.exits, self.call_made, self.muted)
        saved_place = (self.globals, self.module, self.tree, self.casts_at_returns, self.yields, self.loops_open)
        saved_breaks, self.breaks = self.breaks, []
        asking, self.asking = self.asking, 0
        saved_frame, self.frame, self.nonlocals = (self.frame, self.nonlocals), None, frozenset()
        thrown, self.thrown = self.thrown, None
        saved_doubts, self.doubts, self.left_early = (self.doubts, self.left_early), (), False
        set_before, self.defaults_at_yield, self.casts_at_yield = len(self.defaults_set), [], []
        self.doubt()
        self.returned, self.alive, self.exits, self.muted = None, True, [], 0
        self.outer, self.globals, self.module, self.tree = info.names, info.module.names, info.module, info.module.tree
        self.casts_at_returns, self.yields = None, []
        at_yield, casts_at_yield = self.defaults_at_yield, self.casts_at_yield
        promised = self.promised(info)
        names = {name: meeting(value, promised.get(name)) for name, value in bound.items() if "." not in name}
        paths = {path: value for path, value in bound.items() if "." in path}
        for name in sizes_in(info):
            if type(names.get(name)) is Unknown:
                names[name] = _INTEGER
        state = State(names, paths, casts=self.flow.state.casts.copy())
        contexts = [*_in_force(self.flow.contexts), *self.regions_of_generator(info), *info.contexts]
        body = [ast.Pass()] if isinstance(info.node, ast.Lambda) else info.node.body
        self.flow = Flow(state, info, contexts, [], [], list(body), body[0], self.tree)
        outer_contexts, self.contexts_at_entry = self.contexts_at_entry, len(contexts)
        self.call_path.append(f"{info.name}:{info.node.lineno}")
        self.frames.append(saved[0].state)
        self.around_frames.append(saved[1])
        if isinstance(info.node, ast.Lambda):
            result = self.value(info.node.body)
        else:
            self.block(info.node.body)
            result = result_of(info.node, self.returned, self.alive)
            if self.yields:
                item = self.yields[0]
                for other in self.yields[1:]:
                    item = join(item, other)
                result = Iteration(item)
        self.call_path.pop()
        self.frames.pop()
        self.around_frames.pop()
        self.reading_now = outer_reading
        self.contexts_at_entry = outer_contexts
        casts = self.flow.state.casts if self.alive else None
        if self.casts_at_returns is not None:
            casts = self.casts_at_returns if casts is None else merged_casts(casts, self.casts_at_returns)
        self.flow, self.outer, self.returned, self.alive, self.exits, self.call_made, self.muted = saved
        self.globals, self.module, self.tree, self.casts_at_returns, self.yields, self.loops_open = saved_place
        self.breaks, self.thrown, self.asking = saved_breaks, thrown, asking
        if self.frame is not None:
            self.frame.close()
        self.frame, self.nonlocals = saved_frame
        self.doubts, self.left_early = saved_doubts
        self.defaults_at_yield, self.casts_at_yield = at_yield, casts_at_yield
        if len(self.defaults_set) > set_before and id(info.node) not in self.managing and _runs_later(info):
            self.default_lost()
        return self.kept_promise(info, result), self.flow.state.casts if casts is None else casts

    def regions_of_generator(self, info: FunctionInfo) -> list[Autocast]:
        """The regions in which a generator runs, beside those around its call."""
        return []

    def default_lost(self) -> None:
        """Nobody knows when a default dtype is set."""

    def doubt(self) -> tuple[int, ...]:
        """What is read from here on runs on some paths only, or more than once. Gives what was so before."""
        outer = self.doubts
        self.doubt_count += 1
        self.doubts = (*outer, self.doubt_count)
        return outer

    @property
    def place(self) -> Hashable:
        """What is done in one place is done once for all that is made there."""
        return (self.doubts, self.left_early)

    def return_(self, node: ast.Return) -> None:
        super().return_(node)
        self.left_early = self.left_early or len(self.doubts) > 1
        casts = self.flow.state.casts
        before = self.casts_at_returns
        self.casts_at_returns = casts.copy() if before is None else merged_casts(before, casts)

    def yielded(self, node: ast.Yield | ast.YieldFrom) -> Value:
        value = self.value(node.value) if node.value is not None else NONE
        self.yields.append(value if isinstance(node, ast.Yield) else self.item_of(value))
        self.defaults_at_yield.append(self.default)
        self.casts_at_yield.append(self.flow.state.casts.copy())
        function, contexts = self.flow.function, self.flow.contexts
        if function is not None:
            inside = contexts[-1] if len(contexts) > self.contexts_at_entry else None
            regions = self.regions_at_yield.setdefault(id(function.node), [])
            if inside not in regions:
                regions.append(inside)
        return UNKNOWN

    def context_of(self, managed: Managed) -> Value:
        """The context that a generator function makes, which has been read: what its body has open where it yields."""
        regions = self.regions_at_yield.get(id(managed.function.info.node), [])
        if not regions or regions == [None]:
            return NullContext("contextlib.contextmanager")
        return regions[0] if len(regions) == 1 and regions[0] is not None else Autocast(None, None, None)

    def read(self, function: FunctionInfo) -> Value:
        """Only the definition is asked for: nobody knows with what it is called."""
        self.loosen(function)
        return UNKNOWN


_KEEPING = frozenset(
    {"builtins.staticmethod", "builtins.classmethod", "builtins.property", "functools.lru_cache", "functools.cache"}
    | {"abc.abstractmethod", "functools.cached_property", "typing.overload", "typing.final", "typing.override"}
    | {"typing_extensions.override", "torch.no_grad", "torch.inference_mode", "torch.enable_grad"}
)


@lru_cache(maxsize=4096)
def _is_cached(node: FunctionNode) -> bool:
    """Does a decorator keep what the function gives?"""
    decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
    names = (path_of(one.func if isinstance(one, ast.Call) else one) or "" for one in decorators)
    return any(name.rpartition(".")[2] in _CACHING for name in names)


_CACHING = frozenset({"lru_cache", "cache", "cached_property"})


def _lines(info: FunctionInfo) -> int:
    return max(1, (info.node.end_lineno or info.node.lineno) - info.node.lineno)


def _accessor(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """`setter`, `getter` or `deleter`, if the function is that of a property."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "getter", "deleter"):
            return decorator.attr
    return None


def _rewrites(decorator: FunctionInfo, given: ClassInfo) -> bool:
    """May a decorator of a class put functions in the place of its methods, or another class in its own?"""
    if isinstance(decorator.node, ast.Lambda):
        return False
    inside = facts(decorator.node)
    arguments = decorator.node.args
    own = {argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    own |= {scope.name for scope in inside.inner if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef))}
    for part in nodes(decorator.node.body, SCOPES):
        if isinstance(part, ast.Return) and isinstance(part.value, ast.Name) and part.value.id not in own:
            return True
    return any(name in RUNNING or given.method(name) is not None for _, name in inside.stores)


@lru_cache(maxsize=1024)
def _keeps_class(decorator: FunctionNode) -> bool:
    """Does a decorator of a class put it into a table or a list?"""
    arguments = decorator.args
    own = {argument.arg for argument in (*arguments.posonlyargs, *arguments.args)}
    for part in nodes(decorator.body if isinstance(decorator.body, list) else [decorator.body]):
        given: list[ast.expr] = []
        if isinstance(part, ast.Assign) and any(isinstance(target, ast.Subscript) for target in part.targets):
            given = [part.value]
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _KEEPING_IN:
            given = part.args
        if any(isinstance(one, ast.Name) and one.id in own for one in given):
            return True
    return False


_KEEPING_IN = frozenset({"append", "add", "setdefault", "insert", "__setitem__", "register"})

RUNNING = frozenset({"forward", "__call__"})
"""What an object runs when it is called, if its class has it, or inherits it from outside the program."""


def _in_force(regions: Sequence[Autocast]) -> list[Autocast]:
    """Of regions inside one another, for each device the innermost."""
    found: list[Autocast] = []
    for region in reversed(regions):
        if all(inner.device != region.device for inner in found):
            found.insert(0, region)
    return found


def _runs_later(info: FunctionInfo) -> bool:
    """Does a call of the function run nothing of it yet?"""
    return isinstance(info.node, ast.AsyncFunctionDef) or facts(info.node).yields


@dataclass(slots=True)
class _Outcome:
    """What reading a function for a call has shown.

    Attributes:
        casts: the casts of modules that it leaves behind.
        defaults: the default dtypes that it sets on the way.
        defaults_at_yield: the default dtype at each of its `yield`s.
        casts_at_yield: the casts of modules there.
        made: the objects that it makes.
        stored: the attributes that it assigns.
        written: the names outside of it that it binds.
    """

    result: Value
    casts: dict[Key, Cast]
    defaults: tuple[Dtypes, ...]
    defaults_at_yield: list[Dtypes]
    made: tuple[Key, ...]
    stored: frozenset[Store]
    written: tuple[Write, ...]
    casts_at_yield: list[dict[Key, Cast]]


@dataclass(slots=True)
class Managed(Value):
    """What `contextlib.contextmanager` makes of a generator function: calling it gives a context."""

    function: Function
