"""Classes that are read as source: their bases, the order in which attributes are looked up, their fields."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dtlint.infer.domain.values import Address, External, ProjectClass, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.interproc.fields import Field

__all__ = ["MODULE", "ClassDefinition", "linearised"]

MODULE = "torch.nn.Module"


@dataclass(eq=False)
class ClassDefinition:
    """A class, by its syntax.

    Attributes:
        node: its definition.
        module: the module that holds it.
        namespace: its attributes, in the store.
        bases: its bases, as `ProjectClass` or `External`; anything else is not followed.
        order: the classes in which attributes are looked up, itself first.
        opaque: is there a base of which nothing is known?
        made: is it a dataclass or the like, with an `__init__` that its fields decide?
        fields: the annotated names of its body.
        by_keyword: are its fields given by name alone?
        loose: is it made by a decorator that may let it take other keywords, too?
        metaclass: the class read as source that makes it, where it is not `type` or one from elsewhere.
        transforms: is it decorated with `dataclass_transform`, so that its subclasses are like dataclasses (PEP 681)?
    """

    node: ast.ClassDef
    module: Any
    namespace: Address
    bases: tuple[Value, ...] = ()
    order: tuple[Value, ...] = ()
    opaque: bool = False
    made: bool = False
    transforms: bool = False
    fields: list[Field] = field(default_factory=list)
    by_keyword: bool = False
    loose: bool = False
    metaclass: ProjectClass | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.node.name

    @property
    def transformed(self) -> bool:
        """Is it like a dataclass because a base says so of its subclasses? Its body alone can give it an `__init__` then."""
        behind = (one.definition for one in self.order[1:] if isinstance(one, ProjectClass))
        return any(one.transforms for one in behind) and self.method("__init__") is None

    def method(self, name: str) -> ast.FunctionDef | None:
        """The method of that name in its body."""
        return self._methods.get(name)

    @cached_property
    def _methods(self) -> dict[str, ast.FunctionDef]:
        return {one.name: one for one in self.node.body if isinstance(one, ast.FunctionDef)}

    @cached_property
    def annotations(self) -> dict[str, ast.expr]:
        """The annotations of the names of its body."""
        return {
            one.target.id: one.annotation
            for one in self.node.body
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        }

    @property
    def all_fields(self) -> list[tuple[Field, ProjectClass]]:
        """The fields of it and of its bases, in order, with the class that has each last."""
        found: dict[str, tuple[Field, ProjectClass]] = {}
        for one in reversed(self.order):
            if isinstance(one, ProjectClass):
                found.update({field.name: (field, one) for field in one.definition.fields})
        return list(found.values())

    def inherits(self, name: str) -> bool | None:
        """Is it a subclass of what has that qualified name? None where a base is not known."""
        for one in self.order:
            if isinstance(one, External) and (one.name == name or name in ancestors(one.name)):
                return True
        return None if self.opaque else False


_ANCESTORS = {
    "torch.nn.": ("torch.nn.Module",),
    "torch.optim.lr_scheduler.": ("torch.optim.lr_scheduler.LRScheduler",),
    "torch.optim.": ("torch.optim.Optimizer",),
    "pytorch_lightning.LightningModule": ("torch.nn.Module",),
    "lightning.LightningModule": ("torch.nn.Module",),
    "lightning.pytorch.LightningModule": ("torch.nn.Module",),
    "torch.autograd.Function": (),
    "collections.OrderedDict": ("builtins.dict",),
    "collections.defaultdict": ("builtins.dict",),
    "collections.UserDict": ("builtins.dict",),
}
"""Base classes of what is not read as source, by the beginning of its name."""


def ancestors(name: str) -> tuple[str, ...]:
    """The known base classes of what is not read as source."""
    if name.startswith("torch.nn.functional") or name in ("torch.nn.Parameter", "torch.nn.Buffer"):
        return ("torch.Tensor",)
    for start, found in _ANCESTORS.items():
        if name.startswith(start):
            return found
    return ()


def linearised(itself: ProjectClass, bases: Sequence[Value]) -> tuple[Value, ...]:
    """Python's method resolution order (C3); where there is none, depth first."""
    known = [base for base in bases if isinstance(base, (ProjectClass, External))]
    orders: list[list[Value]] = [
        list(base.definition.order) if isinstance(base, ProjectClass) else [base] for base in known
    ]
    waiting: list[list[Value]] = [*orders, list(known)]
    order: list[Value] = [itself]
    while any(waiting):
        for sequence in waiting:
            if sequence and not any(sequence[0] in other[1:] for other in waiting):
                head = sequence[0]
                break
        else:
            head = next(sequence[0] for sequence in waiting if sequence)
        order.append(head)
        waiting = [[one for one in sequence if one != head] for sequence in waiting]
    return tuple(order)
