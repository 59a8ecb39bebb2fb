"""What one reading of a program has shown of its tensor expressions, and what is claimed of each."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.claims.account import Claim
from dtlint.infer.claims.words import Scopes, in_words
from dtlint.infer.domain.values import Tensor, Unknown
from dtlint.infer.interproc import reading
from dtlint.infer.interproc.deep_stack import on_deep_stack
from dtlint.infer.interproc.disk import Disk
from dtlint.source.file import Source, shown_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dtlint.diagnostic import Span
    from dtlint.dtypes.assumption import Assumption
    from dtlint.infer.domain.values import Dtypes, Symbol, Value

__all__ = ["Reading", "claims", "read"]

_MANY = 3
"""More dtypes than this at one place say nothing to a person."""


class Reading:
    """A program that was read, and its tensor expressions.

    Attributes:
        path, main, tree: the main file, its source and its syntax.
        tensors: each expression that is a tensor, or is one if it is of a known dtype, with its file.
        symbolic: in words, what decides the dtype of expressions of the main file.
        broken_off: what was not followed to its end, in a sentence; empty where everything was.
    """

    def __init__(self, program: reading.Program, path: Path, disk: Disk) -> None:
        self.path, self.main, self.tree = path, program.source, program.main.tree
        self.facts = program.facts
        self.broken_off = program.broken_off
        self.starved = program.starved
        self._disk = disk
        self._sources: dict[Path, Source] = {path: program.source}
        self._symbols: dict[ast.expr, Symbol] = {}
        self.tensors: dict[ast.expr, tuple[Path, Dtypes]] = {}
        self.symbolic: dict[ast.expr, str] = {}
        scopes = Scopes(self.tree)
        for node, module, value in program.facts.tensors():
            file: Path | None = getattr(module, "path", None)
            words = self._words(scopes, node, value) if file == path else None
            if words is not None:
                self.symbolic[node] = words
            if file is not None and (words is not None or _is_claimed(value)):
                self.tensors[node] = file, _dtypes(value)

    def _words(self, scopes: Scopes, node: ast.expr, value: Value) -> str | None:
        function = scopes.around(node)
        if function is None or not isinstance(value, (Tensor, Unknown)) or value.symbol is None or value.dtypes:
            return None
        if isinstance(value, Unknown) and isinstance(node, (ast.Name, ast.Attribute)):
            return None  # it may be anything, and nothing has been done with it
        self._symbols[node] = value.symbol
        return in_words(value.symbol, function)

    def knows(self, node: ast.expr) -> bool:
        """Are the dtypes of a tensor expression so few that they say something?"""
        dtypes = self.tensors[node][1] if node in self.tensors else None
        return dtypes is not None and 0 < len(dtypes) <= _MANY

    def symbol(self, node: ast.expr) -> Symbol | None:
        """What decides the dtype of an expression of which `symbolic` tells."""
        return self._symbols.get(node) if node in self.symbolic else None

    def module_of(self, node: ast.expr) -> ast.Module | None:
        """The syntax of the file that holds an expression."""
        tree: ast.Module | None = getattr(self.facts.modules.get(node), "tree", None)
        return tree

    def source(self, path: Path) -> Source:
        """The source of a file that was read."""
        known = self._sources.get(path)
        if known is None:
            known = self._sources[path] = Source.from_bytes(self._disk.read(path), shown_path(path))
        return known

    def file(self, node: ast.expr) -> Path:
        """The file of a tensor expression."""
        return self.tensors[node][0]

    def span(self, node: ast.expr) -> Span:
        """Where a tensor expression stands in its file."""
        return self.source(self.file(node)).span(node)

    def claims(self) -> dict[Path, list[Claim]]:
        """The claims for each file, in order of place."""
        by_place: dict[tuple[Path, Span], Dtypes] = {}  # `x += y` reads x in a node of its own
        for node, (path, dtypes) in self.tensors.items():
            place = path, self.span(node)
            known = by_place.get(place, frozenset())
            by_place[place] = None if known is None or dtypes is None else known | dtypes
        symbolic = {self.span(node): words for node, words in self.symbolic.items()}
        found: dict[Path, list[Claim]] = {path: [] for path in self._sources}
        for (path, span), dtypes in by_place.items():
            words = symbolic.get(span) if path == self.path and dtypes is None else None
            found.setdefault(path, []).append(Claim(span, dtypes, words))
        return {file: sorted(given, key=lambda claim: claim.span) for file, given in found.items()}


def _is_claimed(value: Value) -> bool:
    """Is it a tensor, or one of known dtypes if it is one?"""
    return isinstance(value, Tensor) or (isinstance(value, Unknown) and bool(value.dtypes))


def _dtypes(value: Value) -> Dtypes:
    return value.dtypes if isinstance(value, (Tensor, Unknown)) else None


def read(path: Path, roots: Sequence[Path], disk: Disk | None = None, assumption: Assumption | None = None) -> Reading:
    """Read a program, with every file that it imports from.

    Args:
        path: a program, or a module of a library.
        roots: folders in which imported modules are looked for.
        disk: what the files are asked of, and then knows which questions there were.
        assumption: what the functions of the file are given, in the place of symbols.

    Raises:
        OSError, SyntaxError, ValueError, RecursionError: the file cannot be read, or does not parse.
    """
    asked = Disk() if disk is None else disk
    return on_deep_stack(lambda: Reading(reading.read(path, roots, asked, assumption), path, asked))


def claims(path: Path, roots: Sequence[Path], assumption: Assumption | None = None) -> dict[Path, list[Claim]]:
    """The claims for a file and for every file that it imports from; see `read`."""
    return read(path, roots, assumption=assumption).claims()
