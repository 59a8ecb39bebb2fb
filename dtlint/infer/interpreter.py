"""Statements: one pass over a module in execution order, branches joined, loops run twice, each function read once.

A function is read when it is first called, or else after the module's own statements; its parameters are unknown
there, but for what annotations and their use in the function say.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from dtlint.infer import around
from dtlint.infer.annotations import declared, declared_by
from dtlint.infer.arithmetic import in_place_of
from dtlint.infer.array_promotion import written_into
from dtlint.infer.calling import Calling
from dtlint.infer.cases import bound_by, captured_by, is_open, test_of
from dtlint.infer.conditions import taken_apart
from dtlint.infer.events import Condition, Discard, End, Enter, Exit, Flow, Listeners, Loop, Reference
from dtlint.infer.names import path_of
from dtlint.infer.narrowing import narrow_dtypes, speaks_of_dtypes
from dtlint.infer.program_state import State, differing
from dtlint.infer.scopes import ClassInfo, FunctionInfo, FunctionNode, is_module_class
from dtlint.infer.semantics.releases import always
from dtlint.infer.summaries import parameter_atom
from dtlint.infer.survey import facts
from dtlint.infer.symbols import of_atom, tensor_of
from dtlint.infer.values import (
    UNKNOWN,
    Array,
    Autocast,
    Class,
    Constant,
    Either,
    External,
    Function,
    Instance,
    Module,
    NullContext,
    Tensor,
    Unknown,
    Value,
    join,
    options,
)
from dtlint.infer.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

__all__ = ["Interpreter", "TooLong", "autocast_in", "interpret", "result_of"]

_DEEPEST = 24
"""Functions read inside one another, by calls; deeper ones wait until they are read for themselves."""
MOST_STATEMENTS = 1_000_000
"""Statements that are run for one file: each stands there once, and is run once more for each loop around it. This many
take about half a minute."""


class TooLong(Exception):
    """Reading a file would take too long: what was found until then holds."""


def interpreter_of(tree: ast.Module, listeners: Listeners) -> Interpreter:
    """What runs a module abstractly, for the checker, and tells the listeners what happens."""
    interpreter = Interpreter(tree, listeners)
    interpreter.symbolic = True
    return interpreter


def interpret(tree: ast.Module, listeners: Listeners) -> None:
    """Run a module abstractly and tell the listeners what happens.

    Raises:
        RecursionError: the source is nested deeper than Python's own limit lets the interpreter follow.
        TooLong: it would take more than `MOST_STATEMENTS`.
    """
    interpreter_of(tree, listeners).run()


class Interpreter(Calling):
    """The abstract machine. Its state is where the program is; None after a return, until paths meet again."""

    __slots__ = (
        *("_execute", "alive", "depth", "exits", "globals", "locals", "met", "publishing", "returned", "stands"),
        *("statements_left", "thrown", "tree", "unread"),
    )

    def __init__(self, tree: ast.Module, listeners: Listeners) -> None:
        state = State()
        statement: ast.stmt = tree.body[0] if tree.body else ast.Pass()
        flow = Flow(state, None, [], [], [], tree.body, statement, tree)
        # float32, unless the program sets another default dtype
        super().__init__(listeners, flow, None if facts(tree).sets_default else frozenset({"float32"}))
        self.tree = tree
        self.alive = True
        self.globals: dict[str, Value] = {}
        """Every value that the module binds to a name, joined: what a function may find there when it runs."""
        self.locals: dict[str, Value] | None = None
        """The same of the function being read, for the functions inside it."""
        self.publishing = True
        """Are names bound for the functions to find? Those of a class body are not."""
        self.stands: dict[ast.Lambda, tuple[list[ast.stmt], ast.stmt]] = {}
        """The block and the statement in which each lambda stands."""
        self.unread: list[FunctionInfo] = []
        self.met: list[FunctionInfo | ClassInfo] = []
        """All functions and classes that were met."""
        self.returned: Value | None = None
        self.depth = 0
        self.statements_left = MOST_STATEMENTS
        self.thrown: State | None = None
        """What is true where an exception leaves the statements run so far of a block that catches it; None where nobody
        asks."""
        self.exits: list[list[State]] = []
        """For each loop being run, the states at its breaks and continues."""
        self._execute: dict[type[ast.stmt], Callable[[Any], object]] = defaultdict(
            lambda: _ignored, {kind: getattr(self, name) for kind, name in _EXECUTE.items()}
        )

    def run(self) -> None:
        """Read the module, then every function that no call has read yet."""
        self.block(self.tree.body)
        module_state = self.flow.state
        for function in self.unread:  # which grows meanwhile, by the functions inside them
            self.read(function)
            self.flow.state = module_state
        self.emit(End(self.tree, self.flow))

    def forget(self) -> None:
        """Let go of all that was learnt, once nobody asks any more. Functions, classes and what they are bound to hold each
        other, and with them the syntax tree, until a search for garbage, which costs more than this."""
        for info in self.met:
            info.forget()
        self.globals.clear()
        around.forget()
        self._evaluate.clear()  # these hold the interpreter itself, by its methods
        self._execute.clear()

    # -- blocks and paths

    def block(self, statements: list[ast.stmt]) -> None:
        """Run statements until the path ends."""
        flow = self.flow
        outer_block, outer_statement = flow.block, flow.statement
        flow.block = statements
        outer_conditions = len(flow.conditions)
        self.statements_left -= len(statements)
        if self.statements_left < 0:
            raise TooLong
        for statement in statements:
            if not self.alive:
                break
            flow.statement = statement
            self._execute[type(statement)](statement)
            if self.thrown is not None:
                self.thrown = State.merged(self.thrown, flow.state)
        flow.block, flow.statement = outer_block, outer_statement
        del flow.conditions[outer_conditions:]

    def branch(self, start: State, statements: list[ast.stmt], condition: Condition | None = None) -> State | None:
        """Run a branch from a copy of `start`: the state at its end, None if it does not get there."""
        self.flow.state, self.alive = start.copy(), True
        if condition is None:
            self.block(statements)
        else:
            self.narrow(condition)
            conditions = self.flow.conditions
            conditions.append(condition)
            self.block(statements)
            conditions.pop()
        return self.flow.state if self.alive else None

    def passed_by(self, start: State, condition: Condition) -> State:
        """Go past a branch where there is no other: from `start` itself, for the branch ran from a copy."""
        self.flow.state, self.alive = start, True
        self.narrow(condition)
        return start

    def resume(self, *ends: State | None) -> None:
        """Go on where these paths meet; if none gets here, the path is over."""
        merged: State | None = None
        for end in ends:
            merged = State.merged(merged, end)
        self.alive = merged is not None
        if merged is not None:
            self.flow.state = merged

    def narrow(self, condition: Condition) -> None:
        """What a test says of a name where it holds: `x is None`, `isinstance(x, torch.Tensor)`, `x.dtype == torch.half`."""
        for part in taken_apart(condition):
            self.narrow_by(part.test, part.holds)

    def narrow_by(self, test: ast.expr, holds: bool) -> None:
        kind = type(test)
        if kind is ast.Name:
            if holds:
                self.narrow_none(test.id, False)  # type: ignore[attr-defined]
        elif kind is not ast.Compare and kind is not ast.Call:
            return
        elif self.symbolic and speaks_of_dtypes(test):
            narrow_dtypes(test, holds, self.flow.state, self.quietly)
        elif isinstance(test, ast.Compare):
            if len(test.ops) == 1 and type(test.left) is ast.Name:
                against, operator = test.comparators[0], type(test.ops[0])
                if (operator is ast.Is or operator is ast.IsNot) and _is_none(against):
                    self.narrow_none(test.left.id, holds is (operator is ast.Is))
        elif holds and isinstance(test, ast.Call) and path_of(test.func) == "isinstance" and len(test.args) == 2:
            self.narrow_kind(test.args[0], test.args[1])

    def narrow_none(self, name: str, is_none: bool) -> None:
        known = self.flow.state.names.get(name)
        if isinstance(known, Either):
            kept = [
                choice
                for choice in options(known)
                if (isinstance(choice, Constant) and choice.value is None) is is_none
            ]
            if kept:
                self.flow.state.names[name] = kept[0] if len(kept) == 1 else Either(tuple(kept))

    def narrow_kind(self, subject: ast.expr, kind: ast.expr) -> None:
        self.muted += 1
        tested = self.value(kind)
        known = self.value(subject)
        self.muted -= 1
        if not isinstance(subject, ast.Name) or not isinstance(known, Unknown) or not isinstance(tested, External):
            return
        if tested.name in ("torch.Tensor", "torch.nn.Parameter"):
            self.flow.state.names[subject.id] = tensor_of(known)
        elif is_module_class(tested.name):
            self.flow.state.names[subject.id] = Module(tested.name, self.key(subject.id))

    # -- statements

    def expression(self, node: ast.Expr) -> None:
        kind = type(node.value)
        if kind is ast.Constant:
            return  # a docstring
        if kind is not ast.Call or not self.hears(Discard):
            self.value(node.value)
            return
        self.discarded = node.value
        value = self.value(node.value)
        call = self.call_made
        if call is not None and self.tells_of_discard(call.target, call.name):
            self.emit(Discard(node, self.flow, value, call))

    def assign(self, node: ast.Assign) -> None:
        expression = node.value
        value = self._evaluate[type(expression)](expression)  # what `value` does: one statement in two assigns
        for target in node.targets:
            self.bind_target(target, value, node, expression)

    def assign_annotated(self, node: ast.AnnAssign) -> None:
        if self.hears(Reference):
            self.value(node.annotation)
        if node.value is None:
            return
        value = self.value(node.value)
        if type(value) is Unknown:
            value = self.annotated(node.annotation) or value
        self.bind_target(node.target, value, node, node.value)

    def assign_augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        load = ast.copy_location(_as_load(target), target)
        left, right = self.value(load), self.value(node.value)
        result = self.operated(node.op, left, right, node.value)
        if isinstance(left, Array):
            result = written_into(left, result)
        elif isinstance(left, Tensor) and isinstance(result, Tensor) and _is_in_place(node.op, right):
            result = in_place_of(left, result)
        self.tell_of(node, node.op, left, right, result)
        self.bind_target(target, result, node, node.value)

    def publish(self, name: str, value: Value) -> None:
        names = self.globals if self.flow.function is None else self.locals
        if names is not None and self.publishing:
            known = names.get(name)
            if known is not value:
                names[name] = value if known is None else join(known, value)

    def bind_name(self, name: str, value: Value) -> None:
        self.flow.state.bind(name, value)
        self.publish(name, value)

    def import_(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.asname is None:
                root = alias.name.partition(".")[0]
                self.bind_name(root, External(root))
            else:
                self.bind_name(alias.asname, self.external(alias.name))

    def import_from(self, node: ast.ImportFrom) -> None:
        package = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name != "*":
                separator = "" if package.endswith(".") else "."
                self.bind_name(alias.asname or alias.name, self.external(f"{package}{separator}{alias.name}"))

    def if_(self, node: ast.If) -> None:
        test = self.value(node.test)
        start = self.flow.state
        if (
            isinstance(test, Constant)
            and isinstance(node.test, (ast.Constant, ast.Name))
            and not isinstance(test.value, str)
        ):
            taken, passed = (node.body, node.orelse) if test.value else (node.orelse, node.body)
            if isinstance(node.test, ast.Name) and isinstance(test.value, bool):
                # A switch that is set by hand: read what it would turn on, though this run does not get there.
                self.branch(start, passed, Condition(node.test, not test.value))
            self.resume(self.branch(start, taken, Condition(node.test, bool(test.value))))
            return
        if (today := always(node.test)) is not None:
            self.resume(self.branch(start, node.body if today else node.orelse, Condition(node.test, today)))
            return
        body = self.branch(start, node.body, Condition(node.test, True))
        otherwise = Condition(node.test, False)
        other = self.branch(start, node.orelse, otherwise) if node.orelse else self.passed_by(start, otherwise)
        self.resume(body, other)
        if (body is None) is not (other is None):  # the rest of the block is behind the branch that goes on
            self.flow.conditions.append(Condition(node.test, other is None))

    def while_(self, node: ast.While) -> None:
        self.value(node.test)
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        self.loop(node.body, node.orelse, lambda: None, may_skip=not endless)

    def for_(self, node: ast.For | ast.AsyncFor) -> None:
        over = self.value(node.iter)
        self.flow.loops.append(Loop(node, over))
        self.loop(node.body, node.orelse, lambda: self.bind_target(node.target, self.item_of(over)), may_skip=True)

        self.flow.loops.pop()

    def loop(self, body: list[ast.stmt], orelse: list[ast.stmt], begin: Callable[[], None], may_skip: bool) -> None:
        """Rehearse a loop's body once to learn what an iteration leaves behind, then run it aloud from both states.

        A loop inside a rehearsal runs once: what it adds to a second iteration is learnt when it is run aloud.
        """
        start = self.flow.state
        if not self.muted:
            self.muted += 1
            end = self.iteration(start, body, begin)
            self.muted -= 1
            start = State.merged(start, end) or start
        end = self.iteration(start, body, begin)
        self.resume(end, start if may_skip else None)
        if orelse and self.alive:
            broken = self.flow.state.copy()  # a break skips what stands in `else`
            self.block(orelse)
            self.resume(self.flow.state if self.alive else None, broken)

    def iteration(self, start: State, body: list[ast.stmt], begin: Callable[[], None]) -> State | None:
        """One iteration: the state in which the next begins, or the loop ends."""
        self.flow.state, self.alive = start.copy(), True
        self.exits.append([])
        begin()
        self.block(body)
        end = self.flow.state if self.alive else None
        for state in self.exits.pop():
            end = State.merged(end, state)
        return end

    def leave_loop(self, node: ast.Break | ast.Continue) -> None:
        if self.exits:
            self.exits[-1].append(self.flow.state.copy())
        self.alive = False

    def return_(self, node: ast.Return) -> None:
        value = self.value(node.value) if node.value is not None else Constant(None)
        self.returned = value if self.returned is None else join(self.returned, value)
        self.alive = False

    def raise_(self, node: ast.Raise) -> None:
        for part in (node.exc, node.cause):
            if part is not None:
                self.value(part)
        self.alive = False

    def try_(self, node: ast.Try) -> None:
        start = self.flow.state.copy()
        conditions = self.flow.conditions
        outer_conditions = len(conditions)
        conditions += [Condition(handler.type, False) for handler in node.handlers if handler.type is not None]
        outer = self.watch(start)
        body = self.tried(node, start)
        del conditions[outer_conditions:]
        reached = self.on_the_way(start)
        self.unwatch(outer)
        around = self.watch(reached) if node.finalbody else None
        ends = []
        for handler in node.handlers:
            self.flow.state = reached.copy()
            if handler.name is not None:
                self.bind_name(handler.name, UNKNOWN)
            if handler.type is not None:
                conditions.append(Condition(handler.type, True))
            ends.append(self.branch(self.flow.state, handler.body))
            del conditions[outer_conditions:]
        if body is not None and node.orelse:
            body = self.branch(body, node.orelse)
        self.resume(body, *ends)
        if node.finalbody:
            reached = self.on_the_way(reached)
            self.unwatch(around)
            if self.alive:
                if self.watches():
                    end = self.flow.state
                    self.branch(reached, node.finalbody)  # whatever leaves the body goes through it
                    self.flow.state, self.alive = end, True
                self.block(node.finalbody)
            else:
                self.branch(reached, node.finalbody)
                self.alive = False

    def tried(self, node: ast.Try, start: State) -> State | None:
        """Run what a `try` tries: the state at its end, None if it does not get there."""
        return self.branch(start, node.body)

    def on_the_way(self, start: State) -> State:
        """What is true where an exception is caught: it comes anywhere on the way from `start` to here."""
        state = State.merged(start, self.flow.state) or start
        return State.merged(state, self.thrown) or state

    def watches(self) -> bool:
        """Is it followed where on the way an exception comes? A rule would hear the same twice, and of what hardly is."""
        return False

    def watch(self, start: State) -> State | None:
        """A block begins that may catch exceptions. Gives what was watched around it."""
        outer = self.thrown
        if self.watches():
            self.thrown = start.copy()
        return outer

    def unwatch(self, outer: State | None) -> None:
        """The block ends: what it does not catch flies on."""
        self.thrown = None if outer is None else State.merged(outer, self.thrown)

    def with_(self, node: ast.With | ast.AsyncWith) -> None:
        entered: list[tuple[ast.expr, Autocast]] = []
        outer_gradless = self.gradless
        swallows: set[bool | None] = set()
        for item in node.items:
            value = self.value(item.context_expr)
            swallows.add(self.swallows(item.context_expr, value))
            self.gradless = gradless_in(value, self.gradless)
            given = self.given_by(value)
            if item.optional_vars is not None:
                self.bind_target(item.optional_vars, given, node)
            context = self.region_of(item.context_expr, value)
            if context is not None:
                entered.append((item.context_expr, context))
                self.enter(item.context_expr, context)
        start = None if swallows == {False} else self.flow.state.copy()
        outer = self.thrown if start is None else self.watch(start)
        self.block(node.body)
        for expression, context in reversed(entered):
            self.leave(expression, context)
        self.gradless = outer_gradless
        if start is not None and (True in swallows or (not self.alive and node is not self.flow.block[-1])):
            reached = self.on_the_way(start)
            self.unwatch(outer)
            self.resume(self.flow.state if self.alive else None, reached)
        elif start is not None:
            self.unwatch(outer)

    def given_by(self, context: Value) -> Value:
        """What entering a context gives: `with ... as` binds it."""
        if isinstance(context, NullContext):
            return context.given or UNKNOWN
        return UNKNOWN if isinstance(context, Autocast) else context

    def region_of(self, context: ast.expr, value: Value) -> Autocast | None:
        """The autocast region that a context enters."""
        return autocast_in(value)

    def swallows(self, context: ast.expr, value: Value) -> bool | None:
        """Does a context swallow exceptions, so that the program goes on behind it? None when that is not known: then
        the code that stands behind a `return` inside it says so."""
        if isinstance(value, (Autocast, NullContext)):
            return False
        if not isinstance(context, ast.Call):
            return None
        self.muted += 1
        made = self.value(context.func)
        self.muted -= 1
        name = made.name if isinstance(made, External) else path_of(context.func) or ""
        if name.rpartition(".")[2] in _SWALLOWING:
            return True
        return False if isinstance(made, External) and name.partition(".")[0] in _RAISING else None

    def enter(self, expression: ast.expr, context: Autocast) -> None:
        self.flow.contexts.append(context)
        if self.hears(Enter):
            self.emit(Enter(expression, self.flow, context))

    def leave(self, expression: ast.expr, context: Autocast) -> None:
        self.flow.contexts.pop()
        if self.hears(Exit):
            self.emit(Exit(expression, self.flow, context))

    def match(self, node: ast.Match) -> None:
        """Each case runs where its pattern matches, and those before it did not."""
        subject = self.value(node.subject)
        start = self.flow.state
        conditions = self.flow.conditions
        outer_conditions = len(conditions)
        names = {part.id for part in nodes([node.subject]) if isinstance(part, ast.Name)}
        ends: list[State | None] = []
        for case in node.cases:
            self.flow.state, self.alive = start, True
            matches = self.outcome(case.pattern, subject)
            if matches is False:
                continue
            test, is_exact = test_of(case.pattern, node.subject)
            self.flow.state = start.copy()
            inner_conditions = len(conditions)
            if test is not None:
                self.narrow(Condition(test, True))
                if names.isdisjoint(bound_by(case.pattern)):  # else it would speak of what is captured
                    conditions.append(Condition(test, True))
            self.capture(case.pattern, node.subject, subject)
            if case.guard is not None:
                self.value(case.guard)
                start = State.merged(start, self.flow.state) or start  # what it binds is bound where it says no, too
            held = None if case.guard is None else Condition(case.guard, True)
            ends.append(self.branch(self.flow.state, case.body, held))
            del conditions[inner_conditions:]
            if is_open(case) or (matches and case.guard is None):
                break
            if test is not None and is_exact and case.guard is None:
                conditions.append(Condition(test, False))
                start = self.passed_by(start, conditions[-1])
        else:
            ends.append(start)
        del conditions[outer_conditions:]
        self.resume(*ends)

    def capture(self, pattern: ast.pattern, subject: ast.expr, value: Value) -> None:
        """Bind the names of a pattern that has matched."""
        whole = captured_by(pattern)
        if whole is not None and path_of(subject) is not None:
            value = self.quietly(subject)  # as the test of the pattern has narrowed it
        for name in bound_by(pattern):
            self.bind_name(name, value if name == whole else UNKNOWN)

    def outcome(self, pattern: ast.pattern, subject: Value) -> bool | None:
        """Is it known whether a pattern matches?"""
        return None

    def delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.flow.state.bind(target.id, UNKNOWN)

    def assert_(self, node: ast.Assert) -> None:
        self.value(node.test)
        self.narrow(Condition(node.test, True))

    def forget_names(self, node: ast.Global | ast.Nonlocal) -> None:
        for name in node.names:
            if isinstance(node, ast.Global):
                self.globals[name] = UNKNOWN
            for names in self.outer[:-1] if isinstance(node, ast.Nonlocal) else ():
                if name in names:
                    names[name] = UNKNOWN

    # -- definitions

    def define_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ClassInfo | None = None
    ) -> FunctionInfo:
        decorators = [self.value(decorator) for decorator in node.decorator_list]
        self.defaults(node.args)
        self.annotations(node)
        regions: list[tuple[Autocast, ast.expr]] = []
        gradless = False
        for decorator, value in zip(node.decorator_list, decorators, strict=True):
            gradless = gradless_in(value, gradless)
            context = autocast_in(value)
            if context is not None:
                regions.append((context, decorator))
        info = FunctionInfo(
            node,
            self.scope(),
            owner,
            [context for context, _ in regions],
            tuple(decorator for _, decorator in regions),
            gradless,
            conditions=tuple(self.flow.conditions),
        )
        self.met.append(info)
        if not self.muted:
            self.unread.append(info)
        known = not decorators or all(
            isinstance(decorator, (Autocast, NullContext)) or _keeps_result(decorator) for decorator in decorators
        )
        if owner is None:
            self.bind_name(node.name, Function(info) if known else UNKNOWN)
        return info

    def scope(self) -> tuple[MutableMapping[str, Value], ...]:
        """Where a function that is defined here finds its free names, innermost first."""
        if self.flow.function is None:
            return (self.globals,)
        return (self.flow.state.names if self.locals is None else self.locals, *self.outer)

    def lambda_(self, node: ast.Lambda) -> Value:
        self.defaults(node.args)
        info = FunctionInfo(node, self.scope(), conditions=tuple(self.flow.conditions))
        self.met.append(info)
        self.stands[node] = (self.flow.block, self.flow.statement)
        if not self.muted:
            self.unread.append(info)
        return Function(info)

    def defaults(self, arguments: ast.arguments) -> None:
        """Evaluate the defaults of a function's parameters, which is done where it is defined."""
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.value(default)

    def annotations(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Evaluate the annotations of a function, for those who hear of what is named."""
        if self.hears(Reference):
            rest = [argument for argument in (node.args.vararg, node.args.kwarg) if argument is not None]
            for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *rest):
                if argument.annotation is not None:
                    self.value(argument.annotation)
            if node.returns is not None:
                self.value(node.returns)

    def define_class(self, node: ast.ClassDef) -> None:
        bases = self.values(node.bases)
        for keyword in node.keywords:
            self.value(keyword.value)
        for decorator in node.decorator_list:
            self.value(decorator)
        info = self.class_of(node, bases)
        self.met.append(info)
        outer = self.flow.state
        self.flow.state = outer.copy()
        binds = False
        rebound: dict[str, Value] = {}
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                info.methods[statement.name] = self.define_function(statement, info)
            else:
                self.class_statement(statement)
                for name in _bound_by(statement):
                    if info.methods.pop(name, None) is not None:  # `forward = wrapped(forward)`
                        rebound[name] = UNKNOWN
                binds = binds or type(statement) is not ast.Expr  # which is the class's docstring, nearly always
        if binds:
            before, after = outer.names, self.flow.state.names
            again = {  # `dtype = dtype`
                statement.value.id
                for statement in node.body
                if isinstance(statement, ast.Assign)
                and isinstance(statement.value, ast.Name)
                and any(isinstance(name, ast.Name) and name.id == statement.value.id for name in statement.targets)
            }
            bound = dict(differing(after, before)) | {name: after[name] for name in again if name in after} | rebound
            info.body = {name: value for name, value in bound.items() if name not in info.methods}
        self.flow.state = outer
        self.bind_name(node.name, Class(info))

    def class_of(self, node: ast.ClassDef, bases: list[Value]) -> ClassInfo:
        """The class that a definition makes."""
        return ClassInfo(node, bases)

    def class_statement(self, statement: ast.stmt) -> None:
        """A statement of a class body binds names of the class, not of the module."""
        outer, self.publishing = self.publishing, False
        self.block([statement])
        self.publishing = outer

    # -- functions

    def read(self, function: FunctionInfo) -> Value:
        """The value that a function returns, found by reading it through: once, whoever asks first."""
        if function.result is not None:
            return function.result
        if function.reading or self.depth >= _DEEPEST:
            return UNKNOWN
        function.reading = True
        saved = (self.flow, self.outer, self.returned, self.alive, self.exits, self.muted, self.call_made)
        saved_names = (self.locals, self.gradless, self.publishing)
        self.depth += 1
        self.returned, self.alive, self.exits, self.muted = None, True, [], 0
        self.outer, self.gradless, self.publishing = function.names, function.gradless, True
        node, state = function.node, self.entry(function)
        self.locals = dict(state.names) if facts(node).inner else None
        block, statement = self.stands[node] if isinstance(node, ast.Lambda) else (node.body, node.body[0])
        regions, conditions = self.regions_at_start(), list(function.conditions)
        self.flow = Flow(state, function, regions, conditions, [], block, statement, self.tree)
        entered = list(zip(function.decorators, function.contexts, strict=True))
        for decorator, context in entered:
            self.enter(decorator, context)
        if isinstance(node, ast.Lambda):
            self.returned, self.alive = self.value(node.body), False
        else:
            self.block(node.body)
        for decorator, context in reversed(entered):
            self.leave(decorator, context)
        self.emit(End(node, self.flow))
        result = result_of(node, self.returned, self.alive)
        self.depth -= 1
        self.flow, self.outer, self.returned, self.alive, self.exits, self.muted, self.call_made = saved
        self.locals, self.gradless, self.publishing = saved_names
        function.reading = False
        function.result = result
        return result

    def regions_at_start(self) -> list[Autocast]:
        """The autocast regions that are open where no `with` and no decorator in view has opened one."""
        return []

    def entry(self, function: FunctionInfo) -> State:
        """The names that a function's body begins with: its parameters."""
        arguments, owner = function.node.args, function.owner
        state = State()
        names = state.names
        parameters = arguments.posonlyargs + arguments.args
        if parameters and owner is not None and function.is_plain_method:
            me = parameters.pop(0)
            names[me.arg] = Module(owner.node.name, "self", owner) if owner.is_module else Instance(owner, "self")
        for argument in (*parameters, *arguments.kwonlyargs):
            annotation = argument.annotation
            said = None if annotation is None else self.annotated(annotation)
            names[argument.arg] = self.parameter(function, argument, said) if self.symbolic else said or Unknown()
        for rest in (arguments.vararg, arguments.kwarg):
            if rest is not None:
                names[rest.arg] = Unknown()
        return state

    def parameter(self, function: FunctionInfo, argument: ast.arg, said: Value | None) -> Value:
        """A parameter as the body finds it: what its annotation says, in the dtype that it has a name for."""
        if said is None:
            return Unknown(None, None, parameter_atom(argument))
        if type(said) is Tensor and said.dtypes is None:
            return Tensor(symbol=of_atom(parameter_atom(argument)))
        return said

    def annotated(self, annotation: ast.expr) -> Value | None:
        """What a type annotation says: a tensor, a number, or a module; None when it says none of these."""
        if type(annotation) is not ast.Name and type(annotation) is not ast.Attribute:
            return declared(annotation, self.quietly) if self.symbolic else None
        named = self.quietly(annotation)
        said = declared_by(named) if self.symbolic else None
        if said is not None:
            return said
        if isinstance(named, External):
            if named.name == "torch.Tensor":
                return Tensor()
            if is_module_class(named.name):
                return Module(named.name, f"@{annotation.lineno}:{annotation.col_offset}")
        if isinstance(named, Class) and named.info.is_module:
            return Module(named.info.node.name, f"@{annotation.lineno}:{annotation.col_offset}", named.info)
        return None


def autocast_in(value: Value) -> Autocast | None:
    """The autocast region that a context value enters, on some path at least."""
    found = [choice for choice in options(value) if isinstance(choice, Autocast)]
    return found[0] if len(found) == 1 else None


_GRADLESS = {"torch.no_grad": True, "torch.inference_mode": True, "torch.enable_grad": False}


def gradless_in(value: Value, outside: bool) -> bool:
    """Are gradients switched off inside a context?"""
    return _GRADLESS.get(value.name, outside) if isinstance(value, NullContext) else outside


_SWALLOWING = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex"})
"""Contexts that end at an exception: of contextlib, pytest and unittest."""
_RAISING = frozenset(
    {"builtins", "torch", "threading", "multiprocessing", "concurrent", "tempfile", "warnings", "os", "io", "gzip"}
    | {"zipfile", "tarfile", "tqdm", "h5py", "safetensors", "PIL", "accelerate"}
)
"""Packages whose contexts let every exception through."""


_KEEPING = frozenset(
    {"builtins.staticmethod", "builtins.classmethod", "functools.wraps", "functools.lru_cache", "functools.cache"}
)


def _bound_by(statement: ast.stmt) -> list[str]:
    """The names that a statement assigns to."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _keeps_result(decorator: Value) -> bool:
    """Does the decorated function still return what its body does?"""
    return isinstance(decorator, External) and (decorator.name in _KEEPING or decorator.name.startswith("torch."))


def result_of(node: FunctionNode, returned: Value | None, falls_off: bool) -> Value:
    """A function's result; calling a generator or a coroutine gives neither."""
    if isinstance(node, ast.AsyncFunctionDef) or facts(node).yields:
        return UNKNOWN
    if returned is None:
        return Constant(None)
    return join(returned, Constant(None)) if falls_off else returned


def _ignored(_: ast.stmt) -> None:
    """What a statement does of which nothing is known: `pass`, and what newer Pythons may bring."""


def _is_none(node: ast.expr) -> bool:
    return type(node) is ast.Constant and node.value is None


def _is_in_place(operator: ast.operator, right: Value) -> bool:
    """Does `tensor += right` write into the tensor? Tensors have no such product of matrices, and leave arrays to NumPy."""
    return not isinstance(operator, ast.MatMult) and not (isinstance(right, Array) and right.scalar is not True)


def _as_load(target: ast.expr) -> ast.expr:
    """The target of `x += y`, read as an expression."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Attribute):
        return ast.Attribute(target.value, target.attr, ast.Load())
    assert isinstance(target, ast.Subscript)
    return ast.Subscript(target.value, target.slice, ast.Load())


_EXECUTE: dict[type[ast.stmt], str] = {
    ast.Expr: "expression",
    ast.Assign: "assign",
    ast.AnnAssign: "assign_annotated",
    ast.AugAssign: "assign_augmented",
    ast.Import: "import_",
    ast.ImportFrom: "import_from",
    ast.If: "if_",
    ast.For: "for_",
    ast.AsyncFor: "for_",
    ast.While: "while_",
    ast.Break: "leave_loop",
    ast.Continue: "leave_loop",
    ast.Return: "return_",
    ast.Raise: "raise_",
    ast.Try: "try_",
    ast.With: "with_",
    ast.AsyncWith: "with_",
    ast.Match: "match",
    ast.Delete: "delete",
    ast.Assert: "assert_",
    ast.Global: "forget_names",
    ast.Nonlocal: "forget_names",
    ast.FunctionDef: "define_function",
    ast.AsyncFunctionDef: "define_function",
    ast.ClassDef: "define_class",
}
if hasattr(ast, "TryStar"):
    _EXECUTE[ast.TryStar] = "try_"
