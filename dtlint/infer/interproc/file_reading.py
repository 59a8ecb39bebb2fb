"""Reading one file for rules: its own statements, and each of its functions as called by anybody.

What it imports is read as far as it asks for it, and nothing of that outlasts the reading but syntax trees: what is found
in a file rests on it, and on what it has led to, alone.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dtlint.infer.context import NeverReturns, TooLong
from dtlint.infer.facts import Facts, ModuleFacts
from dtlint.infer.interproc.calls import Calls
from dtlint.infer.interproc.engine import context_for
from dtlint.infer.interproc.open_contexts import OpenContexts
from dtlint.infer.interproc.project import ModuleInfo, Project
from dtlint.infer.interproc.whole_project import module_name

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence
    from pathlib import Path

    from dtlint.infer.interproc.disk import Disk
    from dtlint.infer.interproc.trees import Trees

__all__ = ["read_file"]

_BUDGET = 4_000
"""Calls that are followed for one file."""
_MOST_READINGS = 8
"""How often one function is read for other arguments."""


def read_file(path: Path | None, tree: ast.Module, roots: Sequence[Path], disk: Disk, trees: Trees) -> ModuleFacts:
    """What a file shows.

    Args:
        path: where it is, or would be; None for text that comes from nowhere.
        tree: its syntax tree: the nodes that the facts speak of.
        roots: the folders that absolute imports start from, that of the file's own package first.

    Raises:
        TooLong, RecursionError: it cannot be followed to its end.
    """
    name = module_name(path, roots[0]) if path is not None and roots else "__main__"
    package = name if path is not None and path.name == "__init__.py" else name.rpartition(".")[0]
    info = ModuleInfo(name, path, tree, package)
    project = Project(roots, info, disk, trees, runs_imports=False)
    project.modules[name] = info
    facts = Facts(detailed=True)
    facts.watch(info)
    ctx = context_for(project, info, facts, Calls(_BUDGET, _MOST_READINGS))
    facts.context = ctx
    reading = OpenContexts(info, facts, with_callees=True, rounds=1)
    with suppress(NeverReturns):
        reading.read(ctx)
    if ctx.steps_left < 0:
        raise TooLong
    return ModuleFacts(facts, info)
