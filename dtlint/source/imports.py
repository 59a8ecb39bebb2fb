"""The imports of a file: how a thing is spelled in it, the import that a fix needs, the import that a fix orphans."""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import TYPE_CHECKING

from dtlint.diagnostic import Edit, Span
from dtlint.source.definite import is_bound
from dtlint.source.enclosing import Enclosing, FunctionNode, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.source.file import Source

__all__ = ["Imports", "NoEdit", "remove_orphans"]

ImportNode = ast.Import | ast.ImportFrom


class NoEdit(LookupError):
    """No edit does what a fix wants here without a loss, so there is no fix. The message says why."""


class Imports:
    """What the names that a file imports stand for, place by place."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source, self.tree = source, tree
        self._statements = [node for node in tree.body if isinstance(node, ImportNode)]
        self._own: dict[Scope, set[str]] = {}
        """What each scope binds, once somebody has asked."""
        self._locals: dict[FunctionNode, _Locals] = {}

    @cached_property
    def _names(self) -> tuple[dict[str, tuple[str, int]], set[str]]:
        """What `bound` tells, and the names that something else binds as well. Imports in a `try` or an `if` of the module
        count: whoever uses such a name takes care that it is there."""
        taken = _rebound(self.tree)
        bound: dict[str, tuple[str, int]] = {}
        for node in (*self._statements, *_optional_imports(self.tree)):
            for name, meaning in _bindings(node):
                if bound.setdefault(name, (meaning, node.lineno))[0] != meaning:
                    taken.add(name)
        for name in taken:
            bound.pop(name, None)
        return bound, taken

    @property
    def bound(self) -> dict[str, tuple[str, int]]:
        """Names that imports of the module bind to one thing, and nothing else binds: the meaning, and the line."""
        return self._names[0]

    @property
    def _taken(self) -> set[str]:
        """Names of the module that something other than one import binds."""
        return self._names[1]

    @cached_property
    def _enclosing(self) -> Enclosing:
        return Enclosing(self.tree)

    @cached_property
    def _decorated(self) -> set[str]:
        """The methods and functions that carry a decorator, which may make properties of them."""
        return {node.name for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef) and node.decorator_list}

    def spelled(self, name: str, at: ast.AST) -> tuple[str, tuple[Edit, ...]]:
        """How to write a qualified name such as `torch.amp.autocast` at a place, and the edits that takes.

        The shortest spelling that the file's imports allow, else through an import of its package that is added.

        Raises:
            NoEdit: the name of the package means something else there.
        """
        functions = [node for node in self._enclosing.of(at) if isinstance(node, FunctionNode)]
        hidden, local = self._local_names(functions, at)
        line: int = at.lineno  # type: ignore[attr-defined]
        known = {
            bound: meaning
            for bound, (meaning, imported) in self.bound.items()
            if bound not in hidden and (functions or imported < line)
        } | local
        spellings = [
            bound + name[len(meaning) :]
            for bound, meaning in known.items()
            if name == meaning or name.startswith(meaning + ".")
        ]
        if spellings:
            return min(spellings, key=lambda spelling: (spelling.count("."), len(spelling))), ()
        package = name.partition(".")[0]
        if package in hidden | self._taken or package in known:
            raise NoEdit(f"the name {package} means something else here")
        return name, (self._added(package, at, functions),)

    def binds(self, name: str, at: ast.AST) -> bool:
        """Does the scope of a place bind the name itself, or declare it global or nonlocal?"""
        scopes = self._enclosing.of(at)
        if not scopes:
            return True
        if scopes[-1] not in self._own:
            self._own[scopes[-1]] = _bound_in(scopes[-1])
        return name in self._own[scopes[-1]]

    def is_bound(self, name: str, at: ast.expr | ast.stmt) -> bool:
        """Has a name a value for certain when the program comes to a place? What the scope does not bind itself comes from
        an outer one, and is taken to be there."""
        scopes = self._enclosing.of(at)
        if scopes and not self.binds(name, at):
            return True
        return is_bound(name, at, scopes[-1] if scopes else self.tree)

    def defines_property(self, name: str) -> bool:
        """Does a class of the file compute the attribute, so that it may refuse to be assigned?"""
        return name in self._decorated

    def _local_names(self, functions: list[FunctionNode], at: ast.AST) -> tuple[set[str], dict[str, str]]:
        """Names that the functions around a place bind for themselves; and of those the ones that are nothing but an
        import which has run when the place is reached, with their meaning."""
        line: int = at.lineno  # type: ignore[attr-defined]
        inner = [self._locals_of(function) for function in functions]
        names = {name for one in inner for name in one.names}
        imported = {
            bound: meaning
            for one in inner
            for node in one.statements
            if node.lineno < line
            for bound, meaning in _bindings(node)
        }
        known = {name: meaning for name, meaning in imported.items() if name not in names}
        return names.union(*(one.imported for one in inner)), known

    def _locals_of(self, function: FunctionNode) -> _Locals:
        if function not in self._locals:
            self._locals[function] = _Locals(function)
        return self._locals[function]

    def _added(self, package: str, at: ast.AST, functions: list[FunctionNode]) -> Edit:
        """Insert `import package` on a line of its own.

        Before the first import from that package, in the same block: an import that is optional, or left until a
        function runs, stays that. Else behind the last import that stands before the place.
        """
        statement = f"import {package}"
        line: int = at.lineno  # type: ignore[attr-defined]
        local = [node for function in functions for node in self._locals_of(function).statements]
        for nodes in (self._statements, local, list(_optional_imports(self.tree))):
            for node in nodes:
                if _imports_from(node, package) and node.lineno < line:
                    return self._before(node, statement)
        before = [node for node in self._statements if node.lineno < line]
        opening = [node for node in self.tree.body[:1] if _is_docstring(node)]
        anchor: ast.stmt | None = before[-1] if before else opening[0] if opening else None
        if anchor is None:
            return self._before(self.tree.body[0], statement)
        line = anchor.end_lineno or anchor.lineno
        column = len(self.source.lines[line - 1])
        return Edit(Span(line, column, line, column), self.source.newline + statement)

    def _before(self, node: ast.stmt, statement: str) -> Edit:
        """Insert a statement on the line before another; before what shares its line with that one."""
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        line = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        text = self.source.lines[line - 1]
        indent = text[: len(text) - len(text.lstrip())]
        if text[len(indent) : self.source.span(node).column].rstrip().endswith(":"):
            raise NoEdit("the import shares its line with the statement that it is part of")
        return Edit(Span(line, 0, line, 0), indent + statement + self.source.newline)


def _bindings(node: ImportNode) -> Iterator[tuple[str, str]]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            root = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (root, root)
        elif alias.name != "*" and node.level == 0:
            yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _imports_from(node: ImportNode, package: str) -> bool:
    """Does the statement import the package, or something from it?"""
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] == package for alias in node.names)
    return node.level == 0 and (node.module or "").partition(".")[0] == package


def _optional_imports(tree: ast.Module) -> Iterator[ImportNode]:
    """The imports in blocks of the module, but not those that only a type checker reads."""
    queue: list[ast.stmt] = [node for node in tree.body if not isinstance(node, ImportNode)]
    while queue:
        node = queue.pop(0)
        if isinstance(node, ImportNode):
            yield node
        elif isinstance(node, (ast.Try, ast.With)) or (isinstance(node, ast.If) and not _for_type_checkers(node.test)):
            queue += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            queue += [child for handler in getattr(node, "handlers", ()) for child in handler.body]


def _for_type_checkers(test: ast.expr) -> bool:
    return any("TYPE_CHECKING" in (getattr(node, "id", ""), getattr(node, "attr", "")) for node in ast.walk(test))


def _rebound(tree: ast.Module) -> set[str]:
    """Names that something other than an import binds at the top level, or by `global`; `None` is bound to what could
    not be imported, so it does not count."""
    names: set[str] = set()
    queue: list[ast.AST] = list(tree.body)
    while queue:
        node = queue.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None:
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        queue += ast.iter_child_nodes(node)
    names.update(name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)
    return names


class _Locals:
    """The names of one function, and of the functions in it."""

    def __init__(self, function: FunctionNode) -> None:
        self.names: set[str] = set()
        """Those that are bound, other than by an import."""
        self.imported: set[str] = set()
        self.statements = [] if isinstance(function, ast.Lambda) else _imports_among(function.body)
        """The imports in the function's own block."""
        for node in ast.walk(function):
            if isinstance(node, ast.arg):
                self.names.add(node.arg)
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                self.names.add(node.id)
            elif isinstance(node, ImportNode):
                self.imported.update(bound for bound, _ in _bindings(node))


