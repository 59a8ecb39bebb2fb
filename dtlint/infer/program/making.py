"""Making and running modules: what a call of a class gives, and what calling the instance does."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache, reduce
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import COMPLEX, FLOATING
from dtlint.infer.calls import Arguments, cast_target, dtype_of, method_result
from dtlint.infer.layers import layer_result
from dtlint.infer.program.abroad import Abroad
from dtlint.infer.program.absent import told_weights
from dtlint.infer.program.fields import Field, alters_ops, fields_in, has_generated_init, is_dict, made_elsewhere
from dtlint.infer.program.functions import RUNNING, SUPPOSED
from dtlint.infer.program.held import tensors_in
from dtlint.infer.program.instances import ITEMS, LAYER
from dtlint.infer.program.objects import EVERY
from dtlint.infer.program.promises import meeting
from dtlint.infer.program.storing import place_of
from dtlint.infer.program.torch_attributes import MODULE_ATTRIBUTES, TENSOR_ATTRIBUTES
from dtlint.infer.survey import facts
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Class,
    Constant,
    Device,
    Dtype,
    Either,
    External,
    Function,
    Instance,
    Items,
    Iteration,
    Key,
    Module,
    Number,
    Partial,
    Table,
    Tensor,
    Trait,
    Unknown,
    Value,
    join,
    options,
)
from dtlint.infer.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.infer.interproc.project import ModuleInfo, Project
    from dtlint.infer.scopes import ClassInfo, FunctionNode

__all__ = ["Making"]


class Making(Abroad):
    """An interpreter that makes instances, each known by the place and the calls that led there, and runs modules."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.built_of_others: set[Key] = set()
        """Layers of torch that were given modules or functions of the program, in any round."""

    training_themselves = False
    """Has any module a `train()` of its own?"""

    # -- making

    def identity(self, arguments: Arguments) -> Key:
        """The identity of what a call makes: its place, and the calls that led there."""
        place = f"{self.module.name}{arguments.key}"
        key = "/".join((*self.call_path, place))
        if self.loops_open or self.made_by.setdefault(key, self.reading_now) != self.reading_now:
            self.objects.stand_for_several(key)
        self.made_here.append(key)
        return key

    def made_again(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self.objects.stand_for_several(key)

    def construct(self, info: ClassInfo, arguments: Arguments) -> Value:
        if made_elsewhere(info):
            for value in (Class(info), *arguments.args, *arguments.keywords.values()):
                self.lose(value)
            return UNKNOWN
        self.altered = self.altered or alters_ops(info)
        key = self.identity(arguments)
        if self.class_made_at.setdefault(key, info.node) is not info.node:
            key = f"{key}~{info.node.name}@{info.node.lineno}"  # `make(A)`, `make(B)`: one call, objects of several classes
        self.classes_made.update(id(parent.node) for parent in info.lineage)
        for parent in () if self.supposed else info.lineage:
            self.made_of.setdefault(id(parent.node), {})[key] = None
        made: Module | Instance = Module(info.node.name, key, info) if info.is_module else Instance(info, key)
        if info.method("_apply") is not None:
            self.casting_themselves.add(key)
        builder = info.method("__init__")
        if has_generated_init(info):
            self.fill_dataclass(info, made, arguments)
        elif builder is not None:
            if any(isinstance(base, External) and base.name.startswith("torch.optim.") for base in info.bases):
                self.optimized += [tensor for value in arguments.args[:1] for tensor in tensors_in(value)]
            path = self.call_path  # two of one class are made at different places, and so is what they hold
            self.call_path = [SUPPOSED, key] if self.supposed else [key]
            self.apply(builder, made, arguments.args, arguments.keywords, arguments.complete)
            self.call_path = path
        elif isinstance(made, Module):
            self.make_inherited(made, arguments)
        elif isinstance(made, Instance) and is_dict(info):
            given = arguments.args[0] if arguments.args else Table({})
            known = arguments.complete and not arguments.keywords and isinstance(given, Table)
            self.objects.put(key, ITEMS, given if known else UNKNOWN)
        if isinstance(made, Module):
            self.hand_to_torch(made, info)
        outside = [base.name for parent in info.lineage for base in parent.bases if isinstance(base, External)]
        if any(name.startswith("collections.") for name in outside):  # whose methods call those of the class
            self.loosen_class(info)
        for name in _OF_OPTIMIZERS if any(name.startswith("torch.optim.") for name in outside) else ():
            method = info.method(name)
            if method is not None:
                self.handed.setdefault(place_of(Function(method, made)), Function(method, made))
                self.lose(Function(method, made))
        return made

    def hand_to_torch(self, made: Module, info: ClassInfo) -> None:
        """Methods of a module that torch calls by itself may assign its attributes at any time, but for `train()`, which
        is followed. Weights among these are those that a cast changes anyway."""
        for name in _CALLED_BY_TORCH:
            method = info.method(name)
            if method is None:
                continue
            held = [self.objects.get(made.key, stored) for _, stored in facts(method.node).stores]
            if name == "train" and not self.training_themselves:
                self.training_themselves = self.objects.changed = True
            if name in _LOADING:
                self.handed.setdefault(place_of(Function(method, made)), Function(method, made))
            weights = all(isinstance(one, Tensor) and one.traits & (Trait.PARAMETER | Trait.BUFFER) for one in held)
            if name != "_apply" or not weights:
                self.lose(Function(method, made))

    def make_inherited(self, made: Module, arguments: Arguments) -> bool:
        """`__init__` of the layer of torch.nn that a module's class inherits, if it does."""
        layer = None if made.info is None else layer_inherited(made.info)
        if layer is not None:
            self.objects.put(made.key, LAYER, self.new_layer(Module(layer, made.key), arguments))
            for name in _CALLED_AT_START:
                method = made.info.method(name) if made.info is not None else None
                if method is not None:
                    self.apply(method, made, [], {}, True)
        return layer is not None

    def run_inherited(self, module: Module, arguments: Arguments) -> Value:
        """`forward` of that layer."""
        layer = self.objects.get(module.key, LAYER)
        if module.info is not None and any(module.info.method(name) is not None for name in _INSIDE):
            for value in arguments.args:
                self.lose(value)
            return UNKNOWN
        return self.run_forward(layer, arguments) if isinstance(layer, Module) else UNKNOWN

    def fill_dataclass(self, info: ClassInfo, made: Module | Instance, arguments: Arguments) -> None:
        """The attributes that a dataclass gives its instances, and what its `__post_init__` does."""
        left = dict(arguments.keywords)
        held: dict[str, Value] = {}
        for position, name in enumerate(fields_in(info)):
            value = arguments.get(position, name)
            left.pop(name, None)
            if value is None:
                default = next((parent.body[name] for parent in info.lineage if name in parent.body), UNKNOWN)
                value = self.field_default(default) if arguments.complete else UNKNOWN
            value = meeting(value, self.field_promised(info, name))
            self.objects.put(made.key, name, value)
            held[name] = value
        after = info.method("__post_init__")
        if after is not None:
            # Until it assigns to a field itself, the field holds what was given, and nothing that comes after.
            me = next((argument.arg for argument in after.node.args.args), "")
            paths = {f"{me}.{name}": value for name, value in held.items() if info.method(name) is None}
            given = left if after.node.args.kwarg is not None else {}
            self.apply(after, made, [], given, arguments.complete, paths)

    def fields_of(self, value: Value) -> Value:
        """`dataclasses.fields(value)`."""
        info = value.info if isinstance(value, (Module, Instance, Class)) else None
        if info is None or not has_generated_init(info):
            return UNKNOWN
        found: list[Value] = []
        for name in fields_in(info):
            default = self.in_class(info, name)
            given = default if isinstance(default, Field) else Field(UNKNOWN if default is None else default)
            found.append(replace(given, name=name))
        return Items(tuple(found))

    def field_default(self, default: Value) -> Value:
        """What a field holds that is not given: a constant, or what `field(default=...)` says."""
        if isinstance(default, Field):
            return default.default if default.made_by is None else self.called_plainly(default.made_by)
        return default if isinstance(default, (Constant, Dtype)) else UNKNOWN

    def called_plainly(self, callee: Value) -> Value:
        """The result of a callable that is given nothing, as far as it is plain to see."""
        if isinstance(callee, Function):
            return self.apply(callee.info, callee.receiver, [], {}, True)
        if isinstance(callee, External) and callee.name in _EMPTY:
            return _EMPTY[callee.name]()
        return self.lost(callee)

    def new_layer(self, layer: Module, arguments: Arguments) -> Value:
        """A layer of torch.nn, with the dtype that it is made with, and the modules that it is made of."""
        key = self.identity(arguments)
        made = layer if layer.key.startswith("@") is False else replace(layer, key=key)
        held: list[Value] = []
        for value in arguments.args:
            held += value.items if isinstance(value, Items) else [value]
        for value in held:
            self.objects.own(made.key, value.item if isinstance(value, Iteration) else value)
        children = _children(layer.name, arguments)
        given = [*arguments.args, *arguments.keywords.values()]
        if any(isinstance(value, (Function, Instance, Unknown)) for value in given) or any(
            isinstance(value, Module)
            and (value.info is not None or value.key in self.built_of_others or self.objects.of(value.key))
            for value in given
        ):
            self.objects.changed |= made.key not in self.built_of_others
            self.built_of_others.add(made.key)
        if arguments.args and isinstance(arguments.args[0], Table):
            for name, value in arguments.args[0].items.items():
                if isinstance(value, Tensor) and layer.name == "torch.nn.ParameterDict":
                    value = replace(value, traits=value.traits | Trait.PARAMETER)
                self.objects.put(made.key, str(name), value)
        asked = arguments.get(_DTYPE_PLACES.get(layer.name.rpartition(".")[2]), "dtype") or NONE
        dtypes = None if not arguments.complete else self.default if asked == NONE else dtype_of(asked)
        for name, there in told_weights(layer.name, arguments):
            weight = Tensor(dtypes, traits=Trait.PARAMETER)
            if there is not True:
                self.objects.put(made.key, name, NONE if there is False else Either((NONE, weight)))
            elif self.objects.get(made.key, name) is not None:  # another of the same place may be without
                self.objects.put(made.key, name, weight)
        if layer.name == "torch.nn.ModuleList":
            whole = children if children is not None else None if arguments.args or not arguments.complete else ()
            if whole is None or any(isinstance(child, Iteration) for child in whole):
                self.order.disturb(made.key)
            else:
                self.order.begin(made.key, self.place, list(whole))
        return replace(made, items=children, dtypes=dtypes)

    def train_below(self, module: Module, mode: Value, itself: bool, told: set[Key] | None = None) -> None:
        """`module.train(mode)`, which calls that of each module below, and `eval()`, which calls its own."""
        told = {module.key} if told is None else told
        own = module.info.method("train") if module.info is not None and itself else None
        if own is not None:
            self.apply(own, module, [mode], {}, True)
        elif self.training_themselves:
            for _, child in self.named_children(module):
                if child.key not in told:
                    told.add(child.key)
                    self.train_below(child, mode, True, told)

    def put_outside(self, owner: str, name: str, value: Value) -> None:
        """Nothing can be told of ops where one of torch's functions or layers is another's. Settings change none."""
        mine = not self.supposed or self.module is self.main
        plain = isinstance(value, (Constant, Number, Dtype))
        if mine and not plain and not self.altered and _is_asked_by_ops(owner, name):
            self.altered = self.objects.changed = True

    # -- modules

    def apply_to_all(self, module: Module, function: Value, node: ast.Call) -> None:
        """`module.apply(function)`: it is called with each module below, where all of them are known."""
        family = self.family(module)
        if family is None or not isinstance(function, (Function, Partial, Instance)):
            self.lose(function)
            inner = function.callee if isinstance(function, Partial) else function
            if not isinstance(inner, Function) or _may_cast(inner.info.node):
                self.cast_module(module, None)
            return
        for below in family.values():
            self.called(node, function, UNKNOWN, "", Arguments(node, [below], {}, self.default))

    def parameters(self, module: Module, given: Value) -> Value:
        """`module.parameters()`, with the dtypes of all weights below, where they are known."""
        dtypes = self.weights_below(module)
        if dtypes is None or not isinstance(given, Iteration):
            return given
        weight = Tensor(dtypes, traits=Trait.PARAMETER)
        item = Items((*given.item.items[:-1], weight)) if isinstance(given.item, Items) else weight
        return replace(given, item=item)

    def run_forward(self, module: Module, arguments: Arguments) -> Value:
        """What calling a module gives."""
        if module.key in self.below:
            self.lose(module)
            for value in (*arguments.args, *arguments.keywords.values()):
                self.lose(value)
            return UNKNOWN
        given = self.objects.of(module.key).get("forward")
        # What is given to nobody knows whom is seldom given to a layer of this program.
        if given is None:
            return self.run_own_forward(module, arguments)
        own = self.run_own_forward(module, arguments)  # what it ran until it was given another
        return join(own, self.called(arguments.node, given, UNKNOWN, "", arguments)[1])

    def run_own_forward(self, module: Module, arguments: Arguments) -> Value:
        """What the forward of its class gives."""
        if module.info is not None:
            own = module.info.method("__call__") or module.info.method("forward")
            if own is None:
                return self.run_inherited(module, arguments)
            return self.apply(own, module, arguments.args, arguments.keywords, arguments.complete)
        if module.name == "torch.nn.Sequential":
            return self.run_sequential(module, arguments)
        weights = self.cast_of(module.key, module.dtypes)
        if module.name.startswith("torch.nn.Transformer") and self.is_rebuilt(module, arguments):
            return UNKNOWN
        return layer_result(module.name.rpartition(".")[2], weights, arguments, self.flow.autocast)

    def is_rebuilt(self, module: Module, arguments: Arguments) -> bool:
        """May a layer that is made of others hold others than torch gives it, or run hooks of theirs?"""
        objects = self.objects
        if objects.of(module.key).keys() - {LAYER} or objects.wild & _PARTS or objects.of(EVERY):
            return True
        below = (key for key in objects.attributes if key.startswith((f"{module.key}.", f"{module.key}&")))
        return module.key in self.built_of_others or any(map(objects.of, below))

    def run_sequential(self, module: Module, arguments: Arguments) -> Value:
        if module.items is None or len(arguments.args) != 1:
            return UNKNOWN
        value = arguments.args[0]
        added = self.objects.get(module.key, ITEMS)
        items = module.items if added is None else (Iteration(reduce(join, [*_each(module.items), added])),)
        for item in items:
            value = (
                self.run_repeated(item, value, arguments)
                if isinstance(item, Iteration)
                else self.step(item, value, arguments)
            )
        return value

    def step(self, layer: Value, value: Value, arguments: Arguments) -> Value:
        """What a layer inside a Sequential makes of what reaches it."""
        if not isinstance(layer, Module):
            return UNKNOWN
        value = self.run_forward(layer, Arguments(arguments.node, [value], {}, arguments.default))
        return self.under_autocast(value) if self.flow.autocast is not None else value

    def run_repeated(self, layers: Iteration, value: Value, arguments: Arguments) -> Value:
        """What some layers, of which nobody knows how many or in which order, make of a value."""
        for _ in range(_MOST_STEPS):
            reached = value
            for layer in options(layers.item):
                reached = join(reached, self.step(layer, value, arguments))
            if reached == value:
                return value
            value = reached
        return UNKNOWN

    def module_call(self, module: Module, method: str, arguments: Arguments) -> tuple[str, Value]:
        """A method that every module has."""
        target = f"torch.nn.Module.{method}"
        is_cast, dtypes = cast_target(method, arguments)
        if method == "to" and not is_cast and any(_may_be_dtype(value) for value in arguments.args):
            is_cast, dtypes = True, None
        if is_cast:
            if method == "type":
                self.retype(module)
            if method == "type" or dtypes is None or dtypes <= FLOATING | COMPLEX:
                self.cast_module(module, dtypes)
            return target, module
        if method in ("register_buffer", "register_parameter") and len(arguments.args) >= 2:
            name, value = arguments.args[0], arguments.args[1]
            trait = Trait.BUFFER if method == "register_buffer" else Trait.PARAMETER
            if isinstance(value, Tensor):
                value = replace(value, traits=value.traits | trait)
            elif trait is Trait.BUFFER and isinstance(name, Constant):
                self.empty_buffers.add((module.key, str(name.value)))
            return target, self.set_attribute(module, name, value)
        if method == "apply" and arguments.args:
            self.apply_to_all(module, arguments.args[0], arguments.node)
            return target, module
        if method in ("train", "eval"):
            mode = Constant(False) if method == "eval" else arguments.get(0, "mode") or Constant(True)
            self.train_below(module, mode, itself=method == "eval")
        if method in _GIVING_MODULES:
            return target, self.modules_of(module, method)
        if method == "get_submodule" and len(arguments.args) == 1:
            return target, self.submodule(module, arguments.args[0])
        if method in ("parameters", "named_parameters"):
            return target, self.parameters(module, method_result(module, method, arguments))
        if method == "update" and module.info is None:  # of a ModuleDict: modules under keys that it may have
            self.put_item(module, UNKNOWN)
        if method in ("add_module", "register_module") and arguments.args:
            self.set_attribute(module, arguments.args[0], arguments.args[-1])
            return target, NONE
        if method in ("append", "extend", "insert") and arguments.args:
            value = self.item_of(arguments.args[-1]) if method == "extend" else arguments.args[-1]
            self.attached_from_here(module, value)
            self.objects.put(module.key, ITEMS, value)
            if method != "append":
                self.order.disturb(module.key)
            elif not self.muted:
                self.order.add(module.key, self.place, value)
            return target, UNKNOWN
        if method == "set_submodule" and len(arguments.args) >= 2:
            self.set_submodule(module, arguments.args[0], arguments.args[1])
            return target, NONE
        taking = method == "load_state_dict" and (arguments.get(2, "assign") or NONE) not in (NONE, Constant(False))
        if method in _ALTERING or taking:
            self.cast_module(module, None)
            self.retype(module)
        if method in _HANDING_OUT:
            self.lose(module)
        if method.startswith("pop"):
            self.detach_items(module)
        return target, method_result(module, method, arguments)


@lru_cache(maxsize=512)
def _may_cast(node: FunctionNode) -> bool:
    """May a function that is called with a module give its weights another dtype? By the names of what it does."""
    for part in nodes(node.body if isinstance(node.body, list) else [node.body]):
        if isinstance(part, ast.Attribute) and (part.attr in _CASTING or not isinstance(part.ctx, ast.Load)):
            if part.attr in _CASTING or part.attr in _WEIGHTS:
                return True
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "setattr":
            name = part.args[1] if len(part.args) == 3 else None
            if not isinstance(name, ast.Constant) or name.value in _WEIGHTS:
                return True
    return False


_WEIGHTS = frozenset({"data", "weight", "bias"})
_CASTING = frozenset({"half", "float", "double", "bfloat16", "to", "type", "_apply", "set_data", "set_", "_parameters"})


def _is_asked_by_ops(owner: str, name: str) -> bool:
    """Is an attribute of torch's one that decides what a function, a layer or a tensor gives? Most that are assigned are
    settings, or new."""
    if owner.partition(".")[0] != "torch" or owner.startswith(("torch.backends", "torch._", "torch.utils")):
        return False
    if name in _HARMLESS or owner.endswith("config"):
        return False
    if owner == "torch.Tensor":
        return name in TENSOR_ATTRIBUTES
    of_layer = owner.startswith("torch.nn.") and owner.rpartition(".")[2][:1].isupper()
    return not of_layer or name in RUNNING or name in MODULE_ATTRIBUTES or name.startswith("_")


_HARMLESS = frozenset({"reset_parameters", "extra_repr", "__repr__", "__str__", "__doc__"})
"""What a layer of torch has that changes no dtype, or makes weights that it is not asked for."""
_CALLED_AT_START = ("reset_parameters", "_reset_parameters", "reset_running_stats")
"""Methods that the `__init__` of a layer calls, once it has its weights."""
_INSIDE = frozenset(
    {"_conv_forward", "_check_input_dim", "_ff_block", "_sa_block", "_mha_block", "_get_name_with_default"}
)
"""Methods that the `forward` of a layer calls."""
_OF_OPTIMIZERS = ("get_lr", "_get_closed_form_lr", "add_param_group")
"""Methods that optimizers and schedulers call by themselves, from their start."""
_PARTS = frozenset(
    {"norm", "norm1", "norm2", "norm3", "linear1", "linear2", "self_attn", "multihead_attn", "activation"}
    | {"dropout", "dropout1", "dropout2", "dropout3", "layers", "encoder", "decoder"}
)
"""What the layers of a transformer are made of."""
_LOADING = frozenset({"_load_from_state_dict", "set_extra_state", "load_state_dict"})
_CALLED_BY_TORCH = ("_apply", "_load_from_state_dict", "set_extra_state", "load_state_dict", "__setstate__", "train")
"""Methods of modules that torch calls of those inside another: to cast it, to load it, to train it."""
_EMPTY: dict[str, Callable[[], Value]] = {
    "builtins.dict": lambda: Table({}),
    "builtins.list": lambda: Items(()),
    "builtins.int": lambda: Constant(0),
    "builtins.float": lambda: Constant(0.0),
}
"""What types give that are called with nothing: another list each time."""


def _each(items: tuple[Value, ...]) -> list[Value]:
    """The modules among which each item of a container is one."""
    return [item.item if isinstance(item, Iteration) else item for item in items]


_GIVING_MODULES = frozenset({"modules", "named_modules", "children", "named_children"})
_HANDING_OUT = frozenset({"values", "items", "pop", "popitem"})
"""Methods of containers of modules that give some of them."""
_MOST_STEPS = 4
"""Rounds through layers of unknown number, until what comes out no longer changes."""
_ALTERING = frozenset({"_apply", "to_empty"})
"""Methods that may give a module weights of any dtype. load_state_dict copies into those that it has, unless it is told to
assign."""


def _may_be_dtype(value: Value) -> bool:
    return not all(isinstance(choice, (Device, Constant)) for choice in options(value))


_DTYPE_PLACES = {
    **dict.fromkeys(("LazyLinear", "PReLU"), 3),
    **dict.fromkeys(("GRUCell", "LSTMCell", "Linear", "RMSNorm"), 4),
    **dict.fromkeys(("Bilinear", "GroupNorm", "LayerNorm", "RNNCell"), 5),
    **{f"Lazy{kind}Norm{n}d": 5 for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    **{f"{kind}Norm{n}d": 6 for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    **dict.fromkeys(("AdaptiveLogSoftmaxWithLoss",), 6),
    **dict.fromkeys(("SyncBatchNorm",), 7),
    **dict.fromkeys(("LazyConv1d", "LazyConv2d", "LazyConv3d", "LSTM", "GRU"), 9),
    **dict.fromkeys(("Conv1d", "Conv2d", "Conv3d", "Embedding", "MultiheadAttention", "RNN"), 10),
    **{f"LazyConvTranspose{n}d": 10 for n in (1, 2, 3)},
    **dict.fromkeys(("TransformerDecoderLayer", "TransformerEncoderLayer"), 10),
    **dict.fromkeys(("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "EmbeddingBag"), 11),
    **dict.fromkeys(("Transformer",), 14),
}
"""Where the dtype stands among a layer's arguments, by the signatures of torch.nn."""


def layer_inherited(info: ClassInfo) -> str | None:
    """The layer of torch.nn that a class inherits, nn.Module aside; None where it is none, or more than one."""
    outside = {base.name for parent in info.lineage for base in parent.bases if isinstance(base, External)}
    layers = {name for name in outside if name.startswith("torch.nn.") and name != "torch.nn.Module"}
    return layers.pop() if len(layers) == 1 else None


def _children(name: str, arguments: Arguments) -> tuple[Value, ...] | None:
    """The modules that a container of torch.nn is made of."""
    last = name.rpartition(".")[2]
    if last == "Sequential":
        return (
            tuple(arguments.args)
            if arguments.complete and all(isinstance(arg, (Module, Iteration)) for arg in arguments.args)
            else None
        )
    if last == "ModuleList" and arguments.args:
        given = arguments.args[0]
        if isinstance(given, Items):
            return given.items
        return (given.item,) if isinstance(given, Iteration) else None
    if last in ("ModuleList", "ModuleDict") and not arguments.args:
        return () if arguments.complete and not arguments.keywords else None
    if last == "ModuleDict" and arguments.args and isinstance(arguments.args[0], Table):
        return tuple(arguments.args[0].items.values())
    return None
