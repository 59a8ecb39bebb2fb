"""Functions and classes of the project, as the interpreter keeps them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import Autocast, External, Value
from dtlint.infer.values import Class as ClassValue

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from dtlint.infer.events import Condition
    from dtlint.infer.interproc.project import ModuleInfo

__all__ = ["ClassInfo", "FunctionInfo", "FunctionNode", "is_module_class"]

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_MODULE_BASES = frozenset(
    {"LightningModule", "PreTrainedModel", "ModelMixin", "GenerationMixin", "FairseqModel", "BaseFairseqModel"}
)
"""Classes of well-known libraries that are nn.Modules, whatever module they are imported from."""


_FIELD_MAKERS = frozenset({"dataclass", "define", "frozen", "mutable", "attrs", "s"})
_FIELD_BASES = frozenset({"NamedTuple", "TypedDict", "BaseModel", "BaseSettings", "Struct"})
"""Decorators and bases that turn annotated names of a class into arguments of its instances."""


_UNBOUND = frozenset({"staticmethod", "classmethod"})


@dataclass(eq=False, slots=True)
class FunctionInfo:
    """One function: its syntax, where its free names come from, and what reading it has shown.

    Attributes:
        names: the enclosing functions' and the module's names, innermost first.
        owner: the class whose method it is.
        contexts: autocast regions that its decorators enter, outermost first.
        decorators: the decorators that enter them, in the same order.
        gradless: does a decorator switch gradients off?
        result: the value it returns, once read.
        reading: is it being read just now? A recursive call then learns nothing.
        attributes: what it assigns to attributes of `self`, once read.
        conditions: the branches in which it is defined.
        module: the module that defines it, where more than one is followed.
        defaults: the values of its parameters' defaults.
        managed: is it a generator method that `contextlib.contextmanager` makes contexts of?
    """

    node: FunctionNode
    names: tuple[MutableMapping[str, Value], ...]
    owner: ClassInfo | None = None
    contexts: list[Autocast] = field(default_factory=list)
    decorators: tuple[ast.expr, ...] = ()
    gradless: bool = False
    result: Value | None = None
    reading: bool = False
    attributes: dict[str, Value] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    module: ModuleInfo | None = None
    defaults: dict[str, Value] = field(default_factory=dict)
    managed: bool = False
    _decorated: frozenset[str] | None = None

    def forget(self) -> None:
        """Let go of what it holds that may hold it."""
        self.names, self.result = (), None

    @property
    def name(self) -> str:
        """Its name, or `<lambda>`."""
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name

    @property
    def decorated(self) -> frozenset[str]:
        """The paths of its decorators: `property`, `torch.no_grad`."""
        if self._decorated is None:
            paths = () if isinstance(self.node, ast.Lambda) else map(path_of, self.node.decorator_list)
            self._decorated = frozenset(path for path in paths if path is not None)
        return self._decorated

    @property
    def is_plain_method(self) -> bool:
        """Is its first parameter the instance?"""
        if self.owner is None or isinstance(self.node, ast.Lambda):
            return False
        return not self.node.decorator_list or self.decorated.isdisjoint(_UNBOUND)


@dataclass(eq=False)
class ClassInfo:
    """One class: its bases, its methods, and what its body binds."""

    node: ast.ClassDef
    bases: list[Value]
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    body: dict[str, Value] = field(default_factory=dict)
    of_self: dict[str, Value] = field(default_factory=dict)
    """What its methods find in attributes of `self`, once all have been read that assign them."""
    setters: dict[str, FunctionInfo] = field(default_factory=dict)
    """Functions that assigning to a property calls."""

    def forget(self) -> None:
        """Let go of what it holds that may hold it."""
        self.__dict__.clear()

    @cached_property
    def lineage(self) -> list[ClassInfo]:
        """The class and its bases as far as the project defines them, in order of look-up.

        That is Python's C3; a class that a wrong guess makes its own base is left out there.
        """
        return self._lineage(())

    def _lineage(self, below: tuple[ClassInfo, ...]) -> list[ClassInfo]:
        below = (*below, self)
        bases = [base.info for base in self.bases if isinstance(base, ClassValue)]
        if not bases:
            return [self]
        bases = [info for index, info in enumerate(bases) if info not in below and info not in bases[:index]]
        orders = [*(info._lineage(below) for info in bases), bases]
        lineage: list[ClassInfo] = [self]
        while orders := [order for order in orders if order]:
            heads = [order[0] for order in orders]
            free = (head for head in heads if all(head not in order[1:] for order in orders))
            info = next(free, heads[0])
            lineage.append(info)
            orders = [[one for one in order if one is not info] for order in orders]
        return lineage

    @cached_property
    def is_module(self) -> bool:
        """Is it an nn.Module, by the bases that it and its parents in the project name?"""
        for info in self.lineage:
            for base in info.bases:
                if isinstance(base, External) and is_module_class(base.name):
                    return True
        return False

    @cached_property
    def assigned_in(self) -> dict[str, list[FunctionInfo]]:
        """For each attribute of `self`, the methods that assign it."""
        places: dict[str, list[FunctionInfo]] = {}
        for info in self.lineage:
            for method in info.methods.values():
                for name in _self_attributes(method):
                    places.setdefault(name, []).append(method)
        return places

    @cached_property
    def has_fields(self) -> bool:
        """Is what its body binds only the default of what each instance is given: is it a dataclass, a model of settings?"""
        decorators = (part.func if isinstance(part, ast.Call) else part for part in self.node.decorator_list)
        if any((path_of(decorator) or "").rpartition(".")[2] in _FIELD_MAKERS for decorator in decorators):
            return True
        names = (base.name for base in self.bases if isinstance(base, External))
        return any(name.rpartition(".")[2] in _FIELD_BASES for name in names)

    def method(self, name: str) -> FunctionInfo | None:
        """The method that an instance has under that name."""
        for info in self.lineage:
            found = info.methods.get(name)
            if found is not None or name in info.body:  # which hides the methods of its bases
                return found
        return None


def _self_attributes(method: FunctionInfo) -> set[str]:
    arguments = method.node.args.posonlyargs + method.node.args.args
    if not method.is_plain_method or not arguments:
        return set()
    me = arguments[0].arg
    return {attribute for name, attribute in facts(method.node).stores if name == me}


@lru_cache(maxsize=16_384)
def is_module_class(name: str) -> bool:
    """Is the external class of that qualified name an nn.Module?"""
    package, _, last = name.rpartition(".")
    if package in ("torch.nn", "torch.nn.parallel"):
        return last[:1].isupper() and last not in (
            "Parameter",
            "Buffer",
            "UninitializedParameter",
            "UninitializedBuffer",
            "ParameterList",
        )
    return last in _MODULE_BASES
