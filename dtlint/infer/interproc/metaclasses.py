"""Metaclasses that are read as source: what they make of calling a class, and what runs when a class is defined."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments, NeverReturns
from dtlint.infer.domain.values import Const, Function, Mapping, ProjectClass, Tuple
from dtlint.infer.semantics.attributes import class_attribute

if TYPE_CHECKING:
    from dtlint.infer.context import Context
    from dtlint.infer.interproc.classes import ClassDefinition

__all__ = ["initialise", "method", "of"]


def of(ctx: Context, definition: ClassDefinition) -> ProjectClass | None:
    """The metaclass of a class: the one that its definition names, or the most derived one of its bases."""
    named = next((one.value for one in definition.node.keywords if one.arg == "metaclass"), None)
    given = None if named is None else ctx.semantics.evaluate(ctx, named)
    known = [one.definition.metaclass for one in definition.order[1:] if isinstance(one, ProjectClass)]
    found = given if isinstance(given, ProjectClass) else None
    for one in known:
        if one is not None and (found is None or found in one.definition.order):
            found = one
    return found


def method(ctx: Context, cls: ProjectClass, name: str) -> Function | None:
    """A method that the metaclass of a class defines, bound to the class."""
    metaclass = cls.definition.metaclass
    found = None if metaclass is None else class_attribute(ctx, metaclass.definition.order, name)
    return Function(found.definition, found.frame, cls) if isinstance(found, Function) else None


def initialise(ctx: Context, cls: ProjectClass) -> None:
    """Run the `__init__` of the metaclass for a class that was defined just now."""
    hook = method(ctx, cls, "__init__")
    if hook is None:
        return
    node = cls.definition.node
    attributes = ctx.allocate((node, "namespace"), "builtins.dict", Mapping((), None))
    given = [Const(node.name), Tuple(cls.definition.bases), attributes]
    keywords = {
        one.arg: ctx.semantics.evaluate(ctx, one.value) for one in node.keywords if one.arg and one.arg != "metaclass"
    }
    with contextlib.suppress(NeverReturns):
        ctx.semantics.call(ctx, hook, Arguments(given, keywords, True, node))
