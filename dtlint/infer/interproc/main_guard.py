"""`if __name__ == "__main__":`, which holds the statements of a file that is run and not imported."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["main_blocks"]


def main_blocks(tree: ast.Module) -> Iterator[Sequence[ast.stmt]]:
    """The statements under the main guards of a module."""
    for node in tree.body:
        if isinstance(node, ast.If) and _is_main_guard(node.test):
            yield node.body


def _is_main_guard(test: ast.expr) -> bool:
    match test:
        case ast.Compare(ops=[ast.Eq()], left=left, comparators=[right]):
            texts = {getattr(left, "id", None) or getattr(left, "value", None)}
            texts.add(getattr(right, "id", None) or getattr(right, "value", None))
            return texts == {"__name__", "__main__"}
    return False
