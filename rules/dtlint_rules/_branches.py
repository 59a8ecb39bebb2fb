"""A value that one branch of an `if` casts to the dtype of a tensor, and the other branch leaves as it is."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint.rule import Finding
from dtlint_rules._casts import TOLD
from dtlint_rules._effects import JOINING
from dtlint_rules._meanings import speaks_of_dtype
from dtlint_rules._names import last_name
from dtlint_rules._origin import Kind
from dtlint_rules._parts import keyword, receiver
from dtlint_rules._provenance import may_be_cast
from dtlint_rules._subjects import flat, joined
from dtlint_rules._widths import cast_to, is_foreign

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint_rules._origin import Roots
    from dtlint_rules._origins import Origins

__all__ = ["may_part", "of_branches"]

_WITHOUT_DTYPE = (ast.Constant, ast.JoinedStr, ast.Compare, ast.BoolOp, ast.Dict)


def of_branches(branch: ast.If, origins: Origins, scope: ast.AST) -> Iterator[Finding]:
    """What the one branch casts, and the other does not, before it is used."""
    one, two = _last_bound(branch.body), _last_bound(branch.orelse)
    for name in one.keys() & two.keys():
        for cast, plain in ((one[name], two[name]), (two[name], one[name])):
            tensor = cast_to(origins[cast])
            if tensor is None or not is_foreign(origins[plain], tensor) or speaks_of_dtype(plain):
                continue
            if _is_made_like(plain, tensor):
                continue
            if not (isinstance(cast, ast.Call) and last_name(cast) in TOLD) and not _is_of_torch(origins[plain]):
                continue  # where one branch makes it, the other may have been given it in that dtype
            if not _is_used_uncast(name, branch, scope, origins):
                continue
            by_itself = isinstance(cast, ast.Call) and any(_is_name(part, name) for part in nodes([cast]))
            yield Finding(
                cast if by_itself else plain,
                f"`{name}` is cast to the dtype of `{tensor}` on this branch only"
                if by_itself
                else f"`{name}` is cast to the dtype of `{tensor}` on the other branch, not on this one",
                help="Cast it after the `if`" if by_itself else f"Cast it here too: `.to({tensor}.dtype)`",
                notes=((plain if by_itself else cast, "the other branch"),),
                conditional=True,
            )


def may_part(branch: ast.If) -> bool:
    """Does an `if` bind a name to what may be cast in one branch, and to something else that has a dtype in the other? Ask
    it before origins are read."""
    if not branch.orelse:
        return False
    one, two = _last_bound(branch.body), _last_bound(branch.orelse)
    pairs = [(one[name], two[name]) for name in one.keys() & two.keys()]
    return any(
        (may_be_cast(value) and not isinstance(other, _WITHOUT_DTYPE))
        or (may_be_cast(other) and not isinstance(value, _WITHOUT_DTYPE))
        for value, other in pairs
    ) and not speaks_of_dtype(branch.test)


def _last_bound(block: list[ast.stmt]) -> dict[str, ast.expr]:
    """What each name is bound to last among the statements of a block."""
    return {
        statement.targets[0].id: statement.value
        for statement in block
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
    }


def _is_made_like(node: ast.expr, tensor: str) -> bool:
    """`torch.zeros_like(h)`, `h.new_zeros(n)`, of `h`."""
    if not isinstance(node, ast.Call) or keyword(node, "dtype") is not None:
        return False
    name, held = last_name(node), receiver(node)
    like = node.args[0] if name.endswith("_like") and node.args else held if name.startswith("new_") else None
    return like is not None and path_of(like) == tensor


def _is_of_torch(roots: Roots) -> bool:
    """Does a function of torch make a value, which is told no dtype?"""
    return all(
        root.kind == Kind.MADE or (root.kind == Kind.CALLED and root.text.startswith("torch.")) for root in roots
    )


def _is_used_uncast(name: str, branch: ast.If, scope: ast.AST, origins: Origins) -> bool:
    """Does it go into arithmetic or a joining function behind the `if`, before anybody casts it?"""
    end = branch.end_lineno or branch.lineno
    later = sorted(
        (node for node in nodes([scope]) if isinstance(node, (ast.BinOp, ast.Call)) and node.lineno > end),
        key=lambda node: (node.lineno, -node.col_offset),
    )
    for node in later:
        if isinstance(node, ast.BinOp):
            given = [node.left, node.right]
        elif _is_name(receiver(node), name):
            if origins.told(node) is not None:
                return False
            continue
        else:
            given = flat(joined(node)) if last_name(node) in JOINING else []
        if any(_is_name(part, name) for part in given):
            return True
    return False


def _is_name(node: ast.AST | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
