"""The comments that contracts are: `# dtypes: (x: T) -> T`, on the line above a function, its decorators included. What they say
is read in `dtlint.dtypes.contracts`.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dtlint.source.definitions import FunctionNode

__all__ = ["line_of", "with_contracts", "written"]

_COMMENT = re.compile(r"[ \t]*# dtypes: (\(.*\) -> .*?)[ \t]*")
_HEAD = "# dtypes: "
_ENDS = re.compile(r"\r\n|\r|\n")


def with_contracts(tree: ast.Module, source: str | bytes) -> ast.Module:
    """The tree of a source, whose functions have the texts of their contracts as their type comments."""
    text = source.decode(errors="replace") if isinstance(source, bytes) else source
    if _HEAD not in text:
        return tree
    lines = _ENDS.split(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            line = line_of(node) - 1
            found = _COMMENT.fullmatch(lines[line - 1]) if 0 < line <= len(lines) else None
            node.type_comment = None if found is None else found[1]
    return tree


def line_of(node: FunctionNode) -> int:
    """The first line of a function, its decorators included."""
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def written(text: str, tree: ast.Module, contracts: Mapping[FunctionNode, str], newline: str = "\n") -> str:
    """A text with the contracts of some functions above them; one that stands there already is left as it is.

    Raises:
        ValueError: the result would be another program.
    """
    lines = re.findall(r".*?(?:\r\n|\r|\n)|.+\Z", text, re.DOTALL)
    for node, contract in sorted(contracts.items(), key=lambda one: -line_of(one[0])):
        line = line_of(node) - 1
        indent = re.match(r"[ \t\f]*", lines[line])
        assert indent is not None
        above = lines[line - 1].rstrip("\r\n") if line else ""
        if _COMMENT.fullmatch(above) is None:
            lines.insert(line, f"{indent[0]}{_HEAD}{contract}{newline}")
    made = "".join(lines)
    if ast.dump(ast.parse(made)) != ast.dump(ast.parse(text)):
        raise ValueError("the program would be another with the comments")
    return made
