"""What a class says of its instances by its form: the fields of a dataclass, and what it is by inheritance."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import External, Value

if TYPE_CHECKING:
    from dtlint.infer.scopes import ClassInfo, FunctionNode

__all__ = ["Field", "alters_ops", "assigned_at_start", "fields_in", "has_generated_init", "is_dict", "made_elsewhere"]


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


def assigned_at_start(info: ClassInfo) -> frozenset[str]:
    """The attributes that an instance has of its own as soon as it is made, on every path."""
    found = set(fields_in(info)) if has_generated_init(info) else set()
    for parent in info.lineage:
        for name in _MAKING:
            if name in parent.methods:
                found |= _assigned_in(parent.methods[name].node)
    return frozenset(found)


_MAKING = ("__init__", "__post_init__")


@lru_cache(maxsize=1024)
def _assigned_in(maker: FunctionNode) -> frozenset[str]:
    arguments = maker.args
    me = next((argument.arg for argument in (*arguments.posonlyargs, *arguments.args)), None)
    found: set[str] = set()
    for statement in [] if isinstance(maker, ast.Lambda) else maker.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
                found.update(
                    part.attr
                    for part in parts
                    if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == me
                )
    return frozenset(found)


def made_elsewhere(info: ClassInfo) -> bool:
    """May a call of the class give an object that it gave before, or none of the class: has it `__new__`, or a metaclass
    of the program's own?"""
    if info.method("__new__") is not None:
        return True
    given = [word.value for parent in info.lineage for word in parent.node.keywords if word.arg == "metaclass"]
    return any((path_of(one) or "").rpartition(".")[2] not in _PLAIN_METACLASSES for one in given)


_PLAIN_METACLASSES = frozenset({"ABCMeta", "type", "EnumMeta", "EnumType"})


def alters_ops(info: ClassInfo) -> bool:
    """Is it a mode that may give something else than the op that it is told of gives? Most only count and log."""
    if not any(base in _MODES for parent in info.lineage for base in parent.bases):
        return False
    methods = [info.method(name) for name in ("__torch_function__", "__torch_dispatch__")]
    return any(not _gives_on(method.node) for method in methods if method is not None)


_MODES = (
    External("torch.overrides.TorchFunctionMode"),
    External("torch.utils._python_dispatch.TorchDispatchMode"),
)


_FILLING = frozenset({"update", "pop", "setdefault", "clear", "popitem"})


def _gives_on(node: FunctionNode) -> bool:
    """Does a mode's method give nothing but what the op that it is given gives?"""
    arguments = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    op = arguments[1] if len(arguments) > 1 else None

    def is_result(value: ast.expr | None) -> bool:
        return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == op

    def is_none_filled(target: str, value: ast.expr) -> bool:
        """`kwargs = kwargs or {}`, `kwargs = {} if kwargs is None else kwargs`."""
        filled = ("{0} or {{}}", "{{}} if {0} is None else {0}", "{0} if {0} is not None else {{}}", "{{}}")
        return target == arguments[-1] and ast.unparse(value) in [text.format(target) for text in filled]

    bound: dict[str, list[ast.expr]] = {}
    returned: list[ast.expr | None] = []
    for part in ast.walk(node):
        if isinstance(part, ast.Assign):
            for target in part.targets:
                if isinstance(target, ast.Subscript):  # it is given something else, perhaps
                    return False
                name = ast.unparse(target)
                if name in arguments and not is_none_filled(name, part.value):
                    return False
                bound.setdefault(ast.unparse(target), []).append(part.value)
        elif isinstance(part, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) or (
            isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _FILLING
        ):
            return False
        elif isinstance(part, ast.Return):
            returned.append(part.value)
    return all(
        is_result(value) or (isinstance(value, ast.Name) and value.id in bound and all(map(is_result, bound[value.id])))
        for value in returned
    )


def _is_class_variable(annotation: ast.expr) -> bool:
    named = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return (path_of(named) or "").rpartition(".")[2] == "ClassVar"
