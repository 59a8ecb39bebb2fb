"""Is a file a program that is run, or a library whose definitions others call?"""

from __future__ import annotations

import ast

from dtlint.infer.names import path_of

__all__ = ["runs_something"]


def runs_something(tree: ast.Module) -> bool:
    """Is the file a program, and not only definitions for others: has it a main guard, a loop or a region, does it call
    what it has made itself, or does it define nothing and call what it imports?"""
    made: set[str] = set()
    defines = calls = False
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            made.add(statement.name)
            defines = True
        elif isinstance(statement, ast.Assign):
            made.update(target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, (ast.For, ast.While, ast.With)):
            if any(isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) for part in ast.walk(statement)):
                return True
        elif isinstance(statement, ast.If) and "__name__" in {
            part.id for part in ast.walk(statement.test) if isinstance(part, ast.Name)
        }:
            return True
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            root = (path_of(statement.value.func) or "").partition(".")[0]
            if root in made and root != "logger":
                return True
            calls = True
    return calls and not defines
