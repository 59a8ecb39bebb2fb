"""What ast alone tells of where an expression stands."""

from __future__ import annotations

import ast
import sys
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dtlint.source.file import Source

__all__ = ["Standing"]


class Standing:
    """Where the expressions of a file stand."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self._tree = tree

    def is_exact(self, node: ast.expr | ast.stmt) -> bool:
        """Does the node stand where ast says? Within an f-string Python may err before 3.12: there the text decides."""
        if sys.version_info >= (3, 12) or isinstance(node, ast.stmt) or self._reads_as(node):
            return True
        return id(node) not in self._in_strings  # asked last: it takes a walk through the whole tree

    def _reads_as(self, node: ast.expr) -> bool:
        """Is this node what the text says where it is said to stand?"""
        try:
            read = ast.parse(f"({self.source.between(self.source.span(node))}\n)", mode="eval").body
        except (SyntaxError, ValueError):
            return False
        return ast.dump(read) == ast.dump(node)

    def is_statement(self, node: ast.expr | ast.stmt) -> bool:
        """Is the expression a statement of its own?"""
        return id(node) in self._statements

    @cached_property
    def _in_strings(self) -> frozenset[int]:
        """The identities of what stands within f-strings."""
        strings = [node for node in ast.walk(self._tree) if isinstance(node, ast.JoinedStr)]
        return frozenset(id(part) for string in strings for part in ast.walk(string) if part is not string)

    @cached_property
    def _statements(self) -> frozenset[int]:
        """The identities of the expressions that are statements."""
        return frozenset(id(node.value) for node in ast.walk(self._tree) if isinstance(node, ast.Expr))
