"""What signatures promise: annotations that name a dtype, a number or a class, for arguments of which nothing else is known.

They are facts, for the function relies on them; but where a function asks itself what it was given, or where programs are
known not to keep the promise, nothing is promised.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.annotations import declared
from dtlint.infer.program.following import Following
from dtlint.infer.program_state import State
from dtlint.infer.values import NONE, UNKNOWN, Class, Either, External, Number, Tensor, Unknown, Value, join, options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.interproc.project import ModuleInfo, Project
    from dtlint.infer.scopes import ClassInfo, FunctionInfo

__all__ = ["Cache", "Declared", "DeclaredMethod", "Promises", "meeting"]

_INTEGER = Number(Category.INTEGER)
_REAL = Either((_INTEGER, Number(Category.FLOAT)))
"""What `float` promises: an int will do as well (PEP 484)."""

_FREE = re.compile(r"mask")
"""Tensors by whose name a dtype is promised that they do not have: masks are whole numbers, truths or floats to be added,
whatever their annotation says (transformers annotates all of them with FloatTensor or LongTensor)."""

_LONG = re.compile(r"\bLongTensor\b(?!.*Tensor)")
_INDEX = re.compile(r"(?:^|_)(?:ids?|idx|index|indices)$")
"""LongTensor is believed of what is called an index. Labels may be floats to regress on, whatever their annotation says."""

_NOTHING = re.compile(r"\b(?:None|Optional)\b")


@dataclass(slots=True)
class Declared(Value):
    """An instance of a class of the project, or of one that inherits from it: only what the class declares is known."""

    info: ClassInfo


@dataclass(slots=True)
class DeclaredMethod(Value):
    """A method of such an instance: a class that inherits may have another, which promises the same result."""

    info: FunctionInfo


@dataclass(slots=True)
class Cache(Value):
    """A cache of keys and values of transformers, where the file is read without the package that it is in."""

    @staticmethod
    def result(method: str) -> Value:
        """What a method gives: how many tokens it holds is an int by all its classes' annotations."""
        return _INTEGER if method == "get_seq_length" else UNKNOWN

    @staticmethod
    def is_made_by(name: str) -> bool:
        """Is it a class of these, by its qualified name?"""
        return name.endswith(("cache_utils.Cache", "cache_utils.DynamicCache"))


