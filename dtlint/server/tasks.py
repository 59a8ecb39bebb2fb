"""Reading one text: what is asked, the answers in the order in which they are ready, and how each is found.

The answers are what `dtlint check` says of the file alone; what each expression of it is; and what `dtlint check` says of it
among the other files of its project. This runs in a process of its own (processes.py).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtlint.catalogue import catalogue
from dtlint.check.file import check_source
from dtlint.check.hygiene import UNREADABLE_FILE, unreadable_diagnostic
from dtlint.check.job import Job
from dtlint.check.reader import Reader, project_folder
from dtlint.check.run import jobs_of, without_echoes
from dtlint.config import ConfigError
from dtlint.infer.interproc.disk import Disk
from dtlint.rule import RulesError
from dtlint.source.discover import UnfitPath, discover
from dtlint.source.file import Source, UnreadableSource
from dtlint.source.patterns import PatternError
from dtlint.source.settings_file import is_settings
from dtlint.unexpected import in_one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.config import Settings
    from dtlint.diagnostic import Diagnostic
    from dtlint.infer.claims.bindings import Target
    from dtlint.server.options import Options

__all__ = ["Answer", "Checked", "Fixed", "Inferred", "Reading", "Task", "WholeProject", "find_rules", "load_all"]

_MOST_FILES = 300
"""Files of a project that are read together; of a larger one only the programs among those that are open."""


@dataclass(frozen=True)
class Task:
    """A text to be read.

    Attributes:
        key: what the text is of; another task with this key overtakes this one.
        revision: of the text.
        path: where it lies, or is to lie; None for what is no file.
        unsaved: what the other files hold that are open, by path.
        fix: are safe fixes to be applied, and nothing else?
        open: the files that are open.
    """

    key: str
    revision: int
    path: Path | None
    shown: str
    data: bytes
    unsaved: Mapping[str, bytes]
    options: Options
    fix: bool = False
    open: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Answer:
    """Something that was found out for a task."""

    key: str
    revision: int


@dataclass(frozen=True)
class Checked(Answer):
    """What is wrong in the file by itself.

    Attributes:
        problem: why nothing is known, in a sentence: the configuration is wrong, or dtlint is.
        readable: does the text parse? Else it may be wrong in more than is said.
    """

    diagnostics: Sequence[Diagnostic]
    problem: str = ""
    readable: bool = True


@dataclass(frozen=True)
class Inferred(Answer):
    """What the expressions of the file are.

    Attributes:
        tables: those of an `Account`; None where there is nothing to show.
        contents: what the files hold that the tables speak of.
        targets: the assignments of the file.
        rests_on: the other files that were looked into.
    """

    tables: dict[str, Any] | None
    contents: Mapping[str, bytes] = field(default_factory=dict)
    rests_on: frozenset[str] = frozenset()
    targets: Sequence[Target] = ()


@dataclass(frozen=True)
class WholeProject(Answer):
    """What is wrong in the file, by all that is known of its project. It takes the place of what was said by itself."""

    diagnostics: Sequence[Diagnostic] | None
    """None where the project shows no more than the file."""


@dataclass(frozen=True)
class Fixed(Answer):
    """The file with its safe fixes applied."""

    text: bytes | None
    """None where none was."""


find_rules = cache(catalogue)
"""The rules are those that were there at first: one that has been imported stays as it was."""

_SAMPLE = b"import torch\n\n\ndef scaled(x: torch.Tensor) -> torch.Tensor:\n    return x.float() * torch.ones(3)\n"


def load_all(task: Task) -> None:
    """Import what the answers are found with, and look up what is looked up once: else each process would, for itself.

    Args:
        task: one for which answers will be found.
    """
    for rule in find_rules().values():
        with suppress(RulesError):
            rule.load()
    sample = replace(task, data=_SAMPLE, unsaved={})
    reading = Reading(sample, Reader(disk=Disk(), for_people=True))
    reading.checked()
    reading.inferred()


class _Setup:
    """What holds for the file of a task: its settings and rules.

    Raises:
        ConfigError, PatternError: the settings are wrong.
    """

    def __init__(self, task: Task) -> None:
        self.rules: Mapping[str, AnyRule] = find_rules()
        self.configuration = task.options.configuration_of_files()
        path = task.path if task.path is not None else Path(task.shown)
        self.settings: Settings = self.configuration.settings_for(path)
        self.enabled = self.settings.enabled(self.rules, path)
        self.job = Job(path, task.shown, self.settings, tuple(rule.code for rule in self.enabled))


class Reading:
    """The answers to a task, found one after the other. None of these raises."""

    def __init__(self, task: Task, reader: Reader) -> None:
        self._task, self._reader = task, reader
        self._setup: _Setup | None = None
        self._source: Source | None = None

    def checked(self) -> Checked:
        """What is wrong in the file by itself."""
        task = self._task
        try:
            setup = self._setup = _Setup(task)
            if is_settings(task.shown):
                from dtlint.check.settings import check_settings

                diagnostics, errors = check_settings(setup.job, setup.rules, task.data)
                return Checked(task.key, task.revision, diagnostics, "; ".join(errors))
            try:
                source = self._source = Source.from_bytes(task.data, task.shown, task.path)
            except UnreadableSource as error:
                diagnostics = (
                    [unreadable_diagnostic(task.shown, error)] if UNREADABLE_FILE[0] in setup.job.codes else []
                )
                return Checked(task.key, task.revision, diagnostics, readable=False)
            self._reader.rests_on = {}
            found = check_source(source, setup.enabled, setup.settings, (), self._reader)
            readable = not any(one.code == UNREADABLE_FILE[0] for one in found.diagnostics)
            problem = "; ".join(found.crashes)
            return Checked(task.key, task.revision, tuple(found.diagnostics), problem, readable)
        except (ConfigError, PatternError, RulesError, UnfitPath) as error:
            return Checked(task.key, task.revision, (), str(error))
        except Exception as error:
            return Checked(
                task.key, task.revision, (), problem=f"internal error: {in_one_line(error)}; please report it"
            )

    def inferred(self) -> Inferred:
        """What the expressions of the file are. To be asked behind `checked`."""
        task, source = self._task, self._source
        nothing = Inferred(task.key, task.revision, None)
        if source is None or "torch" not in source.text or task.path is None:
            return nothing
        try:
            return self._inferred(source, task.path) or nothing
        except (SyntaxError, ValueError, OSError, RecursionError, KeyError):
            return nothing

    def _inferred(self, source: Source, path: Path) -> Inferred | None:
        from dtlint.infer.claims.bindings import targets
        from dtlint.infer.claims.reading import Reading as Claims
        from dtlint.infer.claims.tables import tables
        from dtlint.infer.interproc.parsing import tree_of

        def program() -> Any:
            reading = self._reader.reading(path)
            return None if reading is None else reading.program(path, source)

        read = program()
        if read is None:  # no rule has asked for it
            self._reader.facts(tree_of(source), path, size=len(source.text))
            read = program()
        if read is None:
            return None
        assert self._reader.disk is not None
        claims = Claims(read, path, self._reader.disk)
        found = tables(claims)
        others = [name for name in found["paths"] if name != str(path)]
        contents = {name: self._reader.disk.read(name) for name in others} | {str(path): source.data}
        rests_on = frozenset(self._reader.rests_on)
        bound = targets(claims.tree, source)
        return Inferred(self._task.key, self._task.revision, found, contents, rests_on, bound)

    def whole_project(self) -> WholeProject:
        """What is wrong in the file among the others of its project. To be asked behind `checked`."""
        task = self._task
        nothing = WholeProject(task.key, task.revision, None)
        if self._setup is None or self._source is None or task.path is None or task.path.suffix != ".py":
            return nothing
        try:
            return self._whole_project(self._setup, self._source, task.path) or nothing
        except (ConfigError, PatternError, UnfitPath, OSError, UnreadableSource):
            return nothing

    def _whole_project(self, setup: _Setup, source: Source, path: Path) -> WholeProject | None:
        from dtlint.check.project import project_findings

        task = self._task
        jobs = list(jobs_of(self._files(setup, path), setup.configuration.settings_for, setup.rules))
        found = project_findings(jobs, setup.rules, Disk({**task.unsaved, str(path): task.data}))
        reported = found.by_file.get(path, ())
        if not reported:
            return None
        checked = check_source(source, setup.enabled, setup.settings, reported, Reader([path], self._reader.disk))
        return WholeProject(task.key, task.revision, tuple(without_echoes(checked.diagnostics)))

    def _files(self, setup: _Setup, path: Path) -> list[Path]:
        """The files of a file's project; of one that is too large, or that nothing shows the extent of, those that are open
        or lie beside it."""
        folder = project_folder(path.parent)
        files = [] if folder is None else list(discover([str(folder)], setup.configuration.settings_for))
        if folder is None or len(files) > _MOST_FILES:
            files = [*sorted(path.parent.glob("*.py"))[:_MOST_FILES], *self._task.open]
        return list(dict.fromkeys([*(file.absolute() for file in files if file.suffix == ".py"), path]))

    def fixed(self) -> Fixed:
        """The file with its safe fixes."""
        from dtlint.check.fix import fix_source
        from dtlint.diagnostic import Applicability

        task = self._task
        try:
            setup = _Setup(task)
            source = Source.from_bytes(task.data, task.shown, task.path)
            done = fix_source(source, setup.enabled, setup.settings, Applicability.SAFE, self._reader)
        except (ConfigError, PatternError, UnfitPath, UnreadableSource, RulesError):
            return Fixed(task.key, task.revision, None)
        return Fixed(task.key, task.revision, done.source.data if done.applied else None)
