"""Hooks of modules: what is called before and behind their forward, and may put something in place of what it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments
from dtlint.infer.domain.lattice import join, join_all
from dtlint.infer.domain.values import NO_TENSOR, NONE, TOP, Const, Ref, Tuple, Value, choices
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.context import Context

__all__ = ["hooked"]

_BEFORE, _BEHIND = "*forward pre hooks", "*forward hooks"


def _registering(name: str, field: str) -> None:
    @model(f"torch.nn.Module.register_{name}")
    def register(ctx: Context, arguments: Arguments) -> Value:
        owner, hook = arguments.args[0], arguments.get(1, "hook")
        if isinstance(owner, Ref):
            plain = arguments.complete and arguments.keywords.get("with_kwargs") in (None, Const(False))
            ctx.store.blend(owner.address, field, hook if hook is not None and plain else TOP)
        return NO_TENSOR


_registering("forward_pre_hook", _BEFORE)
_registering("forward_hook", _BEHIND)


def hooked(ctx: Context, module: Ref, arguments: Arguments, forward: Callable[[Arguments], Value]) -> Value:
    """What calling a module gives whose forward is given: a hook may have been removed since."""
    before = ctx.store.read(module.address, _BEFORE)
    if before is not None:
        arguments = _given(ctx, before, module, arguments)
    made = forward(arguments)
    behind = ctx.store.read(module.address, _BEHIND)
    for hook in () if behind is None else choices(behind):
        given = Arguments([module, Tuple(tuple(arguments.args)), made], {}, arguments.complete, arguments.node)
        made = _replaced(made, ctx.semantics.call(ctx, hook, given))
    return made


def _given(ctx: Context, hooks: Value, module: Ref, arguments: Arguments) -> Arguments:
    """The arguments of forward behind the hooks before it."""
    args = list(arguments.args)
    for hook in choices(hooks):
        given = Arguments([module, Tuple(tuple(args))], {}, arguments.complete, arguments.node)
        result = ctx.semantics.call(ctx, hook, given)
        for one in choices(result):
            if isinstance(one, Tuple) and len(one.items) == len(args):
                args = [join(old, new) for old, new in zip(args, one.items, strict=True)]
            elif one != NONE:
                args = [join(old, one if len(args) == 1 and one != TOP else TOP) for old in args]
    return Arguments(args, arguments.keywords, arguments.complete, arguments.node)


def _replaced(made: Value, given: Value) -> Value:
    """What forward gives, or what a hook gives in place of it."""
    return join_all([made, *(one for one in choices(given) if one != NONE)]) or made
