"""What rules find where the programs of a project run, which lead from file to file.

This comes before the files are checked one by one, and each file is handed what concerns it.
"""

from __future__ import annotations

import gc
import re
from dataclasses import dataclass, field
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dtlint.check.reader import import_root, roots_of
from dtlint.diagnostic import Diagnostic, Location, Note, Severity, Span
from dtlint.infer.interproc.deep_stack import on_deep_stack
from dtlint.source.file import Source, shown_path
from dtlint.unexpected import in_one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from dtlint.catalogue import AnyRule
    from dtlint.check.cache import Cache
    from dtlint.check.job import Job
    from dtlint.infer.interproc.disk import Disk
    from dtlint.infer.interproc.project import ModuleInfo
    from dtlint.infer.interproc.whole_project import WholeProject
    from dtlint.rule import Finding, Rule

__all__ = ["ProjectFindings", "Reported", "project_findings"]

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
    jobs: Sequence[Job],
    rules: Mapping[str, AnyRule],
    cache: Cache | None = None,
    unsaved: Mapping[str, bytes] = MappingProxyType({}),
) -> ProjectFindings:
    """What the rules that ask for facts find in the files of a run. Never raises.

    Args:
        unsaved: what files are to hold that an editor has open, by path.
    """
    codes = {rule.code for rule in rules.values() if rule.asks()}
    texts: dict[Path, bytes] = {}
    wanted: list[Job] = []
    for job in jobs:
        asked = job.path.suffix == ".py" and not codes.isdisjoint(job.codes)
        data = unsaved.get(str(job.path), _bytes(job.path)) if asked else None
        if data is not None:
            wanted.append(job)
            texts[job.path] = data
    wanted = _together(wanted, texts)
    programs = {job.path: texts[job.path] for job in wanted if _may_run(texts[job.path])}
    if not programs:
        return ProjectFindings()
    kept = None if cache is None else _Kept(cache, wanted, programs)
    known = None if kept is None else kept.find()
    if known is not None:
        return ProjectFindings(known)
    asking = [rule.load() for code, rule in rules.items() if code in codes]
    found = ProjectFindings()

    def work() -> None:
        from dtlint.infer.interproc.disk import Disk

        disk = Disk(unsaved)
        try:
            _read(wanted, texts, programs, asking, found, disk)
        except Exception as error:
            found.errors.append(f"internal error: reading the project: {in_one_line(error)}; please report it")
        if kept is not None and not found.errors:
            kept.keep(found.by_file, disk.answers())

    on_deep_stack(work)
    return found


class _Kept:
    """What an earlier run has found by the same programs, as long as the files that these led to are the same, too.

    Args:
        jobs: the files that are judged.
        programs: those that are run, with what is in them.
    """

    def __init__(self, cache: Cache, jobs: Sequence[Job], programs: Mapping[Path, bytes]) -> None:
        self._cache = cache
        self._jobs = {str(job.path): job.path for job in jobs}
        parts = []
        for job in jobs:
            parts += [job.shown, "preview" if job.settings.preview else "", repr(job.settings.declared), *job.codes]
        for path, data in programs.items():
            parts += [str(path), blake2b(data, digest_size=16).hexdigest()]
        self._key = cache.project_key(parts)

    def find(self) -> dict[Path, tuple[Reported, ...]] | None:
        """The findings by file; None where there are none that still hold."""
        from dtlint.infer.interproc.disk import Disk

        entry = self._cache.get_project(self._key)
        try:
            if entry is None or (entry["answers"] and not Disk().gives(entry["answers"])):
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
        self._cache.put_project(self._key, {"found": entry, "answers": answers})


def _numbers(span: Span) -> list[int]:
    return [span.line, span.column, span.end_line, span.end_column]


_SPEAKS = re.compile(
    rb"\b(?:autocast|GradScaler|b?float16|float64|u?int(?:8|16|32|64)|half|double|bool|long|byte|char|short|complex|fft|numpy|np"
    rb"|one_hot|linspace|argmax|masked_fill|stft|view_as_complex)\b"
)
"""Words of which one stands in a project that rules about several files may have something to say of."""
# These begin with the end of the line before, which is found at once; what is searched gets one at its beginning.
_MAY_RUN = re.compile(rb"\n(?:(?:for|while|with|async)\b|[A-Za-z_][\w.]*\()")
"""What stands in a file that may be a program, as does `__main__`: a loop, a call at its top."""
_IMPORTS = re.compile(rb"\n[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import|import[ \t]+([.\w]+))")


