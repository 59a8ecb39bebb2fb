"""Where the arguments of a call stand: each with parentheses of its own, and without its comma."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from dtlint.diagnostic import Span
from dtlint.source.imports import NoEdit

if TYPE_CHECKING:
    import ast

    import libcst as cst

    from dtlint.source.concrete import ConcreteTree
    from dtlint.source.file import Source

__all__ = ["Arguments", "arguments_of"]

_OPENS = re.compile(r"\s*\(\s*")
_PARTS = re.compile(r"\s*,\s*")
_CLOSES = re.compile(r"\s*,?\s*\)")
_EMPTY = re.compile(r"\s*\(\s*\)")
"""What stands before the first argument, between two of them, behind the last, and where there is none."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call, in the order of the source."""

    begin: Span
    """The empty span behind the opening parenthesis."""
    given: tuple[ast.expr | ast.keyword, ...]
    spans: tuple[Span, ...]


def arguments_of(call: ast.Call, source: Source, concrete: ConcreteTree) -> Arguments:
    """Where the arguments of a call stand.

    `ast` leaves out commas, parentheses and comments. Where nothing but commas and space stands between the arguments,
    it tells all the same; libcst is asked where more does.

    Raises:
        NoEdit: libcst does not read the statement as Python does.
        TooDeep: the statement is too deeply nested for libcst.
    """
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    given.sort(key=lambda each: (each.lineno, each.col_offset))
    return _plain(call, tuple(given), source) or _concrete(call, tuple(given), source, concrete)


def _plain(call: ast.Call, given: tuple[ast.expr | ast.keyword, ...], source: Source) -> Arguments | None:
    """Where they stand, if ast leaves no doubt."""
    spans = tuple(source.span(each) for each in given)
    function, whole = source.span(call.func), source.span(call)
    end = Span(whole.end_line, whole.end_column, whole.end_line, whole.end_column)
    gaps = [
        source.between(Span(one.end_line, one.end_column, other.line, other.column))
        for one, other in pairwise([function, *spans, end])
    ]
    forms = [_OPENS, *[_PARTS] * (len(gaps) - 2), _CLOSES] if given else [_EMPTY]
    if not all(form.fullmatch(gap) for form, gap in zip(forms, gaps, strict=True)):
        return None
    return Arguments(_behind(function, source), given, spans)


def _concrete(
    call: ast.Call, given: tuple[ast.expr | ast.keyword, ...], source: Source, concrete: ConcreteTree
) -> Arguments:
    node = concrete.call_at(call)
    if node is None or len(node.args) != len(given):
        raise NoEdit("libcst does not read the statement as Python does")
    inside = concrete.span(node.whitespace_before_args)
    begin = Span(inside.line, inside.column, inside.line, inside.column)
    return Arguments(begin, given, tuple(_span(argument, concrete) for argument in node.args))


def _span(argument: cst.Arg, concrete: ConcreteTree) -> Span:
    """The span of an argument: libcst counts the comma and the space after it to it."""
    span, value = concrete.span(argument), _outer_span(argument.value, concrete)
    return Span(span.line, span.column, value.end_line, value.end_column)


def _outer_span(expression: cst.BaseExpression, concrete: ConcreteTree) -> Span:
    """The span of an expression with its parentheses."""
    spans = [concrete.span(part) for part in (*expression.lpar, expression, *expression.rpar)]
    return Span(spans[0].line, spans[0].column, spans[-1].end_line, spans[-1].end_column)


def _behind(function: Span, source: Source) -> Span:
    """The empty span behind the parenthesis that opens the arguments of a function."""
    opening = source.text.index("(", source.offset(function.end_line, function.end_column))
    line, column = source.place(opening + 1)
    return Span(line, column, line, column)
