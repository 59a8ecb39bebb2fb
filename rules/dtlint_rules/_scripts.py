"""Is a module a program, or there for others to import?"""

from __future__ import annotations

import ast

from dtlint.infer.walk import nodes
from dtlint_rules._kept import kept
from dtlint_rules._names import names, said

__all__ = ["is_library", "is_script"]

_READS_COMMAND_LINE = frozenset({"ArgumentParser", "argparse", "argv", "click", "fire"})


@kept
def is_script(tree: ast.Module) -> bool:
    """Is the module a program of its own: with a `__main__` guard, or one that reads the command line?"""
    guarded = any(isinstance(part, ast.If) and "__name__" in said(part.test) for part in tree.body)
    return guarded or not names(tree).isdisjoint(_READS_COMMAND_LINE)


def is_library(tree: ast.Module) -> bool:
    """Is there something for others in the module, and nothing that runs or trains when it is imported?"""
    defines = any(isinstance(node, (ast.FunctionDef, ast.ClassDef)) for node in tree.body)
    runs = any(isinstance(node, (ast.For, ast.While, ast.With)) for node in tree.body)
    return defines and not runs and not is_script(tree) and not _trains(tree)


def _trains(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "backward" for node in nodes([tree]))
