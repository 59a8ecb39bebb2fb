"""The imports of a file: how a thing is spelled in it, the import that a fix needs, the import that a fix orphans."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dtlint.diagnostic import Edit, Span

if TYPE_CHECKING:
    from dtlint.source.file import Source

__all__ = ["Imports", "remove_orphans"]

ImportNode = ast.Import | ast.ImportFrom


class Imports:
    """What the names of a file's top-level imports stand for."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source, self.tree = source, tree
        self.bound: dict[str, str] = {}
        self._statements = [node for node in tree.body if isinstance(node, ImportNode)]
        for node in self._statements:
            self.bound.update(_bindings(node))
        for name in _rebound(tree):
            self.bound.pop(name, None)

    def spelled(self, name: str, at: ast.AST) -> tuple[str, tuple[Edit, ...]]:
        """How to write a qualified name such as `torch.amp.autocast` at a place, and the edits that takes.

        The shortest spelling that the file's imports allow, else through an import of its package that is added.
        """
        hidden = _local_names(self.tree, at)
        spellings = [
            bound + name[len(meaning) :]
            for bound, meaning in self.bound.items()
            if (name == meaning or name.startswith(meaning + ".")) and bound not in hidden
        ]
        if spellings:
            return min(spellings, key=lambda spelling: (spelling.count("."), len(spelling))), ()
        package = name.partition(".")[0]
        return name, (self._added(f"import {package}", at),)

    def _added(self, statement: str, at: ast.AST) -> Edit:
        """Insert an import behind the last one that stands before the place, on a line of its own."""
        before = [node for node in self._statements if (node.end_lineno or 0) < at.lineno]  # type: ignore[attr-defined]
        opening = [node for node in self.tree.body[:1] if _is_docstring(node)]
        anchor: ast.stmt | None = before[-1] if before else opening[0] if opening else None
        if anchor is None:
            return Edit(Span(1, 0, 1, 0), statement + self.source.newline)
        line = anchor.end_lineno or anchor.lineno
        column = len(self.source.lines[line - 1])
        return Edit(Span(line, column, line, column), self.source.newline + statement)


def _bindings(node: ImportNode) -> Iterator[tuple[str, str]]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            root = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (root, root)
        elif alias.name != "*" and node.level == 0:
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _rebound(tree: ast.Module) -> set[str]:
    """Names that something other than an import binds at the top level, or by `global`."""
    names: set[str] = set()
    queue: list[ast.AST] = list(tree.body)
    while queue:
        node = queue.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        queue += ast.iter_child_nodes(node)
    names.update(name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)
    return names


def _local_names(tree: ast.Module, at: ast.AST) -> set[str]:
    """Names that the functions around a place bind for themselves."""
    names: set[str] = set()
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and _encloses(function, at):
            for node in ast.walk(function):
                if isinstance(node, ast.arg):
                    names.add(node.arg)
                elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                    names.add(node.id)
                elif isinstance(node, ImportNode):
                    names.update(bound for bound, _ in _bindings(node))
    return names


def _encloses(outer: ast.AST, inner: ast.AST) -> bool:
    start = (outer.lineno, outer.col_offset)  # type: ignore[attr-defined]
    end = (outer.end_lineno, outer.end_col_offset)  # type: ignore[attr-defined]
    return start <= (inner.lineno, inner.col_offset) < end  # type: ignore[attr-defined]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


# -- orphans ----------------------------------------------------------------------------------------------------------

_ONLY_FOR_LINTERS = re.compile(r"#\s*(noqa|type:|pylint:|pyright:|isort:|ruff:)")


def remove_orphans(source: Source, names: set[str]) -> list[Edit]:
    """Edits that take away the imports of `names` that nothing in the file uses any more.

    An import stays where others may use it (a package's `__init__`, `__all__`), where it is all that a block holds,
    and where it carries a comment that would be lost.
    """
    if source.path.endswith("__init__.py"):
        return []
    tree = ast.parse(source.text)
    orphans = names - set(_used(tree))
    edits: list[Edit] = []
    for body in _blocks(tree):
        for node in body:
            if isinstance(node, ImportNode):
                edit = _without(source, node, orphans, alone=len(body) == 1)
                if edit is not None:
                    edits.append(edit)
    return edits


def _used(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            yield from re.findall(r"\w+", node.value)  # `__all__`, and annotations in quotes


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def _without(source: Source, node: ImportNode, orphans: set[str], alone: bool) -> Edit | None:
    bound = list(_all_bindings(node))
    kept = [name for name in bound if name not in orphans]
    if len(kept) == len(bound):
        return None
    span = source.span(node)
    text = source.text[source.offset(span.line, span.column) : source.offset(span.end_line, span.end_column)]
    if kept:
        shorter = _fewer_names(text, {name for name in bound if name in orphans})
        return None if shorter is None else Edit(span, shorter)
    if alone or "#" in text:
        return None
    before, after = source.lines[span.line - 1][: span.column], source.lines[span.end_line - 1][span.end_column :]
    if before.strip() or (after.strip() and not _ONLY_FOR_LINTERS.match(after.strip())):
        return None
    if span.end_line < len(source.lines):
        return Edit(Span(span.line, 0, span.end_line + 1, 0), "")
    return Edit(Span(span.line, 0, span.end_line, len(source.lines[span.end_line - 1])), "")


def _all_bindings(node: ImportNode) -> Iterator[str]:
    for alias in node.names:
        yield alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)


def _fewer_names(text: str, gone: set[str]) -> str | None:
    """An import statement without some of its names; None if a comment would go with them."""
    import libcst as cst

    line = cst.parse_statement(text)
    assert isinstance(line, cst.SimpleStatementLine)
    (statement,) = line.body
    assert isinstance(statement, (cst.Import, cst.ImportFrom)) and not isinstance(statement.names, cst.ImportStar)
    names = [alias for alias in statement.names if _bound_by(alias) not in gone]
    last = statement.names[-1]
    if names[-1] is not last:
        names[-1] = names[-1].with_changes(comma=last.comma)
    shorter = cst.Module([]).code_for_node(statement.with_changes(names=names))
    return shorter if shorter.count("#") == text.count("#") else None


def _bound_by(alias: object) -> str:
    name = alias.evaluated_alias or alias.evaluated_name  # type: ignore[attr-defined]
    return str(name).partition(".")[0] if alias.evaluated_alias is None else str(name)  # type: ignore[attr-defined]
