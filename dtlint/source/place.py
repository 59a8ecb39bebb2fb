"""The place of a finding in the text, and the edits that a fix can make there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Edit, Span
from dtlint.source.arguments import arguments_of
from dtlint.source.first_releases import FIRST_RELEASES
from dtlint.source.imports import NoEdit

if TYPE_CHECKING:
    from dtlint.source.arguments import Arguments
    from dtlint.source.concrete import ConcreteTree
    from dtlint.source.imports import Imports
    from dtlint.source.standing import Standing

__all__ = ["Place"]

_VIEWS = frozenset({"T", "mT", "H", "mH", "data", "grad", "real", "imag"})
"""Attributes of a tensor that are tensors: nothing can be assigned to the first four, nothing of another dtype to `grad`,
and to the others only what the tensor under them holds already."""


class Place:
    """Where a finding stands. Edits are of the source text, so fixes nest, merge and keep what they do not name."""

    def __init__(
        self, abstract: ast.expr | ast.stmt, standing: Standing, concrete: ConcreteTree, imports: Imports
    ) -> None:
        self.abstract = abstract
        """The ast node of the finding."""
        self.source = standing.source
        self.since: tuple[int, int] = (0, 0)
        """The oldest release of torch that has all that the edits so far name."""
        self._standing = standing
        self._concrete = concrete
        self._imports = imports

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The source text of a node."""
        return self.between(self.source.span(node))

    def between(self, span: Span) -> str:
        """The source text of a span."""
        return self.source.between(span)

    def replace(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """Put `text` where `node` stands."""
        return Edit(self.source.span(node), text)

    def insert_before(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """Put `text` directly before `node`."""
        span = self.source.span(node)
        return Edit(Span(span.line, span.column, span.line, span.column), text)

    def rename_method(self, name: str) -> Edit:
        """Let the call at this place call another method of the same receiver.

        Raises:
            NoEdit: the name is written in letters that Python takes for others.
        """
        assert isinstance(self.abstract, ast.Call), "methods belong to calls"
        function = self.abstract.func
        assert isinstance(function, ast.Attribute), "only methods are renamed"
        end = self.source.span(function)
        span = Span(end.end_line, end.end_column - len(function.attr), end.end_line, end.end_column)
        if self.between(span) != function.attr:
            raise NoEdit("the name of the method is spelled in another way")
        return Edit(span, name)

    @property
    def is_statement(self) -> bool:
        """Is the expression at this place a statement of its own?"""
        return self._standing.is_statement(self.abstract)

    def can_assign(self, subject: ast.expr) -> bool:
        """Would `subject = ...` here bind anew what `subject` means here?

        Not where the name comes from an outer scope: the assignment would make a local variable of it, which the
        right side reads before it is bound. Not where the attribute is computed.
        """
        if isinstance(subject, ast.Name):
            return self._imports.binds(subject.id, self.abstract)
        return (
            isinstance(subject, ast.Attribute)
            and subject.attr not in _VIEWS
            and not self._imports.defines_property(subject.attr)
            and _is_path(subject)
        )

    def is_bound(self, path: str) -> bool:
        """Has the name that a path begins with a value for certain when the program comes here?"""
        return self._imports.is_bound(path.partition(".")[0], self.abstract)

    def spelled(self, name: str) -> tuple[str, tuple[Edit, ...]]:
        """How to write a qualified name here, and the import that takes: see Imports.spelled."""
        self.needs(name)
        return self._imports.spelled(name, self.abstract)

    def needs(self, name: str) -> None:
        """Note that an edit names this of torch, which may be newer than the torch that the project has to run on."""
        self.since = max(self.since, FIRST_RELEASES.get(name, (0, 0)))

    def insert_line(self, statement: ast.stmt, text: str) -> Edit:
        """Put a statement of one line before another, in the same block.

        Raises:
            NoEdit: something else stands before it on its line.
        """
        span = self.source.span(statement)
        indent = self.source.lines[span.line - 1][: span.column]
        if indent.strip():
            raise NoEdit("the statement does not begin its line")
        return Edit(Span(span.line, span.column, span.line, span.column), text + self.source.newline + indent)

    def insert_argument(self, text: str, then: str = "") -> Edit:
        """Give the call at this place a first argument: on a line of its own where the others have theirs. `then` is
        the name that the positional argument behind it gets."""
        arguments = self._arguments()
        if not arguments.spans:
            return Edit(arguments.begin, text)
        first = arguments.spans[0]
        indent = self.source.lines[first.line - 1][: first.column]
        space = " " if first.line == arguments.begin.line or indent.strip() else self.source.newline + indent
        name = f"{then}=" if then else ""
        return Edit(Span(first.line, first.column, first.line, first.column), f"{text},{space}{name}")

    def append_argument(self, text: str) -> Edit:
        """Give the call at this place a last argument, behind the others."""
        arguments = self._arguments()
        if not arguments.spans:
            return Edit(arguments.begin, text)
        end = arguments.spans[-1]
        return Edit(Span(end.end_line, end.end_column, end.end_line, end.end_column), f", {text}")

    def name_argument(self, position: int, name: str) -> Edit:
        """Turn the positional argument at `position` into a keyword argument."""
        span = self._arguments().spans[position]
        return Edit(Span(span.line, span.column, span.line, span.column), f"{name}=")

    def remove_argument(self, name: str) -> Edit | None:
        """Take away a keyword argument with its comma; None where a comment would be lost with it."""
        arguments = self._arguments()
        spans = arguments.spans
        index = next(i for i, each in enumerate(arguments.given) if isinstance(each, ast.keyword) and each.arg == name)
        own = spans[index]
        if index:
            before = spans[index - 1]
            span = Span(before.end_line, before.end_column, own.end_line, own.end_column)
        elif len(spans) > 1:
            after = spans[1]
            span = Span(own.line, own.column, after.line, after.column)
        else:
            span = own
        return None if "#" in self.between(span).replace(self.between(own), "") else Edit(span, "")

    def _arguments(self) -> Arguments:
        assert isinstance(self.abstract, ast.Call), "arguments belong to calls"
        return arguments_of(self.abstract, self.source, self._concrete)


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
