"""Fixes that several rules make: a dtype spelled right, one more argument, the limit of a dtype for a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix

if TYPE_CHECKING:
    import ast

    from dtlint.source.place import Place

__all__ = ["limit_of", "pass_dtype", "respell"]


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
