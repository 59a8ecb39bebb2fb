"""The contracts that the signatures of a file's functions make: the part of a signature that can be held against code."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.contracts import contract_from
from dtlint.dtypes.dtype import DTYPES

if TYPE_CHECKING:
    from dtlint.infer.claims.dtype_signatures import DtypeSignature

__all__ = ["contract_text"]


def contract_text(signature: DtypeSignature) -> str | None:
    """The contract of a function, as it is written behind `# dtypes: `; None where nothing is known of what it gives."""
    result = None if signature.result is None else _result(signature.result)
    if result is None or not _says(result):
        return None
    named = {ast.unparse(one) for one in ast.walk(result) if isinstance(one, ast.Name)}
    given = ", ".join(
        f"{one.name}: {one.dtype}"
        for one in signature.parameters
        if one.dtype and not one.name.startswith("*") and (one.dtype in named or one.dtype.partition(" ")[0] in DTYPES)
    )
    text = f"({given}) -> {ast.unparse(result)}"
    try:
        contract_from(text)
    except ValueError:
        return None
    return text


def _result(text: str) -> ast.expr | None:
    try:
        node = ast.parse(text.replace("?", "..."), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if isinstance(node, ast.Tuple):
        return ast.Tuple([_item(one) for one in node.elts], ast.Load())
    return _item(node)


def _item(node: ast.expr) -> ast.expr:
    """What a contract says of a tensor; `...` for what it has no words for."""
    try:
        contract_from(f"() -> {ast.unparse(node)}")
    except ValueError:
        return ast.Constant(...)
    return ast.Constant(...) if isinstance(node, ast.Tuple) else node


def _says(node: ast.expr) -> bool:
    """Does it say something of a tensor?"""
    return any(isinstance(one, ast.Name) for one in ast.walk(node) if getattr(one, "id", "") != "promote")
