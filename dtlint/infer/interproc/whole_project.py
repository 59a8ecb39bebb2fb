"""Running the programs of a project, with the modules of it that they import."""

from __future__ import annotations

import ast
from contextlib import suppress
from itertools import islice, product
from typing import TYPE_CHECKING

from dtlint.infer.context import Frame, NeverReturns, TooLong
from dtlint.infer.domain.values import NONE, Const, Tuple
from dtlint.infer.interproc.calls import Calls
from dtlint.infer.interproc.deciding_options import deciding_options
from dtlint.infer.interproc.engine import context_for
from dtlint.infer.interproc.main_guard import main_blocks
from dtlint.infer.interproc.program import Program
from dtlint.infer.interproc.program_or_library import runs_something
from dtlint.infer.interproc.project import ModuleInfo, Project
from dtlint.infer.interproc.recording import Recording
from dtlint.infer.models.options import AS_GIVEN, OTHERS_GIVEN
from dtlint.infer.state import Iteration

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from dtlint.infer.domain.values import Value
    from dtlint.infer.interproc.disk import Disk

__all__ = ["WholeProject", "module_name"]

_BUDGET = 8_000
"""Calls that are followed for one program."""
_MOST_STEPS = 150_000
"""Statements that are run for one program: about 20 s. Training scripts take up to 60,000, with what they import."""
_MOST_FOLLOWED = 12_000
"""Calls that are followed for all programs of a run before each has the least alone: a project may have a program for each
setting of the same few functions. Options are tried while no more than half of these are spent."""
_LEAST = 100
"""Calls that are followed for any program."""
_MOST_READINGS = 64
"""How often one function is read for other arguments: a registry's decorator is met a thousand times."""
_MOST_OPTIONS = 6
"""Options that a program is run with, one at a time."""
_MOST_TOGETHER = 4
"""Pairs of options that a program is run with."""
_MOST_AGAIN = 1_500
"""Calls that were followed for a program, after which no further option is tried."""
_MOST_DECIDING = 3_000
"""Calls that may be followed in trying options of which the program's precision hangs."""
_MOST_RUN = 1_000_000
"""Bytes of modules that run for one program because an import names them, as those do that fill a registry."""


def module_name(path: Path, root: Path) -> str:
    """The dotted name of a file below a root."""
    parts = list(path.relative_to(root).with_suffix("").parts)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


class WholeProject:
    """The modules below one import root, and what reading them has shown.

    Args:
        root: the folder that absolute imports start from.
        beside: further folders of the project in which modules are looked for.
        followed: calls that were followed for the programs below other roots.
    """

    def __init__(self, root: Path, beside: Sequence[Path], disk: Disk, followed: int = 0) -> None:
        self.root = root
        main = ModuleInfo("", None, ast.Module([], []), "")
        self.project = Project([root], main, disk, beside=beside)
        self.calls = Calls(_BUDGET, _MOST_READINGS)
        self.context = context_for(self.project, main, None, self.calls)
        assert isinstance(self.context.modules, Program)
        self._program = self.context.modules
        self.recording = Recording(self.context, whole=True)
        self.context.recorder = self.recording
        self.judged: list[ModuleInfo] = []
        self.followed = followed
        """Calls that were followed for programs so far."""

    @property
    def bytes_read(self) -> int:
        """Of the modules whose syntax is held."""
        return self.project.bytes_read

    def run(self, path: Path) -> None:
        """Run a file, if it is a program."""
        ctx, name = self.context, module_name(path, self.root)
        info = self.project.module(name)
        if info is not None and info.path == path and runs_something(info.tree):
            self.project.runs_until = self.bytes_read + _MOST_RUN
            self.calls.begin(info)
            self.calls.budget = _BUDGET if self.followed < _MOST_FOLLOWED else _LEAST
            ctx.steps_left = _MOST_STEPS
            self._program.options.clear()
            with suppress(TooLong):
                with suppress(NeverReturns):
                    ctx.modules.module(ctx, name)
                again = [info.tree.body] if self._program.options else []
                blocks = list(main_blocks(info.tree))
                self._run_as_program(info, blocks)
                self._run_with_options(info, [*again, *blocks])
            self.followed += self.calls.followed

    def reached(self, judged: Collection[Path]) -> dict[Path, ModuleInfo]:
        """The modules among those that rules judge in which, or behind whose calls, something happened."""
        reached = {info.path: info for info in self.project.modules.values() if info is not None and info.path}
        found = {path: reached[path] for path in judged if path in reached}
        self.judged += found.values()
        kept = self.recording.kept
        concerned = {*kept.index().by_module, *(id(event.module) for event in kept.events.values())}
        return {path: info for path, info in found.items() if id(info) in concerned}

    def _run_with_options(self, info: ModuleInfo, blocks: Sequence[Sequence[ast.stmt]]) -> None:
        """Run a program again with options: none, then one each of those that have few values, and two of those that its
        precision hangs on. One that does not get to its end with none may need some: then others may always be given.
        """
        if not self._program.options or self.followed + self.calls.followed > _MOST_FOLLOWED // 2:
            return
        others: list[tuple[Value, ...]] = [(), (OTHERS_GIVEN,)]
        if not self._again(info, blocks, Tuple(())):
            others = [(OTHERS_GIVEN,)]
            self._again(info, blocks, Tuple(others[0]))
        deciding = deciding_options(info.tree, self._program.options)
        limit = max(_MOST_AGAIN, self.calls.followed + _MOST_DECIDING)
        alone = [(one,) for one in deciding.of_precision[:_MOST_OPTIONS]]
        for given, beside, most in (
            (alone, others, limit),
            (list(islice(deciding.together(), _MOST_TOGETHER)), others[:1], limit),
            ([(one,) for one in deciding.of_others[:_MOST_OPTIONS]], others[:1], _MOST_AGAIN),
        ):
            for more, pairs in product(beside, given):
                if self.calls.followed > most:
                    break
                self._again(info, blocks, Tuple((*(Tuple((Const(name), value)) for name, value in pairs), *more)))

    def _again(self, info: ModuleInfo, blocks: Sequence[Sequence[ast.stmt]], given: Tuple) -> bool:
        """Run a program again; is its end reached?"""
        self.context.store.unfreeze(self._program.address_of(info))
        self.calls.begin_run()
        return self._run_as_program(info, blocks, given)

    def _run_as_program(self, info: ModuleInfo, blocks: Sequence[Sequence[ast.stmt]], given: Value = NONE) -> bool:
        """Run statements of a module, what stands under `if __name__ == "__main__":`; is their end reached? The state is as
        before afterwards.

        Args:
            given: the options on the command line; None where they may be any.
        """
        ctx, store = self.context, self.context.store
        address = store.address(None, info.name, "module")
        mark, usual = store.mark(), ctx.frame
        path = None if given == NONE else store.path(None, Iteration(given))
        ctx.frame = Frame(address, path, info, mark=mark)
        try:
            ctx.set_ambient(AS_GIVEN, given)
            with suppress(NeverReturns):
                return all(ctx.semantics.execute(ctx, block) for block in blocks)
            return False
        finally:
            store.undo(mark)
            ctx.frame = usual
