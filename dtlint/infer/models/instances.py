"""`isinstance`, and which classes from elsewhere are known well enough that nothing is looked for in them."""

from __future__ import annotations

import builtins
import collections.abc
import numbers
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import (
    Array,
    Const,
    Device,
    Dtype,
    External,
    Function,
    Many,
    Mapping,
    Number,
    Partial,
    ProjectClass,
    Ref,
    Tensor,
    Tuple,
    Unknown,
    Value,
)
from dtlint.infer.models import enumerations
from dtlint.infer.models.kinds import bases_of, class_of
from dtlint.infer.models.module_trees import WRAPPED
from dtlint.infer.models.registry import MODELS

if TYPE_CHECKING:
    from dtlint.infer.context import Context

__all__ = ["HAS_TENSORS", "is_instance", "is_known_class"]

_KNOWN = (
    "builtins.",
    "torch.nn.",
    "torch.optim.",
    "torch.utils.data.",
    "torch.autograd.",
    "typing.",
    "abc.",
    "enum.",
    "collections.",
    "dataclasses.",
    "contextlib.",
    "typing_extensions.",
)


def is_known_class(name: str) -> bool:
    """Is what a class from elsewhere gives its subclasses known?"""
    return name.startswith(_KNOWN)


_ABSTRACT: dict[str, frozenset[str]] = {
    "torch.nn.Parameter": frozenset({"torch.nn.Parameter"}),
    "torch.Tensor": frozenset({"torch.nn.Parameter", "torch.nn.Buffer"}),
    "numpy.generic": frozenset(),
}
"""Classes that are bases of others by more than their names."""


_ABSTRACT_MODULES = ("collections.abc.", "numbers.", "typing.")


_METACLASSES = frozenset({"builtins.type", "enum.EnumMeta", "enum.EnumType"})


_CALLABLES = frozenset({"builtins.type", "types.FunctionType", "types.MethodType", "types.BuiltinFunctionType"})
"""The types of functions and classes."""
_OTHER_NAMES = {"types.LambdaType": "types.FunctionType", "types.BuiltinMethodType": "types.BuiltinFunctionType"}
_OF_ALL = frozenset({"object", "Callable", "Hashable"})
"""Classes that functions and classes are instances of; of no other abstract one."""


def _types_of_callable(value: Value) -> frozenset[str] | None:
    """What the type of a function or a class may be; None for other values."""
    if isinstance(value, Function):
        return frozenset({"types.FunctionType" if value.receiver is None else "types.MethodType"})
    if isinstance(value, ProjectClass):
        is_plain = value.definition.metaclass is None and not enumerations.is_enumeration(value)
        return frozenset({"builtins.type"}) if is_plain else None
    if isinstance(value, External) and _names_a_layer(value.name):
        return frozenset({"builtins.type"})
    if isinstance(value, External) and value.name in MODELS:
        return _CALLABLES
    return None


def _is_one(types: frozenset[str], name: str) -> bool | None:
    """Is a function or a class of these types an instance of that class?"""
    name = _OTHER_NAMES.get(name, name)
    if name in types:
        return True if len(types) == 1 else None
    if name.startswith(("builtins.", "collections.abc.", "typing.")) and name.rpartition(".")[2] in _OF_ALL:
        return True
    is_other = name in _CALLABLES or name.startswith(("builtins.", "functools.partial", *_ABSTRACT_MODULES))
    return False if is_other or name in ("torch.Tensor", "torch.nn.Module", "torch.dtype", "torch.device") else None


def _names_a_layer(name: str) -> bool:
    return name.startswith("torch.nn.") and name.count(".") == 2 and name[9:10].isupper()


def _by_python(own: str, name: str) -> bool | None:
    """Is a builtin class a subclass of an abstract one, as `collections.abc.Hashable`? Python says; None of other classes."""
    package, _, last = own.rpartition(".")
    if own in ("torch.Tensor", "numpy.ndarray"):
        return False if name.startswith("numbers.") or name.rpartition(".")[2] in _NO_TENSORS else None
    cls = getattr(builtins, last, None) if package == "builtins" else None
    module = numbers if name.startswith("numbers.") else collections.abc
    abstract = getattr(module, name.rpartition(".")[2], None)
    if not isinstance(cls, type) or not isinstance(abstract, type):
        return None
    answers = {issubclass(one, abstract) for one in (_SETS if cls is set else (cls,))}
    return answers.pop() if len(answers) == 1 else None


