"""Attributes: of objects and their classes, of modules, and of what torch and Python define."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import named
from dtlint.infer.context import Arguments, NeverReturns
from dtlint.infer.domain.lattice import join, join_all
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Bound,
    Const,
    Dtype,
    External,
    Function,
    Instance,
    Mapping,
    Namespace,
    Partial,
    ProjectClass,
    Ref,
    SuperOf,
    Tensor,
    Tuple,
    Union,
    Unknown,
    Value,
    choices,
    present,
)
from dtlint.infer.models import code_objects, enumerations, kinds, layers, plain_tensors, training, unknown_tensors
from dtlint.infer.models.amp import IN_REGION
from dtlint.infer.models.array_dtypes import CODES
from dtlint.infer.models.autograd_functions import APPLY
from dtlint.infer.models.instance_dicts import ANYTHING, instance_dict
from dtlint.infer.models.module_trees import LOADED, WRAPPED
from dtlint.infer.models.ops import is_op
from dtlint.infer.models.protocols import PROTOCOL, UNKNOWN_CLASS
from dtlint.infer.models.registry import ATTRIBUTES, MODELS, PLAIN_PARTS, canonical
from dtlint.infer.semantics.annotations import declared_member
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.context import Context

__all__ = [
    "ANYTHING",
    "assign_attribute",
    "assign_own_attribute",
    "attribute",
    "class_attribute",
    "own_attribute",
]


def attribute(ctx: Context, value: Value, name: str, node: ast.AST) -> Value | None:
    """The value of an attribute; None where it is certain that there is none."""
    ones = choices(value)
    if len(ones) == 1:
        return _attribute(ctx, value, name, node)
    result: Value | None = None
    for one in ones:
        found = _attribute(ctx, one, name, node)
        if found is not None:
            result = found if result is None else join(result, found)
    return result


def _attribute(ctx: Context, value: Value, name: str, node: ast.AST) -> Value | None:
    if isinstance(value, Ref):
        return _of_object(ctx, value, name, node)
    if isinstance(value, External):
        full = f"{value.name}.{name}"
        return ctx.modules.named(ctx, full) if full in PLAIN_PARTS else _of_external(value, name)
    if isinstance(value, Namespace):
        return ctx.modules.imported_member(ctx, value.name, name)
    if isinstance(value, ProjectClass):
        return _of_class(ctx, value, name, node)
    if isinstance(value, SuperOf):
        return _of_super(ctx, value, name, node)
    if isinstance(value, Tuple) and value.names:
        found = _of_named_tuple(ctx, value, name, node)
        if found is not None:
            return found
    if isinstance(value, Function):
        return _of_function(ctx, value, name)
    if isinstance(value, Partial):
        of_code = code_objects.code_attribute(value, name)
        if of_code is not None:
            return of_code
        return {"func": value.callee, "args": Tuple(value.args)}.get(name, TOP)
    if isinstance(value, Unknown) and name in unknown_tensors.CASTS:
        return Bound(value, f"torch.Tensor.{name}")
    if isinstance(value, Unknown) and value.extra >= plain_tensors.CAST and _is_of_tensors_alone(name):
        value = Tensor(value.dtypes, value.symbol)
    if isinstance(value, Unknown) and name in PROTOCOL:
        return Bound(value, f"{UNKNOWN_CLASS}.{name}")
    if isinstance(value, Instance):
        member = declared_member(ctx, value, name)
        if member is not None:
            return member
    if isinstance(value, Unknown) and name not in _OF_TENSORS:
        return Bound(value, f"torch.Tensor.{name}") if unknown_tensors.has_method(ctx, value, name) else TOP
    if value == NONE and not name.startswith("__"):
        return None
    kind = kinds.class_of(value)
    return TOP if kind is None else _of_kind(ctx, value, kind, name)


_OF_TENSORS = frozenset({"dtype", "T", "mT", "H", "mH", "data", "grad", "real", "imag", "device", "shape"})
"""Attributes that are told even of what may not be a tensor: if it is one, they are these."""


def _is_of_tensors_alone(name: str) -> bool:
    """Is it a method of tensors that modules do not have?"""
    return is_op(f"torch.Tensor.{name}") and f"torch.nn.Module.{name}" not in MODELS


def _of_kind(ctx: Context, value: Value, kind: str, name: str) -> Value | None:
    """An attribute of an instance of a class that is not read as source."""
    for owner in (kind, *kinds.bases_of(kind)):
        getter = ATTRIBUTES.get(f"{owner}.{name}")
        if getter is not None:
            return getter(ctx, value)
        if f"{owner}.{name}" in MODELS:
            return Bound(value, f"{owner}.{name}")
    if kind == LOADED:
        return TOP
    known = _EXACT.get(kind)
    return None if known is not None and not hasattr(known, name) else Bound(value, f"{kind}.{name}")


_EXACT: dict[str, type] = {
    f"builtins.{cls.__name__}": cls for cls in (list, dict, set, tuple, str, bytes, bool, int, float, type(None))
}
"""Classes whose attributes are those that Python has here."""


def _of_named_tuple(ctx: Context, value: Tuple, name: str, node: ast.AST) -> Value | None:
    """A field of a named tuple, or what its class has."""
    if name in value.names:
        return value.items[value.names.index(name)]
    if name == "_fields":
        return Tuple(tuple(map(Const, value.names)))
    if isinstance(value.kind, ProjectClass):
        if name == "__class__":
            return value.kind
        found = class_attribute(ctx, value.kind.definition.order, name)
        if isinstance(found, Function):
            return _bound(ctx, found, value, value.kind, node)
        if found is not None:
            return found
    return Bound(value, f"typing.NamedTuple.{name}") if name in ("_replace", "_asdict") else None


def _of_external(value: External, name: str) -> Value:
    full = canonical(f"{value.name}.{name}")
    package, _, last = full.rpartition(".")
    if package == "torch":
        dtype = named(last)
        if dtype is not None:
            return Dtype(frozenset({dtype}))
    return _CONSTANTS.get(full, External(full))


_PLAIN_NUMBERS = Tuple((External("builtins.int"), External("builtins.float"), External("builtins.bool")))
_CONSTANTS: dict[str, Value] = {
    "torch.types._Number": _PLAIN_NUMBERS,
    "torch.types.Number": _PLAIN_NUMBERS,
    "math.pi": Const(3.141592653589793),
    "math.e": Const(2.718281828459045),
    "math.inf": Const(float("inf")),
    "numpy.pi": Const(3.141592653589793),
    "numpy.e": Const(2.718281828459045),
    "numpy.inf": Const(float("inf")),
    "torch.pi": Const(3.141592653589793),
    "torch.inf": Const(float("inf")),
    "numpy.newaxis": Const(None),
    **CODES,
}


def _of_object(ctx: Context, value: Ref, name: str, node: ast.AST) -> Value | None:
    address = value.address
    if address.kind in plain_tensors.WEIGHTS:
        return kinds.weight_attribute(ctx, value, name)
    found = ctx.store.read(address, name)
    known = None if found is None else present(found)
    if isinstance(known, Partial) and known.callee == plain_tensors.PARAMETRISED:
        return ctx.semantics.call(ctx, known, Arguments([], {}, True, node))
    if isinstance(address.kind, str):
        if known is not None:
            return known
        child = _child(ctx, value, name)
        return _of_kind(ctx, value, address.kind, name) if child is None else child
    hook = _hook(ctx, address.kind, "__getattribute__")
    if hook is not None:
        bound = Function(hook.definition, hook.frame, value)
        try:
            return ctx.semantics.call(ctx, bound, Arguments([Const(name)], {}, True, node))
        except NeverReturns:
            return None
    return _of_instance(ctx, value, address.kind, name, known, node)


def _hook(ctx: Context, cls: ProjectClass, name: str) -> Function | None:
    """The method that the body of a class or of a base defines. What is stored into a class later is taken to be a check."""
    for one in cls.definition.order:
        if isinstance(one, ProjectClass):
            node = one.definition.method(name)
            if node is not None:
                return Function(ctx.modules.function(one.definition.module, node, one))
    return None


def _child(ctx: Context, value: Ref, name: str) -> Value | None:
    """A module or parameter of a dict of them, which are its attributes, too."""
    if value.address.kind not in ("torch.nn.ModuleDict", "torch.nn.ParameterDict"):
        return None
    content = ctx.store.read(value.address, CONTENT)
    held = content.get(Const(name)) if isinstance(content, Mapping) else None
    return None if held is None else present(held)


def own_attribute(ctx: Context, value: Ref, name: str, node: ast.AST) -> Value | None:
    """The same as `object.__getattribute__` gives it, whatever the class makes of it; None: there is none."""
    if isinstance(value.address.kind, str):
        return _of_object(ctx, value, name, node)
    found = ctx.store.read(value.address, name)
    return _of_instance(ctx, value, value.address.kind, name, None if found is None else present(found), node)


def _of_instance(
    ctx: Context, value: Ref, cls: ProjectClass, name: str, field: Value | None, node: ast.AST
) -> Value | None:
    """An attribute of an instance of a class that is read as source: its own, then its classes'."""
    if name == "__class__":
        return cls
    if name == "__dict__":
        return instance_dict(ctx, value)
    found = class_attribute(ctx, cls.definition.order, name)
    if isinstance(found, Union) and field is None:
        return _bound_each(ctx, found, value, cls, node)
    if isinstance(found, Function):
        cached = "cached_property" in found.definition.decorators
        if field is None or (_is_property(found) and not cached):
            made = _bound(ctx, found, value, cls, node)
            if cached:
                ctx.store.write(value.address, name, made)
            return made
    if field is not None:
        return field
    if isinstance(found, Ref):
        return _described(ctx, found, value, cls, node)
    if isinstance(found, Partial) and found.callee == External("dataclasses.field"):
        return TOP
    if found is not None:
        return Bound(value, found.name) if isinstance(found, Bound) else _bound(ctx, found, value, cls, node)
    for one in cls.definition.order:
        if isinstance(one, External):
            for owner in (one.name, *kinds.bases_of(one.name)):
                getter = ATTRIBUTES.get(f"{owner}.{name}")
                if getter is not None:
                    return getter(ctx, value)
                if f"{owner}.{name}" in MODELS:
                    return Bound(value, f"{owner}.{name}")
    fallback = class_attribute(ctx, cls.definition.order, "__getattr__")
    if isinstance(fallback, Function):
        bound = Function(fallback.definition, fallback.frame, value)
        try:
            return ctx.semantics.call(ctx, bound, Arguments([Const(name)], {}, True, node))
        except NeverReturns:  # that is how it says that there is no such attribute
            return None
    around = ctx.store.read(value.address, WRAPPED)
    if isinstance(around, Const) and f"{around.value}.{name}" in MODELS:
        return Bound(value, f"{around.value}.{name}")
    if cls.definition.opaque and f"torch.nn.Module.{name}" in MODELS:  # a base that is not known is a module's, then
        return Bound(value, f"torch.nn.Module.{name}")
    if cls.definition.opaque or ctx.store.read(value.address, ANYTHING) is not None:
        return TOP
    return None


