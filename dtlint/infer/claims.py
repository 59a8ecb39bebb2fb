"""What dtlint claims of each expression of a file: the dtypes that a tensor there can have."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.program import Program
from dtlint.infer.project import ModuleInfo, Project
from dtlint.infer.values import UNKNOWN, Constant, Dtypes, Tensor, Unknown, Value, join, options
from dtlint.source.file import Source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dtlint.diagnostic import Span

__all__ = ["Claim", "claims"]

_KINDS = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Subscript, ast.Name, ast.IfExp)
"""The expressions that are spoken of, where they are read and not assigned to."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The dtypes that the tensor at `span` can have; None for a tensor of which nothing is known."""

    span: Span
    dtypes: Dtypes


def claims(path: Path, roots: Sequence[Path]) -> dict[Path, list[Claim]]:
    """The claims for a file and for every file that it imports from, by file, in order of place.

    Args:
        path: a program, or a module of a library.
        roots: folders in which imported modules are looked for.

    Raises:
        OSError, SyntaxError, ValueError, RecursionError: the file cannot be read, or does not parse.
    """
    source = Source.read(path)
    main = ModuleInfo("__main__", path, ast.parse(source.text), "")
    recorder = _Recorder(Project(roots, main), main)
    recorder.run()
    uncovered = {id(node) for info in recorder.uncovered.values() for node in ast.walk(info.node)}
    sources = {path: source}
    found: dict[Path, list[Claim]] = {path: []}
    if not recorder.settled:
        return found
    for node, (where, value) in recorder.seen.items():
        if isinstance(value, Tensor) and where.path is not None and id(node) not in uncovered:
            if where.path not in sources:
                sources[where.path] = Source.read(where.path)
            found.setdefault(where.path, []).append(Claim(sources[where.path].span(node), value.dtypes))
    return {file: sorted(given, key=lambda claim: claim.span) for file, given in found.items()}


class _Recorder(Program):
    """An interpreter that remembers what each expression was, over all the times that it was evaluated."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.seen: dict[ast.expr, tuple[ModuleInfo, Value]] = {}

    def begin_round(self) -> None:
        self.seen.clear()

    def value(self, node: ast.expr) -> Value:
        value = super().value(node)
        if not self.muted and isinstance(node, _KINDS):
            known = self.seen.get(node)
            self.seen[node] = (self.module, _seen(value) if known is None else _both(known[1], _seen(value)))
        return value


_NO_TENSOR = Constant(None)
"""What was seen of an expression that was no tensor: nothing is claimed, and nothing contradicted."""


def _seen(value: Value) -> Value:
    """A tensor, Unknown if it may be one, or no tensor."""
    result: Value = _NO_TENSOR
    for choice in options(value):
        result = _both(result, choice if isinstance(choice, (Tensor, Unknown)) else _NO_TENSOR)
    return result


def _both(known: Value, value: Value) -> Value:
    if isinstance(known, Unknown) or isinstance(value, Unknown):
        return UNKNOWN
    if known is _NO_TENSOR:
        return value
    return known if value is _NO_TENSOR else join(known, value)
