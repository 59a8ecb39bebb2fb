"""Calls of what is not read as source: by its model, by the operator table, or else nothing is known of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments, NeverReturns
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Bound,
    Const,
    External,
    Function,
    Many,
    Partial,
    ProjectClass,
    Ref,
    Tensor,
    Union,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.models import (
    catalogue,
    hooks,
    kinds,
    layers,
    mutation,
    plain_tensors,
    transformers_models,
    unknown_tensors,
)
from dtlint.infer.models.departures import marked, tell_written
from dtlint.infer.models.ops import ask, is_op, refusal
from dtlint.infer.models.registry import MODELS, canonical

if TYPE_CHECKING:
    import ast

    from dtlint.infer.context import Context
    from dtlint.infer.models.registry import Model

__all__ = ["call", "decorated", "entered", "field_default", "initialise", "iterated", "method"]

assert catalogue.MODULES


def call(ctx: Context, name: str, arguments: Arguments) -> Value:
    """What calling a function or a class by its qualified name gives.

    Raises:
        NeverReturns: it raises for these arguments.
    """
    name = transformers_models.loader(canonical(name))
    model = MODELS.get(name)
    if model is not None and (arguments.args or not _is_method(name)):
        return _told(ctx, name, model, arguments)
    if layers.is_layer(name):
        return layers.construct(ctx, name, arguments)
    if name.startswith("torch.") and arguments.complete:
        result = _by_table(ctx, name, arguments)
        if result is not None:
            return result
    if _is_exception(name):
        return NO_TENSOR
    ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
    return TOP


def _is_method(name: str) -> bool:
    """Is it a method, named after its class: `builtins.set.union`, `torch.Tensor.add`? Called by that name, it is given its
    receiver as an argument, which is missing where `*sets` has no known length."""
    owner, _, last = name.rpartition(".")
    return owner.rpartition(".")[2][:1].isupper() or (owner.startswith("builtins.") and last != "fromkeys")


_UNTOLD = ("torch.nn.Module.", "torch.optim.", "torch.utils.", "torch.amp.", "torch.cuda.", "torch.device")


def _told(ctx: Context, name: str, model: Model, arguments: Arguments) -> Value:
    """What a model answers; where that is an op of torch, facts are told of it, and of what the operator table refuses."""
    is_told = ctx.recorder is not None or isinstance(ctx.ambient("assumed"), Const)
    if not is_told or not name.startswith("torch.") or name.startswith(_UNTOLD):
        return model(ctx, arguments)
    site = ctx.site
    args = [as_operand(ctx, value) for value in arguments.args]
    keywords = {key: as_operand(ctx, value) for key, value in arguments.keywords.items() if key != "out"}
    result = model(ctx, arguments)
    ctx.site = site
    result = marked(ctx, name, (*args, *keywords.values()), result)
    if name.endswith("_"):
        tell_written(ctx, getattr(getattr(arguments.node, "func", None), "value", None), result)
    if ctx.recorder is not None and any(isinstance(one, Tensor) for one in (result, *args, *keywords.values())):
        error = refusal(ctx, name, args, keywords) if arguments.complete else None
        ctx.recorder.operation(name, args, keywords, None if error else result, error, ctx)
    return result


def _is_exception(name: str) -> bool:
    return name.startswith("builtins.") and name.endswith(("Error", "Exception", "Warning"))


def _by_table(ctx: Context, name: str, arguments: Arguments) -> Value | None:
    """The operator table's answer: where an operand may be no tensor, it is taken for one."""
    name = canonical(name)  # methods have second names, too
    if not is_op(name):
        return None
    args = [as_operand(ctx, value) for value in arguments.args]
    keywords = {key: as_operand(ctx, value) for key, value in arguments.keywords.items() if key != "out"}
    result = ask(ctx, name, args, keywords)
    out = arguments.keywords.get("out")
    return result if out is None or out == Const(None) else _written_to(ctx, out)