def _is_property(value: Value | None) -> bool:
    return isinstance(value, Function) and not value.definition.decorators.isdisjoint(_PROPERTIES)


_PROPERTIES = frozenset({"property", "cached_property", "lazy_property", "setter", "getter"})


def _bound(ctx: Context, function: Value, receiver: Value, cls: ProjectClass, node: ast.AST) -> Value:
    """What a class holds as an attribute of an instance: a function is bound to it, or run where it is a property."""
    if isinstance(function, Partial) and function.callee == IN_REGION:
        region, inner = function.args
        return Partial(IN_REGION, (region, _bound(ctx, inner, receiver, cls, node)))
    if not isinstance(function, Function):
        return function
    decorators = function.definition.decorators
    if "staticmethod" in decorators:
        return function
    if "classmethod" in decorators:
        return Function(function.definition, function.frame, cls)
    bound = Function(function.definition, function.frame, receiver)
    if decorators & _PROPERTIES:
        return ctx.semantics.call(ctx, bound, Arguments([], {}, True, node))
    return bound


def _described(ctx: Context, descriptor: Ref, receiver: Value, cls: ProjectClass, node: ast.AST) -> Value:
    """What an object that a class holds gives as an attribute: by its `__get__`, or itself."""
    kind = descriptor.address.kind
    if not isinstance(kind, ProjectClass):
        return descriptor
    getter = class_attribute(ctx, kind.definition.order, "__get__")
    if not isinstance(getter, Function):
        return descriptor
    bound = Function(getter.definition, getter.frame, descriptor)
    return ctx.semantics.call(ctx, bound, Arguments([receiver, cls], {}, True, node))