def _imports_among(body: list[ast.stmt]) -> list[ImportNode]:
    return [node for node in body if isinstance(node, ImportNode)]


def _bound_in(scope: Scope) -> set[str]:
    """The names that are the scope's own, and those that it declares to be another's."""
    names = (
        {node.arg for node in ast.walk(scope.args) if isinstance(node, ast.arg)} if hasattr(scope, "args") else set()
    )
    queue: list[ast.AST] = list(scope.body) if isinstance(scope.body, list) else [scope.body]
    while queue:
        node = queue.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            names.update(node.names)
        elif isinstance(node, ImportNode):
            names.update(_all_bindings(node))
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        queue += ast.iter_child_nodes(node)
    return names


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


# -- orphans ----------------------------------------------------------------------------------------------------------

_ONLY_FOR_LINTERS = re.compile(r"#\s*(noqa|type:|pylint:|pyright:|isort:|ruff:)")


def remove_orphans(source: Source, names: set[str]) -> list[Edit]:
    """Edits that take away the imports of `names` that nothing in the file uses any more.

    An import stays where others may use it (a package's `__init__`, a stub, `__all__`, `x as x`), where it is all that
    a block holds or probes what is installed, in the body of a class, whose attribute it is, and where it carries a
    comment that would be lost.
    """
    if source.path.endswith(("__init__.py", ".pyi")):
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