def _together(jobs: Sequence[Job], texts: Mapping[Path, bytes]) -> list[Job]:
    """The files that import others of their project, where one of these speaks of dtypes, and the files beside them. Told
    from their text: a file alone is judged alone, at the cost of looking at its imports."""
    groups = _by_root(jobs)
    root_of = {job.path.absolute(): root for root, group in groups.items() for job in group}
    leads = {root: _imported(root, group, texts, _beside(root, groups, group, texts)) for root, group in groups.items()}
    wanted: set[Path] = set()
    waiting = [root for root, group in groups.items() if _concerns(group, texts, leads[root])]
    while waiting:
        root = waiting.pop()
        if root not in wanted:
            wanted.add(root)
            waiting += {root_of[path] for path in leads[root] if path in root_of}
    return [job for root, group in groups.items() if root in wanted for job in group]


def _by_root(jobs: Iterable[Job]) -> dict[Path, list[Job]]:
    """Files by the folder that their absolute imports start from."""
    groups: dict[Path, list[Job]] = {}
    for job in jobs:
        groups.setdefault(import_root(job.path.absolute()), []).append(job)
    return groups


def _beside(root: Path, roots: Collection[Path], group: Sequence[Job], texts: Mapping[Path, bytes]) -> list[Path]:
    """The folders of the project, nearest first, that the files below a root import from, too: programs in `scripts/` and
    modules in folders without an `__init__` import what lies further up, or in `src/` there, the project's own folder is
    that of an installed one, and programs add others to the path."""
    above = [folder for parent in root.parents for folder in (parent, parent / "src") if folder in roots]
    added = [folder for job in group for folder in _added(job.path.absolute(), texts[job.path])]
    installed = roots_of(root / "__main__.py")
    return [folder for folder in dict.fromkeys([*above, *installed, *added]) if folder != root]


def _added(path: Path, data: bytes) -> list[Path]:
    """The folders that a program adds to `sys.path`."""
    if b"sys.path" not in data or not _may_run(data):
        return []
    from dtlint.infer.interproc.parsing import parsed
    from dtlint.infer.interproc.search_path import search_path

    try:
        added = search_path(parsed(data), path)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [*added.before, *added.behind]


def _may_run(data: bytes) -> bool:
    return b"__main__" in data or _MAY_RUN.search(b"\n" + data) is not None


def _imported(root: Path, group: Sequence[Job], texts: Mapping[Path, bytes], beside: Sequence[Path]) -> set[Path]:
    """The files of the project that those below a root import by name."""
    roots = [root, *beside]
    places: dict[tuple[Path, str], list[Path]] = {}
    return {path for job in group for path in _own_imports(texts[job.path], job.path.absolute(), roots, places)}


def _concerns(group: Sequence[Job], texts: Mapping[Path, bytes], imported: set[Path]) -> bool:
    """Do files import others, where one of them speaks of torch and one of dtypes?"""
    known = {job.path.absolute(): texts[job.path] for job in group}
    for path in imported - known.keys():
        known[path] = _bytes(path) or b""
    speaking = any(b"torch" in data for data in known.values()) and any(map(_SPEAKS.search, known.values()))
    return bool(imported) and speaking


def _own_imports(
    data: bytes, path: Path, roots: Sequence[Path], places: dict[tuple[Path, str], list[Path]]
) -> Iterator[Path]:
    """The files of its own project that a file imports by name.

    Args:
        places: the files of each name in each folder, as far as they were looked for.
    """
    for found in set(_IMPORTS.findall(b"\n" + data)):
        name = (found[0] or found[1]).decode(errors="replace")
        dots = len(name) - len(name.lstrip("."))
        folders = [path.parents[dots - 1]] if 0 < dots <= len(path.parents) else roots
        for folder in folders:
            there = places.get((folder, name))
            if there is None:
                target = folder.joinpath(*filter(None, name.strip(".").split(".")))
                there = [file for file in (target.with_suffix(".py"), target / "__init__.py") if file.is_file()]
                places[folder, name] = there
            if there:
                yield from (file for file in there if file != path)
                break


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _read(
    jobs: Sequence[Job],
    texts: Mapping[Path, bytes],
    programs: Collection[Path],
    rules: Sequence[type[Rule]],
    found: ProjectFindings,
    disk: Disk,
) -> None:
    from dtlint.check.judge import DEEPER_THAN_FOLLOWED
    from dtlint.infer.interproc.whole_project import WholeProject

    running = {path.absolute() for path in programs}
    by_path = {job.path.absolute(): job for job in jobs}
    groups = _by_root(jobs)
    followed = 0
    for root, group in groups.items():
        runs = sorted(running.intersection(job.path.absolute() for job in group))
        if not runs:
            continue
        beside = _beside(root, groups, group, texts)
        project = WholeProject(root, beside, disk, followed)
        for path in runs:
            if project.bytes_read > _MOST_BYTES:
                _judge(project, by_path, rules, found, disk)
                project = WholeProject(root, beside, disk, project.followed)
                gc.collect()
            try:
                project.run(path)
            except RecursionError:
                found.errors.append(f"{by_path[path].shown}: {DEEPER_THAN_FOLLOWED}")
                _judge(project, by_path, rules, found, disk)
                project = WholeProject(root, beside, disk, project.followed)
        _judge(project, by_path, rules, found, disk)
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
