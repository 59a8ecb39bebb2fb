"""What an einsum does with its operands: it multiplies them, or sums products of them, as its equation says."""

from __future__ import annotations

import ast

__all__ = ["contracts"]


def contracts(einsum: ast.Call) -> bool:
    """Does an einsum of two operands sum over an index? An outer product is only multiplied, and promotes."""
    equation = einsum.args[0] if einsum.args else None
    if not isinstance(equation, ast.Constant) or not isinstance(equation.value, str) or len(einsum.args) != 3:
        return False
    given, _, kept = equation.value.replace(" ", "").partition("->")
    first, _, second = given.partition(",")
    return any(letter in second and letter not in kept for letter in first if letter.isalpha())
