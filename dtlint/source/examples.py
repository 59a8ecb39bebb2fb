"""The examples in the docstrings of a file: what its author shows being called, and with what."""

from __future__ import annotations

import ast
from textwrap import dedent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["examples"]

_DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PROMPT, _GOES_ON = ">>>", "..."


def examples(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """The statements of each docstring's examples, as doctest would run them: together, from the top.

    What the file itself defines is not imported again. A statement that does not parse ends an example.
    """
    own = {one.name for one in tree.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    for node in ast.walk(tree):
        text = ast.get_docstring(node, clean=False) if isinstance(node, _DOCUMENTED) else None
        found: list[ast.stmt] = []
        for chunk in _chunks(text) if text and _PROMPT in text else ():
            try:
                found += filter(None, (_without(one, own) for one in ast.parse(chunk).body))
            except (SyntaxError, ValueError):
                break
        if found:
            yield found


def _chunks(text: str) -> Iterator[str]:
    """Each statement at a prompt, with the lines that go on with it."""
    lines: list[str] = []
    for line in (*text.splitlines(), ""):
        bare = line.strip()
        if lines and bare.startswith(_GOES_ON):
            lines.append(bare[len(_GOES_ON) :])
            continue
        if lines:
            yield dedent(lines[0]) + "".join(f"\n{_one_space_less(more)}" for more in lines[1:])
        lines = [bare[len(_PROMPT) :]] if bare.startswith(_PROMPT) else []


def _one_space_less(line: str) -> str:
    return line[1:] if line.startswith(" ") else line


def _without(statement: ast.stmt, names: set[str]) -> ast.stmt | None:
    """A statement, or what it imports besides some names."""
    if not isinstance(statement, ast.ImportFrom):
        return statement
    kept = [one for one in statement.names if one.asname is not None or one.name not in names]
    return ast.copy_location(ast.ImportFrom(statement.module, kept, statement.level), statement) if kept else None
