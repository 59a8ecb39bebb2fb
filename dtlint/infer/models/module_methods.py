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
    Unknown,
    Value,
    choices,
)
from dtlint.infer.models import layers, plain_tensors, training
from dtlint.infer.models.casts import cast_module
from dtlint.infer.models.instance_dicts import ANYTHING
from dtlint.infer.models.module_trees import is_module, modules_within, weights_within
from dtlint.infer.models.registry import attribute, model
from dtlint.infer.state import AMBIENT, CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context


PARAMETERS_OF = "parameters of"
"""Marks the ambient cell that remembers whose parameters a call gives: what is made of them may be too many to list."""


OF_MODULE = "weight of"
"""What is known of a weight of a module that has too many to list: whose it is."""


def _each(values: list[Value]) -> Value:
    """An iterator over values: one by one where they are few, else alike."""
    if len(values) <= 12:
        return Tuple(tuple(values))
    return Many(join_all(values) or TOP)


def _weights(ctx: Context, module: Value, kind: str) -> list[Value]:
    """The parameters of a module and of all within, or the buffers."""
    found = [address for address in weights_within(ctx, module) if address.kind == kind]
    return [Ref(address) for address in dict.fromkeys(found)]


def _one_of(ctx: Context, module: Value, kind: str) -> Value:
    """Any of the parameters of a module and of all within, or of the buffers."""
    found = join_all(_weights(ctx, module, kind)) or Tensor()
    return (
        Unknown(extra=frozenset({(OF_MODULE, module.address)})) if found == TOP and isinstance(module, Ref) else found
    )


def _iterating(name: str, kind: str) -> None:
    @model(f"torch.nn.Module.{name}s")
    def weights(ctx: Context, arguments: Arguments) -> Value:
        ctx.store.overwrite(AMBIENT, (PARAMETERS_OF, arguments.node), arguments.args[0])
        return Many(_one_of(ctx, arguments.args[0], kind))

    @model(f"torch.nn.Module.named_{name}s")
    def named_weights(ctx: Context, arguments: Arguments) -> Value:
        return Many(Tuple((NO_TENSOR, _one_of(ctx, arguments.args[0], kind))))

    @model(f"torch.nn.Module.get_{name}")
    def weight(ctx: Context, arguments: Arguments) -> Value:
        return join_all(_weights(ctx, arguments.args[0], kind)) or Tensor()


_iterating("parameter", plain_tensors.PARAMETER)
_iterating("buffer", plain_tensors.BUFFER)


@model("torch.nn.Module.modules")
def _modules(ctx: Context, arguments: Arguments) -> Value:
    return Many(_one_within(ctx, arguments.args[0]))


@model("torch.nn.Module.named_modules")
def _named_modules(ctx: Context, arguments: Arguments) -> Value:
    return Many(Tuple((NO_TENSOR, _one_within(ctx, arguments.args[0]))))


def _one_within(ctx: Context, module: Value) -> Value:
    """Any of the modules within one; of one that may hold anything, anything."""
    found = list(modules_within(ctx, module))
    return TOP if any(_may_hold_anything(ctx, one) for one in found) else join_all(found) or TOP


def _may_hold_anything(ctx: Context, module: Value) -> bool:
    """Is it a module of which `__init__` was not followed?"""
    return any(isinstance(one, Ref) and ctx.store.read(one.address, ANYTHING) is not None for one in choices(module))


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
    if _may_hold_anything(ctx, arguments.args[0]):
        return Many(TOP)
    return _each(_children_of(ctx, arguments.args[0]))


@model("torch.nn.Module.named_children")
def _named_children(ctx: Context, arguments: Arguments) -> Value:
    if _may_hold_anything(ctx, arguments.args[0]):
        return Many(Tuple((NO_TENSOR, TOP)))
    return _each([Tuple((NO_TENSOR, child)) for child in _children_of(ctx, arguments.args[0])])


@model(
    *(
        f"torch.nn.Module.{name}"
        for name in ("train", "eval", "share_memory", "compile", "to_empty", "__init__", "zero_grad")
    ),
    "torch.nn.Module.set_submodule",
)
def _itself(ctx: Context, arguments: Arguments) -> Value:
    return arguments.args[0]


@model("torch.nn.Module.requires_grad_")
def _needs_gradients(ctx: Context, arguments: Arguments) -> Value:
    needed = arguments.get(1, "requires_grad") or Const(True)
    training.frozen(ctx, weights_within(ctx, arguments.args[0]), needed == Const(False))
    for one in choices(arguments.args[0]):
        if isinstance(one, Ref) and needed != Const(True):
            ctx.store.write(one.address, training.CAST_UNSEEN, TOP)
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


@model("torch.nn.Module.load_state_dict")
def _load_state_dict(ctx: Context, arguments: Arguments) -> Value:
    """Numbers are copied into the weights, which keep their dtypes, unless the loaded tensors take their place."""
    assign = arguments.get(3, "assign") or Const(False)
    if assign != Const(False) or not arguments.complete:
        cast_module(ctx, arguments.args[0], None, None)
    return Tuple((NO_TENSOR, NO_TENSOR), ("missing_keys", "unexpected_keys"))


