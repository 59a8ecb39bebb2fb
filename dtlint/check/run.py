"""A run over many files: in this process if they are few, in several if they are many, and each file for itself.

Whatever happens to one file (it vanishes, a rule crashes, a worker dies) is said about that file; the others are
reported all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dtlint.check.garbage import seldom_searched
from dtlint.check.job import Job, Mode, Result, finish
from dtlint.check.project import known_findings, project_findings
from dtlint.check.reader import Reader
from dtlint.infer.interproc.disk import Disk
from dtlint.source.file import shown_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from dtlint.catalogue import AnyRule
    from dtlint.check.cache import Cache
    from dtlint.check.project import ProjectFindings
    from dtlint.check.verdict import Support
    from dtlint.config import Settings
    from dtlint.diagnostic import Diagnostic

__all__ = ["FEW", "Outcome", "gather", "jobs_of", "run", "without_echoes"]

FEW = 48
"""Up to this many files are checked in this process: starting others costs more than it saves."""
GLANCES = 8
"""Files that are read a second time, for a hint at what would break under half."""
LOOK = Mode()
"""Look, and change nothing."""


@dataclass
class Outcome:
    """What came of all files."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    checked: int = 0
    fixed: int = 0
    added: int = 0
    differences: list[str] = field(default_factory=list)
    support: list[Support] = field(default_factory=list)
    """How the public functions stand under each assumption."""
    glanced_at: int = 0
    """The files in which it was looked at how much would be reported under half,"""
    would_break: list[Diagnostic] = field(default_factory=list)
    """and that, beside the diagnostics."""
    enabled: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The files, as they are shown, each with the rules that were on for it."""
    previewed: set[str] = field(default_factory=set)
    """The files whose conditional findings are among the diagnostics, as they are shown."""
    baselines: dict[str, Path] = field(default_factory=dict)
    """The files whose settings name a baseline, as they are shown, each with that."""


def run(
    files: Sequence[Path],
    settings_for: Callable[[Path], Settings],
    rules: Mapping[str, AnyRule],
    *,
    mode: Mode = LOOK,
    cache: Cache | None = None,
    workers: int | None = None,
    glance: bool = False,
) -> Outcome:
    """Check the files. Diagnostics and differences come in the order of the paths.

    Args:
        glance: look also at how much would be reported under half, in some of them.

    Raises:
        ConfigError: the settings of one of the files are wrong; no file was checked then.
    """
    jobs: Sequence[Job] = list(jobs_of(files, settings_for, rules))
    glanced_at = set(_spread([job.path for job in jobs])) if glance else set()
    jobs = [replace(job, glance=job.path in glanced_at) for job in jobs]
    disk = Disk()
    project = known_findings(jobs, rules, disk, cache)
    jobs = _with_reported(jobs, project)
    results = _remembered(jobs, cache, mode, disk)
    missing = [job for job in jobs if job.path not in results]
    if project is None:
        if len(missing) <= FEW or workers == 1 or mode != LOOK:
            with seldom_searched():
                project = project_findings(jobs, rules, disk, cache)
        else:
            from dtlint.check.workers import with_project

            del disk  # and what the files hold, before other processes begin with a copy of it
            found, project = with_project(missing, jobs, rules, mode, cache, workers)
            results.update(found)
            disk = Disk()
        jobs = _with_reported(jobs, project)
        reported = [job for job in jobs if job.reported]
        for job in reported:
            results.pop(job.path, None)
        results.update(_remembered(reported, cache, mode, disk))
        missing = [job for job in jobs if job.path not in results]
    del disk
    with seldom_searched():
        if len(missing) <= FEW or workers == 1:
            reader = Reader(job.path for job in missing)
            results.update((job.path, finish(job, rules, mode, cache, reader)) for job in missing)
        else:
            from dtlint.check.workers import in_processes

            results.update(in_processes(missing, rules, mode, cache, workers))
    if cache is not None and missing:
        cache.prune()
    outcome = gather(results[job.path] for job in jobs)
    asked = {id(one) for one in outcome.would_break}
    together = without_echoes([*outcome.diagnostics, *outcome.would_break])
    outcome.would_break = [one for one in together if id(one) in asked]
    outcome.diagnostics = without_echoes(outcome.diagnostics)
    outcome.errors += project.errors
    outcome.enabled = {job.shown: job.codes for job in jobs}
    outcome.previewed = {job.shown for job in jobs if job.settings.preview}
    outcome.baselines = {job.shown: job.settings.baseline for job in jobs if job.settings.baseline is not None}
    return outcome


def _spread(paths: Sequence[Path]) -> Sequence[Path]:
    """A few of many files, from all over the project: reading these twice costs little beside reading all once."""
    if len(paths) <= GLANCES:
        return paths
    return [paths[number * len(paths) // GLANCES] for number in range(GLANCES)]


def without_echoes(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Diagnostics without those of calls that lead to where another one of that rule stands: a file by itself shows the
    one, and the project the other. What such a call leads to is said in its message, and in the note there."""
    told = {(one.code, one.location.path, one.location.span.line) for one in diagnostics}
    return [
        one
        for one in diagnostics
        if not any(
            (one.code, note.location.path, note.location.span.line) in told
            and one.message.lower().endswith(note.message.lower())
            for note in one.notes
        )
    ]


