"""Tests of the release of torch that come out one way on every torch that is still in use."""

from __future__ import annotations

import ast
import re

from dtlint.source.declared_torch import OLDEST

__all__ = ["always"]

_RELEASE = re.compile(r"v?(\d+)\.(\d+)")
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


def always(test: ast.expr) -> bool | None:
    """How a test of torch's release comes out from OLDEST on: `V(torch.__version__) >= V("1.6.0")` is True. None where
    newer releases may differ, or something else is tested."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = always(test.operand)
        return None if inner is None else not inner
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, right, way = test.left, test.comparators[0], type(test.ops[0])
    if _is_torchs(right):
        left, right, way = right, left, _TURNED.get(way, way)
    release = _release(right) if _is_torchs(left) else None
    if release is None or release > OLDEST or (release == OLDEST and way in (ast.Gt, ast.LtE)):
        return None
    return True if way in (ast.Gt, ast.GtE) else False if way in (ast.Lt, ast.LtE) else None


def _is_torchs(node: ast.expr) -> bool:
    """Is it made of `torch.__version__`, and of no other version?"""
    of = [part.value for part in ast.walk(node) if isinstance(part, ast.Attribute) and part.attr == "__version__"]
    return bool(of) and all(isinstance(each, ast.Name) and each.id == "torch" for each in of)


def _release(node: ast.expr) -> tuple[int, int] | None:
    """The release that is written out: `"1.6.0"`, `V("1.6")`, `(1, 6)`."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        node = node.args[0]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        found = _RELEASE.match(node.value)
        return (int(found[1]), int(found[2])) if found is not None else None
    numbers = [part.value if isinstance(part, ast.Constant) else None for part in getattr(node, "elts", ())]
    if isinstance(node, (ast.Tuple, ast.List)) and len(numbers) >= 2:
        major, minor = numbers[:2]
        return (major, minor) if isinstance(major, int) and isinstance(minor, int) else None
    return None