def _bound_each(ctx: Context, found: Union, receiver: Value, cls: ProjectClass, node: ast.AST) -> Value | None:
    """One of several attributes of a class, each bound."""
    return join_all(_bound(ctx, one, receiver, cls, node) for one in found.choices)


def class_attribute(ctx: Context, order: Sequence[Value], name: str) -> Value | None:
    """What a name is in the first of some classes that has it: not of an instance."""
    for one in order:
        if isinstance(one, ProjectClass):
            found = ctx.store.read(one.definition.namespace, name)
            known = None if found is None else present(found)
            if known is not None:
                return known
    return None


def _of_class(ctx: Context, value: ProjectClass, name: str, node: ast.AST) -> Value | None:
    if name in ("__name__", "__qualname__"):
        return Const(value.definition.name)
    if name == "__dict__":
        fields = ctx.store.fields(value.definition.namespace)
        held = ((Const(field), ctx.store.read(value.definition.namespace, field)) for field in fields)
        named = ((key, one) for key, one in held if isinstance(key.value, str) and key.value[:1] != "*")
        return Mapping(tuple((key, one) for key, one in named if one is not None))
    if name == "__bases__":
        return Tuple(tuple(value.definition.bases))
    if name in ("_fields", "_make") and value.definition.inherits("typing.NamedTuple"):
        names = ctx.modules.match_args(ctx, value) or []
        return Tuple(tuple(map(Const, names))) if name == "_fields" else Bound(value, "typing.NamedTuple._make")
    found = class_attribute(ctx, value.definition.order, name)
    if found is not None:
        if isinstance(found, Function) and "classmethod" in found.definition.decorators:
            return Function(found.definition, found.frame, value)
        if isinstance(found, Partial) and found.callee == External("builtins.classmethod"):
            return Partial(found.args[0], (value,))
        if enumerations.is_enumeration(value) and name in enumerations.names_of(value):
            return enumerations.member(ctx, value, name, found)
        return _described(ctx, found, NONE, value, node) if isinstance(found, Ref) else found
    if name == "__members__" and enumerations.is_enumeration(value):
        return enumerations.members_by_name(ctx, value)
    if name == "apply" and value.definition.inherits("torch.autograd.Function"):
        return Bound(value, APPLY)
    for one in value.definition.order:
        if isinstance(one, External):
            for owner in (one.name, *kinds.bases_of(one.name)):
                if f"{owner}.{name}" in MODELS:
                    return External(f"{owner}.{name}")
    metaclass = value.definition.metaclass
    found = None if metaclass is None else class_attribute(ctx, metaclass.definition.order, name)
    if found is not None and metaclass is not None:
        return _bound(ctx, found, value, metaclass, node)
    if name == "__dataclass_fields__" and (value.definition.made or value.definition.transformed):
        return NO_TENSOR
    if name == "__new__" and not value.definition.opaque:
        return External("builtins.object.__new__")
    unknown = value.definition.opaque or value.definition.inherits("torch.autograd.Function") or hasattr(type, name)
    return TOP if unknown else None


