"""What dtlint claims of each expression of a file: the dtypes that a tensor there can have."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.interproc.disk import Disk
from dtlint.infer.interproc.project import ModuleInfo, Project, tree_of
from dtlint.infer.program.decided import decided_in
from dtlint.infer.program.machine import Program
from dtlint.infer.program.remembering import Remembering
from dtlint.infer.program.told import Claim
from dtlint.infer.values import (
    UNKNOWN,
    Array,
    Constant,
    Dtypes,
    Either,
    Number,
    Tensor,
    Unknown,
    Value,
    join,
    options,
)
from dtlint.source.file import Source, shown_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dtlint.diagnostic import Span

__all__ = ["Reading", "claims", "read"]

_MANY = 3
"""More dtypes than this at one place say nothing to a person."""


class Reading:
    """What one reading of a program has shown of its expressions."""

    def __init__(self, path: Path, main: Source, recorder: _Recorder) -> None:
        self.path, self.main = path, main
        self.tree = recorder.main.tree
        self._disk = recorder.project.disk
        self._sources: dict[Path, Source] = {path: main}
        hidden = {id(node) for info in recorder.uncovered.values() for node in ast.walk(info.node)}
        self.tensors: dict[ast.expr, tuple[Path, Tensor]] = {
            node: (where.path, value)
            for node, (where, value) in (recorder.seen.items() if recorder.settled else ())
            if isinstance(value, Tensor) and where.path is not None and id(node) not in hidden
        }
        """Each expression that is a tensor, with its file. None of them where the reading did not come to rest."""
        self.perhaps = recorder.perhaps
        """Expressions that are a number or an array of NumPy, if they are no tensor: `n == 0`, where nothing is known of n."""
        self.broken_off = recorder.broken_off
        """Why reading it was given up, so that nothing is claimed; nothing where it was not."""
        self.starved = recorder.project.starved
        """Was a file not followed for want of memory? Another time it may be."""
        self.decided = decided_in(recorder.main.tree)
        """What decides the dtype of expressions of the main file, where its functions are read for any caller."""

    def knows(self, node: ast.expr) -> bool:
        """Are the dtypes of a tensor expression so few that they say something?"""
        if node not in self.tensors or node in self.perhaps:
            return False
        dtypes = self.tensors[node][1].dtypes
        return dtypes is not None and 0 < len(dtypes) <= _MANY

    def source(self, path: Path) -> Source:
        """The source of a file that was read."""
        known = self._sources.get(path)
        if known is None:
            known = self._sources[path] = Source.from_bytes(self._disk.read(path), shown_path(path))
        return known

    def file(self, node: ast.expr) -> Path:
        """The file of a tensor expression."""
        return self.tensors[node][0] if node in self.tensors else self.path

    def span(self, node: ast.expr) -> Span:
        """Where a tensor expression stands in its file."""
        return self.source(self.file(node)).span(node)

    def claims(self) -> dict[Path, list[Claim]]:
        """The claims for each file, in order of place."""
        found: dict[Path, list[Claim]] = {path: [] for path in self._sources}
        by_place: dict[tuple[Path, Span], Dtypes] = {}  # `x += y` reads x in a node of its own, each time anew
        for node, (path, value) in self.tensors.items():
            place = path, self.span(node)
            known = by_place.get(place, frozenset())
            by_place[place] = None if known is None or value.dtypes is None else known | value.dtypes
        decided = {self.main.span(node): known.text for node, known in self.decided.items()}
        for span in decided:
            by_place.setdefault((self.path, span), None)
        for (path, span), dtypes in by_place.items():
            symbolic = decided.get(span) if path == self.path and (dtypes is None or len(dtypes) > 1) else None
            found.setdefault(path, []).append(Claim(span, dtypes, symbolic))
        return {file: sorted(given, key=lambda claim: claim.span) for file, given in found.items()}


def read(path: Path, roots: Sequence[Path], disk: Disk | None = None) -> Reading:
    """Read a program, with every file that it imports from.

    Args:
        path: a program, or a module of a library.
        roots: folders in which imported modules are looked for.
        disk: what the files are asked of, and then knows which questions there were.

    Raises:
        OSError, SyntaxError, ValueError, RecursionError: the file cannot be read, or does not parse.
    """
    disk = Disk() if disk is None else disk
    source = Source.from_bytes(disk.read(path), shown_path(path))
    main = ModuleInfo("__main__", path, tree_of(source), "")
    recorder = _Recorder(Project(roots, main, disk), main)
    recorder.run()
    return Reading(path, source, recorder)


def claims(path: Path, roots: Sequence[Path]) -> dict[Path, list[Claim]]:
    """The claims for a file and for every file that it imports from; see `read`."""
    return read(path, roots).claims()


class _Recorder(Remembering, Program):
    """An interpreter that remembers what each expression was, over all the times that it was evaluated."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.seen: dict[ast.expr, tuple[ModuleInfo, Value]] = {}
        self.perhaps: set[ast.expr] = set()

    def begin_round(self) -> None:
        self.seen.clear()
        self.perhaps.clear()

    def remember(self, node: ast.expr, value: Value) -> None:
        known = self.seen.get(node)
        if type(value) is Either and any(isinstance(choice, (Array, Number)) for choice in value.choices):
            self.perhaps.add(node)
        self.seen[node] = (self.module, _seen(value) if known is None else _both(known[1], _seen(value)))


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