def _written_to(ctx: Context, out: Value) -> Value:
    """The result of `op(..., out=y)`: y, which keeps its dtype and takes the result's shape."""
    tensor = plain_tensors.plain(ctx, out)
    if not isinstance(tensor, Tensor):
        return TOP
    made = Tensor(tensor.dtypes, tensor.symbol, None, device=tensor.device)
    mutation.became(ctx, tensor, made)
    return made


def as_operand(ctx: Context, value: Value) -> Value:
    """An argument as the table takes it: weights as tensors, lists as what they hold, the unknown as it is."""
    value = plain_tensors.plain(ctx, value)
    if isinstance(value, Ref):
        content = ctx.store.read(value.address, "*")
        if value.address.kind == "builtins.list" and content is not None:
            return _opened(ctx, content)
        return TOP
    if isinstance(value, Unknown) and (value.symbol is not None or value.dtypes):
        return Tensor(value.dtypes, value.symbol, -1 if unknown_tensors.is_assumed(ctx, value) else None)
    return _opened(ctx, value)


def _opened(ctx: Context, value: Value) -> Value:
    from dtlint.infer.domain.values import Tuple

    if isinstance(value, Tuple):
        return Tuple(tuple(_item(ctx, item) for item in value.items))
    if isinstance(value, Many):
        return Many(_item(ctx, value.item))
    return value


def _item(ctx: Context, value: Value) -> Value:
    """An item of a list that an operator is given: None among tensors would raise."""
    value = plain_tensors.plain(ctx, value)
    if isinstance(value, Union):
        return join_all(one for one in value.choices if one != NONE) or value
    return value


def method(ctx: Context, bound: Bound, arguments: Arguments) -> Value:
    """What calling a method of something gives that is not read as source.

    Raises:
        NeverReturns: it raises for these arguments.
    """
    receiver, name = bound.receiver, bound.name
    owner, _, last = name.rpartition(".")
    if isinstance(receiver, Unknown) and owner == "torch.Tensor" and unknown_tensors.has_method(ctx, receiver, last):
        result = unknown_tensors.told(ctx, receiver, last, lambda: _method(ctx, bound, arguments))
        ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
        return result
    return _method(ctx, bound, arguments)


def _method(ctx: Context, bound: Bound, arguments: Arguments) -> Value:
    receiver, name = bound.receiver, bound.name
    model = MODELS.get(name)
    if model is not None:
        return _told(ctx, name, model, arguments.before(receiver))
    owner, _, last = name.rpartition(".")
    for base in kinds.bases_of(owner):
        model = MODELS.get(f"{base}.{last}")
        if model is not None:
            return model(ctx, arguments.before(receiver))
    if last == "__call__" and isinstance(receiver, Ref):
        if isinstance(receiver.address.kind, ProjectClass):  # `super().__call__(x)` in a module's own `__call__`
            own = ctx.semantics.attribute(ctx, receiver, "forward", arguments.node)
        else:
            own = ctx.store.read(receiver.address, "forward")
        if own is not None:  # `layer.forward = function`
            run = own
            return hooks.around(ctx, receiver, arguments, lambda given: ctx.semantics.call(ctx, run, given))
        return hooks.around(ctx, receiver, arguments, lambda given: layers.called(ctx, receiver, owner, given))
    if last in ("__call__", "forward"):
        return layers.called(ctx, receiver, owner, arguments)
    like = _LIKE.get(owner)
    if like is not None and f"{like}.{last}" in MODELS:
        return MODELS[f"{like}.{last}"](ctx, arguments.before(receiver))
    if last == "__init__" and isinstance(receiver, Ref):
        initialise(ctx, receiver, owner, arguments)
        return Const(None)
    if owner == "torch.Tensor" and arguments.complete:
        result = _tensor_method(ctx, receiver, last, arguments)
        if result is not None:
            return result
    ctx.modules.escape(ctx, [receiver, *arguments.args, *arguments.keywords.values()])
    return TOP


_LIKE = {
    **dict.fromkeys(("torch.nn.ModuleDict", "torch.nn.ParameterDict"), "builtins.dict"),
    **dict.fromkeys(("torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ParameterList"), "builtins.list"),
}
"""Containers of modules that have the methods of a dict or a list."""