_OF_OBJECT = frozenset(
    {"__init__", "__init_subclass__", "__post_init__", "__setattr__", "__getattr__", "__getattribute__", "__new__"}
)
"""Methods that every class has from `object`, and `__post_init__`, which classes in between may have."""


def _of_super(ctx: Context, value: SuperOf, name: str, node: ast.AST) -> Value | None:
    receiver = value.receiver
    cls = receiver.address.kind if isinstance(receiver, Ref) else receiver
    if isinstance(receiver, Tuple) and receiver.kind is not None:
        cls = receiver.kind
    if not isinstance(cls, ProjectClass):
        return TOP
    order = cls.definition.order
    if value.owner not in order and receiver is cls and cls.definition.metaclass is not None:
        order = cls.definition.metaclass.definition.order  # in a method of the metaclass
    behind = order[order.index(value.owner) + 1 :] if value.owner in order else ()
    for one in behind:
        if isinstance(one, ProjectClass):
            found = ctx.store.read(one.definition.namespace, name)
            known = None if found is None else present(found)
            if known is not None:
                if isinstance(known, Function):
                    if isinstance(receiver, Ref):
                        return _bound(ctx, known, receiver, cls, node)
                    return Function(known.definition, known.frame, receiver)
                if isinstance(known, Union):
                    return _bound_each(ctx, known, receiver, cls, node)
                return _bound(ctx, known, receiver, cls, node)
        elif isinstance(one, External):
            for owner in (one.name, *kinds.bases_of(one.name)):
                if f"{owner}.{name}" in MODELS or f"{owner}.{name}" == _RUNS_FORWARD:
                    return Bound(receiver, f"{owner}.{name}")
                getter = ATTRIBUTES.get(f"{owner}.{name}")
                if getter is not None:
                    return getter(ctx, receiver)
    if name in _OF_OBJECT:
        return Bound(receiver, f"builtins.object.{name}")
    return TOP


_RUNS_FORWARD = "torch.nn.Module.__call__"


