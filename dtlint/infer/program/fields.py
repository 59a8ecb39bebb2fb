"""What a class says of its instances by its form: the fields of a dataclass, and what it is by inheritance."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import External, Value

if TYPE_CHECKING:
    from dtlint.infer.scopes import ClassInfo

__all__ = ["Field", "fields_in", "has_generated_init", "is_dict"]


@dataclass(slots=True)
class Field(Value):
    """`dataclasses.field(default=..., default_factory=...)` in the body of a class."""

    default: Value
    made_by: Value | None = None
    name: str = ""


def has_generated_init(info: ClassInfo) -> bool:
    """Does a dataclass decorator write the class's `__init__`, and no class between write another?"""
    for parent in info.lineage:
        if "__init__" in parent.methods:
            return False
        for decorator in parent.node.decorator_list:
            name = path_of(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""
            if name.endswith("dataclass"):
                return True
    return False


def is_dict(info: ClassInfo) -> bool:
    """Is it a dict by inheritance?"""
    return any(base in _DICTS for parent in info.lineage for base in parent.bases)


_DICTS = (External("builtins.dict"), External("collections.OrderedDict"), External("collections.UserDict"))


def fields_in(info: ClassInfo) -> list[str]:
    """The fields of a dataclass, its parents' first."""
    fields = [
        statement.target.id
        for parent in reversed(info.lineage)
        for statement in parent.node.body
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and not _is_class_variable(statement.annotation)
    ]
    return list(dict.fromkeys(fields))


def _is_class_variable(annotation: ast.expr) -> bool:
    named = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return (path_of(named) or "").rpartition(".")[2] == "ClassVar"
