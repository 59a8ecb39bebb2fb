"""Operands in words, and the fix that casts one where it stands."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import ALIASES, DTYPES, Category
from dtlint_rules._fixes import operand_text

if TYPE_CHECKING:
    from dtlint.source.place import Place

__all__ = ["BOOL", "INTEGRAL", "cast_fix", "listed"]

BOOL = frozenset({"bool"})
INTEGRAL = frozenset(name for name, dtype in DTYPES.items() if dtype.category <= Category.INTEGER)
"""bool, and the integers."""
_INTEGER_CASTS = {method for method, dtype in ALIASES.items() if dtype in INTEGRAL - BOOL}
_FEW = 2


def listed(dtypes: frozenset[str]) -> str:
    """Dtypes in words: `int8 or int32`; of many, what they have in common."""
    if len(dtypes) <= _FEW:
        return " or ".join(sorted(dtypes))
    return "integer" if dtypes <= INTEGRAL else "floating"


def cast_fix(node: ast.expr, cast: str, applicability: Applicability, place: Place) -> Fix:
    """The fix that casts an operand where it stands: `node.cast`, in which `cast` is `long()`. A cast to an integer that
    stands there makes way."""
    what = f"Cast it with `.{cast}`"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
        called = place.text(node.func)
        if node.func.attr in _INTEGER_CASTS and called.endswith(node.func.attr):
            # What it is called on stays as it is written, with its parentheses and comments.
            edit = place.replace(node, called.removesuffix(node.func.attr) + cast)
            return Fix(what, (edit,), applicability)
    return Fix(what, (place.replace(node, f"{operand_text(place, node)}.{cast}"),), applicability)
