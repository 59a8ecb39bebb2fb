"""The engine: what the rooms below ask of one another, put together; and what calling each kind of value does."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments, Context, Frame, NeverReturns, Unfit
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    TOP,
    Bound,
    Const,
    External,
    Function,
    Mapping,
    Partial,
    ProjectClass,
    Ref,
    Tuple,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.interproc import fields, metaclasses
from dtlint.infer.interproc.calls import Calls
from dtlint.infer.interproc.doubts import doubt
from dtlint.infer.interproc.exclusive import are_exclusive
from dtlint.infer.interproc.program import Program
from dtlint.infer.models import drivers, enumerations, external_calls, hooks, ops, scaling
from dtlint.infer.models.amp import IN_REGION
from dtlint.infer.models.handed_over import result_of_unseen
from dtlint.infer.semantics import attributes, containers, expressions, operators, statements
from dtlint.infer.semantics.attributes import ANYTHING, class_attribute
from dtlint.infer.semantics.branches import alternatives, value_of_alternatives
from dtlint.infer.semantics.regions import GENERATOR_CONTEXT, in_region
from dtlint.infer.state import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.infer.context import Recorder
    from dtlint.infer.interproc.project import ModuleInfo, Project

__all__ = ["BUDGET", "Engine", "context_for"]

BUDGET = 60_000
"""Calls that are followed in one reading."""
STEPS = 10_000_000
"""Statements that are run in one reading."""


def context_for(project: Project, module: ModuleInfo, recorder: Recorder | None, calls: Calls | None = None) -> Context:
    """A context at the beginning of a module."""
    store, calls = Store(), calls or Calls(BUDGET)
    program = Program(project, store, calls)
    frame = Frame(program.address_of(module), None, module)
    return Context(store, frame, Engine(calls), program, recorder, steps_left=STEPS)


_OF_MODULES = frozenset(
    f"torch.nn.Module.{name}" for name in ("half", "float", "double", "bfloat16", "to", "type", "cuda", "cpu", "train")
)


def _is_absent_beside(ctx: Context, other: Value, one: Value) -> bool:
    """Are these a method of one module or of another, of which only one is there? What is done to the other does not
    matter then."""
    if (
        not isinstance(one, Bound)
        or not isinstance(other, Bound)
        or one.name != other.name
        or one.name not in _OF_MODULES
    ):
        return False
    mine, its = one.receiver, other.receiver
    return isinstance(mine, Ref) and isinstance(its, Ref) and are_exclusive(ctx, mine.address, its.address)


_EMPTY: tuple[tuple[str, Value], ...] = (
    ("builtins.dict", Mapping()),
    ("builtins.list", Tuple(())),
    ("builtins.set", Tuple(())),
)
"""What an object of a subclass of Python's containers holds when it is made."""
_TYPED_DICTS = frozenset({"typing.TypedDict", "typing_extensions.TypedDict"})


