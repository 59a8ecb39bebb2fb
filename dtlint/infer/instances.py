"""Instances: attributes, weights and what owns them, so that each object of a program is known for itself."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import COMPLEX, FLOATING
from dtlint.infer.calls import Arguments, cast_target, dtype_of, method_result
from dtlint.infer.functions import ANYBODY, Functions
from dtlint.infer.layers import layer_result
from dtlint.infer.names import path_of
from dtlint.infer.objects import Objects
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Class,
    Constant,
    Device,
    Dtype,
    Dtypes,
    Either,
    External,
    Function,
    Imported,
    Instance,
    Items,
    Iteration,
    Key,
    Module,
    Namespace,
    Super,
    Table,
    Tensor,
    Trait,
    Unknown,
    Value,
    join,
    options,
)

if TYPE_CHECKING:
    from dtlint.infer.project import ModuleInfo, Project
    from dtlint.infer.scopes import ClassInfo, FunctionInfo
    from dtlint.infer.state import Cast

__all__ = ["ITEMS", "PLAIN", "Instances"]

ITEMS = "[]"
"""The attribute under which the objects of a program keep what is appended to a container module."""


class Instances(Functions):
    """An interpreter that keeps the attributes of every object, and the dtype its weights were last cast to."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.objects = Objects(self.lose)
        self.clock = 0
        """Counts the casts of modules: of two, the later holds."""

    # -- attributes

    def member(self, base: Value, name: str) -> Value:
        if isinstance(base, Either):
            holding = [choice for choice in base.choices if not isinstance(choice, PLAIN)] or list(base.choices)
            members = [self.member(choice, name) for choice in holding]
            result = members[0] if members else UNKNOWN
            for other in members[1:]:
                result = join(result, other)
            return result
        if isinstance(base, Namespace):
            return self.resolved(Imported(base.name, name))
        if isinstance(base, Super):
            return self.inherited(base, name)
        if isinstance(base, Class):
            return self.class_member(base, name)
        if isinstance(base, Tensor):
            return self.tensor_member(base, name)
        if isinstance(base, Function) and name == "__code__":
            return Code(base.info)
        if isinstance(base, Code) and name == "co_varnames":
            return Items(tuple(map(Constant, _local_names(base.info))))
        value = super().member(base, name)
        return self.resolved(value)

    def tensor_member(self, tensor: Tensor, name: str) -> Value:
        if name == "dtype" and tensor.dtypes is not None:
            choices = tuple(Dtype(dtype) for dtype in sorted(tensor.dtypes))
            return choices[0] if len(choices) == 1 else Either(choices) if len(choices) <= 4 else UNKNOWN
        if name == "device":
            return Device()
        if name in ("real", "imag") and tensor.dtypes is not None and tensor.dtypes & COMPLEX:
            return Tensor()
        return super().member(tensor, name)

    def class_member(self, base: Class, name: str) -> Value:
        for info in base.info.lineage:
            method = info.methods.get(name)
            if method is not None:
                return Function(method, base if _is_classmethod(method) else None)
            if name in info.body:
                return self.resolved(info.body[name])
        return UNKNOWN

    def inherited(self, base: Super, name: str) -> Value:
        info = base.receiver.info if isinstance(base.receiver, (Module, Instance)) else None
        if isinstance(base.receiver, Class):
            info = base.receiver.info
        if info is None:
            return UNKNOWN
        lineage = info.lineage
        start = lineage.index(base.owner) + 1 if base.owner in lineage else 0
        for parent in lineage[start:]:
            if name in parent.methods:
                return Function(parent.methods[name], base.receiver)
        if isinstance(base.receiver, Module):
            return External(f"torch.nn.Module.{name}")
        return External(f"builtins.object.{name}")

    def instance_member(self, base: Module | Instance, name: str) -> Value:
        info = base.info
        if info is None:
            return self.layer_member(base, name)
        given = self.objects.get(base.key, name)
        method = info.method(name)
        if method is not None and given is None:
            if _is_property(method):
                return self.apply(method, base, [], {}, True)
            return Function(
                method, base if method.is_plain_method else Class(info) if _is_classmethod(method) else None
            )
        value = given
        if value is None:
            value = next((self.resolved(parent.body[name]) for parent in info.lineage if name in parent.body), None)
        if value is None or base.key.startswith(ANYBODY):
            return UNKNOWN if value is None else self.for_anybody(value)
        return self.owned(value, base)

    def for_anybody(self, value: Value) -> Value:
        """An attribute of an instance that is not in view all its life."""
        if isinstance(value, Tensor):
            return replace(value, dtypes=None)
        return value if isinstance(value, (Module, Instance, Class)) else UNKNOWN

    def owned(self, value: Value, owner: Module | Instance) -> Value:
        """An attribute's value as it is now: weights have the dtype that their module was last cast to."""
        if isinstance(value, Tensor) and isinstance(owner, Module) and value.traits & (Trait.PARAMETER | Trait.BUFFER):
            return replace(value, dtypes=self.cast_of(owner.key, value.dtypes))
        return value

    def layer_member(self, base: Module | Instance, name: str) -> Value:
        given = self.objects.get(base.key, name)
        if given is not None:
            return self.owned(given, base)
        if isinstance(base, Module) and name in ("weight", "bias", "in_proj_weight", "running_mean", "running_var"):
            return Tensor(self.cast_of(base.key, base.dtypes), traits=Trait.PARAMETER)
        return UNKNOWN

    def bind_attribute(self, target: ast.Attribute, base: Value, value: Value) -> None:
        super().bind_attribute(target, base, value)
        for choice in options(base):
            if isinstance(choice, (Module, Instance)):
                self.objects.put(choice.key, target.attr, value)
            elif isinstance(choice, Class):
                choice.info.body[target.attr] = join(choice.info.body.get(target.attr, value), value)
            elif isinstance(choice, Unknown):
                self.objects.forget(target.attr)
                self.lose(value)

    def set_attribute(self, target: Value, name: Value, value: Value) -> Value:
        """`setattr(x, name, value)`."""
        if isinstance(target, (Module, Instance)):
            if isinstance(name, Constant) and isinstance(name.value, str):
                self.objects.put(target.key, name.value, value)
            else:
                for known in list(self.objects.attributes.get(target.key, ())):
                    self.objects.put(target.key, known, UNKNOWN)
        elif isinstance(name, Constant) and isinstance(name.value, str):
            self.objects.forget(name.value)
        self.lose(value)
        return NONE

    # -- weights

    def cast_of(self, key: Key, made: Dtypes) -> Dtypes:
        """The dtypes that a module's floating weight has now, made with `made`."""
        casts = self.flow.state.casts
        latest: Cast | None = None
        for above in self.objects.above(key):
            if above.startswith(ANYBODY):
                return None
            cast = casts.get(above)
            if cast is not None and (latest is None or cast[0] > latest[0]):
                latest = cast
        if latest is None or (made is not None and not made & (FLOATING | COMPLEX)):
            return made
        return latest[1]

    def cast_module(self, module: Module, dtypes: Dtypes) -> None:
        """A cast in place of all floating weights of a module and what it owns."""
        self.clock += 1
        if module.key in self.objects.shared or len(self.objects.owners.get(module.key, ())) > 1:
            dtypes = None
        self.flow.state.casts[module.key] = (self.clock, dtypes)
        for known in (self.flow.state.names, self.flow.state.paths):
            for name, value in known.items():
                if isinstance(value, Tensor) and value.traits & (Trait.PARAMETER | Trait.BUFFER):
                    known[name] = replace(value, dtypes=None)

    # -- making

    def identity(self, arguments: Arguments) -> Key:
        """The identity of what a call makes: its place, and the calls that led there."""
        place = f"{self.module.name}{arguments.key}"
        key = "/".join((*self.call_path, place))
        if self.loops_open:
            self.objects.shared.add(key)
        return key

    def construct(self, info: ClassInfo, arguments: Arguments) -> Value:
        key = self.identity(arguments)
        made: Value = Module(info.node.name, key, info) if info.is_module else Instance(info, key)
        builder = info.method("__init__")
        if _has_generated_init(info):
            self.fill_dataclass(info, key, arguments)
        elif builder is not None:
            self.apply(builder, made, arguments.args, arguments.keywords, arguments.complete)
        return made

    def fill_dataclass(self, info: ClassInfo, key: Key, arguments: Arguments) -> None:
        """The attributes that a dataclass gives its instances."""
        fields = [
            statement.target.id
            for parent in reversed(info.lineage)
            for statement in parent.node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        ]
        for position, name in enumerate(dict.fromkeys(fields)):
            value = arguments.get(position, name)
            if value is None:
                default = next((parent.body[name] for parent in info.lineage if name in parent.body), UNKNOWN)
                value = default if arguments.complete and isinstance(default, Constant) else UNKNOWN
            self.objects.put(key, name, value)

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
        if arguments.args and isinstance(arguments.args[0], Table):
            for name, value in arguments.args[0].items.items():
                self.objects.put(made.key, str(name), value)
        asked = arguments.keywords.get("dtype")
        dtypes = None if not arguments.complete else self.default if asked is None or asked == NONE else dtype_of(asked)
        return replace(made, items=children, dtypes=dtypes)

    # -- modules

    def run_forward(self, module: Module, arguments: Arguments) -> Value:
        """What calling a module gives."""
        if module.info is not None:
            own = module.info.method("__call__") or module.info.method("forward")
            if own is None:
                return UNKNOWN
            return self.apply(own, module, arguments.args, arguments.keywords, arguments.complete)
        if module.name == "torch.nn.Sequential":
            return self.run_sequential(module, arguments)
        weights = self.cast_of(module.key, module.dtypes)
        return layer_result(module.name.rpartition(".")[2], weights, arguments, self.flow.autocast)

    def run_sequential(self, module: Module, arguments: Arguments) -> Value:
        if module.items is None or len(arguments.args) != 1:
            return UNKNOWN
        value = arguments.args[0]
        for item in module.items:
            if not isinstance(item, Module):
                return UNKNOWN
            step = Arguments(arguments.node, [value], {}, arguments.default)
            value = self.run_forward(item, step)
            if self.flow.autocast is not None:
                value = self.under_autocast(value)
        return value

    def module_call(self, module: Module, method: str, arguments: Arguments) -> tuple[str, Value]:
        """A method that every module has."""
        target = f"torch.nn.Module.{method}"
        is_cast, dtypes = cast_target(method, arguments)
        if method == "to" and not is_cast and any(_may_be_dtype(value) for value in arguments.args):
            is_cast, dtypes = True, None
        if is_cast:
            if dtypes is None or dtypes <= FLOATING | COMPLEX:
                self.cast_module(module, dtypes)
            return target, module
        if method in ("register_buffer", "register_parameter") and len(arguments.args) >= 2:
            name, value = arguments.args[0], arguments.args[1]
            trait = Trait.BUFFER if method == "register_buffer" else Trait.PARAMETER
            if isinstance(value, Tensor):
                value = replace(value, traits=value.traits | trait)
            return target, self.set_attribute(module, name, value)
        if method == "apply":
            self.lose(arguments.args[0] if arguments.args else UNKNOWN)
            return target, module
        if method in ("append", "extend", "insert", "add_module") and arguments.args:
            for value in arguments.args[method in ("insert", "add_module") :]:
                self.objects.put(module.key, ITEMS, self.item_of(value) if method == "extend" else value)
            if method == "add_module" and isinstance(arguments.args[0], Constant):
                self.set_attribute(module, arguments.args[0], arguments.args[-1])
            return target, UNKNOWN
        if method in _ALTERING:
            self.cast_module(module, None)
        return target, method_result(module, method, arguments)


