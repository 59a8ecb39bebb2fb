"""Reading a program: its script, and what that reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import TooLong
from dtlint.infer.facts import Facts
from dtlint.infer.interproc.engine import context_for
from dtlint.infer.interproc.open_contexts import OpenContexts, runs_something
from dtlint.infer.interproc.parsing import tree_of
from dtlint.infer.interproc.project import ModuleInfo, Project
from dtlint.source.file import Source, shown_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dtlint.infer.context import Context
    from dtlint.infer.interproc.disk import Disk

__all__ = ["Program", "read"]


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


def read(path: Path, roots: Sequence[Path], disk: Disk) -> Program:
    """Read a script with everything that it reaches.

    Raises:
        OSError, SyntaxError, ValueError, RecursionError: the file cannot be read, or does not parse.
    """
    source = Source.from_bytes(disk.read(path), shown_path(path))
    main = ModuleInfo("__main__", path, tree_of(source), "")
    project = Project(roots, main, disk)
    project.modules["__main__"] = main
    facts = Facts()
    ctx = context_for(project, main, facts)
    facts.context = ctx
    try:
        if runs_something(main.tree):
            ctx.modules.run_main(ctx, main)
        else:
            OpenContexts(main, facts).read(ctx)
    except (TooLong, RecursionError) as error:  # what was found so far may have been on the way to something else
        facts.values.clear()
        too_long = isinstance(error, TooLong)
        ctx.notes.append("following what it calls takes too long" if too_long else "the code is nested too deeply")
    return Program(main, source, ctx, facts, project)