class Promises(Following):
    """An interpreter that takes signatures at their word."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.promises: dict[int, dict[str, Value]] = {}
        """What is promised of parameters, by the identity of a function's syntax, in this round."""

    def promised(self, info: FunctionInfo) -> dict[str, Value]:
        """What a function's annotations say of its parameters, by their names."""
        known = self.promises.get(id(info.node))
        if known is None:
            known = self.promises[id(info.node)] = {}  # whatever leads back here is promised nothing
            known.update(self.read_promises(info))
        return known

    def read_promises(self, info: FunctionInfo) -> Iterator[tuple[str, Value]]:
        arguments = info.node.args
        doubted: set[str] | None = None
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.annotation is None:
                continue
            said = self.said(info, argument.annotation)
            if isinstance(said, Tensor) and _is_index(argument):
                said = Tensor(frozenset({"int64"}))
            if isinstance(said, Tensor) and said.dtypes is not None:
                doubted = _doubted(info) if doubted is None else doubted
                if argument.arg in doubted or _FREE.search(argument.arg):
                    said = Tensor()
            if said is not None:
                optional = info.defaults.get(argument.arg) == NONE or _admits_none(argument.annotation)
                yield argument.arg, _or_none(said) if optional else said

    def said(self, info: FunctionInfo, annotation: ast.expr) -> Value | None:
        """What an annotation says, read where the function is defined; None for nothing that is of use."""
        if info.module is None:
            return None
        saved = (self.outer, self.flow.state, self.module)
        self.outer, self.module = info.names, info.module
        self.flow.state = State(casts=self.flow.state.casts)
        said = declared(annotation, self.quietly)
        if said is None:
            said = self.class_said(annotation)
        self.outer, self.flow.state, self.module = saved
        if isinstance(said, Number):
            return _INTEGER if said == _INTEGER else _REAL
        return said if isinstance(said, (Tensor, Declared, Cache)) else None

    def class_said(self, annotation: ast.expr) -> Value | None:
        """A class of the project that an annotation names, modules aside: `LlamaConfig`, `Cache | None`."""
        if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
            sides = [side for side in (annotation.left, annotation.right) if not _is_none(side)]
            return self.class_said(sides[0]) if len(sides) == 1 else None
        if isinstance(annotation, ast.Subscript):
            return self.class_said(annotation.slice) if _NOTHING.fullmatch(ast.unparse(annotation.value)) else None
        if not isinstance(annotation, (ast.Name, ast.Attribute)):
            return None
        named = self.quietly(annotation)
        if isinstance(named, External) and Cache.is_made_by(named.name):
            return Cache()
        return Declared(named.info) if isinstance(named, Class) and not named.info.is_module else None

    def kept_promise(self, info: FunctionInfo, result: Value) -> Value:
        """A result, by what the function promises where nothing else is known of it."""
        returns = None if isinstance(info.node, ast.Lambda) else info.node.returns
        if returns is None or not any(type(choice) is Unknown for choice in options(result)):
            return result
        said = self.said(info, returns)
        if said is None or isinstance(said, (Declared, Cache)):
            return result
        promised = _or_none(said) if _admits_none(returns) else said
        return reduce(join, [promised if type(choice) is Unknown else choice for choice in options(result)])

    def declared_member(self, base: Declared, name: str) -> Value:
        """An attribute of an instance of which only the class is known."""
        for parent in base.info.lineage:
            if name in parent.methods:
                return DeclaredMethod(parent.methods[name])
            for statement in parent.node.body:
                if isinstance(statement, ast.AnnAssign) and _names(statement.target, name):
                    return self.field_said(parent, statement.annotation)
        return UNKNOWN

    def field_promised(self, info: ClassInfo, name: str) -> Value | None:
        """What a class and its parents say of a field by its annotation; None for nothing that is of use."""
        for parent in info.lineage:
            for statement in parent.node.body:
                if isinstance(statement, ast.AnnAssign) and _names(statement.target, name):
                    said = self.field_said(parent, statement.annotation)
                    return None if said == UNKNOWN else said
        return None

    def field_said(self, owner: ClassInfo, annotation: ast.expr) -> Value:
        """What the annotation of a field says: numbers only, of which nobody asks more than that they are some."""
        method = next((method for method in owner.methods.values()), None)
        module = method.module if method is not None else self.module
        names = (module.names,) if module is not None else self.outer
        saved = (self.outer, self.flow.state)
        self.outer, self.flow.state = names, State(casts=self.flow.state.casts)
        said = declared(annotation, self.quietly)
        self.outer, self.flow.state = saved
        if not isinstance(said, Number):
            return UNKNOWN
        number = _INTEGER if said == _INTEGER else _REAL
        return _or_none(number) if _admits_none(annotation) else number


def meeting(value: Value, promise: Value | None) -> Value:
    """A value that meets a promise: what is not known of it is as promised."""
    if promise is None:
        return value
    if isinstance(value, Either):
        return reduce(join, [meeting(choice, promise) for choice in value.choices])
    if type(value) is Unknown:
        return promise
    if isinstance(value, Tensor) and value.dtypes is None:
        said = next((choice for choice in options(promise) if isinstance(choice, Tensor)), None)
        return value if said is None or said.dtypes is None else replace(value, dtypes=said.dtypes, symbol=None)
    return value


def _doubted(info: FunctionInfo) -> set[str]:
    """Parameters whose dtype a function compares, because it does not rely on what it promises."""
    found: set[str] = set()
    for node in ast.walk(info.node):
        if isinstance(node, ast.Compare):
            for part in (node.left, *node.comparators):
                if isinstance(part, ast.Attribute) and part.attr == "dtype" and isinstance(part.value, ast.Name):
                    found.add(part.value.id)
        elif isinstance(node, ast.Attribute) and node.attr in _ASKING and isinstance(node.value, ast.Name):
            found.add(node.value.id)
    return found


_ASKING = frozenset({"is_floating_point", "is_complex"})


def _is_index(argument: ast.arg) -> bool:
    """Is it annotated as a LongTensor, and an index by its name?"""
    return (
        argument.annotation is not None
        and _INDEX.search(argument.arg) is not None
        and _LONG.search(ast.unparse(argument.annotation)) is not None
    )


def _or_none(said: Value) -> Value:
    choices = said.choices if isinstance(said, Either) else (said,)
    return Either((*choices, NONE))


def _admits_none(annotation: ast.expr) -> bool:
    return _NOTHING.search(ast.unparse(annotation)) is not None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _names(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name
