"""Reading files for rules, one after the other: the statements of each, and its functions as called by anybody.

What they import is read as far as something in it is asked for, and is shared by those that are read together. What is found
in a file does not depend on which others these are.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from dtlint.infer.context import Frame, NeverReturns, TooLong
from dtlint.infer.domain.values import Const
from dtlint.infer.facts import Facts, ModuleFacts
from dtlint.infer.interproc.callers import Callers, CarelessCallers, SupposedCallers
from dtlint.infer.interproc.calls import Calls
from dtlint.infer.interproc.engine import STEPS, context_for
from dtlint.infer.interproc.functions import FunctionDefinition
from dtlint.infer.interproc.loss_targets import loss_targets
from dtlint.infer.interproc.main_guard import main_blocks
from dtlint.infer.interproc.open_contexts import OpenContexts
from dtlint.infer.interproc.program_or_library import runs_something
from dtlint.infer.interproc.project import ModuleInfo, Project
from dtlint.infer.interproc.reading import Program
from dtlint.infer.interproc.recording import Recording
from dtlint.infer.interproc.whole_project import module_name
from dtlint.infer.models.drivers import ambient
from dtlint.infer.models.ops import GOES_ON
from dtlint.source.definitions import called_by_pytest, is_public, overriding, public_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from dtlint.dtypes.assumption import Assumption
    from dtlint.infer.interproc.by_signature import Signature
    from dtlint.infer.interproc.disk import Disk
    from dtlint.source.file import Source

__all__ = ["FileReading", "Independent"]

_BUDGET = 4_000
"""Calls that are followed for one file."""
_MOST_READINGS, _MOST_UNDER = 4, 32
"""How often one function is read for other arguments, for one file; and under an assumption, where functions that are not
followed to their ends are named. Of the 1,634 of kornia these are 406 with 4 readings, and 24 with 32, for a tenth more time."""


def _empty_held(part: object) -> None:
    """Empty the containers that an object holds, and the functions in them."""
    slots = (name for kind in type(part).__mro__ for name in getattr(kind, "__slots__", ()))
    for name in (*getattr(part, "__dict__", ()), *slots):
        held = getattr(part, name, None)
        for one in held.values() if isinstance(held, dict) else ():
            if isinstance(one, FunctionDefinition):
                vars(one).clear()
        if isinstance(held, (dict, set, list)):
            held.clear()


class Independent(NamedTuple):
    """Modules by name whose bodies a file had run: by its own body, and by its functions when they were read. The latter
    follow fewer calls, as all does that functions ask for."""

    by_body: tuple[str, ...]
    by_functions: tuple[str, ...]


class FileReading:
    """Reads files that import one another.

    Args:
        roots: the folders that absolute imports start from, that of the files' own package first.
        expected: the files that are going to be read, as far as it is known.
        for_people: is what each expression of a file is kept, too, for `claims` to tell?
    """

    def __init__(
        self, roots: Sequence[Path], expected: Collection[Path], disk: Disk, *, for_people: bool = False
    ) -> None:
        self._roots = roots
        main = ModuleInfo("", None, ast.Module([], []), "")
        self._project = Project(roots, main, disk, runs_imports=False)
        self._calls = Calls(_BUDGET, _MOST_READINGS)
        self._context = context_for(self._project, main, None, self._calls)
        self._recording = Recording(self._context, expected)
        self._signatures: dict[FunctionDefinition, Signature] = {}
        self._context.recorder = self._recording
        self._for_people = for_people
        self._by_body: set[ModuleInfo] = set()
        """The modules that had been run when the statements of the file were."""
        self.told = Facts()
        """What the expressions of the file are that was read last, where that is kept: in a program as the calls in view
        have it, and as anybody may call in code that these do not reach; in a library the other way round."""

    @property
    def bytes_read(self) -> int:
        """Of the files whose syntax is held."""
        return self._project.bytes_read

    def release(self, kept: ast.Module) -> None:
        """Let go of what was read, but for one module's syntax. Nothing is to be asked any more.

        Functions, modules and objects lead to one another. Taken apart they go at once, while Python's search for such
        garbage goes through all of it: that took a quarter of the time of a check of transformers.
        """
        ctx = self._context
        self._project.release(kept)
        for part in (ctx.store, ctx.modules, self._calls, self._recording):
            _empty_held(part)
        self._signatures.clear()

    def tree(self, path: Path) -> ast.Module | None:
        """The syntax of a file that was parsed already, for one that imports it."""
        info = self._project.modules.get(self._name(path))
        return None if info is None or info.path != path else info.tree

    def _name(self, path: Path | None) -> str:
        """The name of a file as a module. A notebook is none, nor is a file beside a package of its name: that is what an
        import gets."""
        disk = self._project.disk
        if path is None or path.suffix == ".ipynb" or disk.is_file(path.with_suffix("") / "__init__.py"):
            return "__main__"
        return module_name(path, self._roots[0])

    def facts(self, path: Path | None, tree: ast.Module, size: int = 0) -> tuple[ModuleFacts, set[Path]]:
        """What a file shows, and the other files that this rests on.

        Args:
            path: where it is, or would be; None for text that comes from nowhere.
            tree: its syntax: the nodes that the facts speak of.
            size: the length of its text.

        What cannot be followed to its end is left where that is found out, and the facts say so.
        """
        ctx = self._context
        name = self._name(path)
        info = self._project.modules.get(name)
        if info is None or info.tree is not tree:
            package = name if path is not None and path.name == "__init__.py" else name.rpartition(".")[0]
            info = self._project.modules[name] = ModuleInfo(name, path, tree, package)
            self._project.bytes_read += size
        ctx.steps_left = STEPS
        ctx.notes.clear()
        self._calls.begin()
        kept = self._recording.judging(info)
        reading = self._contexts(info, CarelessCallers())
        facts = ModuleFacts(kept, info, [info])
        try:
            self._read(info, reading)
        except (RecursionError, TooLong) as error:
            facts.broken_off = facts.broken_off or type(error)
        finally:
            self._recording.forget(info)
        facts.broken_off = facts.broken_off or reading.broken_off
        return facts, self._rests_on(info)

    def assumed(
        self, plain: ModuleFacts, assumption: Assumption, only: Collection[ast.AST] | None = None
    ) -> ModuleFacts:
        """What the public definitions of a file show under an assumption.

        Args:
            plain: what it shows without one; it is the file that was read last.
            only: the functions and methods that are asked for; None: all.
        """
        info: ModuleInfo = plain.module
        ctx = self._context
        ctx.steps_left = STEPS
        self._calls.begin()
        self._calls.most_readings = _MOST_UNDER
        kept = self._recording.judging(info)
        targets = frozenset[str]() if assumption.targets == assumption.inputs else loss_targets(plain)
        reading = self._contexts(info, SupposedCallers(assumption, targets))
        facts = ModuleFacts(kept, info, [info], plain.around)
        facts.assumption, facts.without = assumption, plain
        try:
            hooks = frozenset(overriding(info.tree))

            def wanted(node: Any) -> bool:
                return (is_public(node) or node in hooks) and not called_by_pytest(info.path, node)

            self._read_definitions(info, reading, wanted, only)
        except (RecursionError, TooLong) as error:
            facts.broken_off = type(error)
        finally:
            self._recording.forget(info)
            self._calls.most_readings = _MOST_READINGS
        facts.broken_off = facts.broken_off or reading.broken_off
        unfinished = {one.node for one in self._calls.left_out}
        if facts.broken_off is not None:
            wanted_alone = (one for one in public_functions(info.tree.body) if not called_by_pytest(info.path, one))
            unfinished |= set(wanted_alone) - {one.node for one in reading.finished}
        facts.unfinished = frozenset(unfinished)
        return facts

    def _contexts(self, info: ModuleInfo, callers: Callers) -> OpenContexts:
        return OpenContexts(info, self._recording, callers, with_callees=True, signatures=self._signatures)

    def _read(self, info: ModuleInfo, reading: OpenContexts) -> None:
        """Run the body, read what stands under the main guard, and the definitions; the state is as before afterwards."""
        if self._for_people:
            told = self._recording.told = Facts()
            told.context = self._context
        self._run(info, reading)
        if not self._for_people:
            self._read_definitions(info, reading)
            return
        openly = self._recording.told = Facts()
        openly.context, self._recording.told_all = self._context, False
        try:
            self._read_definitions(info, reading)
        finally:
            self._recording.told, self._recording.told_all = None, True
            self.told = told.over(openly) if runs_something(info.tree) else openly.over(told)

    def _run(self, info: ModuleInfo, reading: OpenContexts) -> None:
        """Run the body, and what stands under the main guard."""
        self._run_statements(info, reading)
        self._by_body = {module for module in self._project.modules.values() if module is not None and module.run}

    def _run_statements(self, info: ModuleInfo, reading: OpenContexts) -> None:
        ctx, store = self._context, self._context.store
        is_notebook = info.path is not None and info.path.suffix == ".ipynb"
        try:
            with ambient(ctx, GOES_ON, Const(is_notebook)):  # cells run behind one that raised
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

    def _read_definitions(
        self,
        info: ModuleInfo,
        reading: OpenContexts,
        wanted: Callable[[Any], bool] = lambda node: True,
        only: Collection[ast.AST] | None = None,
    ) -> None:
        """Read the definitions of a module that was run; the state is as before afterwards."""
        ctx, store = self._context, self._context.store
        mark, usual = store.mark(), ctx.frame
        ctx.frame = Frame(store.address(None, info.name, "module"), None, info, mark=mark)
        try:
            with suppress(NeverReturns):
                reading.read_definitions(ctx, wanted, only)
        finally:
            store.undo(mark)
            ctx.frame, ctx.recorder = usual, self._recording
        if ctx.steps_left < 0:
            raise TooLong

    def program(self, path: Path | None, source: Source) -> Program | None:
        """The file that was read last, as `claims` tells of it; None where another one was, or nothing was kept for it."""
        info = self._project.modules.get(self._name(path))
        return None if info is None else Program(info, source, self._context, self.told, self._project)

    def independent(self, paths: Collection[Path]) -> Independent:
        """The modules whose bodies were run for the file that was read last, and rest on nothing in files, of which that
        file is one."""
        modules = [info for info in self._project.modules.values() if info is not None]
        resting = {info for info in modules if info.path in paths}
        found = 0
        while found < len(resting):
            found = len(resting)
            resting |= {info for info in modules if not info.rests_on.isdisjoint(resting)}
        free = [info for info in modules if info.run and info not in resting]
        by_body = tuple(info.name for info in free if info in self._by_body)
        return Independent(by_body, tuple(info.name for info in free if info not in self._by_body))

    def prepare(self, modules: Independent) -> None:
        """Run the bodies of modules, as the file would that is read next."""
        ctx, store = self._context, self._context.store
        ctx.steps_left = STEPS
        for name in modules.by_body:
            ctx.modules.module(ctx, name)
        mark, usual = store.mark(), ctx.frame
        library = self._contexts(ModuleInfo("", None, ast.Module([], []), ""), CarelessCallers())

        def ask() -> None:
            for name in modules.by_functions:
                ctx.modules.module(ctx, name)

        try:
            library.within(ctx, ask)
        finally:
            self._calls.signature = self._calls.at_open_end = None
            store.undo(mark)
            ctx.frame, ctx.recorder = usual, self._recording

    def holds(self, path: Path) -> bool:
        """Is a file among the modules that were parsed?"""
        return any(info is not None and info.path == path for info in self._project.modules.values())

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
