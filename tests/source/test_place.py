"""Edits of a call's arguments keep its layout and comments."""

from __future__ import annotations

import ast
from collections.abc import Callable

import libcst as cst
import pytest

from dtlint.diagnostic import Edit
from dtlint.source.arguments import arguments_of
from dtlint.source.concrete import ConcreteTree
from dtlint.source.file import Source
from dtlint.source.imports import Imports, NoEdit
from dtlint.source.place import Place
from dtlint.source.standing import Standing


def edited(text: str, make: Callable[[Place], Edit | None]) -> str | None:
    """The text after an edit at its first call."""
    source = Source.from_bytes(text.encode(), "module.py")
    tree = ast.parse(source.text)
    call = next(node for node in ast.walk(tree) if isinstance(node, ast.Call))
    edit = make(Place(call, Standing(source, tree), ConcreteTree(source, tree), Imports(source, tree)))
    if edit is None:
        return None
    start = source.offset(edit.span.line, edit.span.column)
    return text[:start] + edit.text + text[source.offset(edit.span.end_line, edit.span.end_column) :]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()\n", "f(0)\n"),
        ("f(a)\n", "f(0, a)\n"),
        ("f( a )\n", "f( 0, a )\n"),
        ("f(  # why\n)\n", "f(0  # why\n)\n"),
        ("f(\n    # why\n    a=1,  # so\n)\n", "f(\n    # why\n    0,\n    a=1,  # so\n)\n"),
        ("f(**a)\n", "f(0, **a)\n"),
        ("(f)(a)\n", "(f)(0, a)\n"),
        ("(f # (\n)(a)\n", "(f # (\n)(0, a)\n"),
        ("(f # (\n  ())\n", "(f # (\n  (0))\n"),
        ("f \\\n (a, (b))\n", "f \\\n (0, a, (b))\n"),
        ("é.f(a)\n", "é.f(0, a)\n"),
    ],
)
def test_a_first_argument(before: str, after: str) -> None:
    assert edited(before, lambda place: place.insert_argument("0")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [("f(a)\n", "f(0, b=a)\n"), ("f((a or c), d=1)\n", "f(0, b=(a or c), d=1)\n"), ("f()\n", "f(0)\n")],
)
def test_a_first_argument_that_makes_the_next_a_keyword(before: str, after: str) -> None:
    assert edited(before, lambda place: place.insert_argument("0", then="b" if "()" not in before else "")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()\n", "f(z=0)\n"),
        ("f(a)\n", "f(a, z=0)\n"),
        ("f(a,)\n", "f(a, z=0,)\n"),
        ("f(\n    a,  # why\n)\n", "f(\n    a, z=0,  # why\n)\n"),
        ("f((a))\n", "f((a), z=0)\n"),
    ],
)
def test_a_last_argument(before: str, after: str) -> None:
    assert edited(before, lambda place: place.append_argument("z=0")) == after


def test_a_positional_argument_gets_a_name() -> None:
    assert edited("f(a, (b))\n", lambda place: place.name_argument(1, "x")) == "f(a, x=(b))\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(x=1)\n", "f()\n"),
        ("f(x=1, a=2)\n", "f(a=2)\n"),
        ("f(a, x=(1))\n", "f(a)\n"),
        ("f(a, x=1, b=2)\n", "f(a, b=2)\n"),
        ("f(a,  # why\n  x=1)\n", None),
    ],
)
def test_an_argument_goes_with_its_comma_or_stays_with_its_comment(before: str, after: str | None) -> None:
    assert edited(before, lambda place: place.remove_argument("x")) == after


@pytest.mark.parametrize(
    ("call", "plain"),
    [
        ("f(a, *b, c=(1), **d)", True),
        ("f(\n    a,\n    b,\n)", True),
        ("x.a( ).f( )", True),
        ("f((a), b)", False),
        ("(f)(a)", False),
        ("f(a,  # why\n  b)", False),
        ("f(a for a in b)", False),
        ("f(  # why\n)", False),
    ],
)
def test_ast_says_where_arguments_stand_unless_more_than_commas_stands_between_them(call: str, plain: bool) -> None:
    class Asked(ConcreteTree):
        """Tells whether libcst was asked."""

        asked = False

        def call_at(self, node: ast.Call) -> cst.Call | None:
            self.asked = True
            return super().call_at(node)

    source = Source.from_bytes(call.encode(), "module.py")
    tree = ast.parse(call)
    node = tree.body[0].value  # type: ignore[attr-defined]
    asked = Asked(source, tree)
    found = arguments_of(node, source, asked)
    assert asked.asked is not plain
    assert len(found.spans) == len(node.args) + len(node.keywords)
    assert call[source.offset(found.begin.line, found.begin.column) - 1] == "("


def test_a_line_before_a_statement() -> None:
    def insert(place: Place) -> Edit:
        tree = ast.parse(place.source.text)
        statement = next(node for node in ast.walk(tree) if isinstance(node, ast.Expr))
        return place.insert_line(statement, "g()")

    assert edited("if a:\n\tf()\n", insert) == "if a:\n\tg()\n\tf()\n"
    assert edited("if a:\r\n    f()\r\n", insert) == "if a:\r\n    g()\r\n    f()\r\n"
    with pytest.raises(NoEdit, match="does not begin its line"):
        edited("if a: f()\n", insert)


@pytest.mark.parametrize(
    ("subject", "possible"),
    [("x", True), ("x.a.b", True), ("x.T", False), ("x.a.grad", False), ("x[0]", False), ("x().a", False)],
)
def test_what_can_be_assigned(subject: str, possible: bool) -> None:
    def answer(place: Place) -> None:
        assert place.can_assign(ast.parse(subject, mode="eval").body) is possible

    assert edited("f(x)\n", answer) is None
