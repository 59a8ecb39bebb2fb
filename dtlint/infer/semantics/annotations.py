"""What annotations say of parameters, results and fields: a tensor, of which dtype, a number, an object of a class, or a module,
which is no tensor. They are taken at their word."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.dtype import COMPLEX, FLOATING, Category
from dtlint.infer.context import Frame, NeverReturns
from dtlint.infer.domain.lattice import join, join_all
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    Array,
    Device,
    Dtype,
    External,
    Function,
    Instance,
    Number,
    ProjectClass,
    Tensor,
    Value,
)
from dtlint.infer.models.enumerations import is_enumeration
from dtlint.infer.models.kinds import bases_of
from dtlint.infer.models.plain_tensors import is_weight, plain
from dtlint.infer.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.context import Context
    from dtlint.infer.domain.values import Address, Symbol

__all__ = [
    "declared",
    "declared_in",
    "declared_member",
    "declared_result",
    "holds_no_tensor",
    "is_declared",
    "made_by_anybody",
]

_UNIONS = frozenset({"typing.Optional", "typing.Union", "typing_extensions.Optional", "typing_extensions.Union"})
_WRAPPERS = frozenset(
    {f"{package}.{name}" for package in ("typing", "typing_extensions") for name in ("Annotated", "Final")}
)

_TENSORS: dict[str, str | None] = {
    "torch.Tensor": None,
    "torch.nn.Parameter": None,
    "torch.FloatTensor": None,
    "torch.HalfTensor": "float16",
    "torch.BFloat16Tensor": "bfloat16",
    "torch.DoubleTensor": "float64",
    "torch.LongTensor": None,
    "torch.BoolTensor": "bool",
}
"""Classes of tensors. FloatTensor says no more than Tensor: programs write it for whatever is no index, half included. For
LongTensor see `long_parameters`."""

_JAXTYPING = re.compile(r"jaxtyping\.(Float16|BFloat16|Float32|Float64|Int8|Int16|Int32|Int64|UInt8|Bool)")
_JAXTYPING_KINDS = re.compile(r"jaxtyping\.(Float|Int|Integer|Real|Num|Shaped|Inexact|Complex\w*|UInt\w*|Key)")
_LONGEST = 200
"""Characters of an annotation that is written as a text."""

_OTHERS: dict[str, Value] = {
    "builtins.int": Number(Category.INTEGER),
    "builtins.float": join(Number(Category.INTEGER), Number(Category.FLOAT)),  # an int will do as well, by PEP 484
    "builtins.bool": Number(Category.BOOL),
    "builtins.str": NO_TENSOR,
    "builtins.NoneType": NONE,
    "numpy.ndarray": Array(scalar=False),
    "torch.dtype": Dtype(),
    "torch.device": Device(),
}


def declared(ctx: Context, annotation: ast.expr, symbol: Symbol | None = None) -> Value | None:
    """What an annotation says that a parameter is; None where it says nothing that is known here.

    Args:
        symbol: decides the dtype of a tensor, where the annotation does not.
    """
    if isinstance(annotation, ast.Constant):
        if annotation.value is None:
            return NONE
        parsed = _parsed(annotation.value) if isinstance(annotation.value, str) else None
        return None if parsed is None else declared(ctx, parsed, symbol)
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return _any_of(ctx, (annotation.left, annotation.right), symbol)
    if isinstance(annotation, ast.Subscript):
        return _subscripted(ctx, annotation, symbol)
    found = _class(ctx, annotation)
    if isinstance(found, ProjectClass):
        if found.definition.inherits("torch.nn.Module") is True:
            return NO_TENSOR
        return None if is_enumeration(found) else Instance(None, symbol, kind=found)
    if not isinstance(found, External):
        return None
    if found.name in _TENSORS:
        return _tensor(_TENSORS[found.name], symbol)
    return NO_TENSOR if "torch.nn.Module" in (found.name, *bases_of(found.name)) else _OTHERS.get(found.name)


_OF_PYTHON = frozenset(
    {"int", "float", "bool", "str", "bytes", "None", "list", "tuple", "set", "dict", "range", "slice", "type", "Path"}
    | {"List", "Tuple", "Set", "Dict", "Sequence", "Iterable", "Mapping", "Optional", "Union", "Callable", "Literal"}
    | {"typing", "collections", "abc", "t"}
)
"""The words in annotations of what holds no tensor."""


def holds_no_tensor(annotation: ast.expr | None) -> bool:
    """Is it written of Python's own things alone that hold others, as in `list[int]` and `Sequence[tuple[str, float]]`?"""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = _parsed(annotation.value)
    if annotation is None or not any(isinstance(one, ast.Subscript) for one in ast.walk(annotation)):
        return False
    words = {getattr(one, "id", getattr(one, "attr", None)) for one in ast.walk(annotation)} - {None}
    bare = {"list", "List", "tuple", "Tuple", "Sequence", "Iterable", "dict", "Dict", "Mapping", "Callable"}
    held = words - bare - {"Optional", "Union", "None", "typing", "collections", "abc", "t"}
    return words <= _OF_PYTHON and bool(held)


