"""What rules find where the programs of a project run, which lead from file to file.

Each file is handed what concerns it. Where files are many, this is read in one process while they are checked in others.
"""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtlint.check.outline import outlines_of
from dtlint.check.reader import import_root, roots_of
from dtlint.diagnostic import Diagnostic, Location, Note, Severity, Span
from dtlint.infer.interproc.deep_stack import on_deep_stack
from dtlint.source.file import Source, shown_path
from dtlint.unexpected import in_one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.check.cache import Cache
    from dtlint.check.job import Job
    from dtlint.check.outline import Outline
    from dtlint.infer.interproc.disk import Disk
    from dtlint.infer.interproc.project import ModuleInfo
    from dtlint.infer.interproc.whole_project import WholeProject
    from dtlint.rule import Finding, Rule

__all__ = ["ProjectFindings", "Reported", "known_findings", "project_findings"]

_MOST_BYTES = 5_000_000
"""Of source that is held as syntax, which takes some sixty times as much: then reading begins anew."""
_WORTH_A_SEARCH = 1_000_000
"""Bytes of source that were held, of which it is worth a second to have the memory back."""


@dataclass(frozen=True)
class Reported:
    """What a rule has found in a file by knowing the others.

    Attributes:
        span: where, in the file's text.
        notes: second places: the file as it is shown, where in it, and what happens there.
    """

    code: str
    span: Span
    message: str
    help: str
    notes: tuple[tuple[str, Span, str], ...]
    conditional: bool = False
    severity: Severity | None = None

    def diagnostic(self, rule: AnyRule, source: Source) -> Diagnostic:
        """As a diagnostic of the file."""
        location = source.location(self.span)
        return Diagnostic(
            code=self.code,
            name=rule.name,
            severity=self.severity or rule.severity,
            conditional=self.conditional,
            message=self.message,
            location=location,
            help=self.help,
            notes=tuple(Note(Location(path, span, None, span.line), text) for path, span, text in self.notes),
            fix=None,
            lines=source.frame(self.span),
            noqa_line=location.span.end_line,
        )