_QUOTED = r"[A-Za-z_][\w.]*(\[[\w.,| \[\]]*\])?( *\| *[\w.]+)*"
"""A string that may stand for names: in `__all__`, in `globals()`, as an annotation in quotes."""


def _used(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(_QUOTED, node.value):
            yield from re.findall(r"\w+", node.value)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names
        elif isinstance(node, ImportNode):
            yield from (alias.name for alias in node.names if alias.name == alias.asname)


def _blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """The blocks of a module, but not those that bind attributes of a class."""
    of_classes = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for inner in (node, *_statements_of(node.body))
    }
    for node in ast.walk(tree):
        if node in of_classes:
            continue
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            probes = isinstance(node, ast.Try) and name == "body"  # what its handler catches says what is installed
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt) and not probes:
                yield block


def _statements_of(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """What stands in the branches of a block, but not in functions and classes."""
    queue: list[ast.AST] = list(body)
    while queue:
        node = queue.pop()
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            yield node
            queue += ast.iter_child_nodes(node)


def _without(source: Source, node: ImportNode, orphans: set[str], alone: bool) -> Edit | None:
    bound = list(_all_bindings(node))
    kept = [name for name in bound if name not in orphans]
    if len(kept) == len(bound):
        return None
    span = source.span(node)
    text = source.between(span)
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
    module = cst.Module([], default_newline="\r\n" if "\r\n" in text else "\n")
    shorter = module.code_for_node(statement.with_changes(names=names))
    return shorter if shorter.count("#") == text.count("#") else None


def _bound_by(alias: object) -> str:
    name = alias.evaluated_alias or alias.evaluated_name  # type: ignore[attr-defined]
    return str(name).partition(".")[0] if alias.evaluated_alias is None else str(name)  # type: ignore[attr-defined]