def declared_in(ctx: Context, module: Any, annotation: ast.expr, symbol: Symbol | None = None) -> Value | None:
    """What an annotation says that stands in a module, whichever runs."""
    if ctx.frame.module is module:
        return declared(ctx, annotation, symbol)
    around, ctx.frame = ctx.frame, Frame(ctx.modules.address_of(module), None, module)
    try:
        return declared(ctx, annotation, symbol)
    finally:
        ctx.frame = around


def declared_result(ctx: Context, definition: Any) -> Value | None:
    """What a function is declared to give; None where that is not known, or a decorator may change it.

    Args:
        definition: an `interproc.functions.FunctionDefinition`.
    """
    node = definition.node
    if not isinstance(node, ast.FunctionDef) or node.returns is None or definition.is_generator:
        return None
    if definition.decorators - _KEEPING:
        return None
    return declared_in(ctx, definition.module, node.returns)


_KEEPING = frozenset(
    {"property", "cached_property", "staticmethod", "classmethod", "abstractmethod", "override", "final", "cache"}
    | {"lru_cache", "no_grad", "inference_mode", "enable_grad"}
)
"""Decorators of functions that give what is declared."""


def declared_member(ctx: Context, value: Instance, name: str) -> Value | None:
    """An attribute of something that is known by its class alone: a field or a property as it is declared, or a method that is;
    None where that is not known."""
    for one in value.kind.definition.order:
        if not isinstance(one, ProjectClass):
            continue
        definition = one.definition
        node = definition.method(name)
        if node is not None:
            function = ctx.modules.function(definition.module, node, one)
            result = declared_result(ctx, function)
            if result is None or function.decorators & _PROPERTIES:
                return result
            return Function(function, None, value)
        annotation = definition.annotations.get(name)
        if annotation is not None:
            return declared_in(ctx, definition.module, annotation)
        if ctx.store.read(definition.namespace, name) is not None:
            return None
    return _buffer(ctx, value, name)


def made_by_anybody(ctx: Context, cls: ProjectClass) -> Address:
    """Where an object of a class is, as `__init__` leaves it whatever that is given; nothing is there of a class that is not
    read as part of a library."""
    return ctx.store.address(None, (cls.definition.node, "self"), cls)


def _buffer(ctx: Context, value: Instance, name: str) -> Value | None:
    """A weight that `__init__` makes and that no cast of the module reaches, as one of int64; None of others."""
    made = made_by_anybody(ctx, value.kind)
    held = None if made not in ctx.store.objects else ctx.store.read(made, name)
    if held is None or not is_weight(held):
        return None
    content = plain(ctx, held)
    dtypes = content.dtypes if isinstance(content, Tensor) else None
    return content if dtypes and not dtypes & (FLOATING | COMPLEX) else None


_PROPERTIES = frozenset({"property", "cached_property"})


def is_declared(annotation: ast.expr | None, name: str) -> bool:
    """Does an annotation name this class of tensors, LongTensor or BoolTensor, and no other one?"""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = _parsed(annotation.value)
    if annotation is None:
        return False
    parts = list(nodes([annotation]))
    named = {one.attr for one in parts if isinstance(one, ast.Attribute)}
    named |= {one.id for one in parts if isinstance(one, ast.Name)}
    return {one for one in named if one.endswith("Tensor")} == {name}


def _tensor(dtype: str | None, symbol: Symbol | None) -> Tensor:
    return Tensor(None, symbol) if dtype is None else Tensor(frozenset({dtype}))


def _subscripted(ctx: Context, annotation: ast.Subscript, symbol: Symbol | None) -> Value | None:
    """`Optional[Tensor]`, `Union[Tensor, None]`, `Float16[Tensor, "batch dim"]`."""
    name = _name(ctx, annotation.value)
    inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    if name is None or not inner:
        return None
    if name in _WRAPPERS:
        return declared(ctx, inner[0], symbol)
    if name in _UNIONS:
        found = _any_of(ctx, inner, symbol)
        return join(found, NONE) if found is not None and name.endswith("Optional") else found
    exact = _JAXTYPING.fullmatch(name)
    if exact is not None or _JAXTYPING_KINDS.fullmatch(name):
        of = declared(ctx, inner[0], symbol)
        if isinstance(of, Tensor):
            return _tensor(exact[1].lower() if exact is not None else None, symbol)
    return None


def _any_of(ctx: Context, alternatives: Sequence[ast.expr], symbol: Symbol | None) -> Value | None:
    found = [declared(ctx, one, symbol) for one in alternatives]
    known = [one for one in found if one is not None]
    return join_all(known) if len(known) == len(found) else None


def _name(ctx: Context, node: ast.expr) -> str | None:
    """The qualified name of a class that is not read as source."""
    found = _class(ctx, node)
    return found.name if isinstance(found, External) else None


def _class(ctx: Context, node: ast.expr) -> Value | None:
    """What an annotation names."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    recorder, ctx.recorder = ctx.recorder, None
    try:
        return ctx.semantics.evaluate(ctx, node)
    except NeverReturns:
        return None
    finally:
        ctx.recorder = recorder


@lru_cache(maxsize=512)
def _parsed(text: str) -> ast.expr | None:
    """An annotation that is written as a text."""
    if len(text) > _LONGEST:
        return None
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