@model("torch.nn.Module.add_module", "torch.nn.Module.register_module")
def _add_module(ctx: Context, arguments: Arguments) -> Value:
    owner, name, child = arguments.args[0], arguments.get(1, "name"), arguments.get(2, "module")
    if child is None or not isinstance(owner, Ref):
        return NONE
    field = name.value if isinstance(name, Const) else "*children"
    known = ctx.store.read(owner.address, field)
    content = ctx.store.read(owner.address, CONTENT)
    if isinstance(content, (Tuple, Many)):  # a Sequential calls what was added, too
        certain = isinstance(content, Tuple) and isinstance(name, Const) and known is None
        ctx.store.write(owner.address, CONTENT, _with_child(content, child, certain=certain))
    if isinstance(name, Const):
        ctx.store.write(owner.address, field, child)
    else:
        ctx.store.blend(owner.address, field, child)
    return NONE


def _with_child(content: Tuple | Many, child: Value, *, certain: bool) -> Value:
    if isinstance(content, Tuple) and certain:
        return Tuple((*content.items, child))
    return Many(join_all([*_all_of(content), child]) or TOP)


@model("torch.nn.Module.register_buffer")
def _register_buffer(ctx: Context, arguments: Arguments) -> Value:
    owner, name = arguments.args[0], arguments.get(1, "name")
    value = arguments.get(2, "tensor")
    given = NONE if value is None else plain_tensors.plain(ctx, value)
    if isinstance(owner, Ref):
        field = name.value if isinstance(name, Const) else "*buffer"
        if given == NONE:
            ctx.store.write(owner.address, field, NONE)
            ctx.store.write(owner.address, (plain_tensors.BUFFER, field), NONE)
        else:
            tensor = given if isinstance(given, Tensor) else Tensor()
            made = layers.make_weight(ctx, owner, field, tensor, plain_tensors.BUFFER)
            ctx.store.write(made.address, plain_tensors.REGISTERED, NONE)
    return NONE


@model("torch.nn.Module.register_parameter")
def _register_parameter(ctx: Context, arguments: Arguments) -> Value:
    owner, name, value = arguments.args[0], arguments.get(1, "name"), arguments.get(2, "param")
    if isinstance(owner, Ref) and value is not None:
        ctx.store.write(owner.address, name.value if isinstance(name, Const) else "*parameter", value)
    return NONE


@model(
    *(
        f"torch.nn.Module.register_{name}"
        for name in (
            *("full_backward_hook", "full_backward_pre_hook", "backward_hook", "state_dict_pre_hook"),
            *("load_state_dict_post_hook", "load_state_dict_pre_hook", "state_dict_post_hook"),
        )
    ),
    "torch.nn.Module._register_load_state_dict_pre_hook",
    "torch.nn.Module._register_state_dict_hook",
)
def _hook(ctx: Context, arguments: Arguments) -> Value:
    """A hook that does not touch what `forward` gives."""
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
        added = layers.as_parameter(ctx, arguments.args[1], (owner.address, arguments.node))
        if isinstance(content, Tuple):
            ctx.store.write(owner.address, CONTENT, Tuple((*content.items, added)))
        else:
            item = content.item if isinstance(content, Many) else TOP
            ctx.store.write(owner.address, CONTENT, Many(join_all([item, added]) or TOP))
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


_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict")


def _initialising(name: str) -> None:
    @model(f"torch.nn.{name}.__init__")
    def initialise(ctx: Context, arguments: Arguments) -> Value:
        """`super().__init__(...)` in a subclass."""
        if isinstance(arguments.args[0], Ref):
            layers.initialise(ctx, arguments.args[0], f"torch.nn.{name}", arguments.without_first())
        return NONE


for _name in dict.fromkeys((*layers.NAMES, *_CONTAINERS)):
    _initialising(_name)

for _name in layers.NAMES:

    def _forwarding(name: str = _name) -> None:
        @model(f"torch.nn.{name}.forward")
        def forward(ctx: Context, arguments: Arguments) -> Value:
            return layers.called(ctx, arguments.args[0], f"torch.nn.{name}", arguments.without_first())

    _forwarding()


@model(*(f"torch.nn.{name}.flatten_parameters" for name in ("LSTM", "GRU", "RNN", "RNNBase")))
@model(*(f"torch.nn.{name}.reset_parameters" for name in layers.NAMES))
def _same_weights(ctx: Context, arguments: Arguments) -> Value:
    return NONE


@model("torch.nn.Module.get_submodule")
def _submodule(ctx: Context, arguments: Arguments) -> Value:
    """The part at a path, `"encoder.layers"`, as far as that is known."""
    target = arguments.get(1, "target")
    if not isinstance(target, Const) or not isinstance(target.value, str):
        return TOP
    found = arguments.args[0]
    for name in filter(None, target.value.split(".")):
        if name.isdigit():
            found = ctx.semantics.subscript(ctx, found, Const(int(name)), arguments.node)
        else:
            found = ctx.semantics.attribute(ctx, found, name, arguments.node) or TOP
    return found