def jobs_of(
    files: Iterable[Path], settings_for: Callable[[Path], Settings], rules: Mapping[str, AnyRule]
) -> Iterator[Job]:
    """Each file with its settings, and the rules that are on for it.

    Raises:
        ConfigError, PatternError: the settings of one of the files are wrong.
    """
    usual: dict[Settings, tuple[str, ...]] = {}
    for path in files:
        settings = settings_for(path)
        if settings.per_file_ignores:
            codes = tuple(rule.code for rule in settings.enabled(rules, path))
        else:
            if settings not in usual:
                usual[settings] = tuple(rule.code for rule in settings.enabled(rules))
            codes = usual[settings]
        yield Job(path, shown_path(path), settings, codes)


def _with_reported(jobs: Sequence[Job], project: ProjectFindings | None) -> Sequence[Job]:
    """The files with what is known of each by the others."""
    if project is None or not project.by_file:
        return jobs
    return [replace(job, reported=project.by_file.get(job.path, ())) for job in jobs]


def _remembered(jobs: Iterable[Job], cache: Cache | None, mode: Mode, disk: Disk) -> dict[Path, Result]:
    """The results of an earlier run that hold for this one."""
    if cache is None:
        return {}
    return {job.path: known for job in jobs if (known := _known(job, cache, mode, disk)) is not None}


def _known(job: Job, cache: Cache, mode: Mode, disk: Disk) -> Result | None:
    """The result of an earlier run, if nothing is to be done about it."""
    digest = disk.digest(job.path.absolute())
    if digest is None:
        return None
    entry = cache.get(cache.key(digest, job.shown, job.settings, job.codes, job.reported), disk.digest)
    if entry is None:
        return None
    known = entry.diagnostics
    if known and mode.suppress is not None:
        return None
    if known and mode.fix:
        from dtlint.check.fix import applicable

        if any(diagnostic.fix and applicable(diagnostic.fix, mode.fix) for diagnostic in known):
            return None
    is_looked_at = job.glance and not job.settings.assumptions_for(job.path)
    if is_looked_at and entry.would_break is None:
        return None  # that run did not look, as with --fix
    return Result(known, support=entry.support, would_break=entry.would_break if is_looked_at else None)


def gather(results: Iterable[Result]) -> Outcome:
    """Results of single files as one."""
    outcome = Outcome()
    for result in results:
        outcome.checked += 1
        outcome.diagnostics += result.diagnostics
        outcome.errors += result.errors
        outcome.fixed += result.fixed
        outcome.added += result.added
        outcome.support += result.support
        outcome.glanced_at += result.would_break is not None
        outcome.would_break += result.would_break or ()
        outcome.differences += [result.difference] if result.difference else []
    outcome.diagnostics.sort(key=lambda diagnostic: diagnostic.sort_key)
    return outcome
