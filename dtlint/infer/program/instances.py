"""Instances: attributes, weights and what owns them, so that each object of a program is known for itself."""

from __future__ import annotations

import ast
import operator
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import COMPLEX, FLOATING, Category
from dtlint.infer.names import path_of
from dtlint.infer.numbers import Limits, number_member
from dtlint.infer.program.fields import Field, assigned_at_start, fields_in, has_generated_init
from dtlint.infer.program.frames import Frame
from dtlint.infer.program.functions import ANYBODY
from dtlint.infer.program.objects import EVERY, Store, at_rest, class_key
from dtlint.infer.program.order import Order
from dtlint.infer.program.promises import Declared
from dtlint.infer.program.storing import Storing, function_key
from dtlint.infer.program.torch_attributes import MODULE_ATTRIBUTES, TENSOR_ATTRIBUTES
from dtlint.infer.scopes import is_module_class
from dtlint.infer.symbols import category_of
from dtlint.infer.values import (
    NONE,
    ONE_OF_SEVERAL,
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
    Number,
    Partial,
    Super,
    Table,
    Tensor,
    Trait,
    Unknown,
    Value,
    join,
    options,
    same_as,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from dtlint.infer.interproc.project import ModuleInfo, Project
    from dtlint.infer.program_state import Cast
    from dtlint.infer.scopes import ClassInfo, FunctionInfo

__all__ = ["ITEMS", "LAYER", "PLAIN", "Instances", "is_open_book"]

ITEMS = "[]"
"""The attribute under which the objects of a program keep what is appended to a container module."""
LAYER = "()"
"""The attribute under which they keep the layer of torch.nn that an instance is, by what its class inherits."""


class Instances(Storing):
    """An interpreter that keeps the attributes of every object, and the dtype its weights were last cast to."""

    altered = False
    """Does the program put something else in the place of torch's own ops, or of what its code says? Then nothing can be
    told of it."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.order = Order()
        self.made_of: dict[int, dict[Key, None]] = {}
        """The objects that were made of each class or of what extends it, by the identity of its syntax."""
        self.asked: set[tuple[Key, str]] = set()
        """Attributes that are just being looked up."""
        self.answers: dict[tuple[Key, str], list[bool | None]] = {}
        """Whether a class's own look-up has ended at an attribute that is there, in this round."""
        self.changed_parameters: dict[int, set[str]] = {}
        self.ever_cast: set[Key] = set()
        """Modules that are cast anywhere: to what is read for anybody, they may have been, or not."""
        self.clock = 0
        """Counts the casts of modules: of two, the later holds."""
        self.attached: dict[tuple[Key, Key], int] = {}
        """The count when a module was given another, which casts before that have not reached."""
        self.optimized: list[Tensor] = []
        """Tensors that optimizers were given one by one, in this round."""
        self.data_given_anywhere = False
        """Is any tensor given other data, in any round?"""
        self.empty_buffers: set[Store] = set()
        """Buffers that were registered without a tensor: what is assigned to them later is one."""
        self.tied: set[frozenset[Key]] = set()
        """Layers of which one was given the weight of the other: a cast of the one changes it in both."""
        self.retyped: set[Key] = set()
        """Modules whose whole numbers may be of another dtype than they were made with: `.type()` casts those too."""

    def lose(self, value: Value, depth: int = 0) -> None:
        """With a container of modules those get out of sight that are in it."""
        super().lose(value, depth)
        if isinstance(value, Module) and value.info is None and depth < 3:
            added = self.objects.get(value.key, ITEMS)
            for item in (*(value.items or ()), *(() if added is None else (added,))):
                self.lose(item, depth + 1)

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
        if isinstance(base, Declared):
            return self.declared_member(base, name)
        if isinstance(base, Class):
            return self.class_member(base, name)
        if isinstance(base, Tensor):
            return self.tensor_member(base, name)
        if isinstance(base, Member):
            return self.of_member(base, name)
        if isinstance(base, Function) and name == "__code__":
            return Code(base.info)
        if isinstance(base, Function) and name == "__wrapped__":
            for _, value in self.seen_outside([base]):
                self.lose(value)
        if isinstance(base, Partial) and name == "func":
            return base.callee
        if isinstance(base, Function) and (given := self.objects.get(function_key(base.info), name)) is not None:
            return self.kept_aside(given)
        if isinstance(base, Field) and name in ("name", "default") and base.name:
            return Constant(base.name) if name == "name" else base.default
        if isinstance(base, Limits):
            return number_member(base, name)
        if isinstance(base, Code) and name == "co_varnames":
            return Items(tuple(map(Constant, _local_names(base.info))))
        value = super().member(base, name)
        return self.resolved(value)

    def of_member(self, member: Member, name: str) -> Value:
        """An attribute of a member of an enumeration."""
        if name in ("value", "_value_"):
            return member.value
        if name == "name":
            return Constant(member.name)
        method = member.info.method(name)
        if method is None:
            return UNKNOWN
        return self.apply(method, member, [], {}, True) if _is_property(method) else Function(method, member)

    def tensor_member(self, tensor: Tensor, name: str) -> Value:
        if name == "dtype" and tensor.dtypes is not None:
            choices = tuple(Dtype(dtype) for dtype in sorted(tensor.dtypes))
            return choices[0] if len(choices) == 1 else Either(choices) if len(choices) <= 4 else UNKNOWN
        if name == "device":
            return Device()
        if name == "grad":  # it is cast with its weight, and keeps its dtype where that is given other data
            weight = tensor.traits & (Trait.PARAMETER | Trait.BUFFER)
            return Tensor(None if self.data_given_anywhere else tensor.dtypes, traits=weight)
        number = number_member(tensor, name)
        if number != UNKNOWN:
            return number
        if name in ("real", "imag") and tensor.dtypes is not None and tensor.dtypes & COMPLEX:
            return Tensor()
        return super().member(tensor, name)

    def class_member(self, base: Class, name: str) -> Value:
        for info in base.info.lineage:
            method = info.methods.get(name)
            if method is not None:
                return Function(method, base if _is_classmethod(method) else None)
        if name == "__subclasses__":
            for info in self.classes.values():
                if base.info in info.lineage:
                    self.loosen_class(info)
        value = self.in_class(base.info, name)
        if value is not None and is_enumeration(base.info) and not isinstance(value, Function):
            return Member(base.info, name, value)
        if value is None and name == "__name__":
            return Constant(base.info.node.name)
        return UNKNOWN if value is None else value

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
        if name == "__class__":
            return UNKNOWN if base.key.startswith(ANYBODY) else Class(info)  # anybody's may extend it
        if name == "__dict__":
            return self.own_attributes(base, info)
        if name == "training" and isinstance(base, Module):
            return Number(Category.BOOL)  # `train()` and `eval()` say which
        given = self.objects.get(base.key, name)
        if given is not None and base.key.startswith(ANYBODY):
            given = self.of_each(info, name, given)
        method = info.method(name)
        if method is not None and _is_property(method):  # whatever is in the instance: a property comes first
            return self.apply(method, base, [], {}, True)
        if method is not None:
            bound = Function(
                method, base if method.is_plain_method else Class(info) if _is_classmethod(method) else None
            )
            if given is None and isinstance(base, Instance) and base.key in self.objects.open:
                return join(bound, UNKNOWN)
            return bound if given is None else join(bound, self.owned(given, base))
        value = given
        absent = name not in assigned_at_start(info) or (base.key, name) in self.objects.deleted
        if value is not None and absent:  # until it is assigned, there is the class's
            held = self.in_class(info, name)
            value = value if held is None else join(held, value)
        if value is None:
            value = self.in_class(info, name)
            if value is not None and base.key in self.objects.open:  # the instance may have its own
                return UNKNOWN
        if value is None:
            layer = self.objects.get(base.key, LAYER)
            weight = self.layer_member(layer, name) if isinstance(layer, Module) else UNKNOWN
            return weight if weight != UNKNOWN else self.looked_up(base, name)
        return self.for_anybody(value) if base.key.startswith(ANYBODY) else self.owned(value, base)

    def of_each(self, info: ClassInfo, name: str, given: Value) -> Value:
        """A tensor that is an attribute of whichever object of a class: what each has that is in view, as well."""
        if not any(isinstance(choice, Tensor) for choice in options(given)):
            return given
        for key in self.made_of.get(id(info.node), ()):
            if given == UNKNOWN:
                break
            held = self.objects.get(key, name)
            given = given if held is None else at_rest(join(given, held))
        return given

    def own_attributes(self, owner: Module | Instance, info: ClassInfo) -> Value:
        """`x.__dict__`: what is assigned to the instance; the fields of a dataclass are there from the start."""
        objects = self.objects
        changed = objects.get(owner.key, "__dict__") is not None
        if changed or isinstance(owner, Module) or owner.key.startswith(ANYBODY) or owner.key in objects.open:
            return UNKNOWN
        held: dict[object, Value] = {
            name: UNKNOWN if name in objects.wild else value for name, value in objects.of(owner.key).items()
        }
        certain = fields_in(info) if has_generated_init(info) else []
        return Table(held, frozenset(held.keys() - set(certain)))

    def looked_up(self, base: Module | Instance, name: str) -> Value:
        """An attribute that nobody assigns: what the class's own look-up gives."""
        self.missing += 1
        for special in ("__getattribute__", "__getattr__"):
            method = base.info.method(special) if base.info is not None else None
            if method is not None and not any(key == base.key for key, _ in self.asked):
                self.asked.add((base.key, name))
                found = self.apply(method, base, [Constant(name)], {}, True)
                self.asked.discard((base.key, name))
                return found
        return UNKNOWN

    def for_anybody(self, value: Value) -> Value:
        """An attribute of an instance that is not in view all its life."""
        if isinstance(value, Tensor):
            # A cast of the module leaves whole numbers and truths alone, and tensors that are not registered.
            cast = value.traits & (Trait.PARAMETER | Trait.BUFFER)
            kept = value.dtypes is not None and (not cast or not value.dtypes & (FLOATING | COMPLEX))
            return replace(value, dtypes=value.dtypes if kept else None, traits=value.traits & ~_PLACED)
        if isinstance(value, Either):
            choices = [self.for_anybody(choice) for choice in value.choices]
            return UNKNOWN if UNKNOWN in choices else reduce(join, choices)
        category = category_of(value)
        if category is not None:  # another instance may have another number
            return Number(category)
        return value if isinstance(value, (Module, Instance, Class, Declared)) or value == NONE else UNKNOWN

    def owned(self, value: Value, owner: Module | Instance) -> Value:
        """An attribute's value as it is now: weights have the dtype that their module was last cast to."""
        if isinstance(value, Either):  # None on some paths
            return reduce(join, [self.owned(choice, owner) for choice in value.choices])
        if isinstance(value, Tensor) and isinstance(owner, Module) and value.traits & (Trait.PARAMETER | Trait.BUFFER):
            traits = value.traits & ~_PLACED  # it moves with its module
            return replace(value, dtypes=self.cast_of(owner.key, value.dtypes), traits=traits, holder=owner.key)
        return self.kept_aside(value)

    def kept_aside(self, value: Value) -> Value:
        """What is held where casts do not look: weights, and lists of them, that a cast of their module may have changed
        since, if there is any."""
        return _as_weights_of_any(value) if self.ever_cast else value

    def layer_member(self, base: Module | Instance, name: str) -> Value:
        given = self.objects.get(base.key, name)
        if given is not None:
            return self.owned(given, base)
        if isinstance(base, Module) and name in _WEIGHTS_OF_LAYERS and base.name not in _RECURRENT:
            return Tensor(self.cast_of(base.key, base.dtypes), traits=Trait.PARAMETER, holder=base.key)
        return UNKNOWN

    def bind_attribute(self, target: ast.Attribute, base: Value, value: Value) -> None:
        if isinstance(value, Tensor) and isinstance(base, Module):
            value = self.registered(target, base, value)
        super().bind_attribute(target, base, value)
        self.stored_here(path_of(target) or "", tuple(options(base)), target.attr, value)
        for choice in options(base):
            if isinstance(choice, (Module, Instance)):
                setter = self.setter_of(choice.info, target.attr)
                if setter is not None:
                    self.flow.state.forget(path_of(target.value) or "")
                    self.apply(setter, choice, [value], {}, True)
                else:
                    for one in self.all_alike(choice):
                        self.held_from_here(one, target.attr, value)
                        self.objects.put(one.key, target.attr, value)
                        self.note_kept(one.key, value)
                        self.item_set(one, Constant(target.attr), value)
            elif isinstance(choice, Tensor) and target.attr == "data":
                self.places_lost()
                self.data_given_to_any()
                if not _is_like(value, choice.dtypes):
                    self.retold_everywhere(choice, value)
                    self.data_replaced(target.value, value)
            elif isinstance(choice, Class):
                self.put_in_class(choice, target.attr, value)
            elif isinstance(choice, Function):
                self.objects.put(function_key(choice.info), target.attr, value)
            elif isinstance(choice, Namespace):
                self.put_in_module(choice.name, target.attr, value)
            elif isinstance(choice, External):
                self.put_outside(choice.name, target.attr, value)
            elif isinstance(choice, (Unknown, Declared)):
                self.objects.forget(target.attr)
                self.lose(value)
                for tensor in self.optimized if target.attr == "data" else ():
                    self.retold_everywhere(tensor, value)
                if target.attr == "data" and self.module is self.main:
                    # Of a weight perhaps, that a dict or a method has given. Libraries load checkpoints like that, into
                    # tensors that are what they were.
                    self.data_replaced(target.value, value)

    def registered(self, target: ast.Attribute, owner: Module, value: Tensor) -> Tensor:
        """A tensor as an attribute of a module. It is cast with that where it is a parameter, or where the name is that
        of a buffer; what is computed of a weight is neither, unless the op gives it back as it was."""
        key = (owner.key, target.attr)
        known = options(self.objects.get(*key) or UNKNOWN)
        is_buffer = any(isinstance(one, Tensor) and one.traits & Trait.BUFFER for one in known)
        of_layer = owner.info is None and target.attr in _WEIGHTS_OF_LAYERS
        if is_buffer or of_layer or key in self.empty_buffers:
            return value if value.traits & _KEPT else replace(value, traits=value.traits | Trait.BUFFER)
        given = getattr(self.flow.statement, "value", None)
        if not value.traits & _KEPT or (isinstance(given, ast.Call) and self.makes_weight(given)):
            return value
        named = isinstance(given, ast.Name) or (isinstance(given, ast.Attribute) and given.attr not in _VIEWS)
        if named and value.traits & Trait.PARAMETER:
            return value
        perhaps = isinstance(given, (ast.Name, ast.Call, ast.IfExp, ast.BoolOp))  # `w.float()` may be w itself
        dtypes = None if perhaps and self.ever_cast else value.dtypes
        return replace(value, dtypes=dtypes, traits=value.traits & ~_KEPT)

    def makes_weight(self, node: ast.Call) -> bool:
        """Is it `nn.Parameter(...)` or `nn.Buffer(...)`, or a function of the program, which may give one?"""
        called = self.quietly(node.func)
        return not isinstance(called, External) or called.name.rpartition(".")[2] in ("Parameter", "Buffer")

    def stands_for_others(self, module: Module) -> bool:
        """Is it one of several modules, nobody knows which?"""
        return False

    def all_alike(self, value: Module | Instance) -> Sequence[Module | Instance]:
        """The objects that a value stands for."""
        return (value,)

    def item_set(self, holder: Module | Instance, name: Value, value: Value) -> None:
        """An attribute was set by its name: of a container of modules that is an item."""

    def may_be_cast(self, value: Value) -> bool:
        """Is a value that is assigned a module itself, or a weight of a dtype that is known, as far as is known? One that
        is read under a name that is not known is mostly given back where it came from, or tied to another."""
        floating = FLOATING | COMPLEX
        return any(
            isinstance(choice, Module)
            or (isinstance(choice, Tensor) and bool((choice.dtypes or frozenset()) & floating))
            for choice in options(value)
        )

    def open_unknown(self, value: Value) -> None:
        """An attribute of an unknown name is assigned to something unknown."""

    def places_lost(self) -> None:
        """Nobody knows on which device tensors are."""

    def put_in_class(self, owner: Class, name: str, value: Value) -> None:
        """An attribute of a class is assigned outside its body."""
        self.put_in_place(owner.info, name, value)
        self.objects.put(class_key(owner.info), name, value)

    def method_changed(self) -> None:
        self.objects.changed = True

    def in_class(self, info: ClassInfo, name: str) -> Value | None:
        """What a class and its parents bind to a name in their bodies, and what is assigned to it since."""
        found: Value | None = None
        for parent in info.lineage:
            put = self.objects.of(class_key(parent)).get(name)
            if put is not None:
                found = put if found is None else join(found, put)
            if name in parent.body:
                bound = self.resolved(parent.body[name])
                return bound if found is None else join(bound, found)
        return found

    def names_lost(self, names: Collection[str] | None) -> None:
        """Globals are bound in a way that is not followed."""

    def put_outside(self, owner: str, name: str, value: Value) -> None:
        """An attribute of something outside the program is assigned: of torch, that may be what an op or a layer does."""

    def put_in_module(self, name: str, attribute: str, value: Value) -> None:
        """A module's global is assigned from outside."""
        module = self.project.module(name)
        if module is not None:
            before = module.names.get(attribute)
            if not isinstance(before, Unknown):
                module.names[attribute] = value if before is None else at_rest(join(before, value))
            self.objects.changed |= module.names[attribute] != before

    def held_from_here(self, owner: Module | Instance, name: str, value: Value) -> None:
        """What is assigned to a module has not been cast with it before."""
        if not isinstance(owner, Module):
            return
        if owner.info is None and name in _WEIGHTS_OF_LAYERS:
            self.objects.put(owner.key, name, Tensor(owner.dtypes, traits=Trait.PARAMETER))  # what it is made with
            if not _is_like(value, self.cast_of(owner.key, owner.dtypes)):
                self.cast_module(owner, None)
            self.tie(owner)
        if isinstance(value, Module):
            self.attached.setdefault((owner.key, value.key), self.clock)
        if isinstance(value, Tensor) and value.traits & (Trait.PARAMETER | Trait.BUFFER):
            if value.holder not in (None, ONE_OF_SEVERAL, owner.key):
                self.tie_to(owner, value.holder or "")
            casts = self.casts_of(owner.key)
            if casts is None or any(cast is not None and not _is_like(value, cast[1]) for cast in casts):
                self.cast_module(owner, None)

    def tie(self, layer: Module) -> None:
        """The running statement gives a layer a weight: is it another's, as in `head.weight = embedding.weight`?"""
        given = getattr(self.flow.statement, "value", None)
        if isinstance(given, ast.Attribute) and given.attr in _WEIGHTS_OF_LAYERS:
            for choice in options(self.quietly(given.value)):
                if isinstance(choice, Module):
                    self.tie_to(layer, choice.key)

    def tie_to(self, module: Module, holder: Key) -> None:
        """A module has a weight of another: a cast of the one changes it in both."""
        pair = frozenset({module.key, holder})
        if pair not in self.tied:
            self.tied.add(pair)
            self.objects.changed = True

    def retold_everywhere(self, before: Tensor, value: Value) -> None:
        """A tensor is given data of another dtype: so are all that may be that very tensor, under whatever name."""
        for state in (self.flow.state, *self.frames):
            for names in (state.names, state.paths):
                for name, held in names.items():
                    names[name] = _retold(held, before, value)
        for outer in (*self.outer, self.globals):
            for name, held in outer.items():
                if (now := _retold(held, before, value)) is not held and now != held:
                    outer[name] = now
                    self.objects.changed |= not isinstance(outer, Frame)
        for key, attributes in list(self.objects.attributes.items()):
            for name, held in list(attributes.items()):
                if (now := _retold(held, before, value)) is not held:
                    self.objects.put(key, name, now)

    def data_replaced(self, node: ast.expr | None, value: Value) -> None:
        """`p.data = ...` in another dtype: a weight of a module that is named, or of whichever."""
        owner = self.quietly(node.value) if isinstance(node, ast.Attribute) else UNKNOWN
        self.data_given_to_any()
        if isinstance(node, ast.Name) and isinstance(value, Tensor):
            before = self.flow.state.names.get(node.id)
            same = before.origin if isinstance(before, Tensor) else value.origin  # it is the same tensor still
            self.flow.state.names[node.id] = replace(value, origin=same)
        if isinstance(owner, Module) and self.stands_for_others(owner):
            owner = UNKNOWN
        keys = {owner.key} if isinstance(owner, Module) else set(self.made_here)
        keys.update(*(pair for pair in self.tied if not pair.isdisjoint(keys)))
        self.clock += 1
        for key in keys:
            self.flow.state.casts[key] = (self.clock, None)
            if key not in self.ever_cast:
                self.ever_cast.add(key)
                self.objects.changed = True
        if isinstance(owner, Module):
            self.cast_by_hand(owner)

    def data_given_to_any(self) -> None:
        self.objects.changed |= not self.data_given_anywhere
        self.data_given_anywhere = True

    def cast_by_hand(self, module: Module) -> None:
        """A weight of a module is given other data."""

    def set_attribute(self, target: Value, name: Value, value: Value) -> Value:
        """`setattr(x, name, value)`."""
        if isinstance(name, Either) and all(isinstance(choice, Constant) for choice in name.choices):
            for choice in name.choices:
                self.set_attribute(target, choice, value)
            return NONE
        if isinstance(target, Either) and (isinstance(name, Constant) or self.may_be_cast(value)):
            for choice in target.choices:
                self.set_attribute(choice, name, value)
            return NONE
        self.stored_by_name(target, str(name.value) if isinstance(name, Constant) else EVERY)
        if isinstance(target, Class) and isinstance(name, Constant):
            self.put_in_class(target, str(name.value), value)
            return NONE
        if isinstance(target, Namespace) and isinstance(name, Constant):
            self.put_in_module(target.name, str(name.value), value)
            return NONE
        if isinstance(target, External) and isinstance(name, Constant):
            self.put_outside(target.name, str(name.value), value)
            if target.name == "sys.modules[]":
                self.names_lost({str(name.value)})
        if isinstance(target, (Module, Instance)):
            named = [str(name.value)] if isinstance(name, Constant) else self.setter_names(target.info)
            setters = [self.setter_of(target.info, one) for one in named]
            for setter in filter(None, setters):
                self.apply(setter, target, [value], {}, True)
            for one in self.all_alike(target):
                if isinstance(name, Constant) and isinstance(name.value, str):
                    self.held_from_here(one, name.value, value)
                    self.objects.put(one.key, name.value, value)
                    self.note_kept(one.key, value)
                else:
                    self.objects.open_up(one.key)
                self.item_set(one, name, value)
        elif isinstance(name, Constant) and isinstance(name.value, str):
            if not isinstance(target, External):
                self.objects.forget(name.value)
            if isinstance(target, (Tensor, Unknown)) and name.value == "data":
                if isinstance(target, Tensor):
                    self.retold_everywhere(target, value)
                self.data_replaced(None, value)
        elif not isinstance(target, (Class, Function, Namespace, External)):
            self.objects.open_up(EVERY)
            self.open_unknown(value)
        self.lose(value)
        return NONE

    @staticmethod
    def setter_names(info: ClassInfo | None) -> list[str]:
        """The properties of a class that can be assigned to."""
        return [] if info is None else [name for parent in info.lineage for name in parent.setters]

    def delete_attribute(self, target: Value, name: Value) -> None:
        """`del x.name`, `delattr(x, name)`: what was there before may be there again, or the class's own."""
        for choice in options(target):
            if isinstance(choice, (Module, Instance)):
                if isinstance(name, Constant) and isinstance(name.value, str):
                    self.objects.delete(choice.key, name.value)
                else:
                    self.objects.open_up(choice.key)

    def has_attribute(self, owner: Value, name: str) -> bool | None:
        """Has the value that attribute, certainly, certainly not, or perhaps?"""
        if isinstance(owner, Constant) and isinstance(owner.value, (str, int, float, type(None))):
            return hasattr(owner.value, name)
        if isinstance(owner, Tensor):
            return True if name in TENSOR_ATTRIBUTES else None
        if isinstance(owner, Class):
            return True if owner.info.method(name) or self.in_class(owner.info, name) is not None else None
        if not isinstance(owner, (Module, Instance)) or owner.info is None:
            return None
        plainly = self.has_plainly(owner, name)
        if plainly is not False:
            return plainly
        if owner.info.method("__getattr__") is not None:
            return None
        if owner.info.method("__getattribute__") is None or (owner.key, name) in self.asked:
            return False
        answers = self.answers.get((owner.key, name))
        if answers is None:
            self.answers[owner.key, name] = []
            self.looked_up(owner, name)
            answers = self.answers[owner.key, name]
        return answers[-1] if answers else None

    def has_plainly(self, owner: Module | Instance, name: str) -> bool | None:
        """The same, without what the class does itself to look attributes up."""
        info = owner.info
        if info is None:
            return None
        method = info.method(name)
        if method is not None and _is_property(method):  # which may raise AttributeError
            return None
        if method is not None or self.in_class(info, name) is not None:
            return True
        if owner.key.startswith(ANYBODY) or name.startswith("__"):
            return None
        if (owner.key, name) in self.objects.deleted:
            return None
        closed = self.objects.get(owner.key, name) is None and not self.objects.open & {owner.key, EVERY}
        own = not (info.is_module and name in MODULE_ATTRIBUTES)
        return False if closed and own and is_open_book(info) else None

    def plain_look_up(self, owner: Value, name: Value) -> Value:
        """`super().__getattribute__(name)`, at the end of a class's own look-up."""
        if not isinstance(owner, (Module, Instance)):
            return UNKNOWN
        asked = str(name.value) if isinstance(name, Constant) else None
        for key in self.asked:
            if key[0] == owner.key and key in self.answers:
                self.answers[key].append(None if asked is None else self.has_plainly(owner, asked))
        if asked is None:
            return UNKNOWN
        inside = (owner.key, asked) in self.asked
        self.asked.add((owner.key, asked))
        found = self.instance_member(owner, asked)
        if not inside:
            self.asked.discard((owner.key, asked))
        return found

    # -- weights

    def cast_of(self, key: Key, made: Dtypes) -> Dtypes:
        """The dtypes that a module's floating weight has now, made with `made`."""
        owners = self.objects.above(key)
        if made is not None and not made & (FLOATING | COMPLEX):
            return made if self.retyped.isdisjoint(owners) else None
        casts = None if any(owner.startswith(ANYBODY) for owner in owners) else self.casts_of(key)
        if made is not None and made & COMPLEX and casts != {None}:  # `half()` leaves it alone, `to(dtype)` does not
            return None
        if casts is None or (casts != {None} and not self.casting_themselves.isdisjoint(owners)):
            return None
        found: set[str] = set()
        for cast in casts:
            dtypes = made if cast is None else cast[1]
            if dtypes is None:
                return None
            found |= dtypes
        return frozenset(found)

    def casts_of(self, key: Key) -> set[Cast | None] | None:
        """The casts of which each may be the last of a module's weights; None where too many own it."""
        return None if len(self.objects.above(key)) > _MOST_OWNERS else self.casts_over(key, set())

    def casts_over(self, key: Key, below: set[Key]) -> set[Cast | None]:
        """Those of a module that is part of others `below`: where several own it, one may be another's."""
        own = self.flow.state.casts.get(key)
        owners = self.objects.owners.get(key, set()) - below - {key}
        if not owners:
            return {own}
        found: set[Cast | None] = set()
        for owner in owners:
            since = self.attached.get((owner, key), 0)
            casts = self.casts_over(owner, below | {key})
            found |= {None if cast is None or cast[0] <= since else cast for cast in casts}
        if key in self.objects.detached:
            found.add(None)
        latest = {max(filter(None, (own, cast)), key=_clock, default=None) for cast in found}
        return latest if len(latest) == 1 else {*latest, max(filter(None, latest), key=_clock)}

    def cast_module(self, module: Module, dtypes: Dtypes) -> None:
        """A cast in place of all floating weights of a module and what it owns."""
        self.clock += 1
        if module.key in self.objects.shared or len(self.objects.owners.get(module.key, ())) > 1:
            dtypes = None
        self.flow.state.casts[module.key] = (self.clock, dtypes)
        if module.key not in self.ever_cast:
            self.ever_cast.add(module.key)
            self.objects.changed = True
        for pair in self.tied:
            cast = {key for key in pair if module.key in self.objects.above(key)}
            for key in pair - cast if cast else ():
                self.flow.state.casts[key] = (self.clock, None)
        for state in (self.flow.state, *self.frames):
            for known in (state.names, state.paths):
                for name, value in known.items():
                    known[name] = _as_weights_of_any(value)

    def retype(self, module: Module) -> None:
        """Whole numbers of a module get another dtype, or one that is not known."""
        if module.key not in self.retyped:
            self.retyped.add(module.key)
            self.objects.changed = True


def _as_weights_of_any(value: Value) -> Value:
    """The value with weights, and lists of them, in whatever dtype a cast may have left them."""
    if isinstance(value, Tensor):
        return replace(value, dtypes=None) if value.traits & (Trait.PARAMETER | Trait.BUFFER) else value
    if isinstance(value, Iteration):
        item = _as_weights_of_any(value.item)
        return value if item is value.item else same_as(replace(value, item=item), value)
    if isinstance(value, Items):
        items = tuple(map(_as_weights_of_any, value.items))
        return value if all(map(operator.is_, items, value.items)) else same_as(value.holding(items), value)
    if isinstance(value, Table):
        table = {key: _as_weights_of_any(item) for key, item in value.items.items()}
        rest = None if value.rest is None else _as_weights_of_any(value.rest)
        same = rest is value.rest and all(map(operator.is_, table.values(), value.items.values()))
        return value if same else same_as(Table(table, value.perhaps, rest), value)
    if isinstance(value, Either):
        choices = tuple(map(_as_weights_of_any, value.choices))
        return value if all(map(operator.is_, choices, value.choices)) else reduce(join, choices)
    if isinstance(value, Partial):
        args = tuple(map(_as_weights_of_any, value.args))
        keywords = {name: _as_weights_of_any(item) for name, item in value.keywords.items()}
        held = (*value.args, *value.keywords.values())
        return (
            value
            if all(map(operator.is_, (*args, *keywords.values()), held))
            else Partial(value.callee, args, keywords)
        )
    return value


def _retold(held: Value, before: Tensor, value: Value, depth: int = 0) -> Value:
    """What is held by a name, where tensors like the one before may have the data of another."""
    if isinstance(held, Tensor):
        weight = Trait.PARAMETER | Trait.BUFFER
        apart = before.dtypes is not None and held.dtypes is not None and not before.dtypes & held.dtypes
        several = ONE_OF_SEVERAL in (held.holder, before.holder)
        made = set() if several else {held.origin, before.origin} - {None}  # of different calls are not the same
        if (
            held.dtypes is None
            or apart
            or len(made) > 1
            or bool(held.traits & weight) is not bool(before.traits & weight)
        ):
            return held
        dtypes = value.dtypes if isinstance(value, Tensor) else None
        return replace(held, dtypes=None if dtypes is None else held.dtypes | dtypes, symbol=None)
    if depth > 3:
        return held
    if isinstance(held, Items):
        items = tuple(_retold(item, before, value, depth + 1) for item in held.items)
        return held if all(map(operator.is_, items, held.items)) else same_as(held.holding(items), held)
    if isinstance(held, Iteration):
        item = _retold(held.item, before, value, depth + 1)
        return held if item is held.item else same_as(replace(held, item=item), held)
    if isinstance(held, Table):
        table = {key: _retold(item, before, value, depth + 1) for key, item in held.items.items()}
        same = all(map(operator.is_, table.values(), held.items.values()))
        return held if same else same_as(Table(table, held.perhaps, held.rest), held)
    return held


def _is_like(value: Value, dtypes: Dtypes) -> bool:
    """Is it a tensor of the one dtype that these are?"""
    return isinstance(value, Tensor) and dtypes is not None and len(dtypes) == 1 and value.dtypes == dtypes


_MOST_OWNERS = 20
"""Modules that one may be part of for its casts to be followed: through each chain of owners, of which there may be two to
the power of half as many."""
_WEIGHTS_OF_LAYERS = frozenset({"weight", "bias", "in_proj_weight", "running_mean", "running_var"})
_RECURRENT = frozenset(f"torch.nn.{kind}{end}" for kind in ("RNN", "LSTM", "GRU") for end in ("", "Cell"))
"""Layers whose weights have longer names: `bias` is the flag that they were made with."""


def _clock(cast: Cast) -> int:
    return cast[0]


_PLACED = Trait.ON_CPU | Trait.ON_CUDA
PLAIN = (Constant, Items, Iteration, Table)
"""Values without attributes of interest: where a choice has the attribute, it was none of these."""


@dataclass(slots=True)
class Code(Value):
    """`f.__code__`: decorators ask it for the names of a function's parameters."""

    info: FunctionInfo


@dataclass(slots=True, repr=False)
class Member(Value):
    """A member of an enumeration, which is not equal to its value."""

    info: ClassInfo
    name: str
    value: Value


def is_enumeration(info: ClassInfo) -> bool:
    """Are the members of a class no strings or numbers, but something that holds one?"""
    bases = {base.name for parent in info.lineage for base in parent.bases if isinstance(base, External)}
    return bool(bases & {"enum.Enum", "enum.Flag"}) and not bases & {"builtins.str", "builtins.int", "builtins.float"}


def is_open_book(info: ClassInfo) -> bool:
    """Are all that a class inherits from in view, or known to add nothing that a test asks for?"""
    return all(
        isinstance(base, Class)
        or (isinstance(base, External) and (base.name in _PLAIN_BASES or is_module_class(base.name)))
        for parent in info.lineage
        for base in parent.bases
    )


_PLAIN_BASES = frozenset({"builtins.object", "abc.ABC", "typing.Protocol", "typing.Generic"})


_KEPT = Trait.PARAMETER | Trait.BUFFER
_VIEWS = frozenset({"data", "T", "mT", "H", "mH", "real", "imag", "grad"})
"""Attributes of a weight that are tensors of their own."""
_PROPERTIES = frozenset({"property", "cached_property", "functools.cached_property"})


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
    return not _PROPERTIES.isdisjoint(method.decorated)


def _is_classmethod(method: FunctionInfo) -> bool:
    return "classmethod" in method.decorated