_NO_TENSORS = frozenset(
    {
        "Mapping",
        "MutableMapping",
        "Sequence",
        "MutableSequence",
        "Set",
        "MutableSet",
        "Callable",
        "Iterator",
        "Generator",
    }
)
"""Abstract classes that neither tensors nor arrays belong to."""
HAS_TENSORS = "*has tensors"
"""The field of the namespace of a class that tensors have been given."""
_SETS: tuple[type, ...] = set, frozenset, type({}.keys())
"""Each of them is a set here."""


def is_instance(ctx: Context, value: Value, kind: Value) -> bool | None:
    """`isinstance(value, kind)`, for one value and one class."""
    if isinstance(value, Unknown):
        return False if value.dtypes == frozenset() and kind == External("torch.Tensor") else None
    if isinstance(kind, Tuple):
        answers = [is_instance(ctx, value, one) for one in kind.items]
        return True if True in answers else None if None in answers else False
    if isinstance(value, Tuple) and isinstance(value.kind, ProjectClass) and isinstance(kind, ProjectClass):
        return kind in value.kind.definition.order
    if kind == Const(None):
        kind = External("builtins.NoneType")
    if isinstance(value, Ref) and ctx.store.read(value.address, WRAPPED) is not None:
        return None  # what is around it is no object of its class
    if isinstance(kind, ProjectClass):
        if isinstance(value, Ref) and isinstance(value.address.kind, ProjectClass):
            if kind in value.address.kind.definition.order:
                return True
            return None if value.address.kind.definition.opaque else False
        if isinstance(value, Tensor) and ctx.store.read(kind.definition.namespace, HAS_TENSORS) is not None:
            return None
        return False if isinstance(value, (Tensor, Const, Number, Tuple, Array, Dtype, Ref)) else None
    if not isinstance(kind, External):
        return None
    if isinstance(value, Ref) and isinstance(value.address.kind, ProjectClass):
        known = True if kind.name == "builtins.object" else value.address.kind.definition.inherits(kind.name)
        # Whether it is a Mapping or Hashable, its methods decide.
        return None if known is False and kind.name.startswith(_ABSTRACT_MODULES) else known
    if isinstance(value, ProjectClass) and kind.name in _METACLASSES:
        return kind.name == "builtins.type" or enumerations.is_enumeration(value)
    types = _types_of_callable(value)
    if types is not None:
        return _is_one(types, kind.name)
    if isinstance(value, Partial):  # a partial, a context, something else that a model gives
        is_plain = kind.name.startswith("builtins.") and kind.name not in ("builtins.type", "builtins.object")
        return False if is_plain or kind.name in ("torch.Tensor", "torch.nn.Module") else None
    if isinstance(value, Const) and value.value is None:
        return kind.name in ("types.NoneType", "builtins.NoneType", "builtins.object")
    own = class_of(value)
    if own is None:
        return None
    if isinstance(value, Array):
        return None if value.scalar is not False and kind.name.startswith(("numpy.", "builtins.")) else kind.name == own
    if own == "builtins.tuple" and kind.name == "torch.Size":  # shapes are tuples here
        return None
    if kind.name in (own, *bases_of(own), "builtins.object"):
        return True
    if own in _ABSTRACT.get(kind.name, frozenset()):
        return True
    if kind.name.startswith(_ABSTRACT_MODULES):
        return _by_python(own, kind.name)
    if isinstance(value, Tensor) and kind.name in ("torch.nn.Parameter", "torch.Tensor"):
        return kind.name == "torch.Tensor" or None
    if isinstance(value, (Many, Mapping)) and kind.name in ("builtins.list", "builtins.tuple", "builtins.set"):
        return None if isinstance(value, Many) else False
    if isinstance(value, Tensor) and kind.name.startswith("torch.") and kind.name.endswith("Tensor"):
        return None
    if kind.name.startswith(("builtins.", "torch.", "numpy.")) and not kind.name.startswith("torch.utils"):
        return False
    if own.startswith("builtins.") and (kind.name.startswith("enum.") or kind.name in _METACLASSES):
        return False if isinstance(value, (Ref, Tuple)) else None
    return False if isinstance(value, (Tensor, Const, Number, Device, Dtype)) and kind.name.startswith(_KNOWN) else None
