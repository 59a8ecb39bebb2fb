"""The place of a finding in the concrete syntax tree, and the edits that a fix can make there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Edit, Span
from dtlint.source.imports import NoEdit

if TYPE_CHECKING:
    import libcst as cst

    from dtlint.source.concrete import ConcreteTree
    from dtlint.source.file import Source
    from dtlint.source.imports import Imports

__all__ = ["Place"]

_VIEWS = frozenset({"T", "mT", "H", "mH", "data", "grad", "real", "imag"})
"""Attributes of a tensor that are tensors: nothing can be assigned to the first four, nothing of another dtype to `grad`,
and to the others only what the tensor under them holds already."""


class Place:
    """Where a finding stands. Edits are of the source text, so fixes nest, merge and keep what they do not name."""

    def __init__(
        self, node: cst.CSTNode, abstract: ast.expr | ast.stmt, source: Source, concrete: ConcreteTree, imports: Imports
    ) -> None:
        self.node = node
        """The libcst node of the finding."""
        self.abstract = abstract
        """The ast node of the finding."""
        self.source = source
        self._concrete = concrete
        self._imports = imports

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The source text of a node."""
        return self.between(self.source.span(node))

    def between(self, span: Span) -> str:
        """The source text of a span."""
        return self.source.text[
            self.source.offset(span.line, span.column) : self.source.offset(span.end_line, span.end_column)
        ]

    def replace(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """Put `text` where `node` stands."""
        return Edit(self.source.span(node), text)

    def insert_before(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """Put `text` directly before `node`."""
        span = self.source.span(node)
        return Edit(Span(span.line, span.column, span.line, span.column), text)

    def rename_method(self, name: str) -> Edit:
        """Let the call at this place call another method of the same receiver."""
        import libcst as cst

        function = self._call().func
        assert isinstance(function, cst.Attribute), "only methods are renamed"
        return Edit(self._concrete.span(function.attr), name)

    @property
    def is_statement(self) -> bool:
        """Is the expression at this place a statement of its own?"""
        return self._concrete.is_statement(self.abstract)

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

    def spelled(self, name: str) -> tuple[str, tuple[Edit, ...]]:
        """How to write a qualified name here, and the import that takes: see Imports.spelled."""
        return self._imports.spelled(name, self.abstract)

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
        span = self._after_parenthesis()
        call = self._call()
        if not call.args:
            return Edit(span, text)
        first = self._span(call.args[0])
        indent = self.source.lines[first.line - 1][: first.column]
        space = " " if first.line == span.line or indent.strip() else self.source.newline + indent
        name = f"{then}=" if then else ""
        return Edit(Span(first.line, first.column, first.line, first.column), f"{text},{space}{name}")

    def append_argument(self, text: str) -> Edit:
        """Give the call at this place a last argument, behind the others."""
        call = self._call()
        if not call.args:
            return Edit(self._after_parenthesis(), text)
        end = self._span(call.args[-1])
        return Edit(Span(end.end_line, end.end_column, end.end_line, end.end_column), f", {text}")

    def name_argument(self, position: int, name: str) -> Edit:
        """Turn the positional argument at `position` into a keyword argument."""
        span = self._outer_span(self._call().args[position].value)
        return Edit(Span(span.line, span.column, span.line, span.column), f"{name}=")

    def remove_argument(self, name: str) -> Edit | None:
        """Take away a keyword argument with its comma; None where a comment would be lost with it."""
        args = self._call().args
        index = next(i for i, arg in enumerate(args) if arg.keyword is not None and arg.keyword.value == name)
        own = self._span(args[index])
        if index:
            before = self._span(args[index - 1])
            span = Span(before.end_line, before.end_column, own.end_line, own.end_column)
        elif len(args) > 1:
            after = self._span(args[1])
            span = Span(own.line, own.column, after.line, after.column)
        else:
            span = own
        return None if "#" in self.between(span).replace(self.between(own), "") else Edit(span, "")

    def _call(self) -> cst.Call:
        import libcst as cst

        assert isinstance(self.node, cst.Call), "arguments belong to calls"
        return self.node

    def _span(self, node: cst.CSTNode) -> Span:
        import libcst as cst

        span = self._concrete.span(node)
        if isinstance(node, cst.Arg):
            # libcst counts the comma and the space after it to the argument.
            value = self._outer_span(node.value)
            return Span(span.line, span.column, value.end_line, value.end_column)
        return span

    def _outer_span(self, expression: cst.BaseExpression) -> Span:
        """The span of an expression with its parentheses."""
        spans = [self._concrete.span(part) for part in (*expression.lpar, expression, *expression.rpar)]
        return Span(spans[0].line, spans[0].column, spans[-1].end_line, spans[-1].end_column)

    def _after_parenthesis(self) -> Span:
        """The empty span behind the call's opening parenthesis."""
        call = self._call()
        function = self._outer_span(call.func)
        offset = self.source.offset(function.end_line, function.end_column)
        line, column = self.source.place(self.source.text.index("(", offset) + 1)
        return Span(line, column, line, column)


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
