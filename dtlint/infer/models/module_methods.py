"""Methods of torch.nn.Module: what a module holds, and how it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Const,
    Many,
    Mapping,
    Ref,
    Tensor,
    Tuple,
    Value,
    choices,
)
from dtlint.infer.models import layers, plain_tensors
from dtlint.infer.models.casts import is_module, modules_within, weights_within
from dtlint.infer.models.registry import attribute, model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context


def _each(values: list[Value]) -> Value:
    """An iterator over values: one by one where they are few, else alike."""
    if len(values) <= 12:
        return Tuple(tuple(values))
    return Many(join_all(values) or TOP)


@model("torch.nn.Module.parameters", "torch.nn.Module.buffers")
def _parameters(ctx: Context, arguments: Arguments) -> Value:
    found: list[Value] = [Ref(address) for address in weights_within(ctx, arguments.args[0])]
    return Many(join_all(found) or TOP) if found else Many(Tensor())


@model("torch.nn.Module.named_parameters", "torch.nn.Module.named_buffers")
def _named_parameters(ctx: Context, arguments: Arguments) -> Value:
    found: list[Value] = [Ref(address) for address in weights_within(ctx, arguments.args[0])]
    return Many(Tuple((NO_TENSOR, join_all(found) or Tensor())))


@model("torch.nn.Module.modules")
def _modules(ctx: Context, arguments: Arguments) -> Value:
    found: list[Value] = list(modules_within(ctx, arguments.args[0]))
    return Many(join_all(found) or TOP)


@model("torch.nn.Module.named_modules")
def _named_modules(ctx: Context, arguments: Arguments) -> Value:
    found: list[Value] = list(modules_within(ctx, arguments.args[0]))
    return Many(Tuple((NO_TENSOR, join_all(found) or TOP)))


def _children_of(ctx: Context, value: Value) -> list[Value]:
    found: list[Value] = []
    for one in choices(value):
        if not isinstance(one, Ref):
            continue
        for field in ctx.store.fields(one.address):
            held = ctx.store.read(one.address, field)
            if held is None:
                continue
            if field == CONTENT:
                inner = held.items if isinstance(held, Tuple) else (held.item,) if isinstance(held, Many) else ()
                found += [each for item in inner for each in choices(item) if is_module(each)]
            else:
                found += [each for each in choices(held) if is_module(each)]
    return found


@model("torch.nn.Module.children")
def _children(ctx: Context, arguments: Arguments) -> Value:
    return _each(_children_of(ctx, arguments.args[0]))


@model("torch.nn.Module.named_children")
def _named_children(ctx: Context, arguments: Arguments) -> Value:
    return _each([Tuple((NO_TENSOR, child)) for child in _children_of(ctx, arguments.args[0])])


@model(
    *(
        f"torch.nn.Module.{name}"
        for name in ("train", "eval", "requires_grad_", "share_memory", "compile", "to_empty", "__init__", "zero_grad")
    ),
    "torch.nn.Module.set_submodule",
)
def _itself(ctx: Context, arguments: Arguments) -> Value:
    return arguments.args[0]


@model("torch.nn.Module.apply")
def _apply(ctx: Context, arguments: Arguments) -> Value:
    function = arguments.get(1, "fn")
    if function is not None:
        for one in list(modules_within(ctx, arguments.args[0])):
            ctx.semantics.call(ctx, function, Arguments([one], {}, True, arguments.node))
    return arguments.args[0]


@model("torch.nn.Module.state_dict")
def _state_dict(ctx: Context, arguments: Arguments) -> Value:
    found = [ctx.store.read(address, CONTENT) or Tensor() for address in weights_within(ctx, arguments.args[0])]
    held = join_all(found) or Tensor()
    if isinstance(held, Tensor) and any(isinstance(one, Tensor) and ("weight", True) in one.extra for one in found):
        extra = held.extra | {("weight", True)}
        held = Tensor(held.dtypes, held.symbol, held.rank, held.range, held.device, extra)
    return ctx.allocate(arguments.node, "collections.OrderedDict", Mapping((), held))


@model("torch.nn.Module.load_state_dict", "torch.nn.Module.add_module", "torch.nn.Module.register_module")
def _loaded(ctx: Context, arguments: Arguments) -> Value:
    name = arguments.get(1, "name")
    child = arguments.get(2, "module")
    if child is not None and isinstance(name, Const) and isinstance(arguments.args[0], Ref):
        ctx.store.write(arguments.args[0].address, name.value, child)
    elif child is not None and isinstance(arguments.args[0], Ref):
        ctx.store.blend(arguments.args[0].address, "*children", child)
    return Tuple((TOP, TOP), ("missing_keys", "unexpected_keys"))


@model("torch.nn.Module.register_buffer")
def _register_buffer(ctx: Context, arguments: Arguments) -> Value:
    owner, name = arguments.args[0], arguments.get(1, "name")
    value = arguments.get(2, "tensor")
    given = NONE if value is None else plain_tensors.plain(ctx, value)
    if isinstance(owner, Ref):
        field = name.value if isinstance(name, Const) else "*buffer"
        if given == NONE:
            ctx.store.write(owner.address, field, NONE)
        else:
            tensor = given if isinstance(given, Tensor) else Tensor()
            layers.make_weight(ctx, owner, field, tensor, plain_tensors.BUFFER)
    return NONE


@model("torch.nn.Module.register_parameter")
def _register_parameter(ctx: Context, arguments: Arguments) -> Value:
    owner, name, value = arguments.args[0], arguments.get(1, "name"), arguments.get(2, "param")
    if isinstance(owner, Ref) and value is not None:
        ctx.store.write(owner.address, name.value if isinstance(name, Const) else "*parameter", value)
    return NONE


@model("torch.nn.Module.get_parameter", "torch.nn.Module.get_buffer")
def _get_parameter(ctx: Context, arguments: Arguments) -> Value:
    found: list[Value] = [Ref(address) for address in weights_within(ctx, arguments.args[0])]
    return join_all(found) or Tensor()


@model(
    *(
        f"torch.nn.Module.register_{name}"
        for name in (
            *("full_backward_hook", "full_backward_pre_hook", "backward_hook"),
            *("state_dict_pre_hook", "load_state_dict_post_hook", "load_state_dict_pre_hook", "state_dict_post_hook"),
        )
    ),
    "torch.nn.Module._register_load_state_dict_pre_hook",
    "torch.nn.Module._register_state_dict_hook",
)
def _hook(ctx: Context, arguments: Arguments) -> Value:
    owner = arguments.args[0]
    if isinstance(owner, Ref) and len(arguments.args) > 1:
        ctx.store.blend(owner.address, "*hooks", arguments.args[1])
    return NO_TENSOR


@attribute("torch.nn.Module.training")
def _training(ctx: Context, value: Value) -> Value:
    from dtlint.dtypes.dtype import Category
    from dtlint.infer.domain.values import Number

    return Number(Category.BOOL)


# -- containers of modules -----------------------------------------------------------------------------------------------


@model("torch.nn.ModuleList.append", "torch.nn.Sequential.append", "torch.nn.ParameterList.append")
def _append(ctx: Context, arguments: Arguments) -> Value:
    owner = arguments.args[0]
    if isinstance(owner, Ref) and len(arguments.args) > 1:
        content = ctx.store.read(owner.address, CONTENT)
        if isinstance(content, Tuple):
            ctx.store.write(owner.address, CONTENT, Tuple((*content.items, arguments.args[1])))
        else:
            item = content.item if isinstance(content, Many) else TOP
            ctx.store.write(owner.address, CONTENT, Many(join_all([item, arguments.args[1]]) or TOP))
    return owner


@model("torch.nn.ModuleList.extend", "torch.nn.Sequential.extend", "torch.nn.ParameterList.extend")
def _extend(ctx: Context, arguments: Arguments) -> Value:
    owner = arguments.args[0]
    if isinstance(owner, Ref) and len(arguments.args) > 1:
        content = ctx.store.read(owner.address, CONTENT)
        more = ctx.semantics.items(ctx, arguments.args[1], arguments.node)
        if isinstance(content, Tuple) and isinstance(more, Tuple):
            ctx.store.write(owner.address, CONTENT, Tuple((*content.items, *more.items)))
        else:
            found = [*_all_of(content), *_all_of(more)]
            ctx.store.write(owner.address, CONTENT, Many(join_all(found) or TOP))
    return owner


def _all_of(content: Value | None) -> tuple[Value, ...]:
    if isinstance(content, Tuple):
        return content.items
    return (content.item,) if isinstance(content, Many) else (TOP,)
