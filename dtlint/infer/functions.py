"""Functions in context: a call reads a function for its own arguments, and remembers what that gave.

What gets out of sight, because it is handed to code that is not seen, may be called with anything: it is loose, and is
read for anybody at the end."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dtlint.infer.events import Flow
from dtlint.infer.following import Following
from dtlint.infer.interpreter import autocast_in, result_of
from dtlint.infer.scopes import ClassInfo, FunctionInfo
from dtlint.infer.state import Cast, State, merged_casts
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Autocast,
    Class,
    Constant,
    Either,
    External,
    Function,
    Instance,
    Items,
    Iteration,
    Key,
    Module,
    NullContext,
    Partial,
    Table,
    Tensor,
    Trait,
    Unknown,
    Value,
    join,
)

if TYPE_CHECKING:
    from dtlint.infer.project import ModuleInfo, Project

__all__ = ["ANYBODY", "MOST_READINGS", "Functions", "Perhaps"]

_DEEPEST = 60
"""Calls inside one another that are followed."""
MOST_READINGS = 2_500
"""Readings of functions in one round; past it, calls give Unknown."""
_MOST_CONTEXTS = 12
"""Readings of one function by the constants it is given; past it, numbers and strings are unknown to it."""
ANYBODY = "?"
"""Begins the key of an instance that code may have that is not seen: its weights may have been cast to anything."""


class Functions(Following):
    """An interpreter that reads a function once for each way in which it is called."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.readings = 0
        """Readings of functions in this round."""
        self.known: dict[Hashable, tuple[Value, dict[Key, Cast]]] = {}
        """What reading a function in a context gave: its result, and the casts it left behind."""
        self.in_progress: set[Hashable] = set()
        self.contexts_of: dict[int, int] = {}
        self.call_path: list[str] = []
        self.casts_at_returns: dict[Key, Cast] | None = None
        self.yields: list[Value] = []
        self.loose: dict[int, FunctionInfo] = {}
        """Functions that code may call that is not seen, by the identity of their syntax."""
        self.reached: set[int] = set()
        self.functions: dict[int, FunctionInfo] = {}
        self.classes: dict[int, ClassInfo] = {}
        """What definitions outside functions have made, once and for all rounds, by the identity of their syntax."""
        self.defined: dict[int, FunctionInfo] = {}
        """Functions of the main module, by the identity of their syntax."""

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

    def lost(self, value: Value) -> Value:
        self.lose(value)
        return UNKNOWN

    def loosen(self, info: FunctionInfo) -> None:
        self.loose.setdefault(id(info.node), info)

    def loosen_class(self, info: ClassInfo) -> None:
        for parent in info.lineage:
            for method in parent.methods.values():
                self.loosen(method)

    # -- definitions

    def define_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ClassInfo | None = None
    ) -> FunctionInfo:
        decorators = [self.value(decorator) for decorator in node.decorator_list]
        names = self.globals if self.flow.function is None else self.flow.state.names
        scope = (names,) if names is self.globals else (names, *self.outer)
        contexts = [context for context in map(autocast_in, decorators) if context is not None]
        info = self.functions.get(id(node)) if names is self.globals or owner is not None else None
        if info is None:
            info = self.functions[id(node)] = FunctionInfo(node, scope, owner, contexts, module=self.module)
        info.defaults = self.defaults_of(node)
        if self.module is self.main:
            self.defined[id(node)] = info
        value: Value = Function(info)
        for decorator in reversed(decorators):
            value = self.decorated(decorator, value)
        if owner is None:
            self.bind_name(node.name, value)
        if isinstance(value, Function):
            return value.info if value.info is info else replace(value.info, owner=owner)
        self.loosen(info)
        return replace(info, module=None)

    def class_of(self, node: ast.ClassDef, bases: list[Value]) -> ClassInfo:
        if self.flow.function is not None:
            return super().class_of(node, bases)
        info = self.classes.get(id(node))
        if info is None:
            info = self.classes[id(node)] = ClassInfo(node, bases)
        return info

    def defaults_of(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> dict[str, Value]:
        arguments = node.args
        positional = arguments.posonlyargs + arguments.args
        with_default = positional[len(positional) - len(arguments.defaults) :]
        given = {arg.arg: self.value(value) for arg, value in zip(with_default, arguments.defaults, strict=True)}
        for arg, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if value is not None:
                given[arg.arg] = self.value(value)
        return given

    def decorated(self, decorator: Value, value: Value) -> Value:
        """What a decorator makes of a function."""
        decorator = self.resolved(decorator)
        if isinstance(decorator, (Autocast, NullContext)):
            return value
        if isinstance(decorator, External) and (decorator.name in _KEEPING or decorator.name.startswith("torch.jit.")):
            return value
        if isinstance(decorator, Function):
            return self.apply(decorator.info, decorator.receiver, [value], {}, True)
        self.lose(value)
        return UNKNOWN

    def lambda_(self, node: ast.Lambda) -> Value:
        info = FunctionInfo(node, (self.flow.state.names, *self.outer), module=self.module)
        info.defaults = self.defaults_of(node)
        return Function(info)

    # -- calls

    def apply(
        self,
        info: FunctionInfo,
        receiver: Value | None,
        args: Sequence[Value],
        keywords: dict[str, Value],
        complete: bool,
    ) -> Value:
        """Read a function for the arguments it is given."""
        if info.module is None:  # what a decorator has made of it is not seen
            for value in (*args, *keywords.values()):
                self.lose(value)
            return UNKNOWN
        if receiver is not None:
            args = [receiver, *args]
        bound = _bound(info, list(args), keywords, complete)
        read = self.contexts_of.get(id(info.node), 0)
        if read >= 2 * _MOST_CONTEXTS and not any(isinstance(value, Function) for value in bound.values()):
            self.loosen(info)
            return UNKNOWN
        if read >= _MOST_CONTEXTS:  # functions among them stay: a decorator is given another each time
            bound = {name: UNKNOWN if isinstance(value, Constant) else value for name, value in bound.items()}
        key = (
            id(info.node),
            tuple(map(id, info.names[:-1])),
            tuple((name, signature(value)) for name, value in bound.items()),
            tuple((k, v) for k, v in sorted(self.flow.state.casts.items())),
            signature(self.flow.autocast) if self.flow.autocast else None,
            self.default,
        )
        known = self.known.get(key)
        if known is not None:
            self.flow.state.casts = known[1].copy()
            return known[0]
        if key in self.in_progress or len(self.in_progress) >= _DEEPEST or self.readings >= MOST_READINGS:
            self.loosen(info)
            for value in bound.values():
                self.lose(value)
            return UNKNOWN
        self.contexts_of[id(info.node)] = self.contexts_of.get(id(info.node), 0) + 1
        self.in_progress.add(key)
        result, casts = self.reading_of(info, bound)
        self.in_progress.discard(key)
        self.known[key] = (result, casts)
        self.flow.state.casts = casts.copy()
        return result

    def read_for_anybody(self, info: FunctionInfo) -> None:
        """Read a function as code may call it that is not seen: all that it is given is unknown."""
        bound: dict[str, Value] = {}
        arguments = info.node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            said = self.annotated_there(info, argument.annotation)
            bound[argument.arg] = said or Unknown()
        for rest in (arguments.vararg, arguments.kwarg):
            if rest is not None:
                bound[rest.arg] = Unknown()
        owner = info.owner
        if owner is not None and info.is_plain_method and bound:
            first = next(iter(bound))
            key = f"{ANYBODY}{owner.node.name}@{owner.node.lineno}"
            bound[first] = Module(owner.node.name, key, owner) if owner.is_module else Instance(owner, key)
        _, _ = self.reading_of(info, bound)

    def annotated_there(self, info: FunctionInfo, annotation: ast.expr | None) -> Value | None:
        if annotation is None or info.module is None:
            return None
        outer, self.outer = self.outer, info.names
        said = self.annotated(annotation)
        self.outer = outer
        return said if isinstance(said, Tensor) else None

    def reading_of(self, info: FunctionInfo, bound: dict[str, Value]) -> tuple[Value, dict[Key, Cast]]:
        """Read a function's body from the names it begins with: its result, and the casts it leaves behind."""
        self.readings += 1
        self.reached.add(id(info.node))
        assert info.module is not None
        saved = (self.flow, self.outer, self.returned, self.alive, self.exits, self.call_made, self.muted)
        saved_place = (self.globals, self.module, self.tree, self.casts_at_returns, self.yields, self.loops_open)
        self.returned, self.alive, self.exits, self.muted = None, True, [], 0
        self.outer, self.globals, self.module, self.tree = info.names, info.module.names, info.module, info.module.tree
        self.casts_at_returns, self.yields = None, []
        state = State(dict(bound), casts=self.flow.state.casts.copy())
        contexts = [*([self.flow.autocast] if self.flow.autocast else []), *info.contexts]
        body = [ast.Pass()] if isinstance(info.node, ast.Lambda) else info.node.body
        self.flow = Flow(state, info, contexts, [], [], list(body), body[0], self.tree)
        self.call_path.append(f"{info.name}:{info.node.lineno}")
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
        casts = self.flow.state.casts if self.alive else None
        if self.casts_at_returns is not None:
            casts = self.casts_at_returns if casts is None else merged_casts(casts, self.casts_at_returns)
        self.flow, self.outer, self.returned, self.alive, self.exits, self.call_made, self.muted = saved
        self.globals, self.module, self.tree, self.casts_at_returns, self.yields, self.loops_open = saved_place
        return result, self.flow.state.casts if casts is None else casts

    def return_(self, node: ast.Return) -> None:
        super().return_(node)
        casts = self.flow.state.casts
        before = self.casts_at_returns
        self.casts_at_returns = casts.copy() if before is None else merged_casts(before, casts)

    def yielded(self, node: ast.Yield | ast.YieldFrom) -> Value:
        value = self.value(node.value) if node.value is not None else NONE
        self.yields.append(value if isinstance(node, ast.Yield) else self.item_of(value))
        return UNKNOWN

    def read(self, function: FunctionInfo) -> Value:
        """Only the definition is asked for: nobody knows with what it is called."""
        self.loosen(function)
        return UNKNOWN

    # -- loops

    def loop(self, body: list[ast.stmt], orelse: list[ast.stmt], begin: object, may_skip: bool) -> None:
        """Rehearse a loop until an iteration leaves behind what it began with."""
        start = self.flow.state
        self.loops_open += 1
        self.muted += 1
        for attempt in range(4):
            end = self.iteration(start, body, begin)  # type: ignore[arg-type]
            merged = State.merged(start, end) or start
            stable = _same(start, merged)
            start = merged
            if stable:
                break
            if attempt == 2:
                start = _blurred(start, end)
        self.muted -= 1
        end = self.iteration(start, body, begin)  # type: ignore[arg-type]
        self.loops_open -= 1
        self.resume(end, start if may_skip else None)
        if orelse and self.alive:
            self.block(orelse)


_KEEPING = frozenset(
    {"builtins.staticmethod", "builtins.classmethod", "builtins.property", "functools.lru_cache", "functools.cache"}
)


@dataclass(slots=True)
class Perhaps(Value):
    """An argument that is given on some paths only; on the others the parameter has its default."""

    value: Value


def _bound(info: FunctionInfo, args: list[Value], keywords: dict[str, Value], complete: bool) -> dict[str, Value]:
    """The names that a function's body begins with, for these arguments."""
    arguments = info.node.args
    bound: dict[str, Value] = {}
    left: dict[str, Value] = dict(keywords)
    positional = arguments.posonlyargs + arguments.args
    for position, argument in enumerate(positional):
        name = argument.arg
        if position < len(args):
            bound[name] = args[position]
        elif name in left:
            bound[name] = _given(left.pop(name), info.defaults.get(name, UNKNOWN))
        else:
            bound[name] = info.defaults.get(name, UNKNOWN) if complete else UNKNOWN
    for argument in arguments.kwonlyargs:
        name = argument.arg
        if name in left:
            bound[name] = _given(left.pop(name), info.defaults.get(name, UNKNOWN))
        else:
            bound[name] = info.defaults.get(name, UNKNOWN) if complete else UNKNOWN
    if arguments.vararg is not None:
        bound[arguments.vararg.arg] = Items(tuple(args[len(positional) :])) if complete else UNKNOWN
    if arguments.kwarg is not None:
        items: dict[object, Value] = {
            key: value.value if isinstance(value, Perhaps) else value for key, value in left.items()
        }
        perhaps = frozenset(key for key, value in left.items() if isinstance(value, Perhaps))
        bound[arguments.kwarg.arg] = Table(items, perhaps) if complete else UNKNOWN
    return bound


def _given(value: Value, default: Value) -> Value:
    return join(default, value.value) if isinstance(value, Perhaps) else value


def _same(before: State, after: State) -> bool:
    """Is what the loop began with still what it was? What it binds anew each time does not count."""
    return (
        all(after.names[name] == value for name, value in before.names.items())
        and all(after.paths.get(path) == value for path, value in before.paths.items())
        and before.casts == after.casts
    )


def _blurred(start: State, end: State | None) -> State:
    """What never comes to rest is unknown."""
    state = start.copy()
    for name, value in state.names.items():
        if end is not None and end.names.get(name) != value:
            state.names[name] = UNKNOWN
    state.paths.clear()
    return state


def signature(value: Value, depth: int = 0) -> Hashable:
    """What two values that a function cannot tell apart have in common."""
    if depth > 4:
        return "..."
    match value:
        case Tensor():
            return ("tensor", value.dtypes, value.zero_dim, bool(value.traits & (Trait.PARAMETER | Trait.BUFFER)))
        case Module() | Instance():
            return (type(value).__name__, value.key)
        case Constant(value=constant):
            return ("constant", type(constant).__name__, constant if isinstance(constant, Hashable) else repr(constant))
        case Items(items=items) | Either(choices=items):
            return (type(value).__name__, tuple(signature(item, depth + 1) for item in items))
        case Table(items=table):
            return ("table", tuple((repr(key), signature(item, depth + 1)) for key, item in table.items()))
        case Iteration(item=item):
            return ("iteration", signature(item, depth + 1))
        case Function(info=info, receiver=receiver):
            return (
                "function",
                id(info.node),
                tuple(map(id, info.names)),
                signature(receiver, depth + 1) if receiver else None,
            )
        case Class(info=info):
            return ("class", id(info))
        case Unknown():
            return "unknown"
    return (type(value).__name__, repr(value))
