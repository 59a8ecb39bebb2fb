"""`inspect`: the parameters of functions, as far as their definitions show them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
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
    Value,
)
from dtlint.infer.models.registry import attribute, model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

_EMPTY = External("inspect.Parameter.empty")
_PARAMETER = "inspect.Parameter"
_KINDS = ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD", "VAR_POSITIONAL", "KEYWORD_ONLY", "VAR_KEYWORD")


@model("inspect.signature")
def _signature(ctx: Context, arguments: Arguments) -> Value:
    """The signature of a function, a bound one without its receiver, or of a class's `__init__`."""
    value = arguments.get(0, "obj") or TOP
    skip = 0
    if isinstance(value, ProjectClass):
        found = ctx.modules.class_attribute(ctx, value.definition.order, "__init__")
        value, skip = (TOP, 0) if found is None else (found, 1)
    if isinstance(value, Ref) and isinstance(value.address.kind, ProjectClass):
        value = ctx.semantics.attribute(ctx, value, "__call__", arguments.node) or TOP
    if not isinstance(value, Function):
        return NO_TENSOR if isinstance(value, (External, Bound, Partial)) else TOP
    skip += value.receiver is not None
    definition = value.definition
    given = definition.node.args
    plain = [*given.posonlyargs, *given.args]
    listed = [(one, _KINDS[place >= len(given.posonlyargs)]) for place, one in enumerate(plain)]
    listed += [(given.vararg, _KINDS[2])] if given.vararg is not None else []
    listed += [(one, _KINDS[3]) for one in given.kwonlyargs]
    listed += [(given.kwarg, _KINDS[4])] if given.kwarg is not None else []
    defaults = definition.defaults or {}
    items: list[tuple[Value, Value]] = []
    for one, kind in listed[skip:]:
        parameter = ctx.allocate((arguments.node, one), _PARAMETER)
        ctx.store.write(parameter.address, "name", Const(one.arg))
        ctx.store.write(parameter.address, "default", defaults.get(one.arg, _EMPTY))
        ctx.store.write(parameter.address, "kind", External(f"inspect.Parameter.{kind}"))
        ctx.store.write(parameter.address, "annotation", _EMPTY if one.annotation is None else TOP)
        items.append((Const(one.arg), parameter))
    made = ctx.allocate(arguments.node, "inspect.Signature")
    held = ctx.allocate((arguments.node, "parameters"), "builtins.dict", Mapping(tuple(items)))
    ctx.store.write(made.address, "parameters", held)
    return made


@attribute("inspect.Signature.return_annotation")
def _return_annotation(ctx: Context, value: Value) -> Value:
    return TOP


@attribute(*(f"inspect.Parameter.{name}" for name in (*_KINDS, "empty")))
def _constant(ctx: Context, value: Value) -> Value:
    return TOP


@model("inspect.getfullargspec")
def _full_spec(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.get(0, "func")
    if not isinstance(value, Function):
        return TOP
    given = value.definition.node.args
    names = Tuple(tuple(Const(one.arg) for one in (*given.posonlyargs, *given.args)))
    only = Tuple(tuple(Const(one.arg) for one in given.kwonlyargs))
    fields: dict[str, Value] = {
        "args": ctx.allocate((arguments.node, "args"), "builtins.list", names),
        "varargs": NONE if given.vararg is None else Const(given.vararg.arg),
        "varkw": NONE if given.kwarg is None else Const(given.kwarg.arg),
        "defaults": TOP,
        "kwonlyargs": ctx.allocate((arguments.node, "kwonlyargs"), "builtins.list", only),
        "kwonlydefaults": TOP,
        "annotations": TOP,
    }
    return Tuple(tuple(fields.values()), tuple(fields))


@model("inspect.isclass")
def _isclass(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.get(0, "object")
    if isinstance(value, ProjectClass):
        return Const(True)
    return Const(False) if isinstance(value, (Function, Ref, Const, Tuple)) else NO_TENSOR


@model("inspect.isfunction", "inspect.ismethod", "inspect.isroutine")
def _isfunction(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.get(0, "object")
    return Const(False) if isinstance(value, (ProjectClass, Ref, Const, Tuple)) else NO_TENSOR


@model("inspect.getattr_static")
def _getattr_static(ctx: Context, arguments: Arguments) -> Value:
    """What a class has under a name, bound to nothing."""
    owner, name = arguments.get(0, "obj"), arguments.get(1, "attr")
    if not isinstance(owner, ProjectClass) or not isinstance(name, Const):
        return TOP
    found = ctx.modules.class_attribute(ctx, owner.definition.order, str(name.value))
    return TOP if found is None else found


@model("inspect.iscoroutinefunction", "asyncio.iscoroutinefunction")
def _is_coroutine(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.get(0, "obj") or TOP
    return Const(isinstance(value.definition.node, ast.AsyncFunctionDef)) if isinstance(value, Function) else NO_TENSOR