class Engine:
    """Evaluates expressions, statements and calls: see `context.Semantics`."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    def tells(self) -> None:
        """Something was recorded that each call that leads here tells anew."""
        self.calls.told += 1

    def evaluate(self, ctx: Context, node: ast.expr) -> Value:
        """The value of an expression."""
        return expressions.evaluate(ctx, node)

    def execute(self, ctx: Context, body: Sequence[ast.stmt]) -> bool:
        """Run statements; is their end reached?"""
        return statements.execute(ctx, body)

    def perhaps(self, ctx: Context, run: Callable[[], None]) -> None:
        """Run something that may not run at all."""

        def once() -> bool:
            run()
            return True

        alternatives(ctx, [once, lambda: True])

    def attribute(self, ctx: Context, value: Value, name: str, node: ast.AST) -> Value | None:
        """The value of an attribute; None where it is certain that there is none."""
        return attributes.attribute(ctx, value, name, node)

    def own_attribute(self, ctx: Context, value: Ref, name: str, node: ast.AST) -> Value | None:
        """What `object.__getattribute__(value, name)` gives."""
        return attributes.own_attribute(ctx, value, name, node)

    def assign_attribute(self, ctx: Context, value: Value, name: str, given: Value, node: ast.AST) -> None:
        """Bind an attribute."""
        attributes.assign_attribute(ctx, value, name, given, node)

    def assign_own_attribute(self, ctx: Context, value: Ref, name: str, given: Value, node: ast.AST) -> None:
        """What `object.__setattr__(value, name, given)` does."""
        attributes.assign_own_attribute(ctx, value, name, given, node)

    def subscript(self, ctx: Context, value: Value, index: Value, node: ast.AST) -> Value:
        """`value[index]`."""
        return containers.subscript(ctx, value, index, node)

    def assign_item(self, ctx: Context, value: Value, index: Value, given: Value, node: ast.AST) -> None:
        """`value[index] = given`."""
        containers.assign_item(ctx, value, index, given, node)

    def items(self, ctx: Context, value: Value, node: ast.AST) -> Value:
        """What iterating over a value gives."""
        return containers.items(ctx, value, node)

    def truth(self, ctx: Context, value: Value) -> bool | None:
        """Is a value true?"""
        return containers.truth(ctx, value)

    def binary(self, ctx: Context, operator: type[ast.operator], left: Value, right: Value, node: ast.AST) -> Value:
        """`left + right`, and the others."""
        return operators.binary(ctx, operator, left, right, node)

    def compare(self, ctx: Context, operator: type[ast.cmpop], left: Value, right: Value, node: ast.AST) -> Value:
        """`left < right`, and the others."""
        return operators.compare(ctx, operator, left, right, node)

    def call(self, ctx: Context, callee: Value, arguments: Arguments) -> Value:
        """The result of a call. Where torch raises in some of several things that may be called, the others are called: which
        it is, is decided together with what it is given.

        Raises:
            NeverReturns: it raises, whatever is called.
        """
        ones = choices(callee)
        if len(ones) > 1:  # calling None or a text raises: where it is one of several, it is not the one that is called
            ones = tuple(one for one in ones if not isinstance(one, Const)) or ones
        if len(ones) == 1:
            return self._call(ctx, ones[0], arguments)

        def path(one: Value) -> Callable[[], Value]:
            rivals = [other for other in ones if _is_absent_beside(ctx, other, one)]

            def run() -> Value:
                before = 0 if recorder is None else recorder.refusals()
                try:
                    with drivers.ambient(ctx, ops.GOES_ON, Const(False)):
                        for other in rivals:
                            self._call(ctx, other, arguments)
                        return self._call(ctx, one, arguments)
                except NeverReturns:
                    refused.append((before, 0 if recorder is None else recorder.refusals()))
                    raise

            return run

        recorder, refused = ctx.recorder, list[tuple[int, int]]()
        result = value_of_alternatives(ctx, [path(one) for one in ones])
        if recorder is not None:
            for first, end in refused:
                recorder.withdraw(first, end)
        return result

    def _call(self, ctx: Context, callee: Value, arguments: Arguments) -> Value:
        if isinstance(callee, Function):
            return self.calls.call(ctx, callee, arguments)
        if isinstance(callee, Bound):
            return external_calls.method(ctx, callee, arguments)
        if isinstance(callee, External):
            return external_calls.call(ctx, callee.name, arguments)
        if isinstance(callee, ProjectClass):
            return self.instantiate(ctx, callee, arguments)
        if isinstance(callee, Ref):
            return self._call_object(ctx, callee, arguments)
        if isinstance(callee, Partial):
            return self._call_partial(ctx, callee, arguments)
        if isinstance(callee, Unknown):
            if _is_of_receiver(ctx, arguments.node):
                scaling.forget(ctx)
            ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
            doubt(ctx, arguments)
            is_given = callee.symbol is not None or _is_of_receiver(ctx, arguments.node)
            return result_of_unseen(ctx, arguments) if is_given else TOP
        if isinstance(callee, Const):
            ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
            raise Unfit
        return TOP

    def _call_partial(self, ctx: Context, callee: Partial, arguments: Arguments) -> Value:
        if callee.callee == IN_REGION:
            region, function = callee.args
            found: list[Value] = []

            def run() -> bool:
                found.append(self.call(ctx, function, arguments))
                return True

            if not in_region(ctx, region, run) or not found:
                raise NeverReturns
            return found[0]
        if callee.callee == GENERATOR_CONTEXT:  # a context as a decorator
            return arguments.args[0] if arguments.args else TOP
        keywords = {**dict(callee.keywords), **arguments.keywords}
        args = [*callee.args, *arguments.args]
        given = replace(arguments, args=args, keywords=keywords)
        return self.call(ctx, callee.callee, given)

    def _call_object(self, ctx: Context, callee: Ref, arguments: Arguments) -> Value:
        kind = callee.address.kind
        if isinstance(kind, str):
            return external_calls.method(ctx, Bound(callee, f"{kind}.__call__"), arguments)
        own = class_attribute(ctx, kind.definition.order, "__call__")
        methods = [] if own is None else [one for one in choices(own) if isinstance(one, Function)]
        if own is not None and len(methods) == len(choices(own)):
            bound = [Function(one.definition, one.frame, callee) for one in methods]
            return self.call(ctx, join_all(bound) or TOP, arguments)
        if kind.definition.inherits("torch.nn.Module") is not False or own is None:
            forward = self.attribute(ctx, callee, "forward", arguments.node)
            if forward is not None:
                forward = join_all(_forward(ctx, callee, one) for one in choices(forward))
            if forward is not None and forward != TOP:
                run = forward
                return hooks.around(ctx, callee, arguments, lambda given: self.call(ctx, run, given))
        ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
        return TOP

    def instantiate(self, ctx: Context, cls: ProjectClass, arguments: Arguments) -> Value:
        """A new object of a class that is read as source.

        Raises:
            NeverReturns: its `__init__` raises for these arguments.
        """
        hook = metaclasses.method(ctx, cls, "__call__")
        return self.construct(ctx, cls, arguments) if hook is None else self.call(ctx, hook, arguments)

    def construct(self, ctx: Context, cls: ProjectClass, arguments: Arguments) -> Value:
        """What `type.__call__` does: a new object, whatever the metaclass makes of it.

        Raises:
            NeverReturns: its `__init__` raises for these arguments.
        """
        definition = cls.definition
        if enumerations.is_enumeration(cls):
            return enumerations.by_value(ctx, cls, arguments)
        if any(isinstance(one, External) and one.name in _TYPED_DICTS for one in definition.order):
            return fields.made_dict(ctx, arguments)
        maker = class_attribute(ctx, definition.order, "__new__")
        if isinstance(maker, Function):
            given = self.call(ctx, Function(maker.definition, maker.frame), arguments.before(cls))
            if not isinstance(given, Ref) or given.address.kind != cls:
                return given
            made = given
        elif definition.inherits("typing.NamedTuple"):
            return fields.made_tuple(ctx, cls, arguments)
        else:
            empty = next((content for name, content in _EMPTY if definition.inherits(name)), None)
            made = ctx.allocate(arguments.node, cls, empty)
        self.initialise(ctx, made, cls, arguments)
        return made

    def initialise(self, ctx: Context, made: Ref, cls: ProjectClass, arguments: Arguments) -> None:
        """Run what a new object's `__init__` does."""
        definition = cls.definition
        for one in definition.order:
            if isinstance(one, External):
                external_calls.initialise(ctx, made, one.name, arguments)
                break
            if not isinstance(one, ProjectClass):
                continue
            init = class_attribute(ctx, (one,), "__init__")
            if one.definition.transformed or (one.definition.made and init is None):
                fields.fill(ctx, made, cls, arguments)
                return
            if isinstance(init, Function):
                self.call(ctx, Function(init.definition, init.frame, made), arguments)
                return
        if definition.opaque:
            ctx.store.write(made.address, ANYTHING, Const(True))


def _forward(ctx: Context, callee: Ref, bound: Value) -> Value:
    """What a module runs for what its `forward` was bound to: a module there, `net.forward = torch.compile(net)`, becomes a part
    of it by `Module.__setattr__`, and what its class defines stays."""
    if not isinstance(bound, Ref) or (isinstance(bound.address.kind, str) and "torch.nn." not in bound.address.kind):
        return bound
    defined = class_attribute(ctx, callee.address.kind.definition.order, "forward")
    return Function(defined.definition, defined.frame, callee) if isinstance(defined, Function) else TOP


def _is_of_receiver(ctx: Context, node: object) -> bool:
    """Is it a method of the running method's own object, `self.finish()`, which is not in view?"""
    function = getattr(ctx.frame.function, "node", None)
    given = [] if function is None or ctx.frame.function.owner is None else function.args.args[:1]
    owner = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    return isinstance(owner, ast.Name) and any(one.arg == owner.id for one in given)
