"""Reading a program: its script, and what that reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Tensor, Unknown
from dtlint.infer.facts import Facts
from dtlint.infer.interproc.engine import context_for
from dtlint.infer.interproc.project import ModuleInfo, Project, tree_of
from dtlint.source.file import Source, shown_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dtlint.infer.context import Context
    from dtlint.infer.interproc.disk import Disk

__all__ = ["Program", "claims", "read"]


class Program:
    """A program that was read: its main module, and the facts."""

    def __init__(self, main: ModuleInfo, source: Source, ctx: Context, facts: Facts) -> None:
        self.main, self.source, self.context, self.facts = main, source, ctx, facts


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
    ctx.modules.run_main(ctx, main)
    return Program(main, source, ctx, facts)


def claims(path: Path, roots: Sequence[Path], disk: Disk) -> list[dict[str, object]]:
    """What is known of each tensor expression of a program, as JSON has it."""
    program = read(path, roots, disk)
    sources: dict[Path, Source] = {path: program.source}
    found: list[dict[str, object]] = []
    for node, module, value in program.facts.tensors():
        file = getattr(module, "path", None)
        if file is None or not isinstance(value, (Tensor, Unknown)) or not value.dtypes:
            continue
        if file not in sources:
            sources[file] = Source.from_bytes(disk.read(file), shown_path(file))
        span = sources[file].span(node)
        found.append(
            {
                "path": str(file),
                "line": span.line,
                "column": span.column,
                "end_line": span.end_line,
                "end_column": span.end_column,
                "dtypes": sorted(value.dtypes),
            }
        )
    return found
