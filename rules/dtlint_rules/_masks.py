"""Masks, by how they are made and named."""

from __future__ import annotations

import ast
import re

from dtlint.infer.names import path_of
from dtlint_rules._names import last_name
from dtlint_rules._parts import root_of

__all__ = ["SCORES", "inverted", "is_mask", "is_named_mask", "selects_scores"]

_MASK = re.compile(r"(?:^|_)(?:\w*mask\w*|pad(?:ding)?|adj|adjacency|invalid|valid|keep)(?:_|$)", re.IGNORECASE)


SCORES = re.compile(
    r"(?:^|_)(?:\w*logit\w*|\w*score\w*|attn\w*|attention\w*|\w*energ\w+|sim\w*|dots?|\w*prob\w*)(?:_|$)"
)
"""Names of what a softmax or a maximum is taken of."""


def is_mask(node: ast.expr, *, by_name: bool = True) -> bool:
    """Does an expression hold ones and zeros that say which entries count: `~m`, `x == 0`, `1 - mask`, `mask.float()`,
    `torch.triu(torch.ones(n, n))`, or, if that counts, by its name?"""
    while isinstance(node, (ast.Call, ast.Subscript)):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node.func, ast.Attribute) and path_of(node.func.value) not in ("torch", "th", "np"):
            node = node.func.value
        elif last_name(node) in ("triu", "tril", "logical_not", "logical_and", "logical_or", "eq", "ne") and node.args:
            return last_name(node) not in ("triu", "tril") or last_name(node.args[0]) in ("ones", "ones_like")
        else:
            return False
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert)
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    if isinstance(node, ast.BinOp):
        kept = inverted(node)
        return kept is not None and is_mask(kept, by_name=by_name)
    return by_name and _MASK.search(last_name(node)) is not None


def is_named_mask(name: str) -> bool:
    """Does a name say that what it holds, or gives where it is called, is a mask: `padding_mask`?"""
    return _MASK.search(name) is not None


def selects_scores(target: ast.Subscript) -> bool:
    """Does a subscript choose by a mask, or among scores: `x[~mask]`, `logits[:, 0]`?"""
    return is_mask(target.slice) or SCORES.search(last_name(root_of(target.value)).lower()) is not None


def inverted(node: ast.expr) -> ast.expr | None:
    """What is taken from one: `kept`, of `1.0 - kept`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return None
    return node.right if isinstance(node.left, ast.Constant) and node.left.value == 1 else None
