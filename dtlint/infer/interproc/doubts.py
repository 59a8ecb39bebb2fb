"""Calls of what is not known, as of methods that a library writes with `exec`: they may call the methods of the objects around.

What is claimed of a function holds for all of its calls. Of what such a call may run nothing is claimed.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.context import Recorder
from dtlint.infer.domain.values import TOP, Function, Many, Mapping, ProjectClass, Ref, Tuple, Value
from dtlint.infer.interproc.calls import calls_of
from dtlint.infer.semantics.attributes import class_attribute
from dtlint.source.definitions import functions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.context import Arguments, Context, Frame
    from dtlint.infer.interproc.functions import FunctionDefinition
    from dtlint.infer.interproc.program import Program

__all__ = ["doubt"]


class _Doubts(Recorder):
    """Tells another recorder that every expression that is evaluated may be anything."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def expression(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """An expression was evaluated."""
        self._recorder.expression(node, TOP, frame)


def doubt(ctx: Context, arguments: Arguments) -> None:
    """Something is called that is not known: what it may run of the object whose method it is, or whose method calls it and
    hands it over, may be given anything."""
    modules: Program = ctx.modules  # type: ignore[assignment]
    if ctx.recorder is None or not modules.project.runs_imports:
        return
    receiver, own = _receiver(ctx, arguments.node), _own(ctx)
    given = [one for value in (*arguments.args, *arguments.keywords.values()) for one in _items(value)]
    for one in (receiver, own if own in given else None):
        if isinstance(one, Ref) and isinstance(one.address.kind, ProjectClass):
            _run(ctx, one, all_methods=one == own == receiver)


def _receiver(ctx: Context, node: object) -> Value | None:
    """The object that a method is asked of which its class was given, or may have from a base that is not known. What an object
    itself holds, a part or a callback, does not know it."""
    called = node.func if isinstance(node, ast.Call) else None
    if not isinstance(called, ast.Attribute):
        return None
    owner = _object(ctx, called.value)
    kind = owner.address.kind if isinstance(owner, Ref) else None
    if not isinstance(kind, ProjectClass):
        return None
    is_of_class = kind.definition.opaque or class_attribute(ctx, kind.definition.order, called.attr) is not None
    return owner if is_of_class else None


def _object(ctx: Context, node: ast.expr) -> Value | None:
    """What a variable holds, or a field of it."""
    if isinstance(node, ast.Name):
        held = ctx.store.read(ctx.frame.address, node.id)
        return ctx.modules.global_of(ctx, ctx.frame.module, node.id) if held is None else held
    owner = _object(ctx, node.value) if isinstance(node, ast.Attribute) else None
    return ctx.store.read(owner.address, node.attr) if isinstance(owner, Ref) else None  # type: ignore[attr-defined]


def _items(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, Tuple) else (value,)


def _own(ctx: Context) -> Value | None:
    """The object whose method runs."""
    definition: FunctionDefinition | None = ctx.frame.function
    if definition is None or definition.owner is None or not definition.parameters:
        return None
    return ctx.store.read(ctx.frame.address, definition.parameters[0])


def _run(ctx: Context, receiver: Ref, *, all_methods: bool) -> None:
    """Run the methods of an object, and tell of nothing but doubts. The state is as before."""
    modules: Program = ctx.modules  # type: ignore[assignment]
    usual = ctx.recorder
    asked = receiver.address, all_methods
    if usual is None or asked in modules.doubted:
        return
    modules.doubted.add(asked)
    calls = calls_of(ctx)
    ctx.recorder = _Doubts(usual)
    try:
        with ctx.store.aside():
            for one in _methods(modules, receiver.address.kind, all_methods):
                if not calls.is_under_way(one):
                    calls.openly(ctx, Function(one, None, receiver), _anything(one, receiver))
    finally:
        ctx.recorder = usual


def _methods(modules: Program, cls: ProjectClass, all_methods: bool) -> Iterator[FunctionDefinition]:
    """What an object's own method may call, all of them; what others call: a module's `forward`."""
    for base in cls.definition.order:
        if not isinstance(base, ProjectClass):
            continue
        for node in functions(base.definition.node.body):
            found = modules.defined_function(node)
            if found is not None and (found.name == "forward" or (all_methods and not found.name.startswith("__"))):
                yield found


def _anything(definition: FunctionDefinition, receiver: Ref) -> dict[str, Value]:
    """The parameters of a method that may be given anything."""
    bound: dict[str, Value] = dict.fromkeys(definition.parameters, TOP)
    first = next(iter(definition.parameters), None)
    if first is not None and "staticmethod" not in definition.decorators:
        bound[first] = receiver.address.kind if "classmethod" in definition.decorators else receiver
    given = definition.node.args
    if given.vararg is not None:
        bound[given.vararg.arg] = Many(TOP)
    if given.kwarg is not None:
        bound[given.kwarg.arg] = Mapping((), TOP)
    return bound
