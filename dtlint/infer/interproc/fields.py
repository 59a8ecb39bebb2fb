"""Classes that their fields make: dataclasses, classes under a `dataclass_transform` (PEP 681), named tuples, typed dicts."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments, Unfit
from dtlint.infer.domain.values import (
    TOP,
    Const,
    External,
    Function,
    Partial,
    ProjectClass,
    Ref,
    Tuple,
    Value,
    present,
)
from dtlint.infer.models.instance_dicts import ANYTHING

if TYPE_CHECKING:
    from dtlint.infer.context import Context

__all__ = ["Field", "fields_of", "fill", "made_dict", "made_tuple"]


@dataclass(frozen=True, slots=True)
class Field:
    """An annotated name in the body of a class.

    Attributes:
        name: the name.
        default: the expression behind it.
        keyword: is it given by name alone?
        passed_on: is it an `InitVar`, which `__post_init__` is given?
    """

    name: str
    default: ast.expr | None = None
    keyword: bool = False
    passed_on: bool = False


def fields_of(node: ast.ClassDef) -> list[Field]:
    """The annotated names of a class's body."""
    found: list[Field] = []
    keyword = False
    for one in node.body:
        if not isinstance(one, ast.AnnAssign) or not isinstance(one.target, ast.Name):
            continue
        annotation = ast.unparse(one.annotation)
        if annotation.rpartition(".")[2] == "KW_ONLY":
            keyword = True
        elif "ClassVar" not in annotation:
            found.append(Field(one.target.id, one.value, keyword, "InitVar" in annotation))
    return found


# -- making objects ------------------------------------------------------------------------------------------------------


def _options(ctx: Context, field: Field, owner: ProjectClass) -> dict[str, Value]:
    """What a field is given in the body of its class: `default`, `default_factory`, `init`, `kw_only`."""
    cell = ctx.store.read(owner.definition.namespace, field.name)
    known = None if cell is None else present(cell)
    if known is None:
        return {}
    if isinstance(known, Partial) and known.callee == External("dataclasses.field"):
        return dict(known.keywords)
    return {"default": known}


def _default(ctx: Context, options: dict[str, Value], site: ast.AST) -> Value | None:
    """The default of a field, made anew by its factory; None where it has none."""
    if "default" in options:
        return options["default"]
    factory = options.get("default_factory") or options.get("factory")
    return None if factory is None else ctx.semantics.call(ctx, factory, Arguments([], {}, True, site))


def _bound(
    ctx: Context, cls: ProjectClass, arguments: Arguments
) -> tuple[list[tuple[Field, Value]], dict[str, Value], int]:
    """The value of each field, the keywords that are none, and how many positional arguments are over."""
    given, keywords = list(arguments.args), dict(arguments.keywords)
    if _has_unseen_fields(cls):
        given = []  # those of its bases come first
    values: list[tuple[Field, Value]] = []
    for field, owner in cls.definition.all_fields:
        options = _options(ctx, field, owner)
        if options.get("init") == Const(False):
            default = _default(ctx, options, arguments.node)
            if default is not None:
                values.append((field, default))
            continue
        by_name = field.keyword or owner.definition.by_keyword or options.get("kw_only") == Const(True)
        if given and not by_name:
            value: Value | None = given.pop(0)
        elif field.name in keywords:
            value = keywords.pop(field.name)
        else:
            value = _default(ctx, options, arguments.node) if arguments.complete else None
        values.append((field, TOP if value is None else value))
    return values, keywords, len(given)


def fill(ctx: Context, made: Ref, cls: ProjectClass, arguments: Arguments) -> None:
    """What the `__init__` does that fields make: an attribute for each, then `__post_init__`.

    Keywords that are no fields make a dataclass raise. What a `dataclass_transform` makes may take them: then they are
    attributes, or what `__post_init__` is given.

    Raises:
        NeverReturns: it raises for these arguments.
    """
    values, over, beyond = _bound(ctx, cls, arguments)
    loose = _is_loose(cls)
    if _has_unseen_fields(cls):
        ctx.store.overwrite(made.address, ANYTHING, Const(True))
    elif (over or beyond) and arguments.complete and not loose:
        raise Unfit
    passed: list[Value] = []
    for field, value in values:
        if field.passed_on:
            passed.append(value)
        else:
            ctx.semantics.assign_attribute(ctx, made, field.name, value, arguments.node)
    after = ctx.modules.class_attribute(ctx, cls.definition.order, "__post_init__")
    takes_all = isinstance(after, Function) and after.definition.node.args.kwarg is not None
    if loose and not takes_all:
        for name, value in over.items():
            ctx.semantics.assign_attribute(ctx, made, name, value, arguments.node)
    if isinstance(after, Function):
        rest = over if loose and takes_all else {}
        complete = arguments.complete or not takes_all
        bound = Function(after.definition, after.frame, made)
        ctx.semantics.call(ctx, bound, Arguments(passed, rest, complete, arguments.node))


def _has_unseen_fields(cls: ProjectClass) -> bool:
    """May it have fields of a base that is not read as source: `class Arguments(TrainingArguments)`?"""
    return any(isinstance(one, External) and one.name.partition(".")[0] not in _WITHOUT for one in cls.definition.order)


_WITHOUT = frozenset({"abc", "builtins", "collections", "enum", "torch", "typing", "typing_extensions"})
"""The packages whose classes have no fields."""


def _is_loose(cls: ProjectClass) -> bool:
    """May its `__init__` take keywords that are no fields? What PEP 681 marks may, a dataclass may not."""
    order = [one.definition for one in cls.definition.order if isinstance(one, ProjectClass)]
    return any(one.transforms or one.transformed or one.loose for one in order)


def made_tuple(ctx: Context, cls: ProjectClass, arguments: Arguments) -> Value:
    """A named tuple."""
    values, over, beyond = _bound(ctx, cls, arguments)
    if (over or beyond) and arguments.complete:
        raise Unfit
    return Tuple(tuple(value for _, value in values), tuple(field.name for field, _ in values), cls)


def made_dict(ctx: Context, arguments: Arguments) -> Value:
    """A typed dict is a plain one."""
    return ctx.semantics.call(ctx, External("builtins.dict"), arguments)