def _tensor_method(ctx: Context, receiver: Value, name: str, arguments: Arguments) -> Value | None:
    """A method of a tensor: by the table, under its own name or under that of the function."""
    tensor = plain_tensors.plain(ctx, receiver)
    sure = isinstance(tensor, Tensor)
    if isinstance(tensor, Unknown):
        if tensor.dtypes is None and tensor.symbol is None:
            return None
        tensor = Tensor(tensor.dtypes, tensor.symbol)
    if not isinstance(tensor, Tensor):
        return None
    for op in (f"torch.Tensor.{name}", f"torch.{name}"):
        if is_op(op):
            result = _by_table(ctx, op, Arguments([tensor, *arguments.args], arguments.keywords, True, arguments.node))
            if sure or not isinstance(result, Tensor):
                return result if sure else TOP
            return Unknown(result.dtypes, result.symbol)
    if name.endswith("_") and sure:
        return Tensor(tensor.dtypes, tensor.symbol, tensor.rank, device=tensor.device)
    return None


def initialise(ctx: Context, made: Ref, name: str, arguments: Arguments) -> None:
    """What `super().__init__(...)` of a class from elsewhere does to an object."""
    model = MODELS.get(f"{name}.__init__")
    if model is not None:
        model(ctx, arguments.before(made))
    elif layers.is_layer(name):
        layers.initialise(ctx, made, name, arguments)
    else:
        for base in kinds.bases_of(name):
            model = MODELS.get(f"{base}.__init__")
            if model is not None:
                model(ctx, arguments.before(made))
                return


_KEEPING = frozenset(
    {"wraps", "lru_cache", "cache", "no_grad", "inference_mode", "enable_grad", "set_grad_enabled", "compile", "script"}
    | {"contextmanager", "staticmethod", "classmethod", "property", "cached_property", "abstractmethod", "override"}
    | {"overload", "custom_fwd", "custom_bwd", "unused", "ignore", "export", "disable", "singledispatch", "final"}
)
"""Decorators that leave what a function gives as it is, by the last part of their names."""


def decorated(ctx: Context, decorator: Value, value: Value, node: ast.expr) -> Value | None:
    """A function behind a decorator that is not read as source; None where it stays as it is."""
    if isinstance(decorator, External):
        if decorator.name.rpartition(".")[2] in _KEEPING:
            return None
        model = MODELS.get(canonical(decorator.name))
        if model is not None:
            try:
                return model(ctx, Arguments([value], {}, True, node))
            except NeverReturns:
                return TOP
        return None
    if isinstance(decorator, (Bound, Partial)):
        try:
            made = ctx.semantics.call(ctx, decorator, Arguments([value], {}, True, node))
        except NeverReturns:
            return TOP
        return made if isinstance(made, (Function, Partial, ProjectClass)) else None
    return None


def entered(ctx: Context, manager: Value) -> Value | None:
    """What a context that is not read as source binds."""
    for one in choices(manager):
        if isinstance(one, Partial) and one.callee == External("contextlib.nullcontext"):
            return one.args[0] if one.args else Const(None)
    return None


def field_default(ctx: Context, value: Value, node: ast.expr) -> Value:
    """What `field(default_factory=...)` of a dataclass gives a new object."""
    if isinstance(value, Partial) and value.callee == External("dataclasses.field"):
        keywords = dict(value.keywords)
        if "default" in keywords:
            return keywords["default"]
        if "default_factory" in keywords:
            return ctx.semantics.call(ctx, keywords["default_factory"], Arguments([], {}, True, node))
        return TOP
    return value


def iterated(ctx: Context, value: Ref, node: ast.AST) -> Value:
    """The items of an object whose class is not read as source."""
    kind = value.address.kind
    for owner in (kind, *kinds.bases_of(kind)):
        model = MODELS.get(f"{owner}.__iter__")
        if model is not None:
            return ctx.semantics.items(ctx, model(ctx, Arguments([value], {}, True, node)), node)
    return Many(TOP)
