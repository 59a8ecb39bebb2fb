"""Reading files for rules, one after the other: the statements of each, and its functions as called by anybody.

What they import is read as far as something in it is asked for, and is shared by those that are read together. What is found
in a file does not depend on which others these are.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dtlint.infer.context import Frame, NeverReturns, TooLong
from dtlint.infer.facts import ModuleFacts
from dtlint.infer.interproc.calls import Calls
from dtlint.infer.interproc.engine import STEPS, context_for
from dtlint.infer.interproc.loss_targets import loss_targets
from dtlint.infer.interproc.main_guard import main_blocks
from dtlint.infer.interproc.open_contexts import OpenContexts, Signature
from dtlint.infer.interproc.project import ModuleInfo, Project
from dtlint.infer.interproc.recording import Recording
from dtlint.infer.interproc.whole_project import module_name
from dtlint.source.definitions import called_by_pytest, is_public, overriding, public_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from dtlint.dtypes.assumption import Assumption
    from dtlint.infer.interproc.disk import Disk
    from dtlint.infer.interproc.functions import FunctionDefinition

__all__ = ["FileReading"]

_BUDGET = 4_000
"""Calls that are followed for one file."""
_MOST_READINGS = 4
"""How often one function is read for other arguments, for one file."""


class FileReading:
    """Reads files that import one another.

    Args:
        roots: the folders that absolute imports start from, that of the files' own package first.
        expected: the files that are going to be read, as far as it is known.
    """

    def __init__(self, roots: Sequence[Path], expected: Collection[Path], disk: Disk) -> None:
        self._roots = roots
        main = ModuleInfo("", None, ast.Module([], []), "")
        self._project = Project(roots, main, disk, runs_imports=False)
        self._calls = Calls(_BUDGET, _MOST_READINGS)
        self._context = context_for(self._project, main, None, self._calls)
        self._recording = Recording(self._context, expected)
        self._signatures: dict[FunctionDefinition, Signature] = {}
        self._context.recorder = self._recording

    @property
    def bytes_read(self) -> int:
        """Of the files whose syntax is held."""
        return self._project.bytes_read

    def tree(self, path: Path) -> ast.Module | None:
        """The syntax of a file that was parsed already, for one that imports it."""
        info = self._project.modules.get(module_name(path, self._roots[0]))
        return None if info is None or info.path != path else info.tree

    def facts(self, path: Path | None, tree: ast.Module, size: int = 0) -> tuple[ModuleFacts, set[Path]]:
        """What a file shows, and the other files that this rests on.

        Args:
            path: where it is, or would be; None for text that comes from nowhere.
            tree: its syntax: the nodes that the facts speak of.
            size: the length of its text.

        What cannot be followed to its end is left where that is found out, and the facts say so.
        """
        ctx = self._context
        name = "__main__" if path is None else module_name(path, self._roots[0])
        info = self._project.modules.get(name)
        if info is None or info.tree is not tree:
            package = name if path is not None and path.name == "__init__.py" else name.rpartition(".")[0]
            info = self._project.modules[name] = ModuleInfo(name, path, tree, package)
            self._project.bytes_read += size
        ctx.steps_left = STEPS
        ctx.notes.clear()
        self._calls.begin()
        kept = self._recording.judging(info)
        reading = OpenContexts(info, self._recording, with_callees=True, rounds=1, signatures=self._signatures)
        facts = ModuleFacts(kept, info, [info])
        try:
            self._read(info, reading)
        except (RecursionError, TooLong) as error:
            facts.broken_off = facts.broken_off or type(error)
        finally:
            self._recording.forget(info)
        facts.broken_off = facts.broken_off or reading.broken_off
        return facts, self._rests_on(info)

    def assumed(self, plain: ModuleFacts, assumption: Assumption) -> ModuleFacts:
        """What the public definitions of a file show under an assumption.

        Args:
            plain: what it shows without one; it is the file that was read last.
        """
        info: ModuleInfo = plain.module
        ctx = self._context
        ctx.steps_left = STEPS
        self._calls.begin()
        kept = self._recording.judging(info)
        reading = OpenContexts(
            info,
            self._recording,
            with_callees=True,
            rounds=1,
            signatures=self._signatures,
            assumption=assumption,
            targets=frozenset() if assumption.targets == assumption.inputs else loss_targets(plain),
        )
        facts = ModuleFacts(kept, info, [info])
        facts.assumption = assumption
        try:
            hooks = frozenset(overriding(info.tree))

            def wanted(node: Any) -> bool:
                return (is_public(node) or node in hooks) and not called_by_pytest(info.path, node)

            self._read_definitions(info, reading, wanted)
        except (RecursionError, TooLong) as error:
            facts.broken_off = type(error)
        finally:
            self._recording.forget(info)
        facts.broken_off = facts.broken_off or reading.broken_off
        unfinished = {one.node for one in self._calls.left_out}
        if facts.broken_off is not None:
            wanted_alone = (one for one in public_functions(info.tree.body) if not called_by_pytest(info.path, one))
            unfinished |= set(wanted_alone) - {one.node for one in reading.finished}
        facts.unfinished = frozenset(unfinished)
        return facts

    def _read(self, info: ModuleInfo, reading: OpenContexts) -> None:
        """Run the body, read what stands under the main guard, and the definitions; the state is as before afterwards."""
        ctx, store = self._context, self._context.store
        try:
            ctx.modules.module(ctx, info.name)
        except (RecursionError, TooLong) as error:
            reading.broken_off = type(error)
        for block in main_blocks(info.tree):
            mark, usual = store.mark(), ctx.frame
            ctx.frame = Frame(store.address(None, info.name, "module"), None, info, mark=mark)
            try:
                with suppress(NeverReturns):
                    ctx.semantics.execute(ctx, block)
            finally:
                store.undo(mark)
                ctx.frame = usual
        self._read_definitions(info, reading)

    def _read_definitions(
        self, info: ModuleInfo, reading: OpenContexts, wanted: Callable[[Any], bool] = lambda node: True
    ) -> None:
        """Read the definitions of a module that was run; the state is as before afterwards."""
        ctx, store = self._context, self._context.store
        mark, usual = store.mark(), ctx.frame
        ctx.frame = Frame(store.address(None, info.name, "module"), None, info, mark=mark)
        try:
            with suppress(NeverReturns):
                reading.read_definitions(ctx, wanted)
        finally:
            store.undo(mark)
            ctx.frame, ctx.recorder = usual, self._recording
        if ctx.steps_left < 0:
            raise TooLong

    def _rests_on(self, info: ModuleInfo) -> set[Path]:
        found: set[ModuleInfo] = {info}
        waiting = [*info.rests_on, *self._calls.asked[0]]
        while waiting:
            module = waiting.pop()
            if module not in found:
                found.add(module)
                waiting += module.rests_on
        paths = {module.path for module in found if module.path is not None and module is not info}
        return paths.union(*(module.files for module in found))
