"""Dtype signatures: what a function does to dtypes, whoever calls it.

`rms_norm(x: T, weight: U) -> promote(T, U)`: each parameter that may be a tensor has a variable for its dtype, a weight goes by
its name, `self.fc.weight`, and the result is made of these. `?` stands for what is not known.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtlint.infer.claims.overflows import Overflow, Overflows
from dtlint.infer.claims.result_shapes import Wording
from dtlint.infer.domain.values import Ref, Tensor, Unknown, choices
from dtlint.infer.interproc import reading
from dtlint.infer.interproc.deep_stack import on_deep_stack
from dtlint.infer.interproc.signatures import parameter_key
from dtlint.source.definitions import is_public

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from dtlint.infer.domain.values import Value
    from dtlint.infer.interproc.disk import Disk
    from dtlint.infer.interproc.functions import FunctionDefinition
    from dtlint.infer.interproc.summaries import Summary
    from dtlint.source.file import Source

__all__ = ["DtypeSignature", "Parameter", "Signatures", "signatures"]

_LONGEST = 12
"""Characters of a default."""
_VARIABLES = ("T", "U", "V", "W", "X", "Y", "Z")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    Attributes:
        name: with its stars, `*args`.
        dtype: what decides its dtype, empty for what is no tensor, or may be none.
        default: as it is written; None where there is none.
    """

    name: str
    dtype: str = ""
    default: str | None = None

    def __str__(self) -> str:
        if self.default is None:
            return f"{self.name}: {self.dtype}" if self.dtype else self.name
        return f"{self.name}: {self.dtype} = {self.default}" if self.dtype else f"{self.name}={self.default}"


@dataclass(frozen=True, slots=True)
class DtypeSignature:
    """What a function does to dtypes.

    Attributes:
        name: `rms_norm`, `Block.forward`.
        node: its definition.
        parameters: all of them, the object of a method aside.
        result: in terms of the parameters' dtypes; None where the function never returns.
        holds: under which conditions, in words; empty for all calls.
        overflows: where a result leaves float16, though the operands are in it.
    """

    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef
    parameters: tuple[Parameter, ...]
    result: str | None
    holds: tuple[str, ...] = ()
    overflows: tuple[Overflow, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))}) -> {self.result or 'never returns'}"


@dataclass(frozen=True, slots=True)
class Signatures:
    """The signatures of a file.

    Attributes:
        found: in order of place.
        broken_off: what was not followed to its end, in a sentence.
        starved: was a file not followed for want of memory? Another time it may be.
    """

    source: Source
    tree: ast.Module
    found: tuple[DtypeSignature, ...]
    broken_off: str = ""
    starved: bool = False


def signatures(path: Path, roots: Sequence[Path], disk: Disk) -> Signatures:
    """The signatures of the public functions of a file, and of the `forward` of its public classes.

    Raises:
        OSError, SyntaxError, ValueError, RecursionError: the file cannot be read, or does not parse.
    """
    return on_deep_stack(lambda: _read(path, roots, disk))


def _read(path: Path, roots: Sequence[Path], disk: Disk) -> Signatures:
    overflows = Overflows()
    library = reading.read_library(path, roots, disk, overflows)
    found = [
        _signature(definition, bound, summary, overflows)
        for definition, receiver, bound, summary in library.readings
        if _is_told(definition, receiver)
    ]
    ordered = sorted(found, key=lambda one: one.node.lineno)
    return Signatures(library.source, library.tree, tuple(ordered), library.broken_off, library.starved)


def _is_told(definition: FunctionDefinition, receiver: Value | None) -> bool:
    """Is it public, and, if it is a method, the `forward` of the class itself?"""
    if isinstance(definition.node, ast.Lambda) or not is_public(definition.node):
        return False
    if any("overload" in one for one in definition.decorators):
        return False
    if definition.owner is None:
        return definition.node in definition.module.tree.body
    return (
        definition.name == "forward" and is_public(definition.owner.definition.node) and _is_own(definition, receiver)
    )


def _is_own(definition: FunctionDefinition, receiver: Value | None) -> bool:
    return isinstance(receiver, Ref) and receiver.address.kind == definition.owner


@dataclass(slots=True)
class _Names:
    """The variables of a function's parameters, given in order of place."""

    of: dict[str, str] = field(default_factory=dict)

    def add(self, key: str) -> None:
        if key not in self.of:
            self.of[key] = _VARIABLES[len(self.of)] if len(self.of) < len(_VARIABLES) else f"T{len(self.of)}"


def _signature(
    definition: FunctionDefinition, bound: Mapping[str, Value], summary: Summary, overflows: Overflows
) -> DtypeSignature:
    node = definition.node
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    given = list(_parameters(node))
    if definition.owner is not None and "staticmethod" not in definition.decorators:
        given = given[1:]
    names = _Names()
    wording = Wording(names.of, summary.changes)
    decides = wording.decides(summary.result)
    for _, one, _ in given:
        value = bound.get(one.arg)
        key = _key(one, value)
        if value is not None and _is_variable(value, key, decides):
            names.add(key)
    result = None if summary.result is None else wording.of(summary.result)
    if definition.is_generator:
        result = "?"
    parameters = [
        Parameter(stars + one.arg, _dtype(bound.get(one.arg), names.of.get(_key(one, bound.get(one.arg)))), default)
        for stars, one, default in given
    ]
    name = node.name if definition.owner is None else f"{definition.owner.name.rpartition('.')[2]}.{node.name}"
    holds = tuple(wording.conditions())
    return DtypeSignature(name, node, tuple(parameters), result, holds, tuple(overflows.of(node)))


def _key(one: ast.arg, value: Value | None) -> str:
    """The key of what decides a parameter's dtype: by a contract that may be another parameter."""
    for choice in () if value is None else choices(value):
        if isinstance(choice, (Tensor, Unknown)) and choice.symbol is not None and len(choice.symbol.of) == 1:
            return next(iter(choice.symbol.of)).key
    return parameter_key(one)


def _is_variable(value: Value, key: str, decides: frozenset[str]) -> bool:
    """Is it a tensor of whatever dtype, or does the result rest on what it is?"""
    for one in choices(value):
        if isinstance(one, Tensor) and one.dtypes is None:
            return True
        if isinstance(one, Unknown) and one.symbol is not None and key in decides:
            return True
    return False


def _dtype(value: Value | None, variable: str | None) -> str:
    if variable is not None:
        return variable
    if value is None:
        return ""
    dtypes: set[str] = set()
    for one in choices(value):
        if isinstance(one, Tensor) and one.dtypes is not None:
            dtypes |= one.dtypes
    return " | ".join(sorted(dtypes))


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.arg, str | None]]:
    """Each parameter with the stars before it and its default."""
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(args.defaults)), *args.defaults]
    for one, default in zip(plain, defaults, strict=True):
        yield "", one, _written(default)
    if args.vararg is not None:
        yield "*", args.vararg, None
    for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield "", one, _written(default)
    if args.kwarg is not None:
        yield "**", args.kwarg, None


def _written(default: ast.expr | None) -> str | None:
    if default is None:
        return None
    text = ast.unparse(default)
    return text if len(text) <= _LONGEST else "..."
