"""Reading a program: its script, and what that reaches."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from dtlint.infer.context import TooLong
from dtlint.infer.facts import Facts
from dtlint.infer.interproc.callers import AssumedCallers, Callers, TensorCallers
from dtlint.infer.interproc.engine import context_for
from dtlint.infer.interproc.open_contexts import OpenContexts
from dtlint.infer.interproc.parsing import tree_of
from dtlint.infer.interproc.program_or_library import runs_something
from dtlint.infer.interproc.project import ModuleInfo, Project
from dtlint.source.file import Source, shown_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dtlint.dtypes.assumption import Assumption
    from dtlint.infer.context import Context, Recorder
    from dtlint.infer.domain.values import Value
    from dtlint.infer.interproc.disk import Disk
    from dtlint.infer.interproc.functions import FunctionDefinition
    from dtlint.infer.interproc.summaries import Summary

__all__ = ["Library", "Program", "read", "read_library"]


class Program:
    """A program that was read: its main module, and the facts."""

    def __init__(self, main: ModuleInfo, source: Source, ctx: Context, facts: Facts, project: Project) -> None:
        self.main, self.source, self.context, self.facts = main, source, ctx, facts
        self.starved = project.starved
        """Was a file not followed for want of memory? Another time it may be."""

    @property
    def broken_off(self) -> str:
        """What was not followed to its end, in a sentence; empty where everything was."""
        return "; ".join(dict.fromkeys(self.context.notes))


class Library(NamedTuple):
    """A file that was read as a library: its functions as called by anybody.

    Attributes:
        source, tree: its text and its syntax.
        readings: each function with the object whose method it is, what its parameters were, and what it was found to do.
        broken_off: what was not followed to its end, in a sentence.
        starved: was a file not followed for want of memory? Another time it may be.
    """

    source: Source
    tree: ast.Module
    readings: Sequence[tuple[FunctionDefinition, Value | None, Mapping[str, Value], Summary]]
    broken_off: str
    starved: bool


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _package(path: Path, disk: Disk) -> tuple[str, Path]:
    """The package that a file is a module of, empty for a file in none; and the folder that the package is in."""
    parts: list[str] = []
    folder = path.parent
    while folder.name and disk.is_file(folder / "__init__.py"):
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def read(path: Path, roots: Sequence[Path], disk: Disk, assumption: Assumption | None = None) -> Program:
    """Read a script with everything that it reaches.

    Args:
        path: the script, or a module of a library.
        roots: folders in which imported modules are looked for.
        disk: what files are asked of.
        assumption: what the file's functions are given, and its modules were cast to. Then they are read as called by
            anybody, whether the file runs anything or not.

    Raises:
        OSError, SyntaxError, ValueError, RecursionError: the file cannot be read, or does not parse.
    """
    source, main = _parsed(path, disk)
    is_program = runs_something(main.tree)
    is_library = not is_program and any(isinstance(one, _DEFINITIONS) for one in main.tree.body)
    project = _project(main, path, roots, disk, runs_imports=not is_library)
    facts = Facts()
    ctx = context_for(project, main, facts)
    facts.context = ctx
    try:
        if is_program and assumption is None:
            ctx.modules.run_main(ctx, main)
        else:
            callers = Callers() if assumption is None else AssumedCallers(assumption)
            OpenContexts(main, facts, callers, signatures={}).read(ctx)
    except (TooLong, RecursionError) as error:  # what was found so far may have been on the way to something else
        facts.values.clear()
        ctx.notes.append(_why(error))
    return Program(main, source, ctx, facts, project)


def read_library(path: Path, roots: Sequence[Path], disk: Disk, recorder: Recorder) -> Library:
    """Read the functions of a file as called by anybody.

    Args:
        recorder: is told of what happens in them.

    Raises:
        OSError, SyntaxError, ValueError, RecursionError: the file cannot be read, or does not parse.
    """
    source, main = _parsed(path, disk)
    project = _project(main, path, roots, disk, runs_imports=False)
    ctx = context_for(project, main, recorder)
    contexts = OpenContexts(main, recorder, TensorCallers(), signatures={})
    try:
        contexts.read(ctx)
    except (TooLong, RecursionError) as error:
        ctx.notes.append(_why(error))
    broken_off = "; ".join(dict.fromkeys(ctx.notes))
    return Library(source, main.tree, list(contexts.readings()), broken_off, project.starved)


def _parsed(path: Path, disk: Disk) -> tuple[Source, ModuleInfo]:
    source = Source.from_bytes(disk.read(path), shown_path(path))
    return source, ModuleInfo("__main__", path, tree_of(source), _package(path, disk)[0])


def _project(main: ModuleInfo, path: Path, roots: Sequence[Path], disk: Disk, *, runs_imports: bool) -> Project:
    """The project around a main module."""
    package, top = _package(path, disk)
    if package and not runs_imports:  # nobody starts it: its folder is no place for modules of their own
        roots = [top, *(one for one in roots if one not in (top, path.parent)), path.parent]
    beside = [top] if package and top not in roots else []
    project = Project(roots, main, disk, runs_imports=runs_imports, beside=beside)
    project.modules["__main__"] = main
    if package:
        project.modules[package if path.name == "__init__.py" else f"{package}.{path.stem}"] = main
    return project


def _why(error: Exception) -> str:
    return "following what it calls takes too long" if isinstance(error, TooLong) else "the code is nested too deeply"