PLAIN = (Constant, Items, Iteration, Table)
"""Values without attributes of interest: where a choice has the attribute, it was none of these."""
_ALTERING = frozenset({"_apply", "to_empty"})
"""Methods that may give a module weights of any dtype. load_state_dict copies into those that it has."""


@dataclass(slots=True)
class Code(Value):
    """`f.__code__`: decorators ask it for the names of a function's parameters."""

    info: FunctionInfo


def _local_names(info: FunctionInfo) -> list[str]:
    """`co_varnames`: the parameters, then the names that the body binds."""
    arguments = info.node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    names += [rest.arg for rest in (arguments.vararg, arguments.kwarg) if rest is not None]
    for part in ast.walk(info.node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and part.id not in names:
            names.append(part.id)
    return names


def _is_property(method: FunctionInfo) -> bool:
    return any(
        path_of(decorator) in ("property", "cached_property", "functools.cached_property")
        for decorator in _decorators(method)
    )


def _is_classmethod(method: FunctionInfo) -> bool:
    return any(path_of(decorator) == "classmethod" for decorator in _decorators(method))


def _decorators(method: FunctionInfo) -> list[ast.expr]:
    return [] if isinstance(method.node, ast.Lambda) else method.node.decorator_list


def _has_generated_init(info: ClassInfo) -> bool:
    """Does a dataclass decorator write the class's `__init__`, and no class between write another?"""
    for parent in info.lineage:
        if "__init__" in parent.methods:
            return False
        for decorator in parent.node.decorator_list:
            name = path_of(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""
            if name.endswith("dataclass"):
                return True
    return False


def _may_be_dtype(value: Value) -> bool:
    return not all(isinstance(choice, (Device, Constant)) for choice in options(value))


def _children(name: str, arguments: Arguments) -> tuple[Value, ...] | None:
    """The modules that a container of torch.nn is made of."""
    last = name.rpartition(".")[2]
    if last == "Sequential":
        return (
            tuple(arguments.args)
            if arguments.complete and all(isinstance(arg, Module) for arg in arguments.args)
            else None
        )
    if last == "ModuleList" and arguments.args:
        given = arguments.args[0]
        if isinstance(given, Items):
            return given.items
        return (given.item,) if isinstance(given, Iteration) else None
    if last == "ModuleDict" and arguments.args and isinstance(arguments.args[0], Table):
        return tuple(arguments.args[0].items.values())
    return None
