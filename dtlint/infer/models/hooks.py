"""Forward hooks of modules: they run around `forward`, and may put another input or output in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments
from dtlint.infer.domain.lattice import join, join_all
from dtlint.infer.domain.values import NO_TENSOR, NONE, TOP, Const, Many, Mapping, Ref, Tensor, Tuple, Value, choices
from dtlint.infer.models.registry import model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.context import Context

__all__ = ["around", "has_hooks"]

FORWARD = "*forward hooks"
BEFORE = "*forward pre-hooks"


def has_hooks(ctx: Context, module: Ref) -> bool:
    """Does a module have forward hooks?"""
    return any(ctx.store.read(module.address, field) is not None for field in (FORWARD, BEFORE))


def around(ctx: Context, module: Ref, arguments: Arguments, run: Callable[[Arguments], Value]) -> Value:
    """A call of a module with its hooks.

    Args:
        run: calls its `forward`.
    """
    for hook, certain, with_keywords in _hooks(ctx, module, BEFORE):
        given: list[Value] = [module, Tuple(tuple(arguments.args))]
        if with_keywords:
            given.append(ctx.allocate((hook, "kwargs"), "builtins.dict", _named(arguments)))
        result = ctx.semantics.call(ctx, hook, Arguments(given, {}, True, arguments.node))
        if with_keywords:
            arguments = _with_both(ctx, arguments, result, certain=certain)
        else:
            arguments = _with_input(arguments, result, certain=certain)
    output = run(arguments)
    for hook, certain, with_keywords in _hooks(ctx, module, FORWARD):
        given = [module, Tuple(tuple(arguments.args))]
        if with_keywords:
            given.append(ctx.allocate((hook, "kwargs"), "builtins.dict", _named(arguments)))
        result = ctx.semantics.call(ctx, hook, Arguments([*given, output], {}, True, arguments.node))
        output = _unless_none(result, output, certain=certain)
    return output


def _named(arguments: Arguments) -> Mapping:
    return Mapping(tuple((Const(name), value) for name, value in arguments.keywords.items()))


def _unless_none(result: Value, otherwise: Value, *, certain: bool) -> Value:
    """What a hook gives; None leaves things as they are."""
    kept = [otherwise if one == NONE else one for one in choices(result)]
    joined = join_all(kept) or otherwise
    return joined if certain else join(joined, otherwise)


def _with_input(arguments: Arguments, result: Value, *, certain: bool) -> Arguments:
    """The arguments behind a pre-hook: a tuple of others, or one other."""
    if result == NONE:
        return arguments
    if certain and isinstance(result, Tuple):
        given: list[Value] = list(result.items)
    elif certain and isinstance(result, (Tensor, Ref)):
        given = [result]
    else:
        given = [TOP for _ in arguments.args]
    return Arguments(given, arguments.keywords, arguments.complete, arguments.node)


def _with_both(ctx: Context, arguments: Arguments, result: Value, *, certain: bool) -> Arguments:
    """The arguments behind a pre-hook that is told the keywords, too: a tuple of others and a dict of others."""
    if result == NONE:
        return arguments
    if certain and isinstance(result, Tuple) and len(result.items) == 2:
        given, named = result.items
        held = ctx.store.read(named.address, CONTENT) if isinstance(named, Ref) else None
        if isinstance(given, Tuple) and isinstance(held, Mapping) and held.rest is None:
            keywords = {str(key.value): value for key, value in held.items if isinstance(key, Const)}
            return Arguments(list(given.items), keywords, arguments.complete, arguments.node)
    unknown = dict.fromkeys(arguments.keywords, TOP)
    return Arguments([TOP for _ in arguments.args], unknown, False, arguments.node)


def _hooks(ctx: Context, module: Ref, field: str) -> list[tuple[Value, bool, bool]]:
    """The hooks, whether each is certainly there, and whether it is given keyword arguments, too."""
    held = ctx.store.read(module.address, field)
    found: list[tuple[Value, bool, bool]] = []
    for one in () if held is None else choices(held):
        entries = one.items if isinstance(one, Tuple) else (one.item,) if isinstance(one, Many) else ()
        certain = isinstance(held, Tuple)
        for entry in entries:
            for each in choices(entry):
                if isinstance(each, Tuple):
                    found.append((each.items[0], certain and each == entry, each.items[1] == Const(True)))
    return found


def _registering(name: str, field: str) -> None:
    @model(f"torch.nn.Module.{name}")
    def register(ctx: Context, arguments: Arguments) -> Value:
        owner, hook = arguments.args[0], arguments.get(1, "hook")
        if not isinstance(owner, Ref) or hook is None:
            return NO_TENSOR
        entry = Tuple((hook, arguments.keywords.get("with_kwargs", Const(False))))
        held = ctx.store.read(owner.address, field)
        if held is None:
            made: Value = Tuple((entry,))
        elif isinstance(held, Tuple):
            made = Tuple((*held.items, entry))
        else:
            made = Many(join_all([*(one for each in choices(held) for one in _entries(each)), entry]) or entry)
        ctx.store.write(owner.address, field, made)
        handle = ctx.allocate(arguments.node, "torch.utils.hooks.RemovableHandle")
        ctx.store.write(handle.address, "*of", Tuple((owner, Const(field), entry)))
        return handle


def _entries(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, Tuple) else (value.item,) if isinstance(value, Many) else ()


_registering("register_forward_hook", FORWARD)
_registering("register_forward_pre_hook", BEFORE)


@model("torch.utils.hooks.RemovableHandle.remove")
def _remove(ctx: Context, arguments: Arguments) -> Value:
    handle = arguments.args[0]
    known = ctx.store.read(handle.address, "*of") if isinstance(handle, Ref) else None
    if isinstance(known, Tuple) and isinstance(known.items[0], Ref) and isinstance(known.items[1], Const):
        address, field = known.items[0].address, known.items[1].value
        held = ctx.store.read(address, field)
        if isinstance(held, Tuple) and held.items.count(known.items[2]) == 1 and not ctx.store.is_several(address):
            ctx.store.overwrite(address, field, Tuple(tuple(one for one in held.items if one != known.items[2])))
        elif isinstance(held, Tuple) and held.items:
            ctx.store.overwrite(address, field, Many(join_all(held.items) or NO_TENSOR))
    return NONE
