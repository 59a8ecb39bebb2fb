"""Folders that a program adds to `sys.path` before it imports: `sys.path.insert(0, str(Path(__file__).parent.parent))`.

They are read off the source, as far as they are made of `__file__`, constants, and the functions of os.path and pathlib
that only put paths together. A relative one is taken from the program's own folder, whence it is mostly run.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.walk import SCOPES, nodes

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SearchPath", "search_path"]


@dataclass(slots=True)
class SearchPath:
    """The folders of the program's own that it imports from beside the one that it is in.

    Attributes:
        before: those that come before all others.
        behind: those that come behind all others.
    """

    before: list[Path] = field(default_factory=list)
    behind: list[Path] = field(default_factory=list)


def search_path(tree: ast.Module, program: Path) -> SearchPath:
    """What a program adds to `sys.path` at its top, in a branch or not."""
    found = SearchPath()
    if not any(isinstance(node, ast.Import) and _imports_sys(node) for node in nodes(tree.body)):
        return found
    paths = _Paths(program)
    for node in sorted(nodes(tree.body, SCOPES), key=_place):
        if isinstance(node, ast.Assign):
            paths.bind(node)
        elif isinstance(node, ast.Call):
            name, args = path_of(node.func), node.args
            first = name == "sys.path.insert" and len(args) == 2
            if first or (name == "sys.path.append" and len(args) == 1):
                folder = paths.folder(args[-1])
                if folder is not None:
                    found.before.insert(0, folder) if first else found.behind.append(folder)
    return found


def _imports_sys(node: ast.Import) -> bool:
    return any(alias.name == "sys" for alias in node.names)


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


class _Paths:
    """Evaluates expressions that are paths, as texts; what is not understood is None."""

    def __init__(self, program: Path) -> None:
        self.program = program
        self.names: dict[str, str | None] = {"__file__": str(program)}

    def bind(self, node: ast.Assign) -> None:
        """`ROOT = Path(__file__).parent`."""
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.names[target.id] = self.text(node.value)

    def folder(self, node: ast.expr) -> Path | None:
        """The folder that an expression names."""
        text = self.text(node)
        if not text or "\0" in text:
            return None
        return _without_dots(self.program.parent / text)

    def text(self, node: ast.expr) -> str | None:
        """The path that an expression is."""
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name):
                return self.names.get(name)
            case ast.BinOp(left=left, op=ast.Div() | ast.Add() as operator, right=right):
                parts = self.text(left), self.text(right)
                if parts[0] is None or parts[1] is None:
                    return None
                return str(PurePath(parts[0], parts[1])) if isinstance(operator, ast.Div) else parts[0] + parts[1]
            case ast.Attribute(value=base, attr="parent"):
                return self.above(base, 0)
            case ast.Attribute() if path_of(node) in ("os.pardir", "os.path.pardir"):
                return ".."
            case ast.Subscript(value=ast.Attribute(value=base, attr="parents"), slice=ast.Constant(value=int(count))):
                return self.above(base, count)
            case ast.Call():
                return self.called(node)
        return None

    def above(self, base: ast.expr, count: int) -> str | None:
        """`path.parents[count]`."""
        text = self.text(base)
        parents = [] if text is None else list(PurePath(text).parents)
        return str(parents[count]) if 0 <= count < len(parents) else None

    def called(self, node: ast.Call) -> str | None:
        """Functions of os.path, and methods of paths, by their last names."""
        name = path_of(node.func)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else name
        parts = [self.text(arg) for arg in node.args]
        known = [part for part in parts if part is not None]
        if node.keywords or len(known) < len(parts):
            return None
        if last in _SAME and isinstance(node.func, ast.Attribute) and not parts:  # `path.resolve()`
            return self.text(node.func.value)
        if last in _SAME and len(known) == 1:
            return known[0]
        if last == "dirname" and len(known) == 1:
            return str(PurePath(known[0]).parent)
        if last == "join" and known:
            return str(PurePath(*known))
        if last == "joinpath" and isinstance(node.func, ast.Attribute):
            base = self.text(node.func.value)
            return None if base is None else str(PurePath(base, *known))
        return str(PurePath(*known)) if last in ("Path", "PurePath") and known else None


def _without_dots(path: Path) -> Path:
    """The path without `..`, as os.path.normpath has it."""
    made = path
    if ".." in path.parts:
        made = type(path)(path.anchor)
        for part in path.parts[bool(path.anchor) :]:
            made = made.parent if part == ".." else made / part
    return made


_SAME = frozenset({"str", "fspath", "abspath", "realpath", "normpath", "resolve", "absolute", "as_posix"})
"""What gives the same path, written another way: the program's own is absolute."""
