"""From the text of a file to its syntax tree, as inference reads it."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING

from dtlint.source.contracts import with_contracts
from dtlint.source.private import mangled

if TYPE_CHECKING:
    from dtlint.source.file import Source

__all__ = ["parsed", "tree_of"]


def parsed(source: str | bytes) -> ast.Module:
    """The syntax tree of a file. What Python thinks of its style, as `"\\d"`, is not what was asked for.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it does not parse.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    return with_contracts(mangled(tree, source), source)


def tree_of(source: Source) -> ast.Module:
    """The syntax tree of a program. Cells of a notebook that do not parse do not run either, and are left out.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it does not parse; a cell of it, which IPython runs.
    """
    notebook = source.notebook
    if notebook is not None and notebook.broken and len(notebook.broken) == len(list(notebook.refused)):
        return parsed(notebook.readable)
    return parsed(source.text)