@dataclass
class ProjectFindings:
    """What rules have found in files by knowing the others, and what went wrong on the way, a sentence each."""

    by_file: dict[Path, tuple[Reported, ...]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def project_findings(
    jobs: Sequence[Job], rules: Mapping[str, AnyRule], disk: Disk, cache: Cache | None = None
) -> ProjectFindings:
    """What the rules that ask for facts find in the files of a run. Never raises.

    Args:
        disk: what the files hold.
    """
    asked = _Programs(jobs, rules, disk, cache)
    return asked.known() or asked.read()


def known_findings(
    jobs: Sequence[Job], rules: Mapping[str, AnyRule], disk: Disk, cache: Cache | None = None
) -> ProjectFindings | None:
    """The same as far as an earlier run has found it, or there are no programs to be read; None: they are to be read."""
    return _Programs(jobs, rules, disk, cache).known()


class _Programs:
    """The programs of a run, and what rules find where they run."""

    def __init__(
        self, jobs: Sequence[Job], rules: Mapping[str, AnyRule], disk: Disk, cache: Cache | None = None
    ) -> None:
        codes = {rule.code for rule in rules.values() if rule.asks()}
        asked = {
            job.path.absolute(): job for job in jobs if job.path.suffix == ".py" and not codes.isdisjoint(job.codes)
        }
        self._disk = disk
        self._outlines = outlines_of(asked, disk, cache)
        self._wanted = _together({path: asked[path] for path in self._outlines}, self._outlines, disk)
        self._rules = [rule for code, rule in rules.items() if code in codes]
        self._programs = [path for path in self._wanted if self._outlines[path].may_run]
        self._kept: _Kept | None = None
        if cache is not None and self._programs:
            self._kept = _Kept(cache, self._wanted, self._programs, disk)

    def known(self) -> ProjectFindings | None:
        """What is found without reading them; None where nothing is known of that."""
        if not self._programs:
            return ProjectFindings()
        known = None if self._kept is None else self._kept.find()
        return None if known is None else ProjectFindings(known)

    def read(self) -> ProjectFindings:
        """What is found by reading them."""
        found = ProjectFindings()
        asking = [rule.load() for rule in self._rules]

        def work() -> None:
            disk = self._disk.anew()
            try:
                _read(self._wanted, self._outlines, self._programs, asking, found, disk)
            except Exception as error:
                found.errors.append(f"internal error: reading the project: {in_one_line(error)}; please report it")
            if self._kept is not None and not found.errors:
                self._kept.keep(found.by_file, disk.answers())

        on_deep_stack(work)
        return found


class _Kept:
    """What an earlier run has found by the same programs, as long as the files that these led to are the same, too.

    Args:
        jobs: the files that are judged.
        programs: those that are run.
    """

    def __init__(self, cache: Cache, jobs: Mapping[Path, Job], programs: Iterable[Path], disk: Disk) -> None:
        self._cache = cache
        self._disk = disk
        self._jobs = {str(job.path): job.path for job in jobs.values()}
        parts = ["project"]
        for job in jobs.values():
            parts += [job.shown, "preview" if job.settings.preview else "", repr(job.settings.declared), *job.codes]
        for path in programs:
            parts += [str(path), str(disk.digest(path))]
        self._key = cache.key_of(parts)

    def find(self) -> dict[Path, tuple[Reported, ...]] | None:
        """The findings by file; None where there are none that still hold."""
        entry = self._cache.get_entry(self._key)
        try:
            if entry is None or (entry["answers"] and not self._disk.gives(entry["answers"])):
                return None
            return {
                self._jobs[path]: tuple(
                    Reported(
                        code,
                        Span(*span),
                        message,
                        help,
                        tuple((at, Span(*where), text) for at, where, text in notes),
                        conditional,
                        None if severity is None else Severity[severity],
                    )
                    for code, span, message, help, notes, conditional, severity in given
                )
                for path, given in entry["found"].items()
            }
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def keep(self, found: Mapping[Path, tuple[Reported, ...]], answers: dict[str, Any]) -> None:
        """Keep the findings, with what was asked of the disk beside the files themselves."""
        entry = {
            str(path): [
                [
                    one.code,
                    _numbers(one.span),
                    one.message,
                    one.help,
                    [[at, _numbers(where), text] for at, where, text in one.notes],
                    one.conditional,
                    None if one.severity is None else one.severity.name,
                ]
                for one in given
            ]
            for path, given in found.items()
        }
        self._cache.put_entry(self._key, {"found": entry, "answers": answers})


def _numbers(span: Span) -> list[int]:
    return [span.line, span.column, span.end_line, span.end_column]


def _together(jobs: Mapping[Path, Job], outlines: Mapping[Path, Outline], disk: Disk) -> dict[Path, Job]:
    """The files that import others of their project, where one of these speaks of dtypes, and the files beside them. A file
    alone is judged alone, at the cost of looking at its imports."""
    groups = _by_root(jobs)
    root_of = {path: root for root, group in groups.items() for path in group}
    leads = {
        root: _imported(root, group, outlines, _beside(root, groups, group, outlines, disk), disk)
        for root, group in groups.items()
    }
    wanted: set[Path] = set()
    waiting = [root for root, group in groups.items() if _concerns(group, outlines, leads[root], disk)]
    while waiting:
        root = waiting.pop()
        if root not in wanted:
            wanted.add(root)
            waiting += {root_of[path] for path in leads[root] if path in root_of}
    return {path: jobs[path] for root, group in groups.items() if root in wanted for path in group}


def _by_root(paths: Iterable[Path]) -> dict[Path, list[Path]]:
    """Files by the folder that their absolute imports start from."""
    groups: dict[Path, list[Path]] = {}
    for path in paths:
        groups.setdefault(import_root(path), []).append(path)
    return groups


def _beside(
    root: Path, roots: Collection[Path], group: Sequence[Path], outlines: Mapping[Path, Outline], disk: Disk
) -> list[Path]:
    """The folders of the project, nearest first, that the files below a root import from, too: programs in `scripts/` and
    modules in folders without an `__init__` import what lies further up, or in `src/` there, the project's own folder is
    that of an installed one, and programs add others to the path."""
    above = [folder for parent in root.parents for folder in (parent, parent / "src") if folder in roots]
    programs = [path for path in group if outlines[path].adds_folders and outlines[path].may_run]
    added = [folder for path in programs for folder in _added(path, disk)]
    installed = roots_of(root / "__main__.py")
    return [folder for folder in dict.fromkeys([*above, *installed, *added]) if folder != root]


def _added(path: Path, disk: Disk) -> list[Path]:
    """The folders that a program adds to `sys.path`."""
    from dtlint.infer.interproc.parsing import parsed
    from dtlint.infer.interproc.search_path import search_path

    try:
        added = search_path(parsed(disk.read(path)), path)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [*added.before, *added.behind]


def _concerns(group: Sequence[Path], outlines: Mapping[Path, Outline], imported: set[Path], disk: Disk) -> bool:
    """Do files import others, where one of them speaks of torch and one of dtypes?"""
    if not imported:
        return False
    known = [outlines[path] for path in group]
    known += outlines_of(imported.difference(group), disk, None).values()
    return any(one.torch for one in known) and any(one.dtypes for one in known)


def _imported(
    root: Path, group: Sequence[Path], outlines: Mapping[Path, Outline], beside: Sequence[Path], disk: Disk
) -> set[Path]:
    """The files of the project that those below a root import by name."""
    # As text: of thousands of names few are files, and only these are worth a Path.
    roots = [str(folder) for folder in (root, *beside)]
    named: dict[tuple[str, str], list[str]] = {}
    found: set[str] = set()
    for path in group:
        here, folder = str(path), str(path.parent)
        for name in outlines[path].imports:
            key = folder if name.startswith(".") else "", name
            if key not in named:
                named[key] = _named(name, folder, roots, disk)
            found.update(file for file in named[key] if file != here)
    return set(map(Path, found))


def _named(name: str, folder: str, roots: Sequence[str], disk: Disk) -> list[str]:
    """The files of its own project that a file in a folder imports by a name."""
    below = name.lstrip(".")
    if below != name:
        above = [*(os.pardir,) * (len(name) - len(below) - 1), *filter(None, below.split("."))]
        return _at(os.path.normpath(os.path.join(folder, *above)), disk)
    parts = name.split(".")
    there = [root for root in roots if len(parts) == 1 or disk.is_folder(os.path.join(root, parts[0]))]
    return next(filter(None, (_at(os.path.join(root, *parts), disk) for root in there)), [])


def _at(target: str, disk: Disk) -> list[str]:
    """The files of a module, or of a package."""
    return [file for file in (f"{target}.py", os.path.join(target, "__init__.py")) if disk.is_file(file)]


def _read(
    jobs: Mapping[Path, Job],
    outlines: Mapping[Path, Outline],
    programs: Collection[Path],
    rules: Sequence[type[Rule]],
    found: ProjectFindings,
    disk: Disk,
) -> None:
    from dtlint.check.judge import DEEPER_THAN_FOLLOWED
    from dtlint.infer.interproc.whole_project import WholeProject

    groups = _by_root(jobs)
    followed = 0
    for root, group in groups.items():
        runs = sorted(set(programs).intersection(group))
        if not runs:
            continue
        beside = _beside(root, groups, group, outlines, disk)
        project = WholeProject(root, beside, disk, followed)
        for path in runs:
            if project.bytes_read > _MOST_BYTES:
                _judge(project, jobs, rules, found, disk)
                project = WholeProject(root, beside, disk, project.followed)
                gc.collect()
            try:
                project.run(path)
            except RecursionError:
                found.errors.append(f"{jobs[path].shown}: {DEEPER_THAN_FOLLOWED}")
                _judge(project, jobs, rules, found, disk)
                project = WholeProject(root, beside, disk, project.followed)
        _judge(project, jobs, rules, found, disk)
        followed = project.followed
        if project.bytes_read > _WORTH_A_SEARCH:
            del project  # what was read leads back to itself
            gc.collect()


def _judge(
    project: WholeProject,
    jobs: Mapping[Path, Job],
    rules: Sequence[type[Rule]],
    found: ProjectFindings,
    disk: Disk,
) -> None:
    """What the rules find in the files in which something happened; what was found there before stays."""
    for path, info in project.reached(jobs.keys()).items():
        job = jobs[path]
        reported = tuple(_reported(project, info, job, rules, found.errors, disk))
        if reported:
            known = found.by_file.get(job.path, ())
            places = {(one.code, one.span) for one in known}
            found.by_file[job.path] = (*known, *(one for one in reported if (one.code, one.span) not in places))


def _reported(
    project: WholeProject, info: ModuleInfo, job: Job, rules: Sequence[type[Rule]], errors: list[str], disk: Disk
) -> Iterable[Reported]:
    from dtlint.check.judge import is_expected
    from dtlint.check.settings import finder
    from dtlint.infer.facts import ModuleFacts

    facts = ModuleFacts(project.recording.kept, info, project.judged)
    facts.declared = job.settings.declared
    facts.settings_file = finder(job.path, disk, lambda path: None)
    source: Source | None = None
    for rule in rules:
        if rule.code not in job.codes:
            continue
        seen: set[tuple[int, int]] = set()
        try:
            findings = list(rule().on_facts(facts))
        except Exception as error:
            from dtlint.check.judge import crash

            errors.append(crash(rule, job.shown, error))
            continue
        for finding in sorted(findings, key=lambda one: one.conditional):
            if (finding.conditional and not job.settings.preview) or is_expected(facts, finding):
                continue
            place = finding.node.lineno, finding.node.col_offset
            if place in seen:
                continue
            seen.add(place)
            source = source or Source.from_bytes(disk.read(job.path), job.shown, job.path)
            yield _as_reported(rule, finding, source, disk)


def _as_reported(rule: type[Rule], finding: Finding, source: Source, disk: Disk) -> Reported:
    notes = [(source.path, source.span(node), text) for node, text in finding.notes]
    for step, text in finding.elsewhere:
        path = step.module.path
        other = Source.from_bytes(disk.read(path), shown_path(path), path)
        notes.append((other.path, other.span(step.node), text))
    notes += [(file.shown, span, text) for file, span, text in finding.settings]
    span = source.span(finding.node)
    return Reported(rule.code, span, finding.message, finding.help, tuple(notes), finding.conditional, finding.severity)