def _of_function(ctx: Context, value: Function, name: str) -> Value | None:
    if name in ("__name__", "__qualname__"):
        return Const(value.definition.name)
    if name == "__code__":
        return code_objects.code_of(value)
    if name == "__self__":
        return TOP if value.receiver is None else value.receiver
    if name == "__func__":
        return Function(value.definition, value.frame)
    if name == "__wrapped__":
        return _wrapped(ctx, value) or TOP
    if name == "fset" and "property" in value.definition.decorators and value.definition.owner is not None:
        if ctx.modules.setter(None, value.definition.name) is not None:  # it may be that of a class in between
            return ctx.modules.setter(value.definition.owner, value.definition.name) or TOP
        return NONE
    return TOP


def _wrapped(ctx: Context, value: Function) -> Value | None:
    """What `functools.wraps` says that a function is put around; itself where its decorators are not in view, which leave it as
    it is."""
    for decorator in getattr(value.definition.node, "decorator_list", ()):
        called = decorator.func if isinstance(decorator, ast.Call) else None
        named = (
            called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else None
        )
        if named == "wraps" and len(decorator.args) == 1 and isinstance(decorator.args[0], ast.Name) and value.frame:
            held = ctx.store.read(value.frame, decorator.args[0].id)
            return None if held is None else present(held)
    return Function(value.definition, value.frame) if value.definition.decorators else None


def assign_attribute(ctx: Context, value: Value, name: str, given: Value, node: ast.AST) -> None:
    """Bind an attribute of each object that a value can be."""
    if name == training.UNSCALING:
        ctx.set_ambient(name, given)
    ones = choices(value)
    for one in ones:
        if isinstance(one, Ref):
            _assign(ctx, one, name, given, node, certain=len(ones) == 1)
        elif isinstance(one, ProjectClass):
            ctx.store.unfreeze(one.definition.namespace)
            ctx.store.overwrite(one.definition.namespace, name, given)
        elif isinstance(one, Namespace):
            ctx.modules.set_member(ctx, one.name, name, given)
        elif isinstance(one, External):
            ctx.modules.set_external(ctx, one.name, name, given)
        elif isinstance(one, Tensor):
            kinds.assign_tensor_attribute(ctx, one, name, given)
        elif isinstance(one, Unknown):
            ctx.modules.escape(ctx, [given])


def _assign(ctx: Context, owner: Ref, name: str, given: Value, node: ast.AST, certain: bool) -> None:
    address = owner.address
    if address.kind in plain_tensors.WEIGHTS:
        kinds.assign_weight_attribute(ctx, owner, name, given)
        return
    if isinstance(address.kind, ProjectClass):
        hook = _hook(ctx, address.kind, "__setattr__")
        if hook is not None:
            bound = Function(hook.definition, hook.frame, owner)
            ctx.semantics.call(ctx, bound, Arguments([Const(name), given], {}, True, node))
            return
    _assign_own(ctx, owner, name, given, node, certain)


def assign_own_attribute(ctx: Context, owner: Ref, name: str, given: Value, node: ast.AST) -> None:
    """Bind an attribute as `object.__setattr__` does it, whatever the class makes of it."""
    _assign_own(ctx, owner, name, given, node, certain=True)


def _assign_own(ctx: Context, owner: Ref, name: str, given: Value, node: ast.AST, certain: bool) -> None:
    address = owner.address
    if isinstance(address.kind, ProjectClass):
        found = class_attribute(ctx, address.kind.definition.order, name)
        if _is_property(found):
            setter = ctx.modules.setter(address.kind, name)
            if setter is not None:
                bound = Function(setter.definition, setter.frame, owner)
                ctx.semantics.call(ctx, bound, Arguments([given], {}, True, node))
                return
    known = ctx.store.read(address, name)
    if (
        isinstance(given, Ref)
        and ctx.store.read(given.address, plain_tensors.REGISTERED) is not None
        and given != known
    ):
        given = plain_tensors.plain(ctx, given)
    if known == NONE and ctx.store.read(address, (plain_tensors.BUFFER, name)) is not None and given != NONE:
        plain = plain_tensors.plain(ctx, given)  # `register_buffer(name, None)` has named it
        if certain and isinstance(plain, Tensor):
            layers.make_weight(ctx, owner, name, plain, plain_tensors.BUFFER)
            return
    if known is not None and isinstance(known, Ref) and known.address.kind == plain_tensors.BUFFER:
        plain = plain_tensors.plain(ctx, given)
        if isinstance(plain, (Tensor, Unknown)):  # a buffer stays one
            ctx.store.write(known.address, CONTENT, plain if isinstance(plain, Tensor) else Tensor())
            return
    if certain:
        ctx.store.write(address, name, given)
    else:
        ctx.store.blend(address, name, given)
