"""Fixes that several rules make: a dtype spelled right, one more argument, the limit of a dtype for a number."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint_rules._texts import as_operand

if TYPE_CHECKING:
    from dtlint.source.place import Place

__all__ = ["bracketed", "limit_of", "operand_text", "pass_dtype", "respell"]


def operand_text(place: Place, node: ast.expr) -> str:
    """The source text of a node, as a method can be called on it or an operator stand before it."""
    return bracketed(as_operand(node, place.text(node)))


def bracketed(text: str) -> str:
    """An expression as it may stand anywhere: in parentheses where a line ends outside its own brackets."""
    try:
        ast.parse(text)
    except SyntaxError:
        return f"({text})"
    return text


def respell(
    place: Place,
    node: ast.expr,
    name: str,
    message: str = "Use `{}`",
    applicability: Applicability = Applicability.UNSAFE,
) -> Fix:
    """The fix that writes the object of that qualified name, as the file imports it, in place of an expression."""
    spelling, imports = place.spelled(name)
    return Fix(message.format(spelling), (place.replace(node, spelling), *imports), applicability)


def pass_dtype(place: Place, name: str, message: str, applicability: Applicability = Applicability.UNSAFE) -> Fix:
    """The fix that gives the call at the place `dtype=`, with the dtype of that qualified name."""
    spelling, imports = place.spelled(name)
    return Fix(message, (place.append_argument(f"dtype={spelling}"), *imports), applicability)


def limit_of(place: Place, node: ast.expr, path: str, limit: str, verb: str) -> Fix:
    """The fix that puts the limit of a tensor's dtype, `torch.finfo(path.dtype).min`, in place of a number."""
    finfo, imports = place.spelled("torch.finfo")
    text = f"{finfo}({path}.dtype).{limit}"
    return Fix(f"{verb} `{text}`", (place.replace(node, text), *imports), Applicability.UNSAFE)
